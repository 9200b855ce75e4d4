import Server

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension FuzzTarget {
    /// An IP address or a block of addresses.
    static let addresses = FuzzTarget("addresses", longestInput: 80, dictionary: "addresses") {
        input throws(BrokenProperty) in
        let text = String(decoding: input, as: UTF8.self)
        let address = IPAddress(text)
        if let address {
            try require(IPAddress(address.description) == address, "\(text) is encoded as \(address), which differs")
            try require(address.limitingBlock.contains(address), "\(address) is not in its own block")
        }
        // Our parser drops zones, and a zero byte would end a C string.
        if !text.contains("%"), !input.contains(0), text.utf8.count <= 64 {
            let expected = addressOfSystem(text)
            try require(address == expected, "\(text) is \(text: address), but the system has \(text: expected)")
        }
        guard let block = CIDRBlock(text) else { return }
        try require(CIDRBlock(block.description) == block, "\(text) is encoded as \(block), which differs")
        try require(block.contains(block.network), "\(block) does not contain its first address")
        try require(
            CIDRBlock(address: block.network, prefixLength: block.prefixLength) == block, "\(block) has host bits set")
    }

    /// The result of `inet_pton`, which proxies and firewalls agree with.
    private static func addressOfSystem(_ text: String) -> IPAddress? {
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 { return IPAddress(bytes: bytes.prefix(4)) }
        return inet_pton(AF_INET6, text, &bytes) == 1 ? IPAddress(bytes: bytes) : nil
    }
}

extension DefaultStringInterpolation {
    fileprivate mutating func appendInterpolation(text address: IPAddress?) {
        appendLiteral(address.map(\.description) ?? "no address")
    }
}
