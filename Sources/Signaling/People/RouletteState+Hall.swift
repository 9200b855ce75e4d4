import Cluster
import Wire

/// Where a stranger waits in a cluster. Each node has a pool. The pool of one node is the hall: strangers who found nobody on their own
/// node meet there.
///
/// If media can cross between the two nodes, the stranger waits in the hall's pool, and stays on their node. Otherwise they are
/// redirected to the hall's node. They wait in one pool at a time: a stranger who goes to the hall leaves the pool of their node. Both
/// pools reserve people in the same way. The match can be on the person's node or on the partner's.
///
/// A legacy client cannot be redirected. It waits in the hall if it can do so from here, and otherwise in the pool of its node.
extension RouletteState {
    /// The maximum number of blocked people in the entry for another node's pool. When the pool proposes one of the others, this person
    /// refuses.
    private static let maxExcluded = 64

    /// The hall is on this node, or on another one in whose pool this person can wait without moving.
    mutating func hallIsAt(_ node: NodeTag, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard case .waiting(let search) = activity else { return }
        let isHere = node == context.tag
        guard !isHere || hall != nil else { return hallAt = nil }
        if hall != node {
            leavePool(snapshot.id, &context)
            guard !isHere else {
                enter(search, snapshot, &context)
                return hallAt = nil
            }
            hall = node
            newAddress = nil
        }
        // A node that still has the entry ignores it.
        let excluded = Set(snapshot.blocks.oldestFirst.suffix(Self.maxExcluded))
        context.tell(.enter(entry(of: search, snapshot, excluded, context)), at: hall)
        hallAt = context.now + context.rules.hallRenewal
    }

    /// The stranger cannot wait in the hall without moving. Redirects a stranger with one device to the node that the error names. The
    /// stranger stays if the error names no node, if they use a legacy client, or if they have several devices, because the other devices
    /// would keep the person on this node. A stranger who stays waits in the pool of this node, and asks again.
    mutating func hallIsElsewhere(_ error: WireError, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard case .waiting(let search) = activity else { return }
        let cannotMove = isLegacy(search, snapshot)
        guard error.at != nil, snapshot.devices.clients == [search.client], !cannotMove else {
            if hall != nil { enterAgain(search, snapshot, &context) }
            return hallAt = cannotMove && !context.spansNodes ? nil : context.now + context.rules.hallRetry
        }
        leavePool(snapshot.id, &context)
        activity = .idle
        context.fail(error, re: nil, to: search.client)
    }

    /// The pool in which this person waits no longer has the entry.
    mutating func hallClosed(_ snapshot: PersonSnapshot, _ context: inout Context) {
        switch activity {
        case .waiting(let search), .reserved(let search, _):
            enterAgain(search, snapshot, &context)
            hallAt = context.now + context.rules.hallRetry
        case .idle, .penalized, .chatting, .away: break
        }
    }

    /// Refuses a match with a person on a node to which media cannot cross, and moves to the hall's node, where the two can meet. Leaving
    /// the pool releases the other person, who may then meet this one. A legacy client stays in the pool, which will not match these two
    /// people again.
    mutating func refuseDistant(
        _ match: MatchID, _ search: Search, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        guard let hall, !isLegacy(search, snapshot) else {
            return context.tell(.refused(match, snapshot.id), at: self.hall)
        }
        hallIsElsewhere(.elsewhere(.hall, at: hall), snapshot, &context)
    }

    /// Leaves the pool in which this person waits or is reserved.
    mutating func leavePool(_ id: IdentityID, _ context: inout Context) {
        context.tell(.withdraw(id), at: hall)
        hall = nil
    }

    /// Waits in the pool of this node, and asks for the hall again.
    mutating func enterAgain(_ search: Search, _ snapshot: PersonSnapshot, _ context: inout Context) {
        leavePool(snapshot.id, &context)
        enter(search, snapshot, &context)
    }
}
