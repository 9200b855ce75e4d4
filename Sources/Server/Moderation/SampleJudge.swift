import CoreMetrics
import Logging
import NIOCore
import ServiceLifecycle
import Signaling
import Wire

/// Passes samples of cameras to the operator's program, and its verdicts to the rules. Used only on the gateway's event loop.
///
/// `SampleChecks` decides what is judged when. This is the shell around it: the timer, the program, metrics and the log.
final class SampleJudge {
    /// The minimum time between two log lines about the program, so that one that fails all the time does not fill the log.
    private static let logInterval = Duration.seconds(10)

    private let runner: HubRunner
    private let logger: Logger
    private let metrics = SampleMetrics()
    private var checks: SampleChecks
    private var examiner: (any SampleExaminer)?
    private var timer: Scheduled<Void>?
    private var timerAt: Timestamp?
    private var loggedAt: Timestamp?
    private var unlogged = 0

    /// - Parameter makeExaminer: makes the program, which reports to the function that it gets. Returns nil if there is none.
    static func make(
        _ configuration: ConfabConfiguration, on gateway: NIOLoopBound<Gateway>, _ makeExaminer: SampleExaminerFactory
    ) async throws -> (any SampleExaminer)? {
        let examiner = makeExaminer { report in
            gateway.eventLoop.execute { gateway.value.sampleJudge?.receive(report) }
        }
        guard let examiner else { return nil }
        let settings = SampleChecks.Settings(
            interval: configuration.rules.sampleInterval, timeout: configuration.moderation.timeout,
            maxWaiting: configuration.moderation.maxWaiting, maxQuestions: examiner.maxQuestions)
        try await gateway.eventLoop.submit {
            gateway.value.check(with: SampleJudge(gateway.value.runner, settings, examiner, gateway.value.logger))
        }.get()
        examiner.start()
        return examiner
    }

    private init(
        _ runner: HubRunner, _ settings: SampleChecks.Settings, _ examiner: any SampleExaminer, _ logger: Logger
    ) {
        (self.runner, self.examiner, self.logger) = (runner, examiner, logger)
        checks = SampleChecks(settings)
    }

    /// Takes a sample. Throws `rate_limited` if the same camera has just sent one.
    func take(_ jpeg: [UInt8], of source: SampleSource) throws(WireError) {
        try checks.admit(source, now: runner.now)
        metrics.bytes.increment(by: Int64(jpeg.count))
        runner.submit(.sampled(source, jpeg))
        handle(.sample(source, jpeg))
    }

    private func receive(_ report: SampleExaminerReport) {
        switch report {
        case .event(let event): handle(event)
        case .problem(let text): log(text)
        }
    }

    private func handle(_ event: SampleChecks.Event) { carryOut(checks.handle(event, now: runner.now)) }

    private func carryOut(_ effects: [SampleChecks.Effect]) {
        for effect in effects {
            switch effect {
            case .ask(let question): examiner?.ask(question)
            case .abandon(let number): examiner?.abandon(number)
            case .judged(let source, let judgment): runner.submit(.judged(source, judgment))
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
        let judge = NIOLoopBound(self, eventLoop: runner.eventLoop)
        // Timestamps are rounded down to milliseconds.
        let delay = max(0, (next - runner.now).wholeMilliseconds) + 1
        timer = runner.eventLoop.scheduleTask(in: .milliseconds(delay)) { judge.value.timerFired() }
    }

    private func timerFired() {
        (timer, timerAt) = (nil, nil)
        carryOut(checks.handleTimeout(now: runner.now))
    }

    private func log(_ text: String) {
        let now = runner.now
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

extension Gateway {
    /// Asks clients for samples of their cameras, which this judges.
    fileprivate func check(with judge: SampleJudge) {
        sampleJudge = judge
        var settings = runner.hubSettings
        settings.rules.checksSamples = true
        runner.submit(.settingsChanged(settings))
    }
}

extension ConfabConfiguration {
    /// Makes the program or the endpoint that judges samples; nil if neither is set.
    func makeExaminer(_ report: @escaping @Sendable (SampleExaminerReport) -> Void) -> (any SampleExaminer)? {
        if !moderation.program.isEmpty { return ProgramExaminer(moderation.program, report: report) }
        guard let url = moderation.url.flatMap({ try? WebhookURL($0) }) else { return nil }
        // An operator sets the URL, so it may be on this machine or a private network.
        let settings = PushConnections.Settings(
            timeout: moderation.timeout, connectionsPerHost: 4, allowsPrivateAddresses: true)
        return EndpointExaminer(
            url, token: moderation.token, transport: PushConnections(settings), report: report)
    }
}

/// Ends the program when the server stops.
struct SampleExaminerStop: Service {
    let examiner: any SampleExaminer

    func run() async throws {
        try? await gracefulShutdown()
        await examiner.stop()
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
            + "because a newer one arrived first.",
        "confab_samples_bytes_total": "Bytes of samples of cameras that arrived.",
        "confab_roulette_unsampled_total":
            "Sides of video chats from which no sample came although the server checks them, also if the camera was off.",
    ]
}
