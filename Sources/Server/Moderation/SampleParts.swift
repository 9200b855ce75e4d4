import NIOCore
import ServiceLifecycle
import Signaling
import Wire

/// Starts the check of samples, if the configuration names a program or an endpoint.
enum SampleParts {
    /// Starts what judges samples, and asks clients for them.
    ///
    /// - Parameter make: makes the program, which reports to the function that it gets. Returns nil if there is none.
    /// - Returns: the program; nil if there is none.
    static func start(
        _ configuration: ConfabConfiguration, on gateway: NIOLoopBound<Gateway>, _ make: SampleExaminerFactory
    ) async throws -> (any SampleExaminer)? {
        let examiner = make { report in
            gateway.eventLoop.execute { gateway.value.sampleJudge?.receive(report) }
        }
        guard let examiner else { return nil }
        let settings = SampleChecks.Settings(
            interval: configuration.rules.sampleInterval, timeout: configuration.moderation.timeout,
            maxWaiting: configuration.moderation.maxWaitingSamples, maxQuestions: examiner.maxQuestions)
        try await gateway.eventLoop.submit { gateway.value.check(with: examiner, settings) }.get()
        examiner.start()
        return examiner
    }

    /// Makes the program or the endpoint that the configuration names; nil if it names neither.
    static func examiner(
        _ configuration: ConfabConfiguration, _ report: @escaping @Sendable (SampleExaminerReport) -> Void
    ) -> (any SampleExaminer)? {
        let moderation = configuration.moderation
        if !moderation.program.isEmpty { return ProgramExaminer(moderation.program, report: report) }
        guard let url = moderation.url.flatMap({ try? WebhookURL($0) }) else { return nil }
        // An operator sets the URL, so it may be on this machine or a private network.
        let settings = PushConnections.Settings(
            timeout: moderation.timeout, connectionsPerHost: 4, allowsPrivateAddresses: true)
        return EndpointExaminer(
            url, token: moderation.token, transport: PushConnections(settings), report: report)
    }
}

extension Gateway {
    /// Asks clients for samples of their cameras, which this judges.
    fileprivate func check(with examiner: any SampleExaminer, _ checks: SampleChecks.Settings) {
        let runner = runner
        sampleJudge = SampleJudge(
            checks, examiner, clock: runner.clock, eventLoop: eventLoop, logger: logger
        ) { runner.submit($0) }
        var settings = runner.hubSettings
        settings.rules.checksSamples = true
        runner.submit(.settingsChanged(settings))
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
