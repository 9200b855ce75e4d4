import NIOCore
import NIOHTTP1
import Testing

@testable import Server

/// A list of inputs for `HTTPConnection`, each with the outputs that must result. Outputs are written as short texts.
struct HTTPScript: CustomTestStringConvertible, Sendable {
    struct Step: Sendable {
        let inputs: [HTTPConnection.Input]
        let outputs: [String]
    }

    let name: String
    let steps: [Step]
    var testDescription: String { name }

    init(_ name: String, _ steps: Step...) { (self.name, self.steps) = (name, steps) }
}

extension HTTPScript.Step {
    static func on(_ inputs: HTTPConnection.Input..., gives outputs: String...) -> Self {
        Self(inputs: inputs, outputs: outputs)
    }

    /// Receives a request without a body.
    static func request(_ head: HTTPRequestHead, gives outputs: String...) -> Self {
        Self(inputs: [.received(.head(head)), .received(.end(nil))], outputs: outputs)
    }
}

extension HTTPConnection.Input {
    static func head(_ head: HTTPRequestHead) -> Self { .received(.head(head)) }
    static func body(_ count: Int) -> Self { .received(.body(ByteBuffer(repeating: 0x61, count: count))) }
    static var end: Self { .received(.end(nil)) }
    static var responseHead: Self { .responded(.head(HTTPResponseHead(version: .http1_1, status: .ok))) }
    static var responseEnd: Self { .responded(.end(nil)) }
    static var ok: Self { .answered(GateResponse(status: 200)) }
}

extension HTTPRequestHead {
    static func request(
        _ uri: String, _ method: HTTPMethod = .GET, version: HTTPVersion = .http1_1, _ headers: (String, String)...
    ) -> HTTPRequestHead {
        HTTPRequestHead(
            version: version, method: method, uri: uri, headers: HTTPHeaders([("Host", "confab.test")] + headers))
    }

    static let health = request("/health")
    static let upload = request("/v1/rooms/Tea/files/1", .PUT)
    static let waitingUpload = request("/v1/rooms/Tea/files/1", .PUT, ("Expect", "100-continue"))
    static let poll = request("/socket.io/1/xhr-polling/7")
    static let webSocket = upgrade("/v1/socket", ("Sec-WebSocket-Protocol", "confab.v1"))
    static let legacySocket = upgrade("/socket.io/1/websocket/7")

    private static func upgrade(_ uri: String, _ headers: (String, String)...) -> HTTPRequestHead {
        var head = request(
            uri, .GET, ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="))
        head.headers.add(contentsOf: headers)
        return head
    }
}

extension HTTPConnection.Output {
    /// The output in a script.
    var text: String {
        switch self {
        case .read: "read"
        case .began: "began"
        case .route(.head(let head)): "route \(head.uri)"
        case .route(.body(let buffer)): "route \(buffer.readableBytes) bytes"
        case .route(.end): "route end"
        case .routeComplete: "complete"
        case .perform(_, let head, let body): "perform \(head.uri), \(body.count) bytes"
        case .sendContinue: "continue"
        case .write(.head(let head)):
            head.headers.first(name: "Connection") == "close" ? "write head, close" : "write head"
        case .write(.body): "write body"
        case .write(.end): "write end"
        case .dropResponse: "drop"
        case .answer(let reply, _, let keepsAlive): "answer \(reply.status), \(keepsAlive ? "keep" : "close")"
        case .refuse(.headersTooLarge): "refuse headers"
        case .refuse(.notHTTP): "refuse syntax"
        case .refuse(.hostMissing): "refuse host"
        case .refuse(.transferEncodingUnknown): "refuse transfer encoding"
        case .refuse(.forwardingContradictory): "refuse forwarding"
        case .refuse(.bodyTooLarge): "refuse body"
        case .refuse(.operationTooLarge): "refuse operation"
        case .refuse(.descriptionTooLarge): "refuse description"
        case .upgrade(let head): "upgrade \(head.uri)"
        case .nextTurn: "next turn"
        case .earlierTimeout: "earlier timeout"
        case .linger: "linger"
        case .close: "close"
        }
    }
}

@Suite("An HTTP connection") struct HTTPConnectionTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    private struct Stage {
        var connection = HTTPConnection(
            settings: HTTPConnection.Settings(ConfabConfiguration(), peer: IPAddress(peer: nil)),
            now: HTTPConnectionTests.start)
        var now = HTTPConnectionTests.start

