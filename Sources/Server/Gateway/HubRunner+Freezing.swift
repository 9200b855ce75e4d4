import Cluster
import DequeModule
import NIOCore
import Signaling
import Wire

// What a node of a cluster does while its lease is not valid, and with records that were read for a claim.

extension HubRunner {
    var isFrozen: Bool { freeze.isFrozen }

    /// Returns whether the rules must not act now. If they may act again, first handles what has waited.
    func freezesUnlessAllowed() -> Bool {
        guard mayAct() else {
            beginFreeze()
            return true
        }
        thaw()
        return false
    }

    private func beginFreeze() {
        guard !isFrozen else { return }
        freeze.begin(at: now)
        scheduleFreeze()
    }

    func endFreeze() {
        freeze.end()
        freezeTimer?.cancel()
        freezeTimer = nil
    }

    private func scheduleFreeze() {
        guard let due = freeze.nextTimeout else { return }
        let runner = NIOLoopBound(self, eventLoop: eventLoop)
        freezeTimer = eventLoop.scheduleTask(in: .milliseconds(max(0, (due - now).wholeMilliseconds) + 1)) {
            runner.value.handleFreezeTimeout()
        }
    }

    private func handleFreezeTimeout() {
        if freeze.handleTimeout(at: now) { closeSocketsWithoutMedia() }
        scheduleFreeze()
    }

    /// Closes the sockets of clients that lose nothing by it, so that they can find a node that acts.
    func closeSocketsWithoutMedia() {
        let kept = hub.socketsWithMedia
        for id in sockets.ids where !kept.contains(id) { sockets[id]?.close(.serviceRestart, Self.waits) }
    }

    private static let waits = "This server waits for its database. Connect again."

    /// Decides about an input that must wait. Returns false if it is to be queued.
    func holdsBack(_ input: Input) -> Bool {
        switch freeze.admit(input, waiting: inputs.count) {
        case .append: return false
        case .replace(let index): inputs[index] = input
        case .refuse(let socket): sockets[socket]?.close(.serviceRestart, Self.waits)
        case .drop: break
        }
        return true
    }

    // MARK: Claims

    /// Submits a claim, and what storage had for the machine.
    ///
    /// - Parameter lookupStart: ``lookupStart`` before storage was read.
    func submit(claimOf key: PlaceKey, _ machine: PlacedMachine, _ stored: StoredState, lookupStart: LookupStart) {
        // If the key was claimed twice, the older lookup counts for both.
        if case .person(let person) = machine, claimedRecords[key] == nil {
            claimedRecords[key] = (person, lookupStart)
        }
        submit(.claimed(key, stored))
    }

    /// Returns whether the record that was read for a claim may be outdated, because one of this node's changes concerns the
    /// person. If so, the record is read again when that change is stored.
    func readsAgain(_ key: PlaceKey) -> Bool {
        guard let (person, start) = claimedRecords.removeValue(forKey: key), isOutdated([person], since: start) else {
            return false
        }
        afterCommit { [weak self] in self?.places?.reach(key, .person(person), claims: true) }
        return true
    }
}
