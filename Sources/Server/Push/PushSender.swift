import Logging
import ServiceLifecycle
import Signaling
import Synchronization
import Wire

/// Access to the stored push endpoints of people's devices, for the push sender.
public protocol PushDirectory: Sendable {
    func endpoints(of identity: IdentityID) async throws -> [PushEndpoint]
    /// Removes an endpoint that its service reported as gone.
    func remove(_ endpoint: PushEndpoint, of identity: IdentityID) async
}

/// A service that sends push notifications. It finds the endpoints of a person and retries each one until the notice is
/// delivered or expires, or the endpoint is gone.
///
/// It owns the queue, the tokens and the retries. It does not own the endpoints (``PushDirectory``) or the connections
/// (``PushTransport``). Invariant: the notices about one call are sent to a person one after the other, the newest
/// last.
///
/// ```swift
/// let keys = try PushKeys.open(configuration)
/// let sender = PushSender(configuration, keys: keys, directory: directory, logger: logger) {
///     clock.now
/// }
/// services.append(sender)  // runs until the server stops
/// sender.send(PushNotice(call: call, kind: .incoming, expires: ringEnd), to: callee)
/// ```
public actor PushSender: Service {
    /// Maximum number of endpoints per person to send to. The directory does not store more than that.
    static let endpointsPerPerson = StorageLimits.pushEndpointsPerPerson

    /// The services that endpoints may belong to.
    public nonisolated let services: PushServices
    /// The public key for `welcome.push`; nil if Web Push is off.
    public nonisolated let vapidKey: String?

    /// A call and the person who is notified of it.
    private struct CallOfPerson: Hashable {
        var identity: IdentityID
        var call: CallID
    }

    private let configuration: ConfabConfiguration.Push
    private let bundle: String
    private let directory: any PushDirectory
    private let transport: any PushTransport
    private let slots: PushSlots
    private let clock: PushClock
    private let metrics = PushMetrics()
    private let logger: Logger
    private let jobs: AsyncStream<PushJob>
    private let jobsContinuation: AsyncStream<PushJob>.Continuation
    /// The number of jobs that are queued or running.
    private let pending = Atomic<Int>(0)

    private var webTokens: VAPIDTokens
    private var apnsToken: APNSToken?
    private var newest: [CallOfPerson: PushJob] = [:]

    public init(
        _ configuration: ConfabConfiguration, keys: PushKeys, directory: any PushDirectory, logger: Logger,
        now: @escaping @Sendable () -> Timestamp
    ) {
        let push = configuration.push
        let settings = PushConnections.Settings(
            timeout: push.timeout, connectionsPerHost: push.concurrency,
            allowsPrivateAddresses: push.allowPrivateAddresses,
            authorities: push.authorities)
        self.init(
            configuration, keys: keys, directory: directory, transport: PushConnections(settings),
            clock: PushClock(now: now), logger: logger)
    }

    init(
        _ configuration: ConfabConfiguration, keys: PushKeys, directory: any PushDirectory,
        transport: any PushTransport, clock: PushClock, logger: Logger
    ) {
        self.configuration = configuration.push
        services = PushServices(names: configuration.push.services, admitsApps: keys.apns != nil)
        vapidKey = configuration.push.services.isEmpty ? nil : keys.vapidKey
        bundle = keys.apns?.bundle ?? ""
        // Apple's service for Safari rejects tokens without a contact.
        let contact =
            configuration.push.contact ?? configuration.publicURL.flatMap { $0.hasPrefix("https:") ? $0 : nil }
        webTokens = VAPIDTokens(key: keys.web, contact: contact)
        apnsToken = keys.apns.map { APNSToken(key: $0) }
        slots = PushSlots(total: configuration.push.concurrency)
        (self.directory, self.transport, self.clock, self.logger) = (directory, transport, clock, logger)
        (jobs, jobsContinuation) = AsyncStream.makeStream(of: PushJob.self)
    }

    /// Validates a client's registration. See ``PushServices/validate(_:)``.
    public nonisolated func validate(_ registration: PushRegistration) throws(WireError) -> PushEndpoint {
        try services.validate(registration)
    }

    /// Enqueues a notice and returns immediately. If the queue is full, drops the notice, and counts and logs that,
    /// because a late ring is worthless.
    public nonisolated func send(_ notice: PushNotice, to identity: IdentityID) {
        let (_, count) = pending.wrappingAdd(1, ordering: .relaxed)
        guard count <= configuration.queue, case .enqueued = jobsContinuation.yield(PushJob(notice, to: identity))
        else {
            pending.wrappingSubtract(1, ordering: .relaxed)
            metrics.count(.dropped, to: nil)
            logger.warning("Push dropped: the queue is full", metadata: ["call": "\(notice.call)"])
            return
        }
    }

    /// Sends notices until the server stops. Pushes that are still running then are canceled.
    public func run() async throws {
        let jobs = jobs
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                for await job in jobs {
                    let previous = await self.begin(job)
                    group.addTask { await self.perform(job, after: previous) }
                }
                group.cancelAll()
            }
        }
        jobsContinuation.finish()
        await transport.close()
    }

    // MARK: One notice

    /// Registers a job and supersedes the previous job for the same call and person, if there is one. Returns the
    /// previous job, which must finish first.
    private func begin(_ job: PushJob) -> PushJob? {
        let previous = newest.updateValue(job, forKey: CallOfPerson(identity: job.identity, call: job.notice.call))
        previous?.supersede()
        return previous
    }

    private func perform(_ job: PushJob, after previous: PushJob?) async {
        _ = await previous?.finished.value()
        await deliver(job)
        let key = CallOfPerson(identity: job.identity, call: job.notice.call)
        if newest[key] === job { newest[key] = nil }
        pending.wrappingSubtract(1, ordering: .relaxed)
        job.finished.settle(true)
    }

    private func deliver(_ job: PushJob) async {
        guard !job.isSuperseded else { return metrics.count(.superseded, to: nil) }
        let endpoints: [PushEndpoint]
        do {
            endpoints = try await directory.endpoints(of: job.identity)
        } catch {
            metrics.count(.failed, to: nil)
            logger.error("Push failed: could not read the endpoints", metadata: ["error": "\(error)"])
            return
        }
        await withDiscardingTaskGroup { group in
            for endpoint in endpoints.prefix(Self.endpointsPerPerson) {
                group.addTask {
                    let outcome = await self.deliver(job, to: endpoint)
                    self.metrics.count(outcome, to: endpoint)
                }
            }
        }
    }

    /// Sends to one endpoint. Retries until the notice is delivered, expires, is superseded or fails permanently, or
    /// the task is canceled.
    nonisolated func deliver(_ job: PushJob, to endpoint: PushEndpoint) async -> PushOutcome {
        guard services.admits(endpoint) else {
            return fail(endpoint, "this service is no longer allowed by the configuration")
        }
        if case .apns = endpoint.kind, !APNS.sends(job.notice.kind) { return .untold }
        var retries = PushRetries()
        var hasRenewed = false
        while !Task.isCancelled {
            let (verdict, token) = await attempt(job, endpoint)
            switch verdict {
            case nil: return job.isSuperseded ? .superseded : .expired
            case .delivered: return .sent
            case .gone:
                await directory.remove(endpoint, of: job.identity)
                return .removed
            case .refused(let reason): return fail(endpoint, reason)
            case .renewToken:
                guard !hasRenewed, await replaceToken(token) else {
                    return fail(endpoint, "Apple rejected a new token as expired; check this machine's clock")
                }
                hasRenewed = true
            case .again(let wait):
                guard let wait = retries.next(after: wait, now: clock.now(), expires: job.notice.expires) else {
                    return retries.areExhausted
                        ? fail(endpoint, "gave up after \(PushRetries.maxRetries) retries") : .expired
                }
                await job.pause(wait, clock)
            }
        }
        return .dropped
    }

    private nonisolated func fail(_ endpoint: PushEndpoint, _ reason: String) -> PushOutcome {
        logger.warning("Push failed", metadata: ["to": "\(endpoint)", "reason": "\(reason)"])
        return .failed
    }

    // MARK: One attempt

    /// Makes one attempt to send. Returns the verdict, which is nil if the notice has expired or was superseded, and
    /// the APNs token that was used, which is empty if none was.
    private nonisolated func attempt(
        _ job: PushJob, _ endpoint: PushEndpoint
    ) async -> (verdict: PushVerdict?, token: String) {
        let service = service(of: endpoint)
        guard await slots.take(service) else { return (.again(after: nil), "") }
        var token = ""
        var verdict: PushVerdict?
        let now = clock.now()
        if !job.isSuperseded, now < job.notice.expires {
            do {
                let request = try await request(job.notice, endpoint, now: now, token: &token)
                let answer = try await transport.exchange(request)
                if case .apns = endpoint.kind { verdict = .init(apns: answer) } else { verdict = .init(web: answer) }
            } catch {
                verdict = Self.verdict(error)
                logger.debug("Push attempt failed", metadata: ["to": "\(endpoint)", "reason": "\(error)"])
            }
        }
        await slots.release(service)
        return (verdict, token)
    }

    private static func verdict(_ error: any Error) -> PushVerdict {
        switch error as? PushFailure {
        case .addressRefused(let host): .refused("\(host) resolves to a private address")
        case .cannotMake(let reason): .refused(reason)
        case .nameUnknown, .lookupsBusy, .timedOut, .unreachable: .again(after: nil)
        // The task was canceled, or encrypting or signing failed.
        case nil: error is CancellationError ? .again(after: nil) : .refused("\(error)")
        }
    }

    private nonisolated func service(of endpoint: PushEndpoint) -> String {
        switch endpoint.kind {
        case .web(let url, _, _): url.service
        case .apns(let isSandbox): isSandbox ? APNS.sandboxHost : APNS.host
        }
    }

    private nonisolated func request(
        _ notice: PushNotice, _ endpoint: PushEndpoint, now: Timestamp, token: inout String
    ) async throws -> PushRequest {
        switch endpoint.kind {
        case .web(let url, let key, let authentication):
            return try .web(
                notice, to: url, key: key, authentication: authentication,
                authorization: try await authorization(for: url.origin, now: now), now: now)
        case .apns(let isSandbox):
            token = try await currentToken(now: now)
            return try APNS.request(
                notice, to: endpoint.address, isSandbox: isSandbox, bundle: bundle, token: token,
                server: configuration.apnsAddress)
        }
    }

    // MARK: Tokens

    private func authorization(for origin: String, now: Timestamp) throws -> String {
        try webTokens.authorization(for: origin, now: now)
    }

    private func currentToken(now: Timestamp) throws -> String {
        guard let token = try apnsToken?.token(now: now) else { throw PushFailure.cannotMake("there is no APNs key") }
        return token
    }

    /// Replaces a rejected token. Returns true if there is now a different one.
    private func replaceToken(_ refused: String) -> Bool {
        (try? apnsToken?.replacement(for: refused, now: clock.now())) != nil
    }
}