        mutating func handle(_ inputs: HTTPConnection.Input...) -> [String] { handle(inputs) }

        mutating func handle(_ inputs: [HTTPConnection.Input]) -> [String] {
            inputs.flatMap { connection.handle($0, now: now) }.map(\.text)
        }

        /// Advances the time and returns the outputs.
        mutating func pass(_ seconds: Int64) -> [String] {
            let end = now + .seconds(seconds)
            while let timeout = connection.nextTimeout, timeout <= end {
                now = max(now, timeout)
                let outputs = connection.handleTimeout(now: now)
                if !outputs.isEmpty { return outputs.map(\.text) }
                guard let next = connection.nextTimeout, next > now else { break }
            }
            now = end
            return []
        }
    }

    private static let upload = HTTPRequestHead.upload.uri

    private static let scripts = [
        HTTPScript(
            "a request for the router is passed on in parts, and its response is written",
            .on(.head(.request("/x", .POST)), gives: "began", "route /x"), .on(.body(3), gives: "route 3 bytes"),
            .on(.end, gives: "route end"), .on(.responseHead, gives: "write head"),
            .on(.responseEnd, gives: "write end", "next turn"), .on(.read, gives: "read")),
        HTTPScript(
            "a request for an endpoint is performed when it is complete",
            .on(.head(.request("/socket.io/1/xhr-polling/7", .POST)), .body(2), .body(3), gives: "began"),
            .on(.end, gives: "perform /socket.io/1/xhr-polling/7, 5 bytes"),
            .on(.ok, gives: "answer 200, keep", "next turn")),
        HTTPScript(
            "a second answer to a request is dropped",
            .request(.poll, gives: "began", "perform /socket.io/1/xhr-polling/7, 0 bytes"),
            .on(.ok, gives: "answer 200, keep", "next turn"), .on(.ok), .on(.responseHead, gives: "drop"),
            .on(.responseEnd, gives: "drop")),
        HTTPScript(
            "a pipelined request waits for the answer and for the next turn, and nothing is read meanwhile",
            .request(.health, gives: "began", "route /health", "route end"), .request(.poll), .on(.read),
            .on(.responseHead, .responseEnd, gives: "write head", "write end", "next turn"),
            .on(.turn, gives: "began", "perform /socket.io/1/xhr-polling/7, 0 bytes", "complete", "read"),
            .on(.ok, gives: "answer 200, keep", "next turn")),
        HTTPScript(
            "a client that does not read its responses gets no further requests handled",
            .request(.health, gives: "began", "route /health", "route end"), .on(.writable(false)), .on(.read),
            .on(.responseHead, .responseEnd, gives: "write head", "write end", "next turn"), .request(.health),
            .on(.turn, gives: "complete"),
            .on(.writable(true), gives: "began", "route /health", "route end", "complete", "read")),
        HTTPScript(
            "a request without a Host header is refused",
            .on(.head(.bare), gives: "began", "refuse host", "linger", "next turn"),
            .on(.end), .on(.turn)),
        HTTPScript(
            "a body above the limit is refused at its announcement",
            .on(
                .head(.request("/x", .POST, ("Content-Length", "1048577"))),
                gives: "began", "refuse body", "linger", "next turn")),
        HTTPScript(
            "a body above the limit is refused when it has arrived, and the router's response is dropped",
            .on(.head(.request("/x", .POST)), gives: "began", "route /x"),
            .on(.body(1 << 20), gives: "route 1048576 bytes"),
            .on(.body(1), gives: "refuse body", "linger", "next turn"),
            .on(.responseHead, .responseEnd, gives: "drop", "drop")),
        HTTPScript(
            "a body of OpenTok's SDKs above the limit is refused at its announcement, as the SDKs expect it",
            .on(
                .head(.request("/v2/project/1/session/x/mute", .POST, ("Content-Length", "1048577"))),
                gives: "began", "refuse operation", "linger", "next turn")),
        HTTPScript(
            "a body of OpenTok's SDKs above the limit is refused when it has arrived, as the SDKs expect it",
            .on(.head(.request("/session/create", .POST)), gives: "began", "route /session/create"),
            .on(.body((1 << 20) + 1), gives: "refuse operation", "linger", "next turn")),
        HTTPScript(
            "a body above the limit after the response began only closes the connection",
            .on(.head(.request("/x", .POST)), .responseHead, gives: "began", "route /x", "write head"),
            .on(.body((1 << 20) + 1), gives: "linger", "next turn")),
        HTTPScript(
            "a file for a room may be larger than another body",
            .on(.head(.upload), .body(2 << 20), gives: "began", "route \(upload)", "route 2097152 bytes"),
            .on(.end, gives: "route end"),
            .on(.responseHead, .responseEnd, gives: "write head", "write end", "earlier timeout", "next turn"),
            .on(.turn), .request(.health, gives: "began", "route /health", "route end")),
        HTTPScript(
            "an upload that is answered before the file has arrived is the last request, and its rest is not passed on",
            .on(.head(.upload), .responseHead, gives: "began", "route \(upload)", "write head, close"),
            .on(.body(5), gives: "route 5 bytes"),
            .on(.responseEnd, gives: "write end", "earlier timeout", "linger", "next turn"),
            .on(.body(5), .end), .on(.read, gives: "read")),
        HTTPScript(
            "an upload that ends during its answer is the last request",
            .on(.head(.upload), .responseHead, gives: "began", "route \(upload)", "write head, close"),
            .on(.end, gives: "route end"),
            .on(.responseEnd, gives: "write end", "earlier timeout", "linger", "next turn")),
        HTTPScript(
            "a message of an endpoint has a limit of its own",
            .on(.head(.request("/socket.io/1/xhr-polling/7", .POST)), .body(64 << 10), gives: "began"),
            .on(.body(1), gives: "refuse body", "linger", "next turn"), .on(.end)),
        HTTPScript(
            "a session description may be larger than a message, and its refusal is a WHIP answer",
            .on(.head(.request("/whip/1_MX4x", .POST)), .body(65 << 10), gives: "began"),
            .on(.body(200 << 10), gives: "refuse description", "linger", "next turn")),
        HTTPScript(
            "unparsable input is refused at once between answers",
            .on(.unparsable(.notHTTP), gives: "refuse syntax", "linger", "next turn"), .on(.unparsable(.notHTTP))),
        HTTPScript(
            "unparsable input after requests is refused after their answers",
            .request(.poll, gives: "began", "perform /socket.io/1/xhr-polling/7, 0 bytes"), .request(.health),
            .on(.unparsable(.headersTooLarge)), .on(.ok, gives: "answer 200, keep", "next turn"),
            .on(.turn, gives: "began", "route /health", "route end", "complete"),
            .on(.responseHead, .responseEnd, gives: "write head", "write end", "next turn"),
            .on(.turn, gives: "refuse headers", "linger", "next turn")),
        HTTPScript(
            "a client that asks for 100-continue gets it from endpoints",
            .on(
                .head(.request("/socket.io/1/xhr-polling/7", .POST, ("Expect", "100-continue"))),
                gives: "began", "continue")),
        HTTPScript(
            "a client that asks for 100-continue before a file gets it once, when the room wants the file",
            .on(.head(.waitingUpload), gives: "began", "route /v1/rooms/Tea/files/1"),
            .on(.bodyWanted, gives: "continue"), .on(.bodyWanted), .on(.body(5), gives: "route 5 bytes"),
            .on(.end, gives: "route end"), .on(.bodyWanted)),
        HTTPScript(
            "a client that asks for 100-continue and is refused gets only the refusal",
            .on(.head(.waitingUpload), gives: "began", "route /v1/rooms/Tea/files/1"),
            .on(
                .responseHead, .responseEnd, gives: "write head, close", "write end", "earlier timeout", "linger",
                "next turn"), .on(.bodyWanted)),
        HTTPScript(
            "a client that does not ask for 100-continue, or no longer waits for it, does not get it",
            .on(.bodyWanted), .on(.head(.waitingUpload), gives: "began", "route /v1/rooms/Tea/files/1"),
            .on(.body(1), gives: "route 1 bytes"), .on(.bodyWanted), .on(.end, gives: "route end"),
            .on(.responseHead, .responseEnd, gives: "write head", "write end", "earlier timeout", "next turn"),
            .on(.turn),
            .on(.head(.upload), gives: "began", "route /v1/rooms/Tea/files/1"), .on(.bodyWanted)),
        HTTPScript(
            "a client of HTTP/1.0 gets one answer",
            .request(
                .request("/socket.io/1/xhr-polling/7", version: .http1_0),
                gives: "began", "perform /socket.io/1/xhr-polling/7, 0 bytes"),
            .on(.ok, gives: "answer 200, close")),
        HTTPScript(
            "a client that closes its side gives up its poll and what it has pipelined, and the connection closes",
            .request(.poll, gives: "began", "perform /socket.io/1/xhr-polling/7, 0 bytes"), .request(.health),
            .on(.inputClosed, gives: "close"), .on(.ok), .on(.read)),
        HTTPScript(
            "a client that closes its side in the middle of a request gets no answer",
            .on(.head(.request("/x", .POST)), .body(1), gives: "began", "route /x", "route 1 bytes"),
            .on(.inputClosed, gives: "close"), .on(.responseHead, gives: "drop")),
        HTTPScript(
            "a client that closes its side after a request for the router gets its answer, and the router closes",
            .request(.health, gives: "began", "route /health", "route end"), .on(.inputClosed),
            .on(.responseHead, .responseEnd, gives: "write head", "write end", "next turn"), .on(.turn)),
        HTTPScript("a client that closes its side before any request is closed", .on(.inputClosed, gives: "close")),
        HTTPScript(
            "an idle connection closes when the server stops", .on(.quiesce, gives: "close"), .on(.read), .on(.end)),
        HTTPScript(
            "a pending poll is answered when the server stops, and then the connection closes",
            .request(.poll, gives: "began", "perform /socket.io/1/xhr-polling/7, 0 bytes"), .on(.quiesce),
            .on(.ok, gives: "answer 200, close")),
    ]

