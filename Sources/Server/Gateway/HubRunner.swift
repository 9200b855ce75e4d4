import DequeModule
import CoreMetrics
import Logging
import NIOCore
import Signaling
import Wire

/// A socket as the runner sees it. Called on the runner's event loop only.
protocol RunnerSocket: AnyObject {
    /// Queues one text frame; `flush` sends it.
    func write(_ bytes: [UInt8])
    func flush()
    func close(_ code: CloseCode, _ reason: String)
    /// The answer to a request; only resources of WHIP and WHEP are asked.
    func reply(_ reply: ResourceReply)
}

extension RunnerSocket {
    func reply(_ reply: ResourceReply) {}
}

/// Something that reads, and stops while the disk is far behind.
protocol PausedReader: AnyObject {
    func resumeReading()
}

/// Runs the hub on one event loop: feeds it what the sockets saw, carries out its effects in order, and rings its timers.
///
/// It decides nothing. Invariant: effects that follow a `persist` are carried out only when it is committed; while a commit
/// is under way inputs wait, and all that waited is committed together (group commit).
final class HubRunner {
    private var hub: Hub
    private let storage: any Storage
    private let inquiryHandler: InquiryHandler
    private let waking: (any Waking)?
    private let clock: ServerClock
    private let logger: Logger
    private let metrics: GatewayMetrics
    let eventLoop: any EventLoop

    private let media: MediaPlane?
    private var sockets: [SocketID: any RunnerSocket] = [:]
    private var lastSocket: UInt64 = 0
    private var inputs: Deque<Input> = []
    private var isPumping = false
    private var isCommitting = false
    private var dirty: [SocketID] = []
    private var paused: [any PausedReader] = []
    /// Some thousand inputs are handled in milliseconds; more than that need not be read before the disk is done.
    private static let mostWaitingInputs = 4096
    /// Whose device a secret proves may change while somebody asks storage about it.
    private(set) var identityChanges = IdentityChanges()
    /// Of arrivals among the inputs: whose they are, and the change that storage knew of when it was asked.
    private var asked: [SocketID: (identities: [IdentityID], number: UInt64)] = [:]
    private var inquiriesUnderWay = 0
    /// A reader takes a fraction of a millisecond, and there are a few: more than this is a flood.
    private static let mostInquiries = 2048
    private var timer: Scheduled<Void>?
    private var timerAt: Timestamp?

    init(
        surroundings: Surroundings, storage: any Storage, media: MediaPlane?, waking: (any Waking)? = nil,
        clock: ServerClock, logger: Logger, metrics: GatewayMetrics, eventLoop: any EventLoop
    ) {
        self.media = media
        self.waking = waking
        inquiryHandler = InquiryHandler(storage: storage, waking: waking, logger: logger)
        hub = Hub(surroundings: surroundings, generator: SystemRandomNumberGenerator())
        self.storage = storage
        self.clock = clock
        self.logger = logger
        self.metrics = metrics
        self.eventLoop = eventLoop
    }

    var surroundings: Surroundings { hub.surroundings }
    var now: Timestamp { clock.now }

    // MARK: Sockets

    func register(_ socket: any RunnerSocket) -> SocketID {
        eventLoop.preconditionInEventLoop()
        lastSocket += 1
        let id = SocketID(rawValue: lastSocket)
        sockets[id] = socket
        return id
    }

    /// The socket is gone; `leaving` tells a goodbye from a drop.
    func unregister(_ id: SocketID, leaving: Bool) {
        guard sockets.removeValue(forKey: id) != nil else { return }
        submit(.closed(id, leaving: leaving))
    }

    /// The server goes away: nobody needs to hear that somebody else's socket closed before his own.
    func forgetSockets() { sockets = [:] }

    var socketCount: Int { sockets.count }

    /// Of all that ever came.
    var arrivals: UInt64 { lastSocket }

    /// Runs `body` for every socket, with its number.
    func forEachSocket(_ body: (SocketID, any RunnerSocket) -> Void) {
        for (id, socket) in sockets { body(id, socket) }
    }

    // MARK: Inputs and effects

    func submit(_ input: Input) {
        eventLoop.preconditionInEventLoop()
        inputs.append(input)
        pump()
    }

    /// Somebody arrives, of whom storage said something when it knew of that many changes.
    func submit(_ arrival: Arrival, asked number: UInt64) {
        asked[arrival.socket] = ([arrival.device, arrival.identity.id], number)
        submit(.arrived(arrival))
    }

