import DequeModule
import CoreMetrics
import Logging
import NIOCore
import Signaling
import Wire

/// A socket as the runner sees it. Used only on the runner's event loop.
protocol RunnerSocket: AnyObject {
    /// Queues one message. `flush` sends it.
    func write(_ bytes: [UInt8])
    func flush()
    func close(_ code: CloseCode, _ reason: String)
    /// Delivers the reply to a request. Only WHIP and WHEP resources make requests.
    func reply(_ reply: ResourceReply)
}

extension RunnerSocket {
    func reply(_ reply: ResourceReply) {}
}

/// A reader that pauses while storage is far behind.
protocol PausedReader: AnyObject {
    func resumeReading()
}

/// Runs the hub on one event loop: feeds it inputs from the sockets, carries out its effects in order, and fires its timers.
///
/// It makes no decisions. Invariant: effects after a `persist` are carried out only once it is committed. The hub goes on during
/// a commit; `CommitQueue` holds back what depends on it, and the changes made meanwhile are committed together (group commit).
final class HubRunner {
    private var hub: Hub
    private let storage: any Storage
    private let inquiryHandler: InquiryHandler
    private let pushNotifier: (any PushNotifier)?
    private let clock: ServerClock
    private let logger: Logger
    private let metrics: GatewayMetrics
    let eventLoop: any EventLoop

    private let media: MediaPlane?
    private var sockets: [SocketID: any RunnerSocket] = [:]
    private var lastSocket: UInt64 = 0
    private var inputs: Deque<Input> = []
    private var isPumping = false
    private var queue = CommitQueue()
    private var trouble: StorageTrouble
    /// Functions to call when the next batch is settled.
    private var afterCommit: [() -> Void] = []
    /// Called once, if storage has failed for so long that the server must stop.
    var onStorageLost: ((StorageError) -> Void)?
    private var dirty: [SocketID] = []
    private var paused: [any PausedReader] = []
    /// Past this many uncommitted transactions, sockets are not read: memory must not fill up behind a disk that has stopped.
    private static let maxUncommitted = 4096
    /// Recent identity changes, for detecting lookups that are out of date.
    private(set) var identityChanges = IdentityChanges()
    /// For each queued arrival, the identities that were looked up and the number of the last change before the lookup.
    private var lookups: [SocketID: (identities: [IdentityID], number: UInt64)] = [:]
    private var inquiriesUnderWay = 0
    /// A lookup takes a fraction of a millisecond on one of a few database readers. More pending ones mean a flood.
    private static let maxInquiries = 2048
    private var timer: Scheduled<Void>?
    private var timerAt: Timestamp?

    init(
        hubSettings: HubSettings, storage: any Storage, media: MediaPlane?, pushNotifier: (any PushNotifier)? = nil,
        trouble: StorageTrouble, clock: ServerClock, logger: Logger, metrics: GatewayMetrics, eventLoop: any EventLoop
    ) {
        self.media = media
        self.pushNotifier = pushNotifier
        inquiryHandler = InquiryHandler(storage: storage, pushNotifier: pushNotifier, logger: logger)
        hub = Hub(hubSettings: hubSettings, generator: SystemRandomNumberGenerator())
        self.storage = storage
        self.clock = clock
        self.logger = logger
        self.metrics = metrics
        self.eventLoop = eventLoop
        self.trouble = trouble
    }

    var hubSettings: HubSettings { hub.hubSettings }
    var now: Timestamp { clock.now }

    // MARK: Sockets

    func register(_ socket: any RunnerSocket) -> SocketID {
        eventLoop.preconditionInEventLoop()
        lastSocket += 1
        let id = SocketID(rawValue: lastSocket)
        sockets[id] = socket
        return id
    }

    /// Removes a closed socket.
    ///
    /// - Parameter leaving: True if the client left on purpose, false if the connection dropped.
    func unregister(_ id: SocketID, leaving: Bool) {
        guard sockets.removeValue(forKey: id) != nil else { return }
        submit(.closed(id, leaving: leaving))
    }

    /// Removes all sockets without reporting them closed: on shutdown, clients need no events about each other.
    func forgetSockets() { sockets = [:] }

    var socketCount: Int { sockets.count }

    /// The number of sockets ever registered.
    var arrivals: UInt64 { lastSocket }

    /// Calls `body` with each socket and its id.
    func forEachSocket(_ body: (SocketID, any RunnerSocket) -> Void) {
        for (id, socket) in sockets { body(id, socket) }
    }

    // MARK: Inputs and effects

    func submit(_ input: Input) {
        eventLoop.preconditionInEventLoop()
        inputs.append(input)
        pump()
    }

