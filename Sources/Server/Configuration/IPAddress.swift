/// An IPv4 or IPv6 address. Two spellings of the same address compare equal.
///
/// Limits, bans and proxy trust all compare addresses. If they compared text, `::ffff:10.0.0.1` and `10.0.0.1`, or
/// `2001:DB8::1` and `2001:db8:0::1`, would count as different clients. An IPv4-mapped address (RFC 4291 §2.5.5.2) is
/// therefore stored as its IPv4 address, and ``description`` is the canonical text.
///
/// ```swift
/// IPAddress("::ffff:192.0.2.1")?.description  // "192.0.2.1"
/// IPAddress("2001:DB8::0:1")?.description     // "2001:db8::1"
/// ```
public struct IPAddress: Hashable, Sendable {
    /// The address in network byte order: 4 bytes for IPv4, 16 for IPv6.
    public let bytes: [UInt8]

    public var isIPv4: Bool { bytes.count == 4 }

    /// Returns nil unless there are 4 or 16 bytes.
    ///
    /// - Parameter bytes: the address in network byte order.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        let all = Array(bytes)
        self.bytes = all.starts(with: Self.mappedPrefix) ? Array(all.suffix(4)) : all
    }

    /// Parses dotted-quad IPv4 or RFC 4291 IPv6 text, without brackets, port or prefix length.
    ///
    /// Drops a zone (`fe80::1%eth0`), because it names a local interface and not the peer. Returns nil for anything else,
    /// including octal and shortened IPv4 forms (`010.1`), which parsers interpret differently.
    public init?(_ text: some StringProtocol) {
        // Reject long text: an address has at most 45 characters, and a zone may follow.
        guard text.utf8.count <= 64 else { return nil }
        let parts = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        if parts.count == 2, parts[1].isEmpty || !parts[0].contains(":") { return nil }
        guard let address = parts.first else { return nil }
        let parsed = address.contains(":") ? Self.parseIPv6(address) : Self.parseIPv4(address)
        guard let parsed else { return nil }
        self.init(bytes: parsed)
    }

    public var isLoopback: Bool { isIPv4 ? bytes[0] == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1] }

    public var isLinkLocal: Bool {
        isIPv4 ? bytes[0] == 169 && bytes[1] == 254 : bytes[0] == 0xfe && bytes[1] & 0xc0 == 0x80
    }

    /// True for an address of a private network (RFC 1918, or unique local addresses of RFC 4193).
    public var isPrivate: Bool {
        guard isIPv4 else { return bytes[0] & 0xfe == 0xfc }
        return bytes[0] == 10 || (bytes[0] == 172 && bytes[1] & 0xf0 == 16) || (bytes[0] == 192 && bytes[1] == 168)
    }

    /// The block that limits and bans treat as one client: the address itself for IPv4, its /64 for IPv6. A household gets at
    /// least a /64 and could otherwise use a new address for each attempt.
    public var limitingBlock: CIDRBlock { CIDRBlock(address: self, prefixLength: isIPv4 ? 32 : 64) }

    /// The block that all addresses of one customer may share: the address itself for IPv4, its /56 for IPv6. Providers
    /// give a customer up to a /56, which contains 256 limiting blocks (RIPE 690 §4.2.1). Its limits are `wideFactor`
    /// times those of a limiting block.
    public var wideBlock: CIDRBlock { CIDRBlock(address: self, prefixLength: isIPv4 ? 32 : Self.widePrefix) }

    static let widePrefix = 56

    /// The factor between the limits of a limiting block and those of a wide block. Four, because some providers give
    /// each customer only a /64. Up to 256 customers then share a /56, but few of them connect at the same time.
    public static let wideFactor = 4

    private static let mappedPrefix = [UInt8](repeating: 0, count: 10) + [0xff, 0xff]

    private static func parseIPv4(_ text: some StringProtocol) -> [UInt8]? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bytes: [UInt8] = []
        for part in parts {
            // Reject leading zeros: some parsers read such a number as octal, others as decimal.
            guard (1...3).contains(part.utf8.count), part.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                part == "0" || part.first != "0", let byte = UInt8(part)
            else { return nil }
            bytes.append(byte)
        }
        return bytes
    }

    private static func parseIPv6(_ text: some StringProtocol) -> [UInt8]? {
        let text = String(text)
        guard let gap = text.firstRange(of: "::") else {
            return groups(text[...]).flatMap { $0.count == 16 ? $0 : nil }
        }
        guard let head = groups(text[..<gap.lowerBound]), let tail = groups(text[gap.upperBound...]) else { return nil }
        // "::" represents at least one group of zeros.
        let missing = 16 - head.count - tail.count
        // Dotted IPv4 is allowed only at the end of the whole address, not before "::".
        guard missing >= 2, !text[..<gap.lowerBound].contains(".") else { return nil }
        return head + [UInt8](repeating: 0, count: missing) + tail
    }

    /// Parses colon-separated groups, the last of which may be dotted IPv4, and returns their bytes. Returns nil if a
    /// group is invalid or there are too many. Empty text has no groups.
    private static func groups(_ text: Substring) -> [UInt8]? {
        if text.isEmpty { return [] }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        var bytes: [UInt8] = []
        for (index, part) in parts.enumerated() {
            if index == parts.count - 1, part.contains(".") {
                guard let quad = parseIPv4(part) else { return nil }
                bytes += quad
            } else {
                guard (1...4).contains(part.utf8.count), part.utf8.allSatisfy(isHexDigit),
                    let group = UInt16(part, radix: 16)
                else { return nil }
                bytes += [UInt8(group >> 8), UInt8(group & 0xff)]
            }
        }
        return bytes.count <= 16 ? bytes : nil
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
        default: false
        }
    }
}

extension IPAddress {
    /// Whether this is 0.0.0.0 or ::, the address on which a socket accepts connections to every address of the machine.
    var isUnspecified: Bool { bytes.allSatisfy { $0 == 0 } }
}

extension IPAddress: CustomStringConvertible {
    /// The canonical text: a dotted quad, or the form of RFC 5952 with lower case, no leading zeros, and `::` for the first
    /// longest run of two or more zero groups.
    public var description: String {
        if isIPv4 { return bytes.map(String.init).joined(separator: ".") }
        let groups = stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        var longest = 0..<0
        var start = 0
        while start < groups.count {
            let end = groups[start...].firstIndex { $0 != 0 } ?? groups.count
            if end - start > longest.count { longest = start..<end }
            start = max(end, start + 1)
        }
        let hex = { (part: ArraySlice<UInt16>) in part.map { String($0, radix: 16) }.joined(separator: ":") }
        guard longest.count >= 2 else { return hex(groups[...]) }
        return hex(groups[..<longest.lowerBound]) + "::" + hex(groups[longest.upperBound...])
    }
}
