import DequeModule
import Wire

/// Who is being looked up in storage, and who of them stopped being anybody meanwhile.
///
/// Storage answers while the rules go on: what it found may be of before a deletion. Invariant: there is an entry for
/// everybody about whom a question is under way, and for nobody else, so that the shell, which bounds the questions,
/// bounds this.
struct Lookups: Sendable {
    private struct Lookup: Sendable {
        var questions = 0
        var isVoid = false
    }

    private var underWay: [PersonID: Lookup] = [:]

    var isEmpty: Bool { underWay.isEmpty }

    mutating func began(_ person: PersonID) { underWay[person, default: Lookup()].questions += 1 }

    /// This person is deleted, or became another's device: whatever is on its way is out of date.
    mutating func void(_ person: PersonID) { underWay[person]?.isVoid = true }

    /// - Returns: whether what was found still holds.
    mutating func ended(_ person: PersonID) -> Bool {
        guard var lookup = underWay[person] else { return true }
        lookup.questions -= 1
        underWay[person] = lookup.questions > 0 ? lookup : nil
        return !lookup.isVoid
    }
}

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
