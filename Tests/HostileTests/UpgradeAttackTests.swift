import Foundation
import Testing

extension Hostile {
    /// WebSockets on connections that were used for other requests before, as behind proxies that keep connections open.
    @Suite("Upgrades of used connections") struct UpgradeAttacks {
        private static let health = "GET /health HTTP/1.1\r\nHost: confab.test\r\n\r\n"
        private static let hello = RawFrame.text(#"{"type":"hello","version":1}"#).bytes

        /// Accepts the WebSocket on the connection and waits for its welcome.
        private static func welcome(on socket: RawSocket) throws -> RawWebSocket {
            let line = try RawWebSocket.accept(on: socket)
            let text = try line.readText()
            #expect(text?.contains("welcome") == true, "\(text ?? "closed")")
            return line
        }

        @Test(
            "any request of a connection may become a WebSocket",
            arguments: ["/health", "/", "/socket.io/1/", "/whip/nobody", "/no/such/page"])
        func lateUpgrade(before: String) async throws {
            try await ServerProcess.run { server in
                let socket = try RawSocket(port: server.port)
                for _ in 0..<3 { _ = try socket.ask(before) }
                try socket.send(RawWebSocket.request())
                let accepted = try RawWebSocket.accept(on: socket)
                try socket.send(Self.hello)
                #expect(try accepted.readText()?.contains("welcome") == true)
                try accepted.send(frame: .ping([1, 2]))
                var pong = try accepted.read()
                while let frame = pong, frame.opcode != 10 { pong = try accepted.read() }
                #expect(pong?.payload == [1, 2])
                try accepted.close()
                #expect(try accepted.readClose() == 1000)
                #expect(socket.isClosedByPeer(within: .seconds(10)))
            }
        }

        @Test("a Socket.IO client may use one connection for its handshake, its polls and its WebSocket")
        func socketIO() async throws {
            try await ServerProcess.run { server in
                let socket = try RawSocket(port: server.port)
                let id = try #require(try socket.ask("/socket.io/1/").text.split(separator: ":").first)
                #expect(try socket.ask("/socket.io/1/xhr-polling/\(id)?t=1").text == "1::")
                try socket.send(RawWebSocket.request(path: "/socket.io/1/websocket/\(id)", subprotocol: nil))
                let line = try RawWebSocket.accept(on: socket)
                #expect(try line.readText() == "1::")
                try line.send(text: RawSocketIO.event("next"))
                var texts: [String] = []
                while let text = try line.readText() {
                    texts.append(text)
                    if text.contains("empty") { break }
                }
                #expect(texts.last?.contains("empty") == true, "\(texts)")
                let other = try RawSocket(port: server.port)
                #expect(try other.ask("/health").status == 200)
                try other.send(RawWebSocket.request(path: "/socket.io/1/websocket/nobody", subprotocol: nil))
                let unknown = try RawWebSocket.accept(on: other)
                #expect(try unknown.readText()?.hasPrefix("7::") == true)
                #expect(try unknown.readClose() == 1000)
            }
        }

        @Test("a WebSocket handshake waits for the pipelined requests before it, and frames may follow at once")
        func pipelined() async throws {
            try await ServerProcess.run { server in
                let body = "x=1"
                let requests =
                    Self.health + "POST /socket.io/1/xhr-polling/nobody HTTP/1.1\r\nHost: x\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)" + Self.health + RawWebSocket.request()
                let bytes = Array(requests.utf8) + Self.hello + RawFrame.ping([7]).bytes
                // All in one segment, and byte by byte.
                for size in [bytes.count, 1] {
                    let socket = try RawSocket(port: server.port)
                    for start in stride(from: 0, to: bytes.count, by: size) {
                        try socket.send(Array(bytes[start..<min(start + size, bytes.count)]))
                    }
                    for _ in 0..<3 { #expect(try socket.readAnswer().status == 200, "pieces of \(size)") }
                    let line = try Self.welcome(on: socket)
                    try line.close()
                    #expect(try line.readClose() == 1000)
                }
            }
        }

        @Test("a request that closes the connection, an invalid one or an endless one is not followed by a WebSocket")
        func refused() async throws {
            try await ServerProcess.run(["CONFAB_LIMITS_REQUEST_HEADER_TIMEOUT": "1s"]) { server in
                let closing = Self.health.replacing("\r\n\r\n", with: "\r\nConnection: close\r\n\r\n")
                for before in [
                    closing, "nonsense\r\n\r\n", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\n\r\n",
                ] {
                    let socket = try RawSocket(port: server.port)
                    socket.sendWhatGoes(Array((before + RawWebSocket.request()).utf8) + Self.hello, within: .seconds(1))
                    if before.contains("POST") { shutdown(socket.descriptor, Int32(SHUT_WR)) }
                    let all = String(decoding: try socket.receiveAll(within: .seconds(15)), as: UTF8.self)
                    #expect(!all.contains("HTTP/1.1 101") && !all.contains("welcome"), "after \(before)")
                }
            }
        }

        @Test("a stopping server closes WebSockets on used connections with 1001")
        func stopping() async throws {
            try await ServerProcess.run { server in
                let socket = try RawSocket(port: server.port)
                #expect(try socket.ask("/health").status == 200)
                try socket.send(Array(RawWebSocket.request().utf8) + Self.hello)
                let line = try Self.welcome(on: socket)
                let restart = Background { try server.restart() }
                #expect(try line.readClose() == 1001)
                line.socket.sendWhatGoes(RawFrame.close(1001).bytes, within: .seconds(1))
                try restart.join()
            }
        }
    }
}
