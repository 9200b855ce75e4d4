import Signaling
import Wire

/// Holds back the effects that depend on changes that storage has not committed yet.
///
/// Every event whose effects include a `persist` becomes one transaction. The hub continues with other events while
/// the transaction is written. An effect that is sent to a client waits only if it
///
/// - follows a `persist` in the effects of its own event,
/// - is for a person with an uncommitted change: a message on another socket or after a resume must not report the
///   change as done before it is stored, or
/// - is for a socket for which an earlier effect waits, so that order is kept.
///
/// Media commands never wait, because they do not tell clients that something was stored. A slow disk therefore delays
/// only the clients whose changes are being stored. Invariant: for each socket, effects leave in the order in which
/// they were added.
struct CommitQueue {
    /// The client and the request that caused an event, so that a failure can be reported to them.
    struct Origin: Equatable {
        /// The socket whose message was handled; nil for other events, such as timers.
        var socket: SocketID?
        /// The person on that socket; nil if there is none.
        var person: IdentityID?
        /// The id of the request; nil if there is none.
        var request: UInt64?
        static let none = Origin()
    }

    /// A transaction that storage could not commit.
    struct Failure: Equatable {
        var origin: Origin
        /// The people whose changes were lost.
        var people: Set<IdentityID>
        /// The rooms whose changes were lost.
        var rooms: Set<RoomID> = []
        /// The archives whose changes were lost.
        var archives: Set<ArchiveID> = []
        /// The broadcasts whose changes were lost.
        var broadcasts: Set<BroadcastID> = []
    }

    /// The result of a batch.
    struct Settled: Equatable {
        /// The effects that waited for the batch, in order, including the effects of failed transactions.
        var effects: [Effect] = []
        var failures: [Failure] = []
    }

    /// A socket or person for which effects may have to wait. See `holders`.
    private enum Key: Hashable {
        case socket(SocketID)
        case person(IdentityID)
    }

    /// The changes that one event requested, and the effects that wait for them.
    private struct Transaction {
        var origin: Origin
        var people: Set<IdentityID> = []
        var rooms: Set<RoomID> = []
        var archives: Set<ArchiveID> = []
        var broadcasts: Set<BroadcastID> = []
        var changes: [Change] = []
        var held: [Effect] = []
    }

    private var writing: [Transaction] = []
    private var waiting: [Transaction] = []
    /// The number of the first transaction in the queue. The others follow without a gap.
    private var firstNumber: UInt64 = 0
    /// For each key, the newest transaction that later effects with this key must wait for. For a person's key, that
    /// is the newest transaction with a change that concerns the person. For a socket's key, it is the newest
    /// transaction that holds back an effect for the socket.
    private var holders: [Key: UInt64] = [:]
    private var bytesOfSockets: [SocketID: Int] = [:]

    /// The total size of the waiting messages of all sockets, in bytes.
    private(set) var heldBytes = 0

    /// The number of transactions in the batch that is being written.
    var writingCount: Int { writing.count }
    var isEmpty: Bool { writing.isEmpty && waiting.isEmpty }
    /// The number of transactions that are not committed yet.
    var count: Int { writing.count + waiting.count }

    /// The number of the next transaction, for `isSettled`.
    var nextNumber: UInt64 { firstNumber + UInt64(count) }

    /// Whether all transactions before this number have been committed or have failed.
    func isSettled(before number: UInt64) -> Bool { number <= firstNumber }

    /// Whether this person has a change that is not committed yet.
    func isUncommitted(_ person: IdentityID) -> Bool { holders[.person(person)] != nil }

    /// Returns the total size of this socket's waiting messages, in bytes.
    func heldBytes(for socket: SocketID) -> Int { bytesOfSockets[socket] ?? 0 }

    /// Adds the effects of one event. Holds back those that must wait for a commit.
    ///
    /// - Parameter person: returns the person on a socket; nil for clients without one.
    /// - Returns: the effects to carry out now, in order.
    mutating func add(_ effects: [Effect], from origin: Origin, person: (SocketID) -> IdentityID?) -> [Effect] {
        let stores = effects.contains { if case .persist = $0 { true } else { false } }
        if isEmpty, !stores { return effects }
        var ready: [Effect] = []
        var own: UInt64?
        for effect in effects {
            switch effect {
            case .persist(let change):
                if own == nil {
                    waiting.append(Transaction(origin: origin))
                    own = firstNumber + UInt64(count) - 1
                }
                // Add the person of the origin, because some changes name only a call and no person.
                store(change, by: origin.person, in: own!)
            case .media, .deleteFile, .relay: ready.append(effect)
            case .transmit, .close, .reply, .answer, .query, .push, .reach, .releasePlace, .post, .recording,
                .broadcast, .composeAhead, .compose:
                if let number = own ?? holder(of: effect, person) {
                    hold(effect, in: number)
                } else {
                    ready.append(effect)
                }
            }
        }
        return ready
    }

