import Foundation
import Testing

extension Hostile {
    @Suite("Case 7: floods over HTTP") struct HTTPFloods {
        private static let settings = ["CONFAB_LIMITS_REQUEST_HEADER_TIMEOUT": "1s"]
        private static let timeout: Duration = .seconds(30)
        private static let start = "GET / HTTP/1.1\r\nHost: confab.test\r\n"

        /// Checks the response to a flood: at most one response, with one of these statuses, and then the end of the
        /// connection.
        private func judge(_ socket: RawSocket, _ name: String, _ accepted: Set<Int>) throws -> String {
            guard socket.isClosedByPeer(within: Self.timeout) else {
                Issue.record("\(name): the connection is still open")
                return "open"
            }
            var statuses: [Int] = []
            while !socket.pending.isEmpty { statuses.append(try socket.readAnswer().status) }
            #expect(statuses.count <= 1, "\(name): one request was answered \(statuses)")
            #expect(statuses.allSatisfy(accepted.contains), "\(name): answered \(statuses) instead of \(accepted)")
            return statuses.isEmpty ? "end" : statuses.map(String.init).joined(separator: "+")
        }

        @Test("200,000 small headers are answered 431")
        func headers() async throws {
            let flood = Array((Self.start + String(repeating: "a: b\r\n", count: 200_000)).utf8)
            try await Attack(number: 7, name: "header flood", settings: Self.settings).run { server in
                var endings = Tally()
                for index in 0..<10 {
                    let socket = try RawSocket(port: server.port)
                    // Send them with the first request of a connection, and with the second.
                    if index.isMultiple(of: 2) { #expect(try socket.ask("/health").status == 200) }
                    socket.sendWhatGoes(flood, within: .seconds(2))
                    endings.count(try judge(socket, "headers, request \(index.isMultiple(of: 2) ? 2 : 1)", [431]))
                }
                return AttackOutcome(sent: "10 × 200,000 headers, \(mebibytes(flood.count))", cameBack: endings.text)
            }
        }

        @Test("a giant header, a giant request line and giant trailers are refused")
        func giants() async throws {
            let giant = String(repeating: "x", count: 4 << 20)
            let upload = "POST /health HTTP/1.1\r\nHost: confab.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
            let floods: [(name: String, text: String, accepted: Set<Int>)] = [
                ("header value", Self.start + "a: " + giant, [431]),
                ("header name", Self.start + giant, [400, 431]),
                ("request line", "GET /" + giant, [400, 414, 431]),
                ("method", giant, [400, 414, 431, 501]),
                ("trailers", upload + String(repeating: "a: b\r\n", count: 200_000), [400, 404, 405, 413, 431]),
                ("chunk extension", upload.dropLast(3) + "1;" + giant, [400, 404, 405, 413, 431]),
            ]
            try await Attack(number: 7, name: "giant parts", settings: Self.settings).run { server in
                var endings = Tally()
                for flood in floods {
                    let socket = try RawSocket(port: server.port)
                    socket.sendWhatGoes(Array(flood.text.utf8), within: .seconds(2))
                    endings.count(try judge(socket, flood.name, flood.accepted))
                }
                return AttackOutcome(sent: "\(floods.count) parts of 1 to 4 MiB", cameBack: endings.text)
            }
        }

        @Test("a body of 100 MB is refused as too large or cut off, on every path")
        func bodies() async throws {
            let part = [UInt8](repeating: 0x78, count: 1 << 20)
            let size = part.count * 96
            let targets = [
                "POST /", "GET /", "POST /v1/socket", "GET /v1/socket", "POST /health", "PUT /session/create",
                "POST /nowhere",
            ]
            try await Attack(number: 7, name: "bodies of 100 MB", settings: Self.settings).run { server in
                var endings = Tally()
                for target in targets {
                    let socket = try RawSocket(port: server.port)
                    try socket.send("\(target) HTTP/1.1\r\nHost: confab.test\r\nContent-Length: \(size)\r\n\r\n")
                    var taken = 0
                    while taken < size {
                        let count = socket.sendWhatGoes(part, within: .seconds(2))
                        taken += count
                        if count < part.count { break }
                    }
                    let status = (try? socket.readAnswer().status) ?? 0
                    // OpenTok's SDKs take 413 for success when they mute, so its paths answer 400.
                    let refusal = target.hasSuffix(" /session/create") ? 400 : 413
                    #expect(status == refusal || taken < size, "\(target) took all of it and answered \(status)")
                    endings.count(status == 0 ? "end" : "\(status)")
                }
                return AttackOutcome(sent: "\(targets.count) × 100 MB", cameBack: endings.text)
            }
        }

        @Test("a request with a slow body is cut off, whether chunked or with a length")
        func trickle() async throws {
            let kinds = ["Transfer-Encoding: chunked", "Content-Length: 1000000"]
            try await Attack(number: 7, name: "bodies byte by byte", settings: Self.settings).run { server in
                let sockets = try (0..<40).map { index in
                    let socket = try RawSocket(port: server.port)
                    let target = ["POST /health", "GET /", "POST /v1/socket", "POST /nowhere"][index / 2 % 4]
                    try socket.send("\(target) HTTP/1.1\r\nHost: confab.test\r\n\(kinds[index % 2])\r\n\r\n")
                    return socket
                }
                // Send a chunk or a byte every 50 ms, until the server closes the connection.
                let deadline = ContinuousClock.now + Self.timeout
                var open = sockets
                while !open.isEmpty, ContinuousClock.now < deadline {
                    let next = ContinuousClock.now + .milliseconds(50)
                    for (index, socket) in sockets.enumerated() {
                        socket.sendWhatGoes(Array((index.isMultiple(of: 2) ? "1\r\nx\r\n" : "x").utf8), within: .zero)
                    }
                    open = Tally.open(of: open, until: next)
                }
                #expect(open.isEmpty, "\(open.count) of 40 are still open after \(Self.timeout)")
                return AttackOutcome(sent: "40 bodies, 20 bytes a second", cameBack: "\(40 - open.count) cut off")
            }
        }

        @Test("invalid HTTP is answered 400 once, and the connection closes")
        func garbage() async throws {
            try await Attack(number: 7, name: "bad HTTP", settings: Self.settings).run { server in
                var endings = Tally()
                let sockets = try Self.badRequests.map { bytes in
                    let socket = try RawSocket(port: server.port)
                    try socket.send(bytes)
                    return socket
                }
                for (socket, bytes) in zip(sockets, Self.badRequests) {
                    let name = String(decoding: bytes.prefix(80), as: UTF8.self).debugDescription
                    endings.count(try judge(socket, name, [400, 404, 405, 411, 413, 431, 501, 505]))
                }
                return AttackOutcome(sent: "\(sockets.count) bad requests", cameBack: endings.text)
            }
        }

        private static let badRequests: [[UInt8]] =
            [
                "\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "GET /health\r\n\r\n", "GET /health HTTP/9.9\r\nHost: x\r\n\r\n",
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n", "BREW / HTTP/1.1\r\nHost: x\r\n\r\n",
                "GET /health HTTP/1.1\r\nHost : x\r\n\r\n", "GET /he\0alth HTTP/1.1\r\nHost: x\r\n\r\n",
                "GET /health HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
                "GET /health HTTP/1.1\r\nHost: x\r\nA: \u{1}\r\n\r\n", "GET /health HTTP/1.1\nHost: x\n\n",
                "GET /health HTTP/1.1\r\nHost: x\r\nA: \rB: c\r\n\r\n",
                "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
                "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello",
                "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
                // Request smuggling: a proxy and the server behind it could parse these requests differently (RFC 9112
                // §6.3, §11.2).
                "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
                "POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                "GET /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
                "POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
                "POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nx\r\n0\r\n\r\n",
                "POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nx\r\n",
                "POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n",
                "POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n0\r\n\r\n",
            ].map { Array($0.utf8) } + [
                [0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3], [UInt8](repeating: 0xFF, count: 10_000),
                [UInt8](repeating: 0, count: 1 << 20),
            ]

        private static let request = "GET /health HTTP/1.1\r\nHost: confab.test\r\n\r\n"

        @Test("pipelined requests are answered in order")
        func pipelined() async throws {
            try await Attack(number: 7, name: "pipelined requests").run { server in
                let reader = try RawSocket(port: server.port)
                let two = Self.request + Self.request.replacing("/health", with: "/nowhere")
                try reader.send(String(repeating: two, count: 250))
                for index in 0..<500 {
                    #expect(try reader.readAnswer().status == (index.isMultiple(of: 2) ? 200 : 404))
                }
                return AttackOutcome(sent: "500 requests in one segment", cameBack: "500 answers in order")
            }
        }

        @Test("endless pipelined requests do not keep new clients out")
        func pipelineFlood() async throws {
            try await Attack(number: 7, name: "pipelines without end").run { server in
                let (isOver, answered, port) = (Flag(), Counter(), server.port)
                defer { isOver.set() }
                let floods = (0..<10).map { _ in Background { try Self.flood(port, answered, until: isOver) } }
                try eventually("only \(answered.count) bytes of answers have come") { answered.count > 64 * 1024 }
                do {
                    try Person.arrive(port: port).close()
                } catch {
                    Issue.record("no new client is served during the flood: \(error)")
                }
                isOver.set()
                for flood in floods { try flood.join() }
                return AttackOutcome(sent: "10 pipelines, read", cameBack: "\(mebibytes(answered.count)) of answers")
            }
        }

        /// A client that sends requests and reads responses as fast as possible, and counts the bytes of the responses.
        private static func flood(_ port: Int, _ answered: Counter, until isOver: Flag) throws {
            let requests = Array(String(repeating: "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", count: 2000).utf8)
            let socket = try RawSocket(port: port)
            var sent = 0
            while !isOver.isSet, !socket.isAtEnd {
                sent += socket.sendWhatGoes(Array(requests[sent...]), within: .milliseconds(1))
                if sent == requests.count { sent = 0 }
                if socket.isReadable(until: .now) { answered.add(try socket.receive(within: .zero).count) }
            }
        }

        @Test("a client that does not read its responses is cut off, and its responses do not fill the server's memory")
        func unreadAnswers() async throws {
            try await Attack(number: 7, name: "answers nobody reads", settings: Self.settings).run { server in
                let before = server.descriptors
                let page = Array(String(repeating: "GET / HTTP/1.1\r\nHost: confab.test\r\n\r\n", count: 1000).utf8)
                let deaf = try (0..<10).map { _ in try RawSocket(port: server.port, receiveBuffer: 4096) }
                // Reading one response shows that the server has accepted the connection.
                for socket in deaf { #expect(try socket.ask("/health").status == 200) }
                for socket in deaf { try socket.send(page) }
                try eventually("the server holds \(server.descriptors) descriptors, \(before) before") {
                    server.descriptors < before + deaf.count / 2
                }
                return AttackOutcome(sent: "10 × 1000 requests", cameBack: "all cut off")
            }
        }
    }
}
