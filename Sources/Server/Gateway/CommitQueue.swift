import Signaling
import Wire

/// Holds back the effects that depend on changes that storage has not committed yet.
///
/// Every event whose effects include a `persist` becomes one transaction. The rules go on with other events meanwhile. An effect
/// waits only if it
///
/// - follows a `persist` in the effects of its own event,
/// - goes to a socket, media client or stream for which an earlier effect waits, so that order is kept, or
/// - is an inquiry, whose answer must include everything persisted before it.
///
/// Everything else is carried out at once: a slow disk delays only those who store something.
/// Invariant: for each socket, media client and stream, effects leave in the order in which they were added.
struct CommitQueue {
    /// Where the effects of one event came from, so that a failure can be reported.
    struct Origin: Equatable {
        /// The socket whose message was handled, and the id of its request.
        var socket: SocketID?
        var request: UInt64?
        static let none = Origin()
    }

    /// A transaction that storage could not commit.
    struct Failure: Equatable {
        var origin: Origin
        /// The people whose changes were lost.
        var identities: Set<IdentityID>
        /// The effects that waited for it, in order.
        var held: [Effect]
    }

    /// What to do now that a transaction is settled.
    enum Outcome: Equatable {
        case committed([Effect])
        case failed(Failure)
    }

    private enum Key: Hashable {
        case socket(SocketID)
        case client(ConnectionID)
        case stream(StreamID)
    }

    private struct Transaction {
        var number: UInt64
        var origin: Origin
        var changes: [Change] = []
        var held: [Effect] = []
    }

    private var writing: [Transaction] = []
    private var waiting: [Transaction] = []
    private var lastNumber: UInt64 = 0
    /// The newest transaction for which an effect with this key waits.
    private var holders: [Key: UInt64] = [:]

    /// Whether a batch is being written.
    var isWriting: Bool { !writing.isEmpty }
    /// The number of transactions in the batch that is being written.
    var writingCount: Int { writing.count }
    var isEmpty: Bool { writing.isEmpty && waiting.isEmpty }
    /// The number of transactions that are not committed yet.
    var count: Int { writing.count + waiting.count }

    /// Adds the effects of one event.
    ///
    /// - Returns: the effects to carry out now, in order.
    mutating func add(_ effects: [Effect], from origin: Origin) -> [Effect] {
        var ready: [Effect] = []
        var own: Int?
        for effect in effects {
            if case .persist(let change) = effect {
                if own == nil {
                    lastNumber += 1
                    waiting.append(Transaction(number: lastNumber, origin: origin))
                    own = waiting.count - 1
                }
                waiting[own!].changes.append(change)
            } else if let own {
                hold(effect, in: waiting[own].number)
            } else if let number = holder(of: effect) {
                hold(effect, in: number)
            } else {
                ready.append(effect)
            }
        }
        return ready
    }

    /// The transactions to commit next, in order; nil while a batch is being written or if there is nothing to write.
    mutating func takeBatch() -> [[Change]]? {
        guard writing.isEmpty, !waiting.isEmpty else { return nil }
        swap(&writing, &waiting)
        return writing.map(\.changes)
    }

    /// Ends the batch.
    ///
    /// - Parameter succeeded: for each transaction of the batch, whether storage committed it.
    /// - Returns: the outcome of each, in order.
    mutating func settle(_ succeeded: [Bool]) -> [Outcome] {
        let settled = writing
        writing = []
        precondition(succeeded.count == settled.count, "each transaction has a result")
        if let last = settled.last?.number { holders = holders.filter { $0.value > last } }
        return zip(settled, succeeded).map { transaction, isCommitted in
            isCommitted
                ? .committed(transaction.held)
                : .failed(
                    Failure(
                        origin: transaction.origin,
                        identities: transaction.changes.reduce(into: []) { $0.formUnion($1.people) },
                        held: transaction.held))
        }
    }

    /// Forgets the effects that wait for these sockets, which are about to be closed.
    mutating func discard(_ sockets: Set<SocketID>) {
        for index in waiting.indices {
            waiting[index].held.removeAll { $0.socket.map(sockets.contains) ?? false }
        }
        for socket in sockets { holders[.socket(socket)] = nil }
    }

    /// The transaction that the effect has to wait for.
    private func holder(of effect: Effect) -> UInt64? {
        if case .inquire = effect { return (waiting.last ?? writing.last)?.number }
        guard !holders.isEmpty else { return nil }
        return Self.keys(of: effect).compactMap { holders[$0] }.max()
    }

    private mutating func hold(_ effect: Effect, in number: UInt64) {
        for key in Self.keys(of: effect) { holders[key] = max(number, holders[key] ?? 0) }
        if let index = waiting.firstIndex(where: { $0.number == number }) {
            waiting[index].held.append(effect)
        } else if let index = writing.firstIndex(where: { $0.number == number }) {
            writing[index].held.append(effect)
        }
    }

    private static func keys(of effect: Effect) -> [Key] {
        switch effect {
        case .transmit(let socket, _), .close(let socket, _, _), .reply(let socket, _): [.socket(socket)]
        case .media(let command): keys(of: command)
        case .inquire, .push, .persist: []
        }
    }

    private static func keys(of command: MediaCommand) -> [Key] {
        switch command {
        case .offer(let client, _, _, _), .close(let client, _), .leave(let client): [.client(client)]
        case .publish(let stream, _, let client, _, _, _): [.client(client), .stream(stream)]
        case .update(let stream, _, _), .unpublish(let stream): [.stream(stream)]
        case .subscribe(let stream, _, let client, _, _, _, _): [.client(client), .stream(stream)]
        case .unsubscribe(let stream, let client): [.client(client), .stream(stream)]
        }
    }
}

extension Effect {
    /// The socket that the effect is for.
    var socket: SocketID? {
        switch self {
        case .transmit(let socket, _), .close(let socket, _, _), .reply(let socket, _): socket
        case .media, .inquire, .push, .persist: nil
        }
    }
}

extension Change {
    /// The people whose state in memory no longer agrees with storage if this change is not committed.
    var people: Set<IdentityID> {
        switch self {
        case .block(let owner, _, _), .unblock(let owner, _): [owner]
        case .report(let report): [report.by]
        case .profile(let person, _, _): [person]
        case .linked(let device, let person): [device.identity, person]
        case .unlinked(let person), .retired(let person), .deleted(let person): [person]
        case .keptInTouch(let one, let other, _, _), .lostTouch(let one, let other): [one, other]
        case .callPlaced(let call): [call.caller, call.callee]
        // The call itself is dropped with its people, who are known from the request.
        case .callAccepted, .callOver: []
        case .callLogged(_, let person), .callSeen(_, let person), .callsForgotten(_, let person): [person]
        }
    }
}
