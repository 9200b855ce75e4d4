import CoreMetrics
import Logging
import NIOCore
import Signaling
import Wire

/// Handles changes that storage could not commit.
extension HubRunner {
    func sockets(of failures: [CommitQueue.Failure]) -> Set<SocketID> {
        failures.reduce(into: []) { lost, failure in
            for person in failure.people { lost.formUnion(sockets.sockets(of: person)) }
            if let socket = failure.origin.socket { lost.insert(socket) }
        }
    }

    /// Carries out a held effect, unless the effect reports a failed change as stored or acts on that change. A query
    /// of an affected person is answered with an error. Effects for other people concern state in memory and are
    /// carried out.
    func carryOut(_ effect: Effect, unlessLost lost: Set<SocketID>, _ people: Set<IdentityID>) {
        switch effect {
        case .query(let question) where people.contains(question.identity):
            queries.end(question, clientBudgets)
            inputs.append(.answered(question, .refused(.storageFailed)))
        // Always send a push that withdraws an earlier push.
        case .push(let person, let notice) where people.contains(person) && notice.kind != .over: return
        default:
            if !effect.isFor(lost) { carryOut(effect) }
        }
    }

    /// Reports a change that was not stored. The rules cannot undo the change, so the people affected are removed from
    /// memory. Their clients reconnect, and their state is then loaded from storage.
    func fail(_ failure: CommitQueue.Failure, _ error: StorageError) {
        metrics.changesLost.increment()
        logger.error(
            "Could not store a change. The people affected are disconnected and must reconnect.",
            metadata: ["error": "\(error)", "people": "\(failure.people.count)"])
        for id in sockets(of: [failure]).sorted(by: { $0.rawValue < $1.rawValue }) {
            guard let socket = sockets[id] else { continue }
            // Send the error directly, because the client's state machine may be gone already.
            let re = id == failure.origin.socket ? failure.origin.request : nil
            socket.write(ServerMessage.error(.init(.storageFailed, re: re)).encode())
            socket.flush()
            socket.close(.serviceRestart, WireError.Code.storageFailed.rawValue)
        }
        carryOut(hub.handle(.storageFailed(failure.people), at: clock.moment), from: .none)
        if !failure.rooms.isEmpty { reload(failure.rooms) }
        for archive in failure.archives.sorted() { submit(.archiveNotStored(archive)) }
        for broadcast in failure.broadcasts.sorted() { submit(.broadcastNotStored(broadcast)) }
    }

    /// The maximum number of attempts to read rooms that keep changing while they are being read.
    private static let maxReads = 10

    /// Loads rooms from storage again. First waits for the changes that are being stored, because some of them may
    /// concern these rooms.
    private func reload(_ rooms: Set<RoomID>, reads: Int = 1) {
        let runner = NIOLoopBound(self, eventLoop: eventLoop)
        let (handler, eventLoop) = (queryHandler, eventLoop)
        afterCommit {
            let start = runner.value.roomChanges.number
            Task {
                // If storage cannot be read, keep the rooms. Ending them would let anyone take their names.
                guard let stored = await handler.rooms() else { return }
                eventLoop.execute { runner.value.reload(rooms, from: stored, since: start, reads: reads) }
            }
        }
    }

    /// Resets rooms to the state that was read. If they changed while they were read, reads them again, at most
    /// `maxReads` times in total: the new change may be stored, but is not in the state that was read.
    ///
    /// - Parameter start: the number of the last change in `roomChanges` before reading.
    func reload(_ rooms: Set<RoomID>, from stored: [StoredRoom], since start: UInt64, reads: Int = 1) {
        if !roomChanges.concern(rooms, since: start) { return submit(.roomsNotStored(rooms, stored)) }
        // After `maxReads`, do nothing. Each change stores the whole room, so a room that changes constantly agrees
        // with storage as soon as one of its changes is stored.
        if reads < Self.maxReads { reload(rooms, reads: reads + 1) }
    }
}
