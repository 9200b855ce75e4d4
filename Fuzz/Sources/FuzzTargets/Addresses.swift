import Server

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension FuzzTarget {
    /// Fuzzes the parser of IP addresses and address blocks.
    static let addresses = FuzzTarget("addresses", longestInput: 80, dictionary: "addresses") {
        input throws(BrokenProperty) in
        let text = String(decoding: input, as: UTF8.self)
        let address = IPAddress(text)
        if let address {
            try require(IPAddress(address.description) == address, "\(text) is encoded as \(address), which differs")
            try require(address.limitingBlock.contains(address), "\(address) is not in its own block")
            let wide = address.wideBlock
            try require(wide.contains(address.limitingBlock.network), "the wide block of \(address) has not its block")
        }
        // Skip text with a zone, because our parser drops zones, and text with a zero byte, which would end a C string.
        if !text.contains("%"), !input.contains(0), text.utf8.count <= 64 {
            let expected = addressOfSystem(text)
            try require(
                address == expected, "\(text) is parsed as \(text: address), but inet_pton returns \(text: expected)")
        }
        guard let block = CIDRBlock(text) else { return }
        try require(CIDRBlock(block.description) == block, "\(text) is encoded as \(block), which differs")
        try require(block.contains(block.network), "\(block) does not contain its first address")
        try require(
            CIDRBlock(address: block.network, prefixLength: block.prefixLength) == block,
            "the network of \(block) has host bits set")
    }

    /// Returns the result of `inet_pton`. Proxies and firewalls read addresses in the same way.
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
