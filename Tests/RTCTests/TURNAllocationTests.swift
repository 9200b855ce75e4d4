import TestSupport
import Testing

@testable import RTC

@Suite("Trying a STUN or TURN server") struct TURNAllocationTests {
    /// A TURN server that knows one user. It answers messages one by one.
    private struct Server {
        /// MD5 of `ann:example.org:secret`, computed with another program.
        static let key: [UInt8] = [
            0x6b, 0x19, 0x37, 0x11, 0x44, 0x6b, 0xad, 0x11, 0xe3, 0x47, 0xc1, 0x01, 0xe4, 0xe9, 0x7b, 0xf4,
        ]
        static let relayed = TransportAddress(v4: 0xcb00_7109, port: 49152)
        var nonce = Array("first".utf8)
        var requiresCredentials = true

        func answer(_ request: [UInt8]) -> [UInt8] {
            request.withUnsafeBytes { bytes in
                guard let message = STUNMessage(bytes), message.class == .request else { return [] }
                func refuse(_ code: UInt16) -> [UInt8] {
                    STUN.message(.failure, method: message.method, transaction: message.transaction) { writer in
                        writer.error(code)
                        writer.raw(STUN.Attribute.realm, Array("example.org".utf8))
                        writer.raw(STUN.Attribute.nonce, nonce)
                    }
                }
                if requiresCredentials {
                    guard message.hasIntegrity else { return refuse(401) }
                    guard message.isAddressed(to: Array("ann".utf8)), message.isAuthentic(Self.key) else {
                        return refuse(401)
                    }
                    guard message.nonce == nonce else { return refuse(438) }
                }
                let key = requiresCredentials ? Self.key : nil
                return STUN.message(.success, method: message.method, transaction: message.transaction, key: key) {
                    $0.xorRelayedAddress(Self.relayed)
                }
            }
        }
    }

    private var random = SeededGenerator(seed: 7)

    @Test("the right password gets a relayed address, and the wrong one is refused")
    mutating func credentials() {
        let server = Server()
        for (password, end) in [
            ("secret", TURNAllocation.Progress.allocated(Server.relayed, isOpen: false)), ("another", .refused(401)),
        ] {
            var client = TURNAllocation(username: "ann", password: password, using: &random)
            #expect(client.handle(server.answer(client.request), using: &random) == .requests)
            #expect(client.handle(server.answer(client.request), using: &random) == end)
        }
    }

    @Test("an allocation is released with the same credentials")
    mutating func released() throws {
        let server = Server()
        var client = TURNAllocation(username: "ann", password: "secret", using: &random)
        _ = client.handle(server.answer(client.request), using: &random)
        try client.release(using: &random).withUnsafeBytes { bytes in
            let message = try #require(STUNMessage(bytes))
            #expect(message.method == STUN.refresh && message.isAuthentic(Server.key))
        }
    }

    @Test("a server that replaces its nonce each time is refused in the end")
    mutating func staleNonces() {
        var server = Server()
        var client = TURNAllocation(username: "ann", password: "secret", using: &random)
        #expect(client.handle(server.answer(client.request), using: &random) == .requests)
        for number in 0..<2 {
            server.nonce = Array("nonce \(number)".utf8)
            #expect(client.handle(server.answer(client.request), using: &random) == .requests)
        }
        server.nonce = Array("the last".utf8)
        #expect(client.handle(server.answer(client.request), using: &random) == .refused(438))
    }

    @Test("a server that needs no credentials is open")
    mutating func open() {
        var client = TURNAllocation(username: "ann", password: "secret", using: &random)
        let answer = Server(requiresCredentials: false).answer(client.request)
        #expect(client.handle(answer, using: &random) == .allocated(Server.relayed, isOpen: true))
    }

    @Test("answers to other requests, and bytes that are none, change nothing")
    mutating func strangers() {
        let server = Server()
        var client = TURNAllocation(username: "ann", password: "secret", using: &random)
        let request = client.request
        let other = TURNAllocation(username: "ann", password: "secret", using: &random).request
        for datagram in [[], [1], request, server.answer(other), [UInt8](repeating: 0xff, count: 3000)] {
            #expect(client.handle(datagram, using: &random) == .none)
        }
        #expect(client.request == request)
    }

    @Test("user names and passwords of any length make no message that is too long")
    mutating func lengths() {
        let long = String(repeating: "x", count: 5000)
        var client = TURNAllocation(username: long, password: long, using: &random)
        let progress = client.handle(Server().answer(client.request), using: &random)
        #expect(progress == .requests && client.request.count <= STUN.maxBytes && !client.request.isEmpty)
    }

    @Test("a connectivity check is answered by the server's agent, and its answer shows the client's address")
    mutating func connectivity() throws {
        let (ours, theirs) = (ICECredentials(using: &random), ICECredentials(using: &random))
        let path = Path(socket: 0, remote: TransportAddress(v4: 0xc000_0209, port: 5000))
        let check = BindingCheck(local: ours, remote: theirs, using: &random)
        let answer = answer(of: theirs, to: check.request, on: path, remote: ours)
        #expect(check.mappedAddress(in: answer) == path.remote)
        let wrong = try #require(ICECredentials(ufrag: theirs.ufrag, password: "0123456789abcdefghijklmn"))
        let stranger = BindingCheck(local: ours, remote: wrong, using: &random)
        #expect(self.answer(of: theirs, to: stranger.request, on: path, remote: ours).isEmpty)
        #expect(stranger.mappedAddress(in: answer) == nil && check.mappedAddress(in: []) == nil)
    }

    /// What the server's agent sends.
    private func answer(
        of local: ICECredentials, to request: [UInt8], on path: Path, remote: ICECredentials
    ) -> [UInt8] {
        /// Keeps the datagram.
        final class Sink: DatagramSink {
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: STUN.maxBytes, alignment: 8)
            var sent: [UInt8] = []
            deinit { memory.deallocate() }
            func prepare(_ capacity: Int) -> UnsafeMutableRawBufferPointer { memory }
            func send(_ count: Int, on path: Path) { sent = Array(memory[..<count]) }
        }
        let sink = Sink()
        var agent = ICELiteAgent(local: local, remoteUfrag: remote.ufrag)
        _ = request.withUnsafeBytes { agent.handle($0, on: path, now: MediaTime(nanoseconds: 0), sink: sink) }
        return sink.sent
    }
}

extension STUNWriter {
    fileprivate mutating func xorRelayedAddress(_ address: TransportAddress) {
        let host = address.v4 ^ STUN.magicCookie
        let port = address.port ^ UInt16(truncatingIfNeeded: STUN.magicCookie >> 16)
        raw(
            STUN.Attribute.xorRelayedAddress,
            [0, 1, UInt8(port >> 8), UInt8(port & 0xff)] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: host >> $0) })
    }
}
