import Composing
import Foundation
import Signaling
import Synchronization
import Wire

/// The operator's program, which runs as long as the server. It reads one question per line from its standard input, and writes one
/// answer per line ([moderation.md](../../../docs/moderation.md)).
///
/// It gets the next question after it has answered. A program that does not answer in time, writes a line that nobody asked for, or
/// ends by itself is started again after a pause. So it never has more than one sample, and the lines that it writes are not queued.
final class ProgramExaminer: SampleExaminer {
    /// The priority is lower than that of the server, whose media must not wait. What the program uses is up to the operator.
    private static let limits = ChildProcess.Limits(
        processor: .max, memory: .max, seconds: .infinity, nice: 10)
    /// Maximum length of a question in bytes: a sample in base64, and three IDs.
    private static let maxQuestion = Limits.sample * 4 / 3 + 1024

    /// A run of the program.
    private struct Run {
        let input: ChildInput
        let task: Task<ChildProcess.Outcome, any Error>
    }

    /// What the callers and the threads of the program share.
    private struct State {
        var run: Run?
        /// The question that the program has not answered.
        var question: UInt64?
        /// Whether the present run was ended, so that the lines that it still writes do not count.
        var isEnding = false
        var loop: Task<Void, Never>?
    }

    let maxQuestions = 1
    private let executable: String
    private let arguments: [String]
    private let pause: @Sendable (Duration) async throws -> Void
    private let report: @Sendable (SampleExaminerReport) -> Void
    private let state = Mutex(State())

    /// - Parameters:
    ///   - command: the path of the program, and its arguments.
    ///   - pause: sleeps for a duration. Tests replace it.
    init(
        _ command: [String],
        pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
        report: @escaping @Sendable (SampleExaminerReport) -> Void
    ) {
        (executable, arguments) = (command.first ?? "", Array(command.dropFirst()))
        (self.pause, self.report) = (pause, report)
    }

    func start() {
        let loop = Task { await runAgainAndAgain() }
        state.withLock { $0.loop = loop }
    }

    func ask(_ question: SampleChecks.Question) {
        let isSent = state.withLock { state in
            guard let run = state.run, !state.isEnding, state.question == nil,
                run.input.append(question.programLine)
            else { return false }
            state.question = question.number
            return true
        }
        if !isSent { report(.event(.answered(question.number, .failed))) }
    }

    func abandon(_ number: UInt64) {
        let isCurrent = state.withLock { $0.question == number }
        guard isCurrent else { return }
        report(.problem("The program did not answer in time and is started again."))
        endRun()
    }

    func stop() async {
        let loop = state.withLock { $0.loop }
        loop?.cancel()
        await loop?.value
    }

    private func endRun() {
        state.withLock { state in
            state.isEnding = true
            state.question = nil
            state.run?.task.cancel()
        }
        report(.event(.available(false)))
    }

    private func runAgainAndAgain() async {
        var pauses = RestartPauses()
        while !Task.isCancelled {
            let start = ContinuousClock.now
            await runOnce()
            guard !Task.isCancelled else { return }
            try? await pause(pauses.pause(afterRunning: ContinuousClock.now - start))
        }
    }

    private func runOnce() async {
        let input = ChildInput(maxBytes: Self.maxQuestion)
        let task = Task { [self] in
            try await ChildProcess.run(
                executable, arguments, directory: "/", limits: Self.limits, input: input
            ) { [self] line in heard(line) }
        }
        state.withLock { state in
            (state.run, state.question, state.isEnding) = (Run(input: input, task: task), nil, false)
        }
        report(.event(.available(true)))
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        let wasEnded = state.withLock { state in
            defer { (state.run, state.question) = (nil, nil) }
            return state.isEnding
        }
        report(.event(.available(false)))
        guard !Task.isCancelled, !wasEnded else { return }
        switch result {
        case .success(let outcome): report(.problem("The program ended: \(outcome.reason)"))
        case .failure(is ComposeError): report(.problem("The program could not be started. Check moderation.program."))
        case .failure(let error): report(.problem("The program failed: \(error)"))
        }
    }

    /// Handles a line of the program. It runs on the thread that reads them.
    private func heard(_ line: Substring) {
        let (number, wasEnding) = state.withLock { state in
            defer { state.question = nil }
            return (state.question, state.isEnding)
        }
        guard !wasEnding else { return }
        guard let number else {
            report(.problem("The program wrote a line that answers no question, and is started again."))
            return endRun()
        }
        do throws(InvalidVerdict) {
            report(.event(.answered(number, .judged(try SampleVerdictText.parse(Array(line.utf8), to: number)))))
        } catch {
            report(.problem("The answer of the program is invalid: \(error.reason)."))
            report(.event(.answered(number, .invalid)))
        }
    }
}

extension SampleChecks.Question {
    /// The question as a line of JSON.
    var programLine: [UInt8] {
        var writer = JSONWriter(capacity: jpeg.count * 4 / 3 + 256)
        writer.beginObject()
        writer.member("id", Int64(clamping: number))
        writer.member("chat", source.match.description)
        writer.member("person", source.person.description)
        writer.member("jpeg", Data(jpeg).base64EncodedString())
        writer.endObject()
        return writer.bytes + [UInt8(ascii: "\n")]
    }
}
