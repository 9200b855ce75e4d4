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
}

/// Runs the hub on one event loop: feeds it what the sockets saw, carries out its effects in order, and rings its timers.
///
/// It decides nothing. Invariant: effects that follow a `persist` are carried out only when it is committed; while a commit
/// is under way inputs wait, and all that waited is committed together (group commit).
final class HubRunner {
    private var hub: Hub<SystemRandomNumberGenerator>
    private let storage: any Storage
    private let clock: ServerClock
    private let logger: Logger
    private let metrics: GatewayMetrics
    let eventLoop: any EventLoop

    private var sockets: [SocketID: any RunnerSocket] = [:]
    private var lastSocket: UInt64 = 0
    private var inputs: Deque<Input> = []
    private var isPumping = false
    private var isCommitting = false
    private var dirty: [SocketID] = []
    private var timer: Scheduled<Void>?
    private var timerAt: Timestamp?

    init(
        surroundings: Surroundings, storage: any Storage, clock: ServerClock, logger: Logger, metrics: GatewayMetrics,
        eventLoop: any EventLoop
    ) {
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
        metrics.sockets.record(sockets.count)
        return id
    }

    /// The socket is gone; `leaving` tells a goodbye from a drop.
    func unregister(_ id: SocketID, leaving: Bool) {
        guard sockets.removeValue(forKey: id) != nil else { return }
        metrics.sockets.record(sockets.count)
        submit(.closed(id, leaving: leaving))
    }

    /// 1001 to everybody: the server goes away.
    func closeAll() {
        for socket in sockets.values { socket.close(.goingAway, "The server is restarting.") }
    }

    var socketCount: Int { sockets.count }

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

    private func pump() {
        guard !isPumping, !isCommitting else { return }
        isPumping = true
        var changes: [Change] = []
        var held: [Effect] = []
        while let input = inputs.popFirst() {
            carryOut(hub.handle(input, now: clock.now), &changes, &held)
        }
        finishPump(changes, held)
    }

    private func ring() {
        timer = nil
        timerAt = nil
        guard !isPumping, !isCommitting else { return }
        isPumping = true
        var changes: [Change] = []
        var held: [Effect] = []
        carryOut(hub.handleTimeout(now: clock.now), &changes, &held)
        finishPump(changes, held)
    }

    private func carryOut(_ effects: [Effect], _ changes: inout [Change], _ held: inout [Effect]) {
        for effect in effects {
            if case .persist(let change) = effect {
                changes.append(change)
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
            dirty.append(id)
            metrics.sent.increment()
        case .close(let id, let code, let reason):
            sockets[id]?.close(code, reason)
        case .letter, .persist: assertionFailure("the hub delivers letters; persists are collected")
        }
    }

    private func finishPump(_ changes: [Change], _ held: [Effect]) {
        flush()
        isPumping = false
        metrics.record(hub)
        if changes.isEmpty {
            schedule()
        } else {
            commit(changes, then: held)
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
        for effect in held { carryOut(effect) }
        flush()
        pump()
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
