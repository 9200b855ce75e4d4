import Foundation
import Testing
import Wire

extension Hostile {
    @Suite("Case 6: slow and silent clients") struct SlowAttacks {
        private static let headerTimeout = ["CONFAB_LIMITS_REQUEST_HEADER_TIMEOUT": "1s"]
        private static let timeout: Duration = .seconds(30)

        @Test("an upgrade request sent byte by byte is cut off by the header timeout")
        func slowUpgrade() async throws {
            try await Attack(number: 6, name: "upgrade byte by byte", settings: Self.headerTimeout).run { server in
                let sockets = try (0..<100).map { _ in try RawSocket(port: server.port) }
                let request = Array(
                    RawWebSocket.request(headers: [("X-Padding", String(repeating: "x", count: 2000))]).utf8)
                var (sent, open) = (0, sockets)
                // At one byte every 20 ms, the request would take a minute.
                for byte in request.prefix(1500) where !open.isEmpty {
                    let next = ContinuousClock.now + .milliseconds(20)
                    for socket in sockets { sent += socket.sendWhatGoes([byte], within: .zero) }
                    open = Tally.open(of: open, until: next)
                }
                let answered = sockets.count { !$0.pending.isEmpty }
                #expect(open.isEmpty, "\(open.count) of 100 are still open")
                #expect(answered == 0, "\(answered) of 100 were answered")
                return AttackOutcome(
                    sent: "100 requests, \(sent) bytes in all", cameBack: "\(100 - open.count) cut off")
            }
        }

        @Test("thousands of silent connections are cut off without disturbing others")
        func idleConnections() async throws {
            // Both ends of each connection are on this machine.
            let count = min(2000, raiseDescriptorLimit() / 2 - 200)
            try await Attack(number: 6, name: "idle TCP", settings: Self.headerTimeout).run { server in
                let before = server.descriptors
                let port = server.port
                // Connect on several threads, because each connection waits a second if the kernel's queue is full.
                let threads = (0..<8).map { remainder in
                    Background { try stride(from: remainder, to: count, by: 8).map { _ in try RawSocket(port: port) } }
                }
                let sockets = try threads.flatMap { try $0.join() }
                let open = Tally.ends(of: sockets, within: Self.timeout)
                #expect(open == 0, "\(open) of \(count) are still open")
                try eventually("the server holds \(server.descriptors) descriptors, \(before) before") {
                    server.descriptors < before + count / 10
                }
                return AttackOutcome(sent: "\(count) connections, no byte", cameBack: "\(count - open) cut off")
            }
        }

