import NIOCore
import ServiceLifecycle
import Testing
import Wire

@testable import Server

@Suite("Sending traces") struct TraceExportTests {
    private static func span(_ id: UInt64) -> TraceSpan {
        TraceSpan(
            "session.join", .server, trace: TraceID(high: 1, low: 2), id: SpanID(rawValue: id), parent: nil,
            start: TraceTime(nanosecondsSinceEpoch: 1_700_000_000_000_000_001))
    }

    @Test("the request has the form of OTLP in JSON")
    func golden() throws {
        var span = Self.span(3)
        span.parent = SpanID(rawValue: 4)
        span.attributes = [
            .init("a", "b\"c"), .init("number", .integer(5)), .init("share", .number(0.5)), .init("flag", .bool(true)),
        ]
        span.events = [
            .init(name: "exception", time: span.start, attributes: [.init("exception.type", "Lost")])
        ]
        span.fail("not_permitted")
        span = span.ended(at: TraceTime(nanosecondsSinceEpoch: 1_700_000_000_000_000_009))
        let body = TraceJSON.body([span], resource: [.init("service.name", "confab")], version: "1")
        let expected = """
            {"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"confab"}}]},\
            "scopeSpans":[{"scope":{"name":"confab","version":"1"},"spans":[{\
            "traceId":"00000000000000010000000000000002","spanId":"0000000000000003",\
            "parentSpanId":"0000000000000004","name":"session.join","kind":2,\
            "startTimeUnixNano":"1700000000000000001","endTimeUnixNano":"1700000000000000009",\
            "attributes":[{"key":"a","value":{"stringValue":"b\\"c"}},{"key":"number","value":{"intValue":"5"}},\
            {"key":"share","value":{"doubleValue":0.5}},{"key":"flag","value":{"boolValue":true}},\
            {"key":"error.type","value":{"stringValue":"not_permitted"}}],\
            "events":[{"timeUnixNano":"1700000000000000001","name":"exception",\
            "attributes":[{"key":"exception.type","value":{"stringValue":"Lost"}}]}],\
            "status":{"code":2}}]}]}]}
            """
        #expect(String(decoding: body, as: UTF8.self) == expected)
        _ = try JSONReader.parse(body)
    }

    @Test(
        "rejected spans are counted",
        arguments: [
            (#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}"#, 3),
            (#"{"partialSuccess":{"rejectedSpans":2}}"#, 2), (#"{"partialSuccess":{}}"#, 0), ("{}", 0), ("", 0),
            (#"{"partialSuccess":{"rejectedSpans":"-1"}}"#, 0), ("<html>", 0),
        ])
    func rejected(body: String, count: Int) { #expect(TraceJSON.rejected(in: Array(body.utf8)) == count) }

    @Test("a batch is sent again after failures that may pass, with longer and longer pauses, and then given up")
    func pauses() {
        var delivery = TraceDelivery()
        var waits: [Duration] = []
        var last: TraceDelivery.Step?
        for _ in 0..<TraceDelivery.attempts {
            let step = delivery.handle(.lost("no route"), jitter: 0.5)
            if case .wait(let pause, "no route") = step { waits.append(pause) } else { last = step }
        }
        #expect(waits == [.seconds(1), .seconds(2), .seconds(4), .seconds(8), .seconds(16)])
        #expect(last == .giveUp(reason: "no route"))
    }

    @Test("the receiver may request a pause, but not a long one", arguments: [429, 502, 503, 504])
    func retryAfter(status: Int) {
        let reason = "the receiver answered with status \(status)"
        var delivery = TraceDelivery()
        let short = delivery.handle(.answered(status: status, retryAfter: .seconds(7)), jitter: 0)
        #expect(short == .wait(.seconds(7), reason: reason))
        let long = delivery.handle(.answered(status: status, retryAfter: .seconds(86400)), jitter: 0)
        #expect(long == .wait(TraceDelivery.longestPause, reason: reason))
        #expect(delivery.handle(.answered(status: 200, rejected: 1), jitter: 0) == .delivered(rejected: 1))
    }

    @Test("other statuses give the batch up at once", arguments: [301, 400, 401, 404, 500])
    func permanent(status: Int) {
        var delivery = TraceDelivery()
        let step = delivery.handle(.answered(status: status, retryAfter: .seconds(1)), jitter: 0)
        #expect(step == .giveUp(reason: "the receiver answered with status \(status)"))
    }

    @Test("a full queue drops new spans, and a batch that is put back is first again")
    func queue() {
        let queue = TraceQueue(capacity: 3)
        for id in 1...5 { queue.add(Self.span(UInt64(id))) }
        let batch = queue.takeBatch()
        #expect(batch.map(\.id.rawValue) == [1, 2, 3] && queue.takeBatch().isEmpty)
        queue.add(Self.span(9))
        queue.putBack(batch)
        #expect(queue.takeBatch().map(\.id.rawValue) == [1, 2, 3, 9])
    }

    @Test("a slow collector and a long queue do not delay the stop of the server beyond its limit")
    func slowAtTheEnd() async throws {
        let receiver = try await TraceReceiver.start { _ in .late(.milliseconds(100)) }
        var configuration = ConfabConfiguration()
        configuration.shutdown.grace = .milliseconds(250)
        let queue = TraceQueue(capacity: 10_000)
        for id in 1...10_000 { queue.add(Self.span(UInt64(id))) }
        let lines = LogLines()
        let exporter = TraceExporter(configuration, endpoint: receiver.endpoint, queue: queue, logger: lines.logger)
        let group = ServiceGroup(services: [exporter], logger: lines.logger)
        await group.triggerGracefulShutdown()
        try await group.run()
        // The 250 ms are enough for two batches. Some may be sent before the group begins to stop.
        #expect(receiver.requests.count < 10_000 / TraceQueue.batchSize)
        #expect(queue.takeBatch().isEmpty && lines.contains("The last traces could not be sent"))
        await receiver.stop()
    }

    @Test(
        "headers are a list of names and values, without those that the server sets",
        arguments: [
            ("x-api-key=abc", ["x-api-key=abc"]), ("a=b=c, d=e f", ["a=b=c", "d=e f"]), ("", nil), ("a", nil),
            ("=b", nil), ("a=", nil), ("a=b,", nil), ("host=x", nil), ("Content-Length=1", nil), ("a b=c", nil),
            ("a=b\r\nc: d", nil),
        ] as [(String, [String]?)])
    func headers(text: String, fields: [String]?) {
        var settings = ConfabConfiguration.Tracing()
        settings.headers = SecretText(text)
        #expect(ConfabConfiguration.Tracing.isHeaderList(text) == (fields != nil))
        #expect(settings.headerFields.map { "\($0.name)=\($0.value)" } == fields ?? [])
    }
}
