@testable import RTC

extension FuzzTarget {
    /// Fuzzes the server's ICE agent. The input is used as a datagram from any address, and as the attributes of a correctly
    /// signed request, because a fuzzer cannot guess the signature. Unsigned requests must get no response, and signed requests
    /// a short one.
    static let stun = FuzzTarget("stun", longestInput: 600) { input throws(BrokenProperty) in
        let path = Path(socket: 0, remote: TransportAddress(v4: 0xc000_0201, port: 5))
        let now = MediaTime(nanoseconds: 0)
        guard let local = ICECredentials(ufrag: "ours", password: "0123456789abcdefghijklmn") else { return }
        let key = Array(local.password.utf8)

        var agent = ICELiteAgent(local: local, remoteUfrag: "them")
        let line = HeardDatagrams()
        let (isAuthentic, outcome) = input.withUnsafeBytes { bytes in
            _ = STUN.username(of: bytes)
            return (
                STUNMessage(bytes)?.isAuthentic(key) ?? false,
                agent.handle(bytes, on: path, now: now, sink: line)
            )
        }
        if !isAuthentic {
            try require(
                line.sent.isEmpty && !agent.hasPath, "an unauthenticated request gets a response or a path: \(outcome)")
        }
        try checkSigned(input, &agent, key, line, path, now)
    }

    private static func checkSigned(
        _ input: [UInt8], _ agent: inout ICELiteAgent, _ key: [UInt8], _ line: HeardDatagrams, _ path: Path,
        _ now: MediaTime
    ) throws(BrokenProperty) {
        line.sent = []
        var reader = InputReader(input)
        var memory = [UInt8](repeating: 0, count: STUN.maxBytes)
        let length = memory.withUnsafeMutableBytes { memory in
            var writer = STUNWriter(memory, .request, transaction: STUNTransaction(high: 1, low: 2))
            writer.username(Array("ours:them".utf8))
            while !reader.isEmpty {
                let type = UInt16(reader.byte()) << 8 | UInt16(reader.byte())
                writer.raw(type, reader.bytes(reader.index(below: 32)))
            }
            return writer.finish(key: key)
        }
        guard let length else { return }
        let outcome = memory.withUnsafeBytes {
            agent.handle(UnsafeRawBufferPointer(rebasing: $0[..<length]), on: path, now: now, sink: line)
        }
        try require(line.sent.count <= 1, "one request gets \(line.sent.count) responses")
        for answer in line.sent {
            try require(answer.count <= 84, "a response has \(answer.count) bytes")
            let isRead = answer.withUnsafeBytes { STUNMessage($0)?.isAuthentic(key) ?? false }
            try require(isRead, "our own response cannot be parsed: \(outcome)")
        }
    }
}

/// Stores the datagrams that are sent.
final class HeardDatagrams: DatagramSink {
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 8)
    var sent: [[UInt8]] = []

    deinit { memory.deallocate() }
    func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer { memory }
    func send(_ count: Int, on path: Path) { sent.append(Array(memory.prefix(count))) }
}