        @Test("half a request head is cut off, also as the second request of a connection")
        func halfRequests() async throws {
            try await Attack(number: 6, name: "half a request head", settings: Self.headerTimeout).run { server in
                let sockets = try (0..<100).map { index in
                    let socket = try RawSocket(port: server.port)
                    if index.isMultiple(of: 2) { #expect(try socket.ask("/health").status == 200) }
                    try socket.send("GET /v1/socket HTTP/1.1\r\nHost: confab.te")
                    return socket
                }
                let open = Tally.ends(of: sockets, within: Self.timeout)
                #expect(open == 0, "\(open) of 100 are still open")
                return AttackOutcome(sent: "100 half heads, 50 of them second ones", cameBack: "\(100 - open) cut off")
            }
        }

        @Test("a client that never sends hello is closed with 4408")
        func noHello() async throws {
            let settings = ["CONFAB_LIMITS_HANDSHAKE_TIMEOUT": "4s"]
            try await Attack(number: 6, name: "no hello", settings: settings).run { server in
                let lines = try (0..<200).map { _ in try RawWebSocket.open(port: server.port) }
                // Neither half a hello nor a ping counts as a hello.
                for line in lines { try line.send(frame: .text("{", final: false)) }
                for line in lines.prefix(100) { try line.send(frame: .ping([1])) }
                let endings = try Tally.closes(of: lines)
                #expect(endings["4408"] == 200, "\(endings.text)")
                return AttackOutcome(sent: "200 sockets without a hello", cameBack: endings.text)
            }
        }

        /// Two pings may be missed, because the pair's threads need seconds to answer on a busy machine.
        private static let pings = ["CONFAB_CONNECTION_PING_INTERVAL": "1s", "CONFAB_CONNECTION_MISSED_PINGS": "2"]

        @Test("a client that answers no ping is dropped; a partial frame is not an answer")
        func noPong() async throws {
            try await Attack(number: 6, name: "no answer to pings", settings: Self.pings).run { server in
                let lines = try (0..<200).map { _ in try RawWebSocket.openWelcomed(port: server.port) }
                let trickling = lines.suffix(100)
                let frame = RawFrame.text([UInt8](repeating: 0x20, count: 60_000)).bytes
                // At one byte every 20 ms, the frame would take twenty minutes.
                var open = lines.map(\.socket)
                for byte in frame.prefix(1500) where !open.isEmpty {
                    let next = ContinuousClock.now + .milliseconds(20)
                    for line in trickling { line.socket.sendWhatGoes([byte], within: .zero) }
                    open = Tally.open(of: open, until: next)
                }
                #expect(open.isEmpty, "\(open.count) of 200 are still open")
                return AttackOutcome(
                    sent: "200 welcomed, 100 of them trickling a frame", cameBack: "\(200 - open.count) dropped")
            }
        }

        @Test("a client that does not read is dropped before its queue fills the memory")
        func slowReader() async throws {
            let settings = [
                "CONFAB_LIMITS_SEND_QUEUE": "256KiB", "CONFAB_LIMITS_REQUESTS_PER_SECOND": "100000",
                "CONFAB_LIMITS_REQUEST_BURST": "100000",
            ]
            try await Attack(number: 6, name: "a reader who does not read", settings: settings).run { server in
                let talker = try Person.arrive(port: server.port)
                let deaf = try Person.arrive(port: server.port)
                try talker.say(.roulette(.start(.init())))
                try deaf.say(.roulette(.start(.init())))
                let matched = try talker.hear("match") {
                    if case .roulette(.matched(let matched)) = $0 { matched } else { nil }
                }
                let session = try talker.join(matched.publish).session
                let deafMatch = try deaf.hear("match") {
                    if case .roulette(.matched(let matched)) = $0 { matched } else { nil }
                }
                _ = try deaf.join(deafMatch.publish)
                let data = String(repeating: "x", count: 8000)
                var said = 0
                var isDropped = false
                // Send far more than the kernel buffers at both ends.
                while !isDropped, said < 5000 {
                    // The session's own budget refuses what is sent too fast.
                    try eventually("the session's budget does not allow signal \(said)") {
                        let seq = try talker.say(
                            .session(.signal(.init(session: session, type: "chat", data: data))))
                        let isSent = try talker.hear("answer") { message -> Bool? in
                            if case .roulette(.partner(let partner)) = message, partner.state == .reconnecting {
                                isDropped = true
                            }
                            if case .ok(let answer) = message, answer.re == seq { return true }
                            if case .error(let failure) = message, failure.re == seq { return false }
                            return nil
                        }
                        talker.forget()
                        return isSent
                    }
                    said += 1
                }
                #expect(isDropped, "\(said) signals of 8000 bytes were kept for a client that does not read")
                return AttackOutcome(sent: "\(said) signals of 8000 bytes, unread", cameBack: "reader dropped")
            }
        }

        @Test("an unfinished TLS handshake is cut off", .timeLimit(.minutes(3)))
        func unfinishedTLS() async throws {
            guard let tunnel = try TLSTunnel() else {
                print("hostile 6  | TLS never finished: left out, there is no openssl to make a certificate with")
                return
            }
            defer { tunnel.remove() }
            var attack = Attack(number: 6, name: "TLS never finished")
            attack.settings = tunnel.settings.merging(Self.headerTimeout) { $1 }
            attack.connect = { try tunnel.connect(port: $0.port) }
            try await attack.run { server in
                let sockets = try (0..<500).map { index in
                    let socket = try RawSocket(port: server.port)
                    // Send nothing, a record header, or the beginning of a ClientHello.
                    try socket.send(Array(Self.clientHello.prefix([0, 5, 40][index % 3])))
                    return socket
                }
                let open = Tally.ends(of: sockets, within: Self.timeout)
                #expect(open == 0, "\(open) of 500 are still open")
                return AttackOutcome(sent: "500 unfinished handshakes", cameBack: "\(500 - open) cut off")
            }
        }

        /// The beginning of a 512-byte record with a TLS 1.2 ClientHello.
        private static let clientHello: [UInt8] =
            [0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3] + [UInt8](repeating: 0x42, count: 32)
    }
}
