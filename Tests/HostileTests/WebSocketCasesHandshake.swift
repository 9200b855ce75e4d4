import Foundation

/// An upgrade request and its allowed responses (RFC 6455 §4.2, §4.4).
struct HandshakeCase: Sendable {
    let name: String
    var request: String
    /// A request to send first on the same connection. It must be answered with 200.
    var before: String?
    var accepted: Set<Int>
    /// The required response headers. A nil value means that the header must be absent.
    var headers: [String: String?] = [:]
    /// Whether the server may also just close the connection.
    var mayEnd = false

    /// The statuses with which the server may refuse the request.
    private static let refusals: Set<Int> = [400, 426]

    /// - Parameters:
    ///   - without: names of header lines to leave out of the normal request.
    ///   - with: header lines to add.
    private init(
        _ name: String, _ start: String = "GET /v1/socket HTTP/1.1", without: [String] = [], with: [String] = [],
        accepted: Set<Int>, headers: [String: String?] = [:], before: String? = nil, mayEnd: Bool = false
    ) {
        let lines = Self.ordinary.filter { line in !without.contains { line.hasPrefix($0 + ":") } }
        self.name = name
        request = ([start] + lines + with).joined(separator: "\r\n") + "\r\n\r\n"
        (self.accepted, self.headers, self.before, self.mayEnd) = (accepted, headers, before, mayEnd)
    }

    private static let ordinary = [
        "Host: confab.test", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Key: \(RawWebSocket.sampleKey)", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: confab.v1",
    ]

    func fault(port: Int) throws -> String? {
        let socket = try RawSocket(port: port)
        if let before {
            try socket.send(before)
            let answer = try socket.readAnswer()
            guard answer.status == 200 else { return "the request before was answered \(answer)" }
        }
        try socket.send(request)
        let first = try socket.receive(within: .seconds(20))
        if mayEnd, first.isEmpty { return nil }
        socket.putBack(first)
        let answer = try socket.readAnswer()
        guard accepted.contains(answer.status) else { return "expected \(accepted.sorted()), got \(answer)" }
        for (header, value) in headers where answer[header]?.lowercased() != value?.lowercased() {
            return "\(header) should be \(value ?? "absent"): \(answer)"
        }
        guard answer.status == 101 else { return nil }
        let digest = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  // The digest of RFC 6455 §1.3's sample key.
        guard answer["Sec-WebSocket-Accept"] == digest else { return "the wrong Sec-WebSocket-Accept: \(answer)" }
        try socket.send(RawFrame.ping([7]).bytes)
        guard try socket.receive(exactly: 3) == [0x8A, 1, 7] else { return "upgraded, but a ping is not answered" }
        return nil
    }

    static let all = accepting + refusing + elsewhere

    private static let accepting: [HandshakeCase] = [
        HandshakeCase("the ordinary request", accepted: [101], headers: ["Sec-WebSocket-Protocol": "confab.v1"]),
        HandshakeCase(
            "two Connection headers", without: ["Connection"], with: ["Connection: keep-alive", "Connection: Upgrade"],
            accepted: [101]),
        HandshakeCase(
            "a Connection header with two members", without: ["Connection"], with: ["Connection: keep-alive, Upgrade"],
            accepted: [101]),
        HandshakeCase(
            "header names in odd case", without: ["Upgrade", "Connection", "Sec-WebSocket-Key"],
            with: ["uPGRADE: websocket", "CONNECTION: upgrade", "sec-websocket-KEY: \(RawWebSocket.sampleKey)"],
            accepted: [101]),
        HandshakeCase(
            "values in odd case", without: ["Upgrade", "Connection"],
            with: ["Upgrade: WebSocket", "Connection: UPGRADE"], accepted: [101]),
        HandshakeCase(
            "blanks around values", without: ["Upgrade", "Sec-WebSocket-Version"],
            with: ["Upgrade:    websocket  ", "Sec-WebSocket-Version:13"], accepted: [101]),
        HandshakeCase(
            "our subprotocol among others", without: ["Sec-WebSocket-Protocol"],
            with: ["Sec-WebSocket-Protocol: chat, confab.v1, superchat"], accepted: [101],
            headers: ["Sec-WebSocket-Protocol": "confab.v1"]),
        HandshakeCase(
            "our subprotocol in a separate header", with: ["Sec-WebSocket-Protocol: chat"], accepted: [101],
            headers: ["Sec-WebSocket-Protocol": "confab.v1"]),
        HandshakeCase("a query", "GET /v1/socket?page=1 HTTP/1.1", accepted: [101]),
        HandshakeCase(
            "extensions, none of which is accepted",
            with: ["Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits, x-webkit-deflate-frame"],
            accepted: [101], headers: ["Sec-WebSocket-Extensions": nil]),
    ]