    private static let upgrades = [
        HTTPScript(
            "the first request may be a WebSocket handshake",
            .request(.webSocket, gives: "began", "upgrade /v1/socket"),
            .on(.read), .on(.responseHead, gives: "drop")),
        HTTPScript(
            "a later request may be a WebSocket handshake",
            .request(.health, gives: "began", "route /health", "route end"),
            .on(.responseHead, .responseEnd, gives: "write head", "write end", "next turn"), .on(.turn),
            .request(.webSocket, gives: "began", "upgrade /v1/socket")),
        HTTPScript(
            "a pipelined WebSocket handshake waits for the answers before it, and the held read follows it",
            .request(.poll, gives: "began", "perform /socket.io/1/xhr-polling/7, 0 bytes"), .request(.health),
            .request(.legacySocket), .on(.read), .on(.ok, gives: "answer 200, keep", "next turn"),
            .on(.turn, gives: "began", "route /health", "route end", "complete"),
            .on(.responseHead, .responseEnd, gives: "write head", "write end", "next turn"),
            .on(.turn, gives: "began", "perform /socket.io/1/websocket/7, 0 bytes", "complete"),
            .on(.accepted, gives: "upgrade /socket.io/1/websocket/7", "read"), .on(.turn), .on(.quiesce)),
        HTTPScript(
            "a WebSocket handshake that its endpoint refuses gets the answer, and the connection closes",
            .request(.legacySocket, gives: "began", "perform /socket.io/1/websocket/7, 0 bytes"), .on(.read),
            .on(.answered(GateResponse(status: 403)), gives: "answer 403, close"), .on(.accepted)),
        HTTPScript(
            "only a request that waits for its endpoint can become a WebSocket",
            .on(.accepted), .request(.health, gives: "began", "route /health", "route end"), .on(.accepted)),
        HTTPScript(
            "a WebSocket handshake may have a body, which is skipped up to the limit",
            .on(.head(.webSocket), .body(5), gives: "began"), .on(.end, gives: "upgrade /v1/socket")),
        HTTPScript(
            "a WebSocket handshake with an endless body is refused",
            .on(.head(.webSocket), .body(1 << 20), gives: "began"),
            .on(.body(1), gives: "refuse body", "linger", "next turn"), .on(.end)),
        HTTPScript(
            "the rest of the last request is read, and nothing after it",
            .on(.head(.webSocket), gives: "began"), .on(.read, gives: "read"), .on(.body(5)), .on(.read, gives: "read"),
            .on(.end, gives: "upgrade /v1/socket")),
        HTTPScript(
            "the rest of a request that asks for another upgrade is read",
            .on(
                .head(.request("/", .POST, ("Connection", "Upgrade"), ("Upgrade", "h2c"), ("Content-Length", "5"))),
                gives: "began", "route /"), .on(.read, gives: "read"), .on(.body(5), gives: "route 5 bytes"),
            .on(.read, gives: "read"), .on(.end, gives: "route end"), .on(.read)),
        HTTPScript(
            "a request that begins while the server stops is read to its end",
            .on(.head(.request("/socket.io/1/xhr-polling/7", .POST)), .quiesce, gives: "began"),
            .on(.read, gives: "read"), .on(.body(5), .end, gives: "perform /socket.io/1/xhr-polling/7, 5 bytes"),
            .on(.ok, gives: "answer 200, close")),
        HTTPScript(
            "another upgrade is answered by the router as a plain request, and is the last one",
            .request(
                .request("/v1/socket", .GET, ("Connection", "Upgrade"), ("Upgrade", "h2c")),
                gives: "began", "route /v1/socket", "route end"), .on(.read),
            .on(.responseHead, .responseEnd, gives: "write head, close", "write end", "linger", "next turn")),
    ]

