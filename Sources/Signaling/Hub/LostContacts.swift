import Cluster
import Wire

/// The people on this node who still have to refresh what they see of contacts, because letters between this node and another one were
/// lost, or the other node's life is over.
///
/// Each of them asks about some contacts, so a turn handles only some people, and a timer continues with the next ones.
struct LostContacts: Sendable {
    /// Someone who refreshes what they see of the contacts on a node.
    struct Part: Equatable, Sendable {
        var person: IdentityID
        var tag: NodeTag
        var isOver: Bool
    }

    /// Maximum number of people in a turn. With 20 contacts each, they ask the registry about 1000 people, which takes some
    /// milliseconds.
    static let slice = 50
    /// The pause between two turns, so that others get at least half of the time.
    static let pause = Duration.milliseconds(20)

    private struct Loss: Sendable {
        let tag: NodeTag
        let isOver: Bool
        var people: ArraySlice<IdentityID>
    }

    /// In the order in which they happened. At most one for each life, and none is empty.
    private var losses: [Loss] = []
    private var notBefore: Timestamp?

    var isEmpty: Bool { losses.isEmpty }

    /// Adds a loss. It replaces an earlier one of the same life: who has asked since must ask again.
    mutating func add(_ people: [IdentityID], of tag: NodeTag, isOver: Bool) {
        losses.removeAll { $0.tag == tag }
        if !people.isEmpty { losses.append(Loss(tag: tag, isOver: isOver, people: people[...])) }
    }

    /// Returns the people whose turn it is; none if the pause is not over.
    mutating func take(now: Timestamp) -> [Part] {
        guard notBefore.map({ $0 <= now }) ?? true else { return [] }
        var parts: [Part] = []
        while parts.count < Self.slice, let loss = losses.first {
            let people = loss.people.prefix(Self.slice - parts.count)
            parts += people.map { Part(person: $0, tag: loss.tag, isOver: loss.isOver) }
            losses[0].people.removeFirst(people.count)
            if losses[0].people.isEmpty { losses.removeFirst() }
        }
        if !parts.isEmpty { notBefore = now + Self.pause }
        return parts
    }

    /// When to take the next people; nil if there are none.
    func nextTurn(now: Timestamp) -> Timestamp? { isEmpty ? nil : max(now, notBefore ?? now) }
}