    private static let refusing: [HandshakeCase] =
        [
            HandshakeCase("no key", without: ["Sec-WebSocket-Key"], accepted: refusals),
            HandshakeCase("two keys", with: ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="], accepted: refusals),
        ]
        + [
            "", "!", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZSE=", "c2hvcnQ=", "****************{}****==",
            String(repeating: "A", count: 4000),
        ].map { key in
            HandshakeCase(
                "the key \"\(key.prefix(30))\"", without: ["Sec-WebSocket-Key"], with: ["Sec-WebSocket-Key: \(key)"],
                accepted: refusals)
        }
        + ["8", "0", "7", "12", "14", "255", "abc", "", "13, 8"].map { version in
            HandshakeCase(
                "version \"\(version)\", answered with the supported one (§4.4)", without: ["Sec-WebSocket-Version"],
                with: ["Sec-WebSocket-Version: \(version)"], accepted: refusals,
                headers: ["Sec-WebSocket-Version": "13"])
        }
        + [
            HandshakeCase(
                "no version", without: ["Sec-WebSocket-Version"], accepted: refusals,
                headers: ["Sec-WebSocket-Version": "13"]),
            HandshakeCase("no subprotocol", without: ["Sec-WebSocket-Protocol"], accepted: refusals),
            HandshakeCase(
                "a subprotocol that is not ours", without: ["Sec-WebSocket-Protocol"],
                with: ["Sec-WebSocket-Protocol: mqtt"], accepted: refusals),
            HandshakeCase("no Connection: Upgrade", without: ["Connection"], accepted: refusals),
            HandshakeCase(
                "Connection: keep-alive alone", without: ["Connection"], with: ["Connection: keep-alive"],
                accepted: refusals),
            HandshakeCase("no Upgrade", without: ["Upgrade"], accepted: refusals),
            HandshakeCase(
                "Upgrade to something else", without: ["Upgrade"], with: ["Upgrade: TLS/1.0"], accepted: refusals),
            HandshakeCase("HTTP/1.0", "GET /v1/socket HTTP/1.0", accepted: [400, 426, 505], mayEnd: true),
            HandshakeCase("no Host (RFC 9112 §3.2)", without: ["Host"], accepted: [400], mayEnd: true),
            HandshakeCase("two Hosts (RFC 9112 §3.2)", with: ["Host: other.test"], accepted: [400], mayEnd: true),
        ]

    private static let elsewhere: [HandshakeCase] = [
        HandshakeCase("POST", "POST /v1/socket HTTP/1.1", with: ["Content-Length: 0"], accepted: [400, 404, 405]),
        HandshakeCase("PUT", "PUT /v1/socket HTTP/1.1", with: ["Content-Length: 0"], accepted: [400, 404, 405]),
        HandshakeCase("CONNECT", "CONNECT confab.test:80 HTTP/1.1", accepted: [400, 404, 405], mayEnd: true),
        HandshakeCase("another path", "GET /v1/sockets HTTP/1.1", accepted: [404]),
        HandshakeCase("a path below", "GET /v1/socket/x HTTP/1.1", accepted: [404]),
        HandshakeCase("the page", "GET / HTTP/1.1", accepted: [200]),
        HandshakeCase(
            "an upgrade to h2c gets the page over HTTP/1.1", "GET / HTTP/1.1", without: ["Upgrade", "Connection"],
            with: ["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"],
            accepted: [200]),
        HandshakeCase(
            "h2c on the socket", without: ["Upgrade", "Connection"],
            with: ["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"],
            accepted: refusals),
        HandshakeCase(
            "an upgrade as a connection's second request is accepted", accepted: [101],
            before: "GET /health HTTP/1.1\r\nHost: confab.test\r\n\r\n"),
    ]
}