    @Test("what comes in decides what goes out", arguments: scripts + upgrades)
    func script(_ script: HTTPScript) {
        var stage = Stage()
        for (number, step) in script.steps.enumerated() {
            let outputs = stage.handle(step.inputs)
            #expect(outputs == step.outputs, "step \(number + 1) of: \(script.name)")
        }
    }

    @Test("the first request must arrive within 10 s, also if its head arrives in parts")
    func headerTimeout() {
        var stage = Stage()
        #expect(stage.pass(9) == [])
        #expect(stage.pass(1) == ["close"])
        #expect(stage.handle(.head(.health), .end, .read, .turn) == [])
    }

    @Test("a later request may come 60 s after the last answer, and has to be complete 60 s after it began")
    func idleTimeout() {
        var stage = Stage()
        _ = stage.handle(.head(.health), .end, .responseHead, .responseEnd, .turn)
        #expect(stage.pass(59) == [])
        #expect(stage.handle(.head(.request("/x", .POST))) == ["began", "route /x"])
        #expect(stage.pass(50) == [])
        #expect(stage.handle(.body(1)) == ["route 1 bytes"])
        #expect(stage.pass(10) == ["close"])
    }

    @Test("a file may take 10 minutes, and the next request has 60 s again")
    func uploadTime() {
        var stage = Stage()
        _ = stage.handle(.head(.upload))
        #expect(stage.pass(599) == [])
        _ = stage.handle(.end, .responseHead, .responseEnd, .turn)
        #expect(stage.pass(59) == [])
        _ = stage.handle(.head(.health), .end, .responseHead, .responseEnd, .turn)
        #expect(stage.pass(60) == ["close"])
        var slow = Stage()
        _ = slow.handle(.head(.upload))
        #expect(slow.pass(600) == ["close"])
    }

    @Test("a connection that timed out needs no further timer, however long its channel takes to close")
    func noTimerAfterClose() {
        var stage = Stage()
        #expect(stage.pass(10) == ["close"])
        #expect(stage.connection.nextTimeout == nil)
        #expect(stage.handle(.inputClosed) == [])
        #expect(stage.connection.nextTimeout == nil)
    }

    @Test("a poll may wait for any time, but a client that does not read its response may not")
    func busyServer() {
        var stage = Stage()
        _ = stage.handle(.head(.poll), .end)
        #expect(stage.pass(1000) == [])
        _ = stage.handle(.ok, .turn)
        #expect(stage.pass(59) == [])
        _ = stage.handle(.head(.health), .end)
        #expect(stage.pass(1000) == [])
        _ = stage.handle(.writable(false))
        #expect(stage.pass(60) == ["close"])
    }
}

extension HTTPRequestHead {
    fileprivate static let bare = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/health")
}
