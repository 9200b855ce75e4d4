import Server

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

extension FuzzTarget {
    /// An address, or a block of them.
    static let addresses = FuzzTarget("addresses", longestInput: 80, dictionary: "addresses") {
        input throws(BrokenProperty) in
        let text = String(decoding: input, as: UTF8.self)
        let address = IPAddress(text)
        if let address {
            try require(IPAddress(address.description) == address, "\(text) is written as \(address), which is another")
            try require(address.limitingBlock.contains(address), "\(address) is not in its own block")
        }
        // A zone is ours to drop, and a zero would end a C string.
        if !text.contains("%"), !input.contains(0), text.utf8.count <= 64 {
            let expected = addressOfSystem(text)
            try require(address == expected, "\(text) is \(text: address), and to the system \(text: expected)")
        }
        guard let block = CIDRBlock(text) else { return }
        try require(CIDRBlock(block.description) == block, "\(text) is written as \(block), which is another")
        try require(block.contains(block.network), "\(block) does not contain its first address")
        try require(
            CIDRBlock(address: block.network, prefixLength: block.prefixLength) == block, "\(block) has loose bits")
    }

    /// What `inet_pton` makes of it, which every proxy and firewall agrees with.
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
