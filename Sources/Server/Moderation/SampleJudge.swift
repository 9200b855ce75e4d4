import CoreMetrics
import Logging
import NIOCore
import Signaling
import Wire

/// Passes samples of cameras to the operator's program, and its verdicts to the rules. Used only on the gateway's event loop.
///
/// `SampleChecks` decides what is judged when. This is the shell around it: the timer, the program, metrics and the log.
final class SampleJudge {
    /// The minimum time between two log lines about the program, so that one that fails all the time does not fill the log.
    private static let logInterval = Duration.seconds(10)

    private let clock: ServerClock
    private let eventLoop: any EventLoop
    private let logger: Logger
    private let submit: (Input) -> Void
    private let metrics = SampleMetrics()
    private var checks: SampleChecks
    private let examiner: any SampleExaminer
    private var timer: Scheduled<Void>?
    private var timerAt: Timestamp?
    private var loggedAt: Timestamp?
    private var unlogged = 0

    /// - Parameter submit: passes an input to the rules.
    init(
        _ settings: SampleChecks.Settings, _ examiner: any SampleExaminer, clock: ServerClock, eventLoop: any EventLoop,
        logger: Logger, submit: @escaping (Input) -> Void
    ) {
        checks = SampleChecks(settings)
        (self.examiner, self.clock, self.eventLoop) = (examiner, clock, eventLoop)
        (self.logger, self.submit) = (logger, submit)
    }

    /// Takes a sample. Throws `rate_limited` if the same camera has just sent one.
    func take(_ jpeg: [UInt8], of source: SampleSource) throws(WireError) {
        try checks.admit(source, now: clock.now)
        metrics.bytes.increment(by: Int64(jpeg.count))
        submit(.sampled(source, jpeg))
        handle(.sample(source, jpeg))
    }

    func receive(_ report: SampleExaminerReport) {
        switch report {
        case .event(let event): handle(event)
        case .problem(let text): log(text)
        }
    }

    private func handle(_ event: SampleChecks.Event) { carryOut(checks.handle(event, now: clock.now)) }

    private func carryOut(_ effects: [SampleChecks.Effect]) {
        for effect in effects {
            switch effect {
            case .ask(let question): examiner.ask(question)
            case .abandon(let number): examiner.abandon(number)
            case .judged(let source, let judgment): submit(.judged(source, judgment))
            case .count(let outcome): metrics.count(outcome)
            }
        }
        schedule()
    }

    private func schedule() {
        guard let next = checks.nextTimeout else { return }
        if let timerAt, timerAt <= next { return }
        timer?.cancel()
        timerAt = next
        let judge = NIOLoopBound(self, eventLoop: eventLoop)
        // Timestamps are rounded down to milliseconds.
        let delay = max(0, (next - clock.now).wholeMilliseconds) + 1
        timer = eventLoop.scheduleTask(in: .milliseconds(delay)) { judge.value.timerFired() }
    }

    private func timerFired() {
        (timer, timerAt) = (nil, nil)
        carryOut(checks.handleTimeout(now: clock.now))
    }

    private func log(_ text: String) {
        let now = clock.now
        if let loggedAt, now - loggedAt < Self.logInterval {
            unlogged += 1
            return
        }
        var metadata: Logger.Metadata = ["problem": "\(text)"]
        if unlogged > 0 { metadata["unlogged"] = "\(unlogged)" }
        logger.warning("The check of samples has a problem", metadata: metadata)
        (loggedAt, unlogged) = (now, 0)
    }
}

/// Metrics of the check of samples.
struct SampleMetrics {
    let bytes = Counter(label: "confab_samples_bytes_total")
    private let outcomes = [SampleChecks.Outcome: Counter](
        uniqueKeysWithValues: SampleChecks.Outcome.allCases.map {
            ($0, Counter(label: "confab_samples_total", dimensions: [("outcome", "\($0)")]))
        })

    func count(_ outcome: SampleChecks.Outcome) { outcomes[outcome]?.increment() }

    /// The help text of each metric, keyed by metric name.
    static let help = [
        "confab_samples_total":
            "Samples of cameras by what became of them: a verdict, no verdict in time (late), no valid one, or dropped "
            + "because a newer one arrived first, or after waiting too long.",
        "confab_samples_bytes_total": "Bytes of samples of cameras that arrived.",
        "confab_roulette_unsampled_total":
            "Sides of video chats from which no sample came although the server checks them, also if the camera was off.",
    ]
}
