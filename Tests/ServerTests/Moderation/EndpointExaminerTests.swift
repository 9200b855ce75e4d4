import Signaling
import Synchronization
import Testing
import Wire

@testable import Server

@Suite("An HTTP endpoint that judges samples", .timeLimit(.minutes(3))) struct EndpointExaminerTests {
    /// Answers each request with the same response, or never.
    private final class Transport: PushTransport {
        let requests = Mutex([PushRequest]())
        let response: PushResponse?

        init(_ response: PushResponse?) { self.response = response }

        func exchange(_ request: PushRequest) async throws -> PushResponse {
            requests.withLock { $0.append(request) }
            if let response { return response }
            // Nothing arrives, so this ends when the task is canceled.
            let answers = AsyncStream(Void.self) { _ in }
            for await _ in answers {}
            throw CancellationError()
        }

        func close() async {}
    }

    private static let question = SampleChecks.Question(
        number: 7,
        source: SampleSource(
            match: MatchID(high: 1, low: 2), person: IdentityID(high: 3, low: 4), session: SessionID("1_a")!),
        jpeg: [0xFF, 0xD8])

    private static func run(
        _ transport: Transport,
        _ body: (EndpointExaminer, inout AsyncStream<SampleExaminerReport>.Iterator) async throws -> Void
    ) async throws {
        let (reports, continuation) = AsyncStream<SampleExaminerReport>.makeStream()
        let examiner = EndpointExaminer(
            try WebhookURL("http://127.0.0.1:9000/judge"), token: SecretText("0123456789abcdef"), transport: transport
        ) { continuation.yield($0) }
        examiner.start()
        var iterator = reports.makeAsyncIterator()
        #expect(await iterator.next() == .event(.available(true)))
        try await body(examiner, &iterator)
        await examiner.stop()
    }

    @Test("the image is the body, and the answer is a verdict")
    func verdict() async throws {
        let transport = Transport(
            PushResponse(status: 200, retryAfter: nil, body: Array(#"{"verdict":"end","text":"No."}"#.utf8)))
        try await Self.run(transport) { examiner, reports in
            examiner.ask(Self.question)
            #expect(await reports.next() == .event(.answered(7, .judged(SampleJudgment(.end, text: "No.")))))
            let request = try #require(transport.requests.withLock { $0.first })
            #expect(request.body == [0xFF, 0xD8] && request["content-type"] == "image/jpeg")
            #expect(request["authorization"] == "Bearer 0123456789abcdef")
            #expect(request["confab-chat"] == "\(MatchID(high: 1, low: 2))")
            #expect(request.path == "/judge" && !request.isSecure)
        }
    }

    @Test(
        "answers that are no verdicts do nothing but count",
        arguments: [
            (200, "no json", true), (200, #"{"verdict":"maybe"}"#, true), (500, #"{"verdict":"end"}"#, false),
        ])
    func invalid(_ status: Int, _ body: String, _ isInvalid: Bool) async throws {
        let transport = Transport(PushResponse(status: status, retryAfter: nil, body: Array(body.utf8)))
        try await Self.run(transport) { examiner, reports in
            examiner.ask(Self.question)
            guard case .problem? = await reports.next() else { return _ = Issue.record("no problem") }
            #expect(await reports.next() == .event(.answered(7, isInvalid ? .invalid : .failed)))
        }
    }

    @Test("a request that takes too long is canceled, and its answer is not reported")
    func slow() async throws {
        try await Self.run(Transport(nil)) { examiner, reports in
            examiner.ask(Self.question)
            examiner.abandon(7)
            guard case .problem? = await reports.next() else { return _ = Issue.record("no problem") }
            // A question that was abandoned is not answered, so the next report is about the next one.
            examiner.abandon(8)
            examiner.start()
            #expect(await reports.next() == .event(.available(true)))
        }
    }
}
