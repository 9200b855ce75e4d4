import Logging
import ServiceLifecycle
import Signaling
import Synchronization
import Wire

/// The service that delivers events to the projects' webhooks. It carries out what ``WebhookSchedule`` decides.
///
/// It does not own the events (``WebhookOutbox``), the URLs and secrets (``WebhookTargets``) or the connections
/// (``PushTransport``). It removes an event after the webhook has answered with a status from 200 to 299. If the server stops before
/// that, the event is sent again after the next start.
final class WebhookSender: Service {
    /// Maximum number of bytes of a response's body to read. The content is not used, but the connection can be
    /// reused only if the body was read completely.
    static let maxBodySize = 65_536
    /// How often the schedule receives the time.
    private static let tick: Duration = .seconds(1)
    /// After how many ticks the projects' webhooks and the number of waiting events are read again.
    private static let ticksPerLook = 5

    private let outbox: any WebhookOutbox
    private let targets: any WebhookTargets
    /// When this node of a cluster may send; nil if the server is alone.
    private let turn: WebhookTurn?
    private let transport: any PushTransport
    private let settings: ConfabConfiguration.Webhooks
    private let now: @Sendable () -> Moment
    private let pause: @Sendable (Duration) async throws -> Void
    private let metrics = WebhookMetrics()
    /// Whether a `tick` or `targets` event is queued that the schedule has not handled yet.
    private let hasTick = Atomic<Bool>(false)
    private let logger: Logger

    convenience init(
        _ settings: ConfabConfiguration.Webhooks, outbox: any WebhookOutbox, targets: any WebhookTargets,
        turn: WebhookTurn? = nil, logger: Logger, now: @escaping @Sendable () -> Moment
    ) {
        self.init(
            settings, outbox: outbox, targets: targets, transport: PushConnections(Self.connections(settings)),
            turn: turn, logger: logger, now: now)
    }

    /// Returns the settings for connections to webhooks. HTTP/2 is off, so that each concurrent request has a
    /// separate connection and cannot be held up by others. This needs few connections, because a receiver gets only
    /// a few requests at a time.
    static func connections(_ settings: ConfabConfiguration.Webhooks) -> PushConnections.Settings {
        .init(
            timeout: settings.timeout, connectionsPerHost: settings.concurrency,
            allowsPrivateAddresses: settings.allowPrivateAddresses, authorities: settings.authorities,
            maxBodySize: maxBodySize, allowsHTTP2: false)
    }

    /// - Parameter pause: Sleeps for a duration. Tests replace it.
    init(
        _ settings: ConfabConfiguration.Webhooks, outbox: any WebhookOutbox, targets: any WebhookTargets,
        transport: any PushTransport, turn: WebhookTurn? = nil, logger: Logger,
        pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
        now: @escaping @Sendable () -> Moment
    ) {
        (self.settings, self.outbox, self.targets, self.transport) = (settings, outbox, targets, transport)
        (self.logger, self.pause, self.now, self.turn) = (logger, pause, now, turn)
    }

    /// Delivers events until the server stops. Requests that are running then are canceled.
    func run() async throws {
        await cancelWhenGracefulShutdown { await self.deliver() }
        await transport.close()
    }

    private func deliver() async {
        var schedule = WebhookSchedule(concurrency: settings.concurrency, giveUpAfter: settings.giveUpAfter)
        var random = SystemRandomNumberGenerator()
        // The stream needs no size limit, because the schedule bounds it: each element is the answer to a command, a
        // single tick, or new events, which `webhookSignal` merges.
        let (events, inbox) = AsyncStream.makeStream(of: WebhookSchedule.Event.self)
        await withDiscardingTaskGroup { group in
            group.addTask { await self.keepTime(inbox) }
            group.addTask {
                for await _ in self.outbox.webhookSignal.announcements {
                    inbox.yield(.added(self.outbox.webhookSignal.take()))
                }
            }
            for await event in events {
                switch event {
                case .tick, .targets: hasTick.store(false, ordering: .relaxed)
                default: break
                }
                for command in schedule.handle(event, at: now(), using: &random) {
                    group.addTask {
                        if let answer = await self.carryOut(command) { inbox.yield(answer) }
                    }
                }
            }
            // The task was canceled.
            group.cancelAll()
        }
    }

    /// Sends ticks to the schedule. At some of them, instead sends the projects that have webhooks, records the
    /// number of waiting events, and removes the events of projects without a webhook.
    private func keepTime(_ inbox: AsyncStream<WebhookSchedule.Event>.Continuation) async {
        var ticks = 0
        var refused: [String: Int]?
        while !Task.isCancelled {
            // The other nodes announce their events only in the outbox.
            if turn.map(\.isOurs) ?? (ticks % Self.ticksPerLook == 0) {
                do {
                    announce(.targets(try await targets.webhooks()), inbox)
                    let backlogs = try await outbox.webhookBacklogs()
                    refused = countBacklogs(backlogs, refusedBefore: refused)
                    try await sweep(backlogs.keys)
                    if turn != nil { inbox.yield(.added(Set(backlogs.filter { $0.value.waiting > 0 }.keys))) }
                } catch {
                    logger.error("Could not read the webhooks", metadata: ["error": "\(error)"])
                }
            } else {
                announce(.tick, inbox)
            }
            ticks += 1
            try? await pause(Self.tick)
        }
    }