    /// Starts a batch of all waiting transactions and returns the changes of each, in order. Returns nil while a batch
    /// is being written or if there is nothing to write.
    mutating func takeBatch() -> [[Change]]? {
        guard writing.isEmpty, !waiting.isEmpty else { return nil }
        swap(&writing, &waiting)
        return writing.map(\.changes)
    }

    /// Ends the batch. Returns the effects that waited for it, and the transactions that failed.
    ///
    /// - Parameter succeeded: for each transaction of the batch, whether storage committed it.
    mutating func settle(_ succeeded: [Bool]) -> Settled {
        precondition(succeeded.count == writing.count, "each transaction has a result")
        var settled = Settled()
        for (transaction, isCommitted) in zip(writing, succeeded) {
            settled.effects += transaction.held
            guard !isCommitted else { continue }
            settled.failures.append(
                Failure(
                    origin: transaction.origin, people: transaction.people, rooms: transaction.rooms,
                    archives: transaction.archives, broadcasts: transaction.broadcasts))
        }
        firstNumber += UInt64(writing.count)
        writing = []
        holders = holders.filter { $0.value >= firstNumber }
        for effect in settled.effects { uncount(effect) }
        return settled
    }

    /// Drops the held effects for these sockets, which are about to be closed. This frees memory even while a batch is being
    /// written.
    mutating func discard(_ sockets: Set<SocketID>) {
        guard !isEmpty, !sockets.isEmpty else { return }
        let dropped = Self.takeHeld(for: sockets, from: &writing) + Self.takeHeld(for: sockets, from: &waiting)
        for effect in dropped { uncount(effect) }
        for socket in sockets { holders[.socket(socket)] = nil }
    }

    private static func takeHeld(for sockets: Set<SocketID>, from transactions: inout [Transaction]) -> [Effect] {
        var taken: [Effect] = []
        for index in transactions.indices {
            taken += transactions[index].held.filter { $0.isFor(sockets) }
            transactions[index].held.removeAll { $0.isFor(sockets) }
        }
        return taken
    }

    // MARK: Holding

    private mutating func store(_ change: Change, by origin: IdentityID?, in number: UInt64) {
        let summary = change.summary
        let people = summary.people.union([origin].compactMap(\.self))
        for person in people { holders[.person(person)] = number }
        let index = waiting.count - 1
        waiting[index].changes.append(change)
        waiting[index].people.formUnion(people)
        if let room = summary.room { waiting[index].rooms.insert(room) }
        if let archive = summary.archive { waiting[index].archives.insert(archive) }
        if let broadcast = summary.broadcast { waiting[index].broadcasts.insert(broadcast) }
    }

    /// Returns the transaction that the effect has to wait for; nil if it need not wait.
    private func holder(of effect: Effect, _ person: (SocketID) -> IdentityID?) -> UInt64? {
        switch effect {
        case .transmit(let socket, _), .close(let socket, _, _), .reply(let socket, _), .answer(let socket, _):
            let ofPerson = person(socket).flatMap { holders[.person($0)] }
            return [holders[.socket(socket)], ofPerson].compactMap { $0 }.max()
        // Wait for this person's changes, because the answer must include them.
        case .query(let question): return holders[.person(question.identity)]
        case .push(let person, _): return holders[.person(person)]
        // Another node may read what storage keeps as soon as the place is released, and this node as soon as it has claimed
        // one. So wait for all changes. A letter to another node waits for them too: it can report any of them, and letters
        // keep their order.
        // The recorder must not begin before the start of the archive was stored and reported. Its commands keep their order,
        // because each waits for all changes before it.
        case .reach, .releasePlace, .post, .recording, .broadcast, .composeAhead, .compose:
            return isEmpty ? nil : nextNumber - 1
        case .persist, .media, .deleteFile, .relay: return nil
        }
    }

    private mutating func hold(_ effect: Effect, in number: UInt64) {
        if let socket = effect.socket {
            holders[.socket(socket)] = max(number, holders[.socket(socket)] ?? 0)
            if case .transmit(_, let bytes) = effect {
                bytesOfSockets[socket, default: 0] += bytes.count
                heldBytes += bytes.count
            }
        }
        let index = Int(number - firstNumber)
        if index < writing.count {
            writing[index].held.append(effect)
        } else {
            waiting[index - writing.count].held.append(effect)
        }
    }

    private mutating func uncount(_ effect: Effect) {
        switch effect {
        case .transmit(let socket, let bytes):
            heldBytes -= bytes.count
            let left = (bytesOfSockets[socket] ?? 0) - bytes.count
            bytesOfSockets[socket] = left > 0 ? left : nil
        default: break
        }
    }
}

extension Effect {
    /// The socket that the effect is for; nil if it is for a person, the media plane or storage.
    var socket: SocketID? {
        switch self {
        case .transmit(let socket, _), .close(let socket, _, _), .reply(let socket, _), .answer(let socket, _): socket
        case .media, .query, .push, .persist, .deleteFile, .reach, .releasePlace, .post, .recording, .broadcast,
            .composeAhead, .compose, .relay:
            nil
        }
    }

    func isFor(_ sockets: Set<SocketID>) -> Bool { socket.map(sockets.contains) ?? false }
}