    /// Whether somebody comes as who he is no more: the change was among the inputs before him. He has to come again.
    private func isOutOfDate(_ input: Input) -> Bool {
        guard case .arrived(let arrival) = input, let asked = asked.removeValue(forKey: arrival.socket),
            identityChanges.concern(asked.identities, since: asked.number)
        else { return false }
        sockets[arrival.socket]?.close(CloseCode(rawValue: 1012), "come again")
        return true
    }

    private func pump() {
        run { _ in }
    }

    private func ring() {
        timer = nil
        timerAt = nil
        run { collect in collect(hub.handleTimeout(now: clock.now)) }
    }

    /// Handles what `first` brings and all inputs that wait, then what those bring that flushing causes: a socket may close
    /// while it is written to.
    private func run(_ first: (([Effect]) -> Void) -> Void) {
        guard !isPumping, !isCommitting else { return }
        isPumping = true
        var changes: [Change] = []
        var held: [Effect] = []
        first { carryOut($0, &changes, &held) }
        repeat {
            while let input = inputs.popFirst() {
                guard !isOutOfDate(input) else { continue }
                carryOut(hub.handle(input, now: clock.now), &changes, &held)
            }
            flush()
        } while !inputs.isEmpty
        isPumping = false
        if changes.isEmpty {
            schedule()
        } else {
            commit(changes, then: held)
        }
    }

    private func carryOut(_ effects: [Effect], _ changes: inout [Change], _ held: inout [Effect]) {
        for effect in effects {
            if case .persist(let change) = effect {
                changes.append(change)
                identityChanges.begin(change)
                metrics.count(change)
            } else if changes.isEmpty {
                carryOut(effect)
            } else {
                held.append(effect)
            }
        }
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
        case .push(let identity, let notice): waking?.wake(identity, notice)
        case .persist: assertionFailure("persists are collected")
        }
    }

    /// Asked when all that was persisted before is committed, so that the answer knows it.
    private func inquire(_ question: Question) {
        guard inquiriesUnderWay < Self.mostInquiries else {
            let error = WireError(
                .rateLimited, "The server is busy; try again soon.", retryable: true, retryAfter: .seconds(1))
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

    private func commit(_ changes: [Change], then held: [Effect]) {
        isCommitting = true
        let runner = NIOLoopBound(self, eventLoop: eventLoop)
        let (storage, logger, eventLoop) = (storage, logger, eventLoop)
        Task {
            do {
                try await storage.commit(changes)
            } catch {
                // The rules have moved on; what was asked for holds in memory until a restart. Say so loudly.
                logger.critical(
                    "Changes could not be stored", metadata: ["count": "\(changes.count)", "error": "\(error)"])
            }
            eventLoop.execute { runner.value.committed(held) }
        }
    }

    private func committed(_ held: [Effect]) {
        isCommitting = false
        identityChanges.settle()
        // Whatever closes meanwhile only queues: nothing may overtake what was held.
        isPumping = true
        for effect in held { carryOut(effect) }
        flush()
        isPumping = false
        // Where commit follows commit, this is when timers get their turn.
        run { collect in collect(hub.handleTimeout(now: clock.now)) }
        let waiting = paused
        paused = []
        for reader in waiting { reader.resumeReading() }
    }

    /// Whether inputs wait for a commit in such number that sockets should not read on.
    var isCongested: Bool { isCommitting && inputs.count > Self.mostWaitingInputs }

    /// Reads again when the commit is done.
    func pause(_ reader: any PausedReader) { paused.append(reader) }

    /// What the metrics show; asked for when they are read.
    func recordMetrics() {
        metrics.sockets.record(sockets.count)
        metrics.record(hub)
        if let counters = media?.counters { metrics.record(counters.router, lost: counters.lost) }
    }

    private func schedule() {
        guard let next = hub.nextTimeout else { return }
        if let timerAt, timerAt <= next { return }
        timer?.cancel()
        timerAt = next
        let runner = NIOLoopBound(self, eventLoop: eventLoop)
        // Timestamps are whole milliseconds rounded down: one more, so that the deadline has passed when it rings.
        let delay = max(0, (next - clock.now).wholeMilliseconds) + 1
        timer = eventLoop.scheduleTask(in: .milliseconds(delay)) { runner.value.ring() }
    }
}