    /// Submits an arrival whose record was looked up after change `number` of `identityChanges`.
    func submit(_ arrival: Arrival, lookupStart number: UInt64) {
        lookups[arrival.socket] = ([arrival.device, arrival.identity.id], number)
        submit(.arrived(arrival))
    }

    /// True if an earlier input changed the arriving device's identity after the lookup. The client then has to reconnect.
    private func isOutOfDate(_ input: Input) -> Bool {
        guard case .arrived(let arrival) = input, let lookup = lookups.removeValue(forKey: arrival.socket),
            identityChanges.concern(lookup.identities, since: lookup.number)
        else { return false }
        sockets[arrival.socket]?.close(.serviceRestart, "Your identity has changed. Reconnect.")
        return true
    }

    private func pump() {
        run { _ in }
    }

    private func timerFired() {
        timer = nil
        timerAt = nil
        run { collect in collect(hub.handleTimeout(now: clock.now)) }
    }

    /// Carries out the effects of `first` and of all queued inputs. Flushing may close sockets and thereby queue more inputs,
    /// so this repeats until the queue is empty.
    private func run(_ first: (([Effect]) -> Void) -> Void) {
        guard !isPumping else { return }
        isPumping = true
        first { carryOut($0, from: .none) }
        repeat {
            while let input = inputs.popFirst() {
                guard !isOutOfDate(input) else { continue }
                carryOut(hub.handle(input, now: clock.now), from: input.origin)
            }
            flush()
        } while !inputs.isEmpty
        isPumping = false
        commit()
        schedule()
    }

    private func carryOut(_ effects: [Effect], from origin: CommitQueue.Origin) {
        for case .persist(let change) in effects {
            identityChanges.begin(change)
            metrics.count(change)
        }
        for effect in queue.add(effects, from: origin) { carryOut(effect) }
    }

    private func carryOut(_ effect: Effect) {
        switch effect {
        case .transmit(let id, let bytes):
            guard let socket = sockets[id] else { return }
            socket.write(bytes)
            if dirty.last != id { dirty.append(id) }
            metrics.sent.increment()
        case .close(let id, let code, let reason):
            sockets[id]?.close(code, reason)
        case .reply(let id, let reply): sockets[id]?.reply(reply)
        case .media(let command): media?.perform(command)
        case .inquire(let question): inquire(question)
        case .push(let identity, let notice): pushNotifier?.wake(identity, notice)
        case .persist: assertionFailure("the commit queue collects changes")
        }
    }

    /// Runs a query. All earlier changes are already committed, so the result includes them.
    private func inquire(_ question: Question) {
        guard inquiriesUnderWay < Self.maxInquiries else {
            let error = WireError(
                .rateLimited, "The server is busy. Try again in a moment.", retryable: true, retryAfter: .seconds(1))
            return inputs.append(.answered(question, .refused(error)))
        }
        inquiriesUnderWay += 1
        let runner = NIOLoopBound(self, eventLoop: eventLoop)
        let (handler, now, eventLoop) = (inquiryHandler, clock.now, eventLoop)
        Task {
            let finding = await handler.finding(for: question, now: now)
            eventLoop.execute {
                runner.value.inquiriesUnderWay -= 1
                runner.value.submit(.answered(question, finding))
            }
        }
    }

    private func flush() {
        for id in dirty { sockets[id]?.flush() }
        dirty.removeAll(keepingCapacity: true)
    }

    // MARK: Committing

    /// Whether storage takes no changes at present.
    var isStorageUnavailable: Bool { trouble.isUnavailable }

    /// Calls `body` when the changes that wait for storage now are settled, or at once if there are none.
    func afterCommit(_ body: @escaping () -> Void) {
        if queue.isEmpty { body() } else { afterCommit.append(body) }
    }

    private func commit() {
        guard let batch = queue.takeBatch() else { return }
        write(batch, settled: [], started: .now)
    }

    /// - Parameter settled: the results of the batch's first transactions, from an earlier attempt.
    private func write(_ batch: [[Change]], settled: [StorageError?], started: ContinuousClock.Instant) {
        let runner = NIOLoopBound(self, eventLoop: eventLoop)
        let (storage, eventLoop) = (storage, eventLoop)
        let rest = Array(batch.dropFirst(settled.count))
        Task {
            let results = await storage.commitEach(rest)
            eventLoop.execute { runner.value.written(batch, settled + results, started: started) }
        }
    }