    /// Sends `tick` or `targets` to the schedule, unless it has not handled the previous one yet.
    private func announce(
        _ event: WebhookSchedule.Event, _ inbox: AsyncStream<WebhookSchedule.Event>.Continuation
    ) {
        if !hasTick.exchange(true, ordering: .relaxed) { inbox.yield(event) }
    }

    /// Records how many events are waiting. Counts and logs the events that were refused since the previous call; at
    /// the first call, when `refusedBefore` is nil, only determines their number.
    ///
    /// - Returns: the number of refused events of each project, for the next call.
    private func countBacklogs(
        _ backlogs: [String: WebhookBacklog], refusedBefore: [String: Int]?
    ) -> [String: Int] {
        metrics.record(waiting: backlogs.values.reduce(0) { $0 + $1.waiting })
        let refused = backlogs.mapValues(\.refused)
        guard let refusedBefore else { return refused }
        for (project, count) in refused {
            let more = count - refusedBefore[project, default: 0]
            guard more > 0 else { continue }
            metrics.count(.refused, by: more)
            logger.warning(
                """
                Events are not reported to a webhook: too many are waiting for it or for all webhooks (webhooks.queue), \
                or the disk is nearly full (storage.lowSpace)
                """,
                metadata: ["project": "\(project)", "events": "\(more)"])
        }
        return refused
    }

    // MARK: Commands

    /// Carries out a command. Returns the answer; nil if there is none.
    private func carryOut(_ command: WebhookSchedule.Command) async -> WebhookSchedule.Event? {
        do {
            switch command {
            case .send(let entry): return .sent(entry, try await send(entry))
            case .read(let project, let position):
                let entries = try await outbox.webhooks(
                    of: project, after: position, limit: WebhookSchedule.pageSize)
                return .page(project, after: position, entries)
            case .remove(let entry):
                try await outbox.removeWebhook(entry.id)
                return .removed(entry, next: try await outbox.webhook(following: entry))
            case .giveUp(let project, let time):
                let count = try await outbox.removeWebhooks(of: project, before: time)
                if count > 0 { reportGivenUp(count, of: project) }
                return .gaveUp(project, before: time)
            case .follow(let entry): return .removed(entry, next: try await outbox.webhook(following: entry))
            case .logFailing(let project, let reason):
                logger.warning("A webhook fails", metadata: ["project": "\(project)", "reason": "\(reason)"])
            case .logRecovered(let project):
                logger.notice("A webhook accepts events again", metadata: ["project": "\(project)"])
            }
        } catch {
            guard !Task.isCancelled else { return nil }
            logger.error("Could not use the outbox of webhooks", metadata: ["error": "\(error)"])
            return .storageFailed(command)
        }
        return nil
    }

    private func reportGivenUp(_ count: Int, of project: String) {
        metrics.count(.givenUp, by: count)
        logger.warning(
            "Events were not delivered to a webhook, and are too old to try again (webhooks.giveUpAfter)",
            metadata: ["project": "\(project)", "events": "\(count)"])
    }

    /// Removes the events of projects that have no webhook.
    private func sweep(_ projects: some Sequence<String>) async throws {
        for project in projects where try await targets.webhook(of: project) == nil {
            try await outbox.removeWebhooks(of: project)
        }
    }

    private func send(_ entry: WebhookEntry) async throws -> WebhookSchedule.Result {
        guard turn?.isOurs ?? true else { return .postponed }
        let result: WebhookSchedule.Result
        do {
            guard let message = try await outbox.webhookMessage(entry.id) else { return .missing }
            guard let target = try await targets.webhook(of: entry.project) else {
                return .failed("the project has no webhook")
            }
            let request = PushRequest.webhook(message, to: target, at: now().wall)
            // The lease may have ended during these questions.
            guard turn?.isOurs ?? true else { return .postponed }
            result = Self.result(try await transport.exchange(request))
        } catch {
            if Task.isCancelled { throw error }
            result = error as? PushFailure == .lookupsBusy ? .postponed : .failed(Self.reason(error))
        }
        switch result {
        case .delivered: metrics.count(.delivered)
        case .failed(let reason):
            metrics.count(.failed)
            logger.debug(
                "An attempt to deliver an event failed",
                metadata: ["project": "\(entry.project)", "reason": "\(reason)"])
        case .missing, .postponed: break
        }
        return result
    }

    private static func result(_ response: PushResponse) -> WebhookSchedule.Result {
        switch response.status {
        case 200...299: .delivered
        case 300...399: .failed("status \(response.status); redirects are not followed")
        default: .failed("status \(response.status)")
        }
    }

    private static func reason(_ error: any Error) -> String {
        switch error as? PushFailure {
        case .nameUnknown(let host): "\(host) has no address"
        case .addressRefused(let host): "\(host) has a private address (webhooks.allowPrivateAddresses)"
        case .lookupsBusy: "other lookups of host names were running"
        case .timedOut: "it did not answer in time (webhooks.timeout)"
        case .unreachable(let reason), .cannotMake(let reason): reason
        case nil: "\(error)"
        }
    }
}
