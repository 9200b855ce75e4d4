import DequeModule
import Wire

/// Who is remembered without being here: for having left lately, or for having been looked up.
///
/// Whoever makes and leaves identities, or has many looked up, must not fill the memory. Invariant: one entry for each,
/// and as many in line, in the order in which they began to be absent, besides some who came back.
struct Absences: Sendable {
    private var since: [IdentityID: UInt64] = [:]
    private var line: Deque<(identity: IdentityID, number: UInt64)> = []
    private var last: UInt64 = 0

    init() {}

    var count: Int { since.count }

    mutating func note(_ identity: IdentityID, isAbsent: Bool) {
        guard isAbsent else { return since[identity] = nil }
        guard since[identity] == nil else { return }
        last += 1
        since[identity] = last
        line.append((identity, last))
        // Each entry is looked at twice at most for everybody who goes.
        if line.count > 2 * since.count + 64 { line.removeAll { since[$0.identity] != $0.number } }
    }

    /// Somebody absent the longest, who is one too many. He is not counted any more.
    mutating func overflow(_ limit: Int) -> IdentityID? {
        guard since.count > limit else { return nil }
        while let first = line.popFirst() {
            guard since[first.identity] == first.number else { continue }
            since[first.identity] = nil
            return first.identity
        }
        return nil
    }
}
