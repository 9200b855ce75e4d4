import Logging
import NIOHTTP1
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Traces of a running server", .ownThreads, .timeLimit(.minutes(3))) struct TracingServerTests {
    private static let parent = TraceParent(
        trace: TraceID(high: 0x0af7_6519_16cd_43dd, low: 0x8448_eb21_1c80_319c), span: SpanID(rawValue: 0xb7ad),
        isSampled: true)

    private static func trace(_ configuration: inout ConfabConfiguration, to receiver: TraceReceiver) {
        configuration.tracing.endpoint = receiver.endpoint
        configuration.tracing.interval = .milliseconds(20)
    }

    /// Waits until a span has arrived, and returns it.
    private static func span(_ name: String, at receiver: TraceReceiver) async throws -> TraceReceiver.Span {
        try await eventually {
            receiver.span(name) == nil ? "only \(receiver.spans.map(\.name)) arrived" : nil
        }
        return try #require(receiver.span(name))
    }

    /// Opens a socket with a header `traceparent`, joins a session, and negotiates with the media plane.
    ///
    /// - Parameter hello: the `traceparent` in the hello.
    private static func negotiate(
        _ server: TestServer, hello: String? = nil
    ) async throws -> (client: SocketClient, token: String) {
        let place = try WHIPPlace(server)
        let token = place.token()
        let client = try await SocketClient.connect(port: server.port, headers: [("traceparent", parent.text)])
        try await client.greet(traceparent: hello)
        try await client.ask(.session(.join(.init(session: place.session, token: token))))
        try await client.ask(.media(.offer(.init(side: .send, sdp: SampleOffer.obs))))
        return (client, token)
    }

    @Test("one trace leads from the request for a page's socket to the media plane's answer")
    func negotiation() async throws {
        let receiver = try await TraceReceiver.start()
        let lines = LogLines(level: .debug)
        try await TestServer.run(logger: lines.logger, { Self.trace(&$0, to: receiver) }) { server in
            let (client, token) = try await Self.negotiate(server)
            let request = try await Self.span("GET /v1/socket", at: receiver)
            let join = try await Self.span("session.join", at: receiver)
            let offer = try await Self.span("media.offer", at: receiver)
            let answer = try await Self.span("media negotiate", at: receiver)
            #expect(request.parent == Self.parent.span.description)
            #expect(join.parent == request.id && offer.parent == request.id && answer.parent == offer.id)
            for span in [request, join, offer, answer] {
                #expect(span.trace == Self.parent.trace.description && span.start <= span.end, "\(span.name)")
            }
            #expect(offer.start <= answer.start && answer.end <= offer.end)
            #expect(request.attributes["http.request.method"] == "GET")
            #expect(request.attributes["http.route"] == "/v1/socket")
            #expect(request.attributes["url.path"] == "/v1/socket")
            #expect(request.attributes["http.response.status_code"] == "101")
            #expect(answer.attributes["confab.media.side"] == "send")
            // The same id is in the log lines of the connection.
            #expect(
                lines.all.contains {
                    $0.contains("Socket open") && $0.contains("request=\(Self.parent.trace)")
                })
            for request in receiver.requests {
                #expect(request.method == "POST" && request.uri == "/v1/traces")
                #expect(request.headers["Content-Type"] == ["application/json"])
                let body = String(decoding: request.body, as: UTF8.self)
                #expect(body.contains(#""key":"service.name","value":{"stringValue":"confab"}"#))
                #expect(!body.contains(token) && !body.contains("127.0.0.1"))
            }
            await client.drop()
        }
        await receiver.stop()
    }

    @Test("a hello can name the trace that the socket continues, and an invalid one changes nothing")
    func hello() async throws {
        let receiver = try await TraceReceiver.start()
        let lines = LogLines(level: .debug)
        try await TestServer.run(logger: lines.logger, { Self.trace(&$0, to: receiver) }) { server in
            let leave = ClientMessage.session(.leave(SessionVerb.Leave(session: try WHIPPlace(server).session)))
            for traceparent in [Self.parent.text, "00-invalid"] {
                let client = try await SocketClient.connect(port: server.port)
                var hello = Hello()
                hello.traceparent = traceparent
                try await client.say(.hello(hello))
                try await client.sendRaw(Envelope(seq: 1, message: leave).encode())
                try await eventually {
                    receiver.spans.count { $0.name == "session.leave" } > (traceparent == Self.parent.text ? 0 : 1)
                        ? nil : "only \(receiver.spans.map(\.name)) arrived"
                }
                await client.drop()
            }
            let leaves = receiver.spans.filter { $0.name == "session.leave" }
            let requests = receiver.spans.filter { $0.name == "GET /v1/socket" }
            #expect(leaves[0].trace == Self.parent.trace.description)
            #expect(leaves[0].parent == Self.parent.span.description)
            #expect(leaves[1].trace != leaves[0].trace && requests.contains { $0.id == leaves[1].parent })
            #expect(lines.all.contains { $0.contains("Socket open") && $0.contains("trace=\(Self.parent.trace)") })
        }
        await receiver.stop()
    }

    @Test("each response has the id of its request, which is that of its trace")
    func requestIDs() async throws {
        let receiver = try await TraceReceiver.start()
        try await TestServer.run({ Self.trace(&$0, to: receiver) }) { server in
            let place = try WHIPPlace(server)
            let traced = try await place.ask("GET", "/health", ["traceparent": Self.parent.text])
            #expect(traced["X-Request-Id"] == Self.parent.trace.description)
            let refused = try await place.ask("POST", place.whip, ["X-Request-Id": "chosen"])
            let id = try #require(refused["X-Request-Id"].flatMap { TraceID($0) })
            let span = try await Self.span("POST /whip/{session}", at: receiver)
            #expect(span.trace == id.description && span.parent == nil)
            #expect(span.attributes["http.response.status_code"] == "\(refused.status)")
        }
        await receiver.stop()
    }

    @Test("without tracing, each response has an id of its own, and traceparent is ignored")
    func off() async throws {
        try await TestServer.run { server in
            let place = try WHIPPlace(server)
            var ids: Set<String> = []
            for _ in 0..<3 {
                let answer = try await place.ask("GET", "/health", ["traceparent": Self.parent.text])
                let id = try #require(answer["X-Request-Id"])
                #expect(TraceID(id) != nil && id != Self.parent.trace.description)
                ids.insert(id)
            }
            #expect(ids.count == 3)
        }
    }

    @Test("a client that says that it records its trace causes no spans, with a header or with a hello")
    func forced() async throws {
        let receiver = try await TraceReceiver.start()
        try await TestServer.run({
            Self.trace(&$0, to: receiver)
            $0.tracing.ratio = 0
        }) { server in
            for hello in [nil, Self.parent.text] {
                let (client, _) = try await Self.negotiate(server, hello: hello)
                await client.drop()
            }
            // The client still chooses the id, so that its own log and the server's can be compared.
            let answer = try await WHIPPlace(server).ask("GET", "/health", ["traceparent": Self.parent.text])
            #expect(answer["X-Request-Id"] == Self.parent.trace.description)
        }
        // A server that stops sends all spans that wait.
        #expect(receiver.spans.isEmpty, "\(receiver.spans.map(\.name))")
        await receiver.stop()
    }

    @Test("a client's trace is recorded as a whole or not at all, with headers and with a hello")
    func wholeTraces() async throws {
        let receiver = try await TraceReceiver.start()
        var random = SeededGenerator(seed: 37)
        let traces = (0..<8).map { _ in TraceID.random(using: &random) }
        try await TestServer.run({
            Self.trace(&$0, to: receiver)
            $0.tracing.ratio = 0.5
        }) { server in
            let place = try WHIPPlace(server)
            for trace in traces {
                let parent = TraceParent(trace: trace, span: SpanID(rawValue: 1), isSampled: true).text
                for _ in 0..<2 { _ = try await place.ask("GET", "/health", ["traceparent": parent]) }
                let client = try await SocketClient.connect(port: server.port)
                try await client.greet(traceparent: parent)
                try await client.ask(.session(.join(.init(session: place.session, token: place.token()))))
                await client.drop()
            }
        }
        // A server that stops sends all spans that wait.
        for trace in traces {
            let names = receiver.spans.filter { $0.trace == trace.description }.map(\.name).sorted()
            #expect(names.isEmpty || names == ["GET /health", "GET /health", "session.join"], "\(trace): \(names)")
        }
        await receiver.stop()
    }

    @Test("traces that a trusted caller does not record, or that are not chosen, are not sent")
    func sampling() async throws {
        let receiver = try await TraceReceiver.start()
        try await TestServer.run({
            Self.trace(&$0, to: receiver)
            $0.tracing.ratio = 0
            $0.tracing.trustParents = true
        }) { server in
            let place = try WHIPPlace(server)
            var unsampled = Self.parent
            unsampled.isSampled = false
            _ = try await place.ask("GET", "/health", ["traceparent": unsampled.text])
            _ = try await place.ask("GET", "/health")
            _ = try await place.ask("GET", "/live", ["traceparent": Self.parent.text])
            _ = try await Self.span("GET /live", at: receiver)
            #expect(receiver.span("GET /health") == nil)
        }
        await receiver.stop()
    }

    @Test("a batch that a busy receiver refuses arrives later")
    func retry() async throws {
        let receiver = try await TraceReceiver.start { number in
            number == 0 ? .status(503, headers: [("Retry-After", "0")]) : .status(200)
        }
        try await TestServer.run({ Self.trace(&$0, to: receiver) }) { server in
            _ = try await WHIPPlace(server).ask("GET", "/live")
            try await eventually { receiver.requests.count < 2 ? "\(receiver.requests.count) requests" : nil }
            #expect(receiver.requests[0].body == receiver.requests[1].body)
        }
        await receiver.stop()
    }

    @Test("a receiver that is away, silent or broken delays nobody", arguments: ["away", "silent", "broken"])
    func failures(kind: String) async throws {
        let receiver = try await TraceReceiver.start { _ in kind == "silent" ? .silence : .status(500) }
        let away = try RefusingPort()
        let lines = LogLines()
        try await TestServer.run(
            logger: lines.logger,
            {
                Self.trace(&$0, to: receiver)
                if kind == "away" { $0.tracing.endpoint = "http://127.0.0.1:\(away.number)" }
                $0.tracing.timeout = .milliseconds(50)
                $0.tracing.queueSize = 16
                $0.tracing.headers = SecretText("x-api-key=hunter2hunter2,x-other=b")
            }
        ) { server in
            let place = try WHIPPlace(server)
            for _ in 0..<50 { #expect(try await place.ask("GET", "/live").status == 200) }
            let (client, _) = try await Self.negotiate(server)
            if kind == "broken" {
                try await eventually {
                    lines.contains("Traces could not be sent") ? nil : "nothing is logged about the receiver"
                }
            }
            await client.drop()
        }
        withExtendedLifetime(away) {}
        for request in receiver.requests {
            #expect(request.headers["x-api-key"] == ["hunter2hunter2"] && request.headers["x-other"] == ["b"])
        }
        if kind == "broken" { #expect(!receiver.requests.isEmpty) }
        #expect(!lines.contains("hunter2hunter2"))
        await receiver.stop()
    }
}
