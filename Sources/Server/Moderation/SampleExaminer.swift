import Signaling
import Wire

/// Judges samples: the operator's program, or an HTTP endpoint.
///
/// It reports what happens to the function that it was made with, from any thread. It answers each question at most once, and never
/// after `stop` has returned.
protocol SampleExaminer: Sendable {
    /// The number of samples that it can judge at the same time.
    var maxQuestions: Int { get }
    /// Starts. Questions may be asked after it has reported that it is available.
    func start()
    func ask(_ question: SampleChecks.Question)
    /// Stops judging this sample, because it took too long.
    func abandon(_ number: UInt64)
    /// Ends it and waits until it has ended.
    func stop() async
}

/// What an examiner reports.
enum SampleExaminerReport: Equatable, Sendable {
    case event(SampleChecks.Event)
    /// Something that an operator should know, for the log.
    case problem(String)
}

typealias SampleExaminerFactory =
    @Sendable (_ report: @escaping @Sendable (SampleExaminerReport) -> Void) -> (any SampleExaminer)?

/// How long to wait before a program that has ended is started again: longer each time, until it has run for a while.
struct RestartPauses: Equatable, Sendable {
    static let first = Duration.seconds(1)
    static let longest = Duration.seconds(60)
    /// A program that ran for this long is started again after the first pause.
    static let steady = Duration.seconds(60)

    private var next = first

    /// - Parameter duration: how long the program ran; zero if it could not be started.
    mutating func pause(afterRunning duration: Duration) -> Duration {
        if duration >= Self.steady { next = Self.first }
        defer { next = min(next * 2, Self.longest) }
        return next
    }
}
