import DequeModule
import Wire

/// Tracks people who are kept in memory although they are not connected, because they left recently or were looked up.
///
/// Limits how many of them are kept, because a client may create and abandon many identities or look up many people.
/// Invariant: `since` has one entry per absent person. `queue` contains the same entries, ordered by when the absence
/// began, plus some outdated entries of people who have returned.
struct IdlePeople: Sendable {
    private var since: [IdentityID: UInt64] = [:]
    private var queue: Deque<(identity: IdentityID, number: UInt64)> = []
    private var last: UInt64 = 0

    init() {}

    var count: Int { since.count }

    mutating func note(_ identity: IdentityID, isAbsent: Bool) {
        guard isAbsent else { return since[identity] = nil }
        guard since[identity] == nil else { return }
        last += 1
        since[identity] = last
        queue.append((identity, last))
        // Compact the queue by dropping outdated entries. The amortized cost is at most two visits per entry.
        if queue.count > 2 * since.count + 64 { queue.removeAll { since[$0.identity] != $0.number } }
    }

    /// Removes and returns the person who has been absent longest, or returns nil if at most `limit` people are
    /// absent.
    mutating func overflow(_ limit: Int) -> IdentityID? {
        guard since.count > limit else { return nil }
        while let first = queue.popFirst() {
            guard since[first.identity] == first.number else { continue }
            since[first.identity] = nil
            return first.identity
        }
        return nil
    }
}
