/// A block of addresses such as `10.0.0.0/8` or `2001:db8::/32`.
public struct CIDRBlock: Hashable, Sendable {
    /// The first address of the block. Bits beyond the prefix are zero, so that equal blocks compare equal.
    public let network: IPAddress
    /// The length of the prefix in bits: 0...32 for IPv4, 0...128 for IPv6.
    public let prefixLength: Int

    /// Creates the block that contains the address.
    ///
    /// - Parameter prefixLength: the length of the prefix in bits; limited to the length of the address.
    public init(address: IPAddress, prefixLength: Int) {
        let length = min(max(prefixLength, 0), address.bytes.count * 8)
        let masked = address.bytes.enumerated().map { index, byte in
            byte & Self.mask(forByte: index, prefixLength: length)
        }
        // This is never nil, because masking does not change the number of bytes. It cannot turn an IPv6 address into
        // an IPv4-mapped one either, because mapped addresses are stored as IPv4.
        self.network = IPAddress(bytes: masked) ?? address
        self.prefixLength = length
    }

    /// Parses `address/length`, or a single address as a block of one. An IPv4-mapped block (`::ffff:10.0.0.0/104`) becomes
    /// its IPv4 block.
    ///
    /// Returns nil for anything else, and for an address with bits set beyond the prefix: `10.1.2.3/8` is probably a mistake.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, !first.contains("%"), let address = IPAddress(first) else { return nil }
        let size = address.bytes.count * 8
        guard parts.count == 2 else {
            self.init(address: address, prefixLength: size)
            return
        }
        guard (1...3).contains(parts[1].utf8.count), parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            var length = Int(parts[1])
        else { return nil }
        if address.isIPv4, first.contains(":") { length -= 96 }
        guard (0...size).contains(length) else { return nil }
        self.init(address: address, prefixLength: length)
        if network != address { return nil }
    }

    public func contains(_ address: IPAddress) -> Bool {
        guard address.bytes.count == network.bytes.count else { return false }
        return zip(address.bytes, network.bytes).enumerated().allSatisfy { index, pair in
            pair.0 & Self.mask(forByte: index, prefixLength: prefixLength) == pair.1
        }
    }

    private static func mask(forByte index: Int, prefixLength: Int) -> UInt8 {
        let bits = min(max(prefixLength - index * 8, 0), 8)
        return bits == 0 ? 0 : UInt8(truncatingIfNeeded: 0xff << (8 - bits))
    }
}

extension CIDRBlock: CustomStringConvertible {
    public var description: String { "\(network)/\(prefixLength)" }
}

/// The proxies whose forwarding headers are trusted. Empty by default.
public struct TrustedProxies: Hashable, Sendable {
    public var blocks: [CIDRBlock]

    public init(_ blocks: [CIDRBlock] = []) {
        self.blocks = blocks
    }

    public func contains(_ address: IPAddress) -> Bool {
        blocks.contains { $0.contains(address) }
    }
}
