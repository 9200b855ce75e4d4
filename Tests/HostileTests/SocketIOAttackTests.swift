import Foundation
import Testing

extension Hostile {
    @Suite("Case 11: floods over Socket.IO") struct SocketIOFloods {
        @Test("unused handshakes are limited by address and expire")
        func handshakes() async throws {
            let settings = ["CONFAB_SOCKET_IO_HANDSHAKE_TIMEOUT": "2s", "CONFAB_LIMITS_SOCKETS_PER_ADDRESS": "200"]
            try await Attack(number: 11, name: "handshake storm", settings: settings).run { server in
                var statuses = Tally()
                let socket = try RawSocket(port: server.port, from: "127.0.0.7")
                for _ in 0..<10 {
                    // Send all requests at once. On a slow machine, the first handshakes would otherwise expire before
                    // the last ones are sent.
                    try socket.send(String(repeating: "GET /socket.io/1/ HTTP/1.1\r\nHost: x\r\n\r\n", count: 300))
                    for _ in 0..<300 { statuses.count("\(try socket.readAnswer().status)") }
                }
                #expect(statuses["200"] + statuses["503"] == 3000)
                #expect(statuses["503"] > 0)
                try eventually("the handshakes have not expired") { try socket.ask("/socket.io/1/").status == 200 }
                return AttackOutcome(sent: "3000 handshakes", cameBack: statuses.text)
            }
        }

        @Test("endless events are refused, and then the client is disconnected")
        func events() async throws {
            try await Attack(number: 11, name: "next spam, WebSocket").run { server in
                var endings = Tally()
                for _ in 0..<5 {
                    let line = try RawSocketIO(port: server.port).openWebSocket()
                    let next = RawFrame.text(RawSocketIO.event("next")).bytes
                    line.socket.sendWhatGoes((0..<5000).flatMap { _ in next }, within: .seconds(2))
                    while let text = try line.readText() {
                        if text.hasPrefix("7:::") || text == "0::" { endings.count(text) }
                        if text == "0::" { break }
                    }
                }
                #expect(endings["0::"] == 5)
                #expect(endings["7:::rate_limited"] > 0)
                return AttackOutcome(sent: "5 × 5000 events", cameBack: endings.text)
            }
        }

        @Test("endless posts are refused, and then the client is disconnected")
        func posts() async throws {
            try await Attack(number: 11, name: "next spam, polling").run { server in
                var endings = Tally()
                let client = try RawSocketIO(port: server.port)
                try client.poll()
                let socket = try RawSocket(port: server.port)
                let spam = (0..<200).map { _ in "\u{FFFD}3\u{FFFD}2::" }.joined()
                for _ in 0..<10 { endings.count(try client.post(spam, on: socket).text) }
                endings.count(RawSocketIO.packets(try client.poll()).last ?? "")
                #expect(endings["0::"] == 1)
                return AttackOutcome(sent: "2000 heartbeats in 10 posts", cameBack: endings.text)
            }
        }

        @Test("each new poll ends the previous one")
        func polls() async throws {
            try await Attack(number: 11, name: "poll storm").run { server in
                let client = try RawSocketIO(port: server.port)
                _ = try client.hear(#"5:::{"name":"initial""#)
                let sockets = try (0..<500).map { _ in try RawSocket(port: server.port) }
                for socket in sockets { try socket.send("GET \(client.pollPath) HTTP/1.1\r\nHost: x\r\n\r\n") }
                var waiting = sockets
                try eventually("\(waiting.count) of 500 wait") {
                    try waiting.removeAll { try $0.isReadable(until: .now) && $0.readAnswer().text == "8::" }
                    return waiting.count <= 1
                }
                #expect(waiting.count == 1)
                return AttackOutcome(
                    sent: "500 polls of one client", cameBack: "\(sockets.count - waiting.count) × 8::")
            }
        }

        @Test("requests are not read while their responses are not read")
        func unreadAnswers() async throws {
            try await Attack(number: 11, name: "answers not read").run { server in
                let request = Array("GET /socket.io/1/xhr-polling/nobody HTTP/1.1\r\nHost: x\r\n\r\n".utf8)
                let flood = [[UInt8]](repeating: request, count: 2000).flatMap { $0 }
                let sockets = try (0..<10).map { _ in try RawSocket(port: server.port, receiveBuffer: 4096) }
                var taken = 0
                for _ in 0..<100 {
                    for socket in sockets { taken += socket.sendWhatGoes(flood, within: .milliseconds(10)) }
                }
                #expect(taken < 100 * sockets.count * flood.count, "the server should have stopped reading")
                return AttackOutcome(sent: mebibytes(taken) + " of requests", cameBack: "taken no further")
            }
        }

        @Test("a waiting poll is answered when too much data is queued")
        func overflowing() async throws {
            let settings = ["CONFAB_LIMITS_REQUESTS_PER_SECOND": "1000000", "CONFAB_LIMITS_REQUEST_BURST": "1000000"]
            try await ServerProcess.run(settings) { server in
                let client = try RawSocketIO(port: server.port)
                _ = try client.hear(#"5:::{"name":"initial""#)
                let waiting = try RawSocket(port: server.port)
                try waiting.send("GET \(client.pollPath) HTTP/1.1\r\nHost: x\r\n\r\n")
                try client.post((0..<200).map { _ in "\u{FFFD}6\u{FFFD}3:1::x" }.joined())
                #expect(try waiting.readAnswer().status == 200)
                #expect(try client.poll() == "7:::1+0")
            }
        }

        @Test("a client that never polls uses bounded memory and then times out")
        func neverPolling() async throws {
            let settings = [
                "CONFAB_LIMITS_REQUESTS_PER_SECOND": "1000000", "CONFAB_LIMITS_REQUEST_BURST": "1000000",
                "CONFAB_LIMITS_SOCKETS_PER_ADDRESS": "1000",
            ]
            try await Attack(number: 11, name: "never polls", settings: settings).run { server in
                var endings = Tally()
                let spam = (0..<200).map { _ in "\u{FFFD}6\u{FFFD}3:1::x" }.joined()
                let socket = try RawSocket(port: server.port)
                for _ in 0..<100 {
                    let client = try RawSocketIO(port: server.port)
                    try client.poll()
                    for _ in 0..<2 { try client.post(spam, on: socket) }
                    endings.count(try client.poll())
                }
                #expect(endings["7:::1+0"] == 100, "the queue must be full, and the client disconnected")
                return AttackOutcome(sent: "100 clients, 400 requests for answers each", cameBack: endings.text)
            }
        }
    }

    @Suite("Case 8: Socket.IO's WebSocket") struct SocketIOFrames {
        @Test(
            "frames that break RFC 6455 close with the right code",
            arguments: [
                (RawFrame(opcode: 2, payload: [1]), 1003), (RawFrame(opcode: 1, payload: [0xFF]), 1007),
                (RawFrame(opcode: 1, payload: [0x32], masked: false), 1002), (RawFrame(opcode: 3), 1002),
                (RawFrame(opcode: 1, payload: [0x32], rsv: 4), 1002), (RawFrame(opcode: 0, payload: [0x32]), 1002),
                (RawFrame(opcode: 1, payload: [], claimedLength: 1 << 31), 1009),
            ] as [(RawFrame, UInt16)])
        func frames(_ frame: RawFrame, _ code: UInt16) async throws {
            try await ServerProcess.run { server in
                let line = try RawSocketIO(port: server.port).openWebSocket(slash: "/")
                #expect(try line.readText() == "1::")
                try line.socket.send(frame.bytes)
                #expect(try line.readClose(within: .seconds(10)) == code)
            }
        }
    }
}
