import Foundation
import Signaling
import Testing
import Wire

@testable import Server

@Suite("The operator's program", .ownThreads, .timeLimit(.minutes(3))) struct ProgramExaminerTests {
    /// A program as a shell script. `id` is the number of the question in `line`.
    private static func script(_ body: String) -> [String] {
        let loop = """
            while read -r line; do
            id=${line#*\\"id\\":}
            id=${id%%,*}
            \(body)
            done
            """
        return ["/bin/sh", "-c", loop]
    }

    private static let question = SampleChecks.Question(
        number: 7,
        source: SampleSource(
            match: MatchID(high: 1, low: 2), person: IdentityID(high: 3, low: 4), session: SessionID("1_a")!),
        jpeg: [0xFF, 0xD8])

    /// Runs a program and passes the body what it reports.
    private static func run(
        _ command: [String],
        _ body: (ProgramExaminer, inout AsyncStream<SampleExaminerReport>.Iterator) async throws -> Void
    ) async throws {
        let (reports, continuation) = AsyncStream<SampleExaminerReport>.makeStream()
        let examiner = ProgramExaminer(command, pause: { _ in await Task.yield() }) { continuation.yield($0) }
        examiner.start()
        var iterator = reports.makeAsyncIterator()
        do {
            #expect(await iterator.next() == .event(.available(true)))
            try await body(examiner, &iterator)
        } catch {
            await examiner.stop()
            throw error
        }
        await examiner.stop()
    }

    @Test("an answer is a verdict with a sentence")
    func answers() async throws {
        try await Self.run(Self.script(#"echo "{\"id\":$id,\"verdict\":\"warn\",\"text\":\"Too dark.\"}""#)) {
            examiner, reports in
            examiner.ask(Self.question)
            #expect(await reports.next() == .event(.answered(7, .judged(SampleJudgment(.warn, text: "Too dark.")))))
        }
    }

    @Test("a question is a line of JSON with the sample in base64")
    func question() throws {
        let line = Self.question.programLine
        #expect(line.last == UInt8(ascii: "\n"))
        guard case .object(let object) = try JSONReader.parse(line.dropLast()) else {
            return _ = Issue.record("no object")
        }
        #expect(object["id"] == .integer(7) && object["jpeg"] == .string("/9g="))
        #expect(object["chat"] == .string("\(MatchID(high: 1, low: 2))"))
        #expect(object["person"] == .string("\(IdentityID(high: 3, low: 4))"))
    }

    @Test("an invalid answer is reported, and the program continues")
    func lies() async throws {
        try await Self.run(Self.script("echo nonsense")) { examiner, reports in
            for _ in 1...2 {
                examiner.ask(Self.question)
                guard case .problem? = await reports.next() else { return _ = Issue.record("no problem") }
                #expect(await reports.next() == .event(.answered(7, .invalid)))
            }
        }
    }

    @Test("a program that does not answer in time is started again")
    func slow() async throws {
        try await Self.run(Self.script("sleep 600")) { examiner, reports in
            examiner.ask(Self.question)
            examiner.abandon(7)
            guard case .problem? = await reports.next() else { return _ = Issue.record("no problem") }
            #expect(await reports.next() == .event(.available(false)))
            #expect(await reports.next() == .event(.available(false)))
            #expect(await reports.next() == .event(.available(true)))
        }
    }

    @Test("a program that ends is started again, with its last words in the log")
    func crashes() async throws {
        try await Self.run(Self.script("echo broken >&2; exit 3")) { examiner, reports in
            examiner.ask(Self.question)
            #expect(await reports.next() == .event(.available(false)))
            guard case .problem(let text)? = await reports.next() else { return _ = Issue.record("no problem") }
            #expect(text.contains("broken"))
            #expect(await reports.next() == .event(.available(true)))
        }
    }

    @Test("a program that writes lines that nobody asked for is started again")
    func floods() async throws {
        try await Self.run(["/bin/sh", "-c", "while :; do echo '{}'; done"]) { _, reports in
            var seen: [SampleExaminerReport] = []
            while seen.last != .event(.available(true)), let report = await reports.next() { seen.append(report) }
            #expect(seen.contains(.event(.available(false))))
            #expect(seen.count < 10, "the lines are not queued: \(seen)")
        }
    }

    @Test("a program that cannot be started is reported")
    func missing() async throws {
        try await Self.run(["/does/not/exist"]) { _, reports in
            #expect(await reports.next() == .event(.available(false)))
            guard case .problem(let text)? = await reports.next() else { return _ = Issue.record("no problem") }
            #expect(text.contains("moderation.program"))
        }
    }

    @Test("the pause before the next start grows, until the program has run for a while")
    func pauses() {
        var pauses = RestartPauses()
        let waits = (0..<8).map { _ in pauses.pause(afterRunning: .zero) }
        #expect(waits == [1, 2, 4, 8, 16, 32, 60, 60].map { Duration.seconds($0) })
        #expect(pauses.pause(afterRunning: .seconds(61)) == .seconds(1))
    }
}