    private func written(_ batch: [[Change]], _ results: [StorageError?], started: ContinuousClock.Instant) {
        // After an error that concerns everything, storage has not tried the transactions behind it.
        guard let index = results.firstIndex(where: { $0?.concernsEverything ?? false }), let error = results[index]
        else {
            trouble.succeeded()
            metrics.commitSeconds.recordMilliseconds((ContinuousClock.now - started).wholeMilliseconds)
            return settle(batch, results)
        }
        metrics.commitFailures.increment()
        switch trouble.failed(error, at: clock.now) {
        case .retry(let pause):
            logger.warning("Storing changes failed and will be retried", metadata: ["error": "\(error)"])
            let runner = NIOLoopBound(self, eventLoop: eventLoop)
            eventLoop.scheduleTask(in: .nanoseconds(pause)) {
                runner.value.write(batch, settled: Array(results.prefix(index)), started: started)
            }
        case .giveUp: settle(batch, results)
        case .stop:
            logger.critical("Nothing can be stored. The server stops.", metadata: ["error": "\(error)"])
            onStorageLost?(error)
            onStorageLost = nil
            settle(batch, results)
        }
    }

    /// Carries out what waited for the batch.
    private func settle(_ batch: [[Change]], _ results: [StorageError?]) {
        identityChanges.settle(batch.joined())
        // New inputs are only queued meanwhile, so that nothing overtakes the held effects.
        isPumping = true
        let outcomes = queue.settle(results.map { $0 == nil })
        for (outcome, error) in zip(outcomes, results) {
            switch outcome {
            case .committed(let held): for effect in held { carryOut(effect) }
            case .failed(let failure): fail(failure, error)
            }
        }
        flush()
        isPumping = false
        // With back-to-back commits, timers get to run only here.
        run { collect in collect(hub.handleTimeout(now: clock.now)) }
        let waiting = afterCommit
        afterCommit = []
        for body in waiting { body() }
        let readers = paused
        paused = []
        for reader in readers { reader.resumeReading() }
    }

    /// Reports a change that was not stored. The rules cannot undo it, so the people concerned are removed from memory and their
    /// clients reconnect: their state is then loaded from storage.
    private func fail(_ failure: CommitQueue.Failure, _ error: StorageError?) {
        metrics.changesLost.increment()
        logger.error(
            "A change could not be stored. The people concerned must reconnect.",
            metadata: ["error": "\(error.map { "\($0)" } ?? "")", "people": "\(failure.identities.count)"])
        let lost = hub.sockets(of: failure.identities, and: failure.origin.socket)
        queue.discard(lost)
        for effect in failure.held where !isLost(effect, sockets: lost, identities: failure.identities) {
            carryOut(effect)
        }
        let input = Input.storageFailed(failure.identities, socket: failure.origin.socket, re: failure.origin.request)
        carryOut(hub.handle(input, now: clock.now), from: .none)
    }

    /// Whether the effect would tell somebody that their change was stored, or act on it. Effects for other people are about
    /// state in memory, and stay.
    private func isLost(_ effect: Effect, sockets: Set<SocketID>, identities: Set<IdentityID>) -> Bool {
        switch effect {
        case .inquire(let question): identities.contains(question.identity)
        default: effect.socket.map(sockets.contains) ?? false
        }
    }

    /// True if so much waits for storage that sockets should stop reading.
    var isCongested: Bool { queue.count > Self.maxUncommitted }

    /// Resumes `reader` after the commit.
    func pause(_ reader: any PausedReader) { paused.append(reader) }

    /// Updates the gauges. Called per scrape.
    func recordMetrics() {
        metrics.sockets.record(sockets.count)
        metrics.uncommitted.record(queue.count)
        metrics.waitingInputs.record(inputs.count + inquiriesUnderWay)
        metrics.record(hub)
        if let counters = media?.counters { metrics.media.record(counters.router, unsent: counters.lost) }
    }

    private func schedule() {
        guard let next = hub.nextTimeout else { return }
        if let timerAt, timerAt <= next { return }
        timer?.cancel()
        timerAt = next
        let runner = NIOLoopBound(self, eventLoop: eventLoop)
        // Timestamps are rounded down to milliseconds, so add one to make sure that the deadline has passed.
        let delay = max(0, (next - clock.now).wholeMilliseconds) + 1
        timer = eventLoop.scheduleTask(in: .milliseconds(delay)) { runner.value.timerFired() }
    }
}

extension Input {
    /// The socket and request to report a failed commit to.
    var origin: CommitQueue.Origin {
        switch self {
        case .message(let socket, let envelope): CommitQueue.Origin(socket: socket, request: envelope.seq)
        case .requested(let socket, let request): CommitQueue.Origin(socket: socket, request: request.re)
        case .answered, .arrived, .legacyArrived, .asked, .unreadable, .resourceArrived, .closed, .banned, .unbanned,
            .media,
            .expel, .unreachable, .restored, .storageFailed:
            .none
        }
    }
}
