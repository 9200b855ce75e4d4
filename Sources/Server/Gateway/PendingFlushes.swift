import DequeModule
import Signaling

/// The sockets with messages that have not been flushed. Used only on the event loop of the runner.
final class PendingFlushes {
    /// Maximum number of sockets flushed per turn of the event loop. Each flush is a system call, and a message to a
    /// large session goes to thousands of sockets. Without a limit, all other clients would have to wait for these
    /// flushes.
    private static let perTurn = 64

    private let laterTurns: LaterTurns
    /// The sockets written to since the last call of `flush`.
    private var dirty: [SocketID] = []
    /// The sockets that wait for a later turn.
    private var waiting: Deque<SocketID> = []

    /// Flushes one socket. Set by the runner.
    var flushOne: (SocketID) -> Void = { _ in }

    init(laterTurns: LaterTurns) { self.laterTurns = laterTurns }

    func add(_ socket: SocketID) { if dirty.last != socket { dirty.append(socket) } }

    /// Flushes some sockets now, and the others in later turns.
    func flush() {
        for id in dirty.prefix(Self.perTurn) { flushOne(id) }
        if dirty.count > Self.perTurn {
            if waiting.isEmpty { laterTurns.run { self.flushSome() } }
            waiting.append(contentsOf: dirty.dropFirst(Self.perTurn))
        }
        dirty.removeAll(keepingCapacity: true)
    }

    /// Flushes the sockets that have waited longest.
    private func flushSome() {
        for _ in 0..<Self.perTurn {
            guard let id = waiting.popFirst() else { return }
            flushOne(id)
        }
        if !waiting.isEmpty { laterTurns.run { self.flushSome() } }
    }
}
