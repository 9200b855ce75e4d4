@testable import Server

extension FuzzTarget {
    /// Fuzzes what the server reads of a TLS connection before the TLS handler, while an authority verifies a domain. The result
    /// must not depend on how the bytes arrive.
    static let clientHellos = FuzzTarget("client-hellos", longestInput: 2048) { input throws(BrokenProperty) in
        var whole = ClientHelloReader()
        let progress = whole.read(input)
        var single = ClientHelloReader()
        for byte in input { _ = single.read([byte]) }
        try require(single.progress == progress, "single bytes are read as \(single.progress), not as \(progress)")
        guard case .complete(let hello) = progress else { return }
        let size = hello.protocols.reduce(hello.serverName?.utf8.count ?? 0) { $0 + $1.count }
        try require(size < input.count, "\(hello) is larger than the input")
        try require(hello.protocols.allSatisfy { !$0.isEmpty }, "a protocol has no name")
        if hello.challengeDomain != nil {
            try require(hello.protocols.count == 1, "a client that offers other protocols passes for an authority")
        }
        var later = ClientHelloReader()
        try require(later.read(input + input) == progress, "bytes after the message change it")
    }
}
