import Cluster
import Wire

/// A match between two strangers. The match creates a session for them, or uses the home sessions of legacy clients,
/// and creates tokens for joining. When the match ends, the tokens become invalid.
///
/// Owns only the pairing, not the connections or the text chat. Legal transitions: `new` → `running` → `over`.
/// Invariant: when the match ends, its session is notified before anyone else.
public struct Match: Machine, Equatable, Sendable {
    /// One of the two people.
    struct Side: Equatable, Sendable {
        let identity: IdentityID
        /// The person's node; nil without a cluster.
        let node: NodeTag?
    }

    /// Whether the match has begun or ended.
    private enum State: Equatable, Sendable {
        case new
        /// The sessions of the match on this node (one shared session, or one per person) and the two people.
        case running([SessionID], Side, Side)
        case over
    }

    let id: MatchID
    private var state = State.new

    init(id: MatchID) { self.id = id }

    static func make(_ id: MatchID, for event: MatchEvent, _ context: inout Context) -> Match? {
        if case .begin = event { Match(id: id) } else { nil }
    }

    var isOver: Bool { state == .over }

    /// The two people while the match runs.
    var sides: [Side] { if case .running(_, let first, let second) = state { [first, second] } else { [] } }

    /// Returns the partner of this person; nil if the person is not in the match.
    private func partner(of identity: IdentityID) -> Side? {
        guard let index = sides.firstIndex(where: { $0.identity == identity }) else { return nil }
        return sides[1 - index]
    }

    mutating func handle(_ event: MatchEvent, _ context: inout Context) {
        switch (event, state) {
        case (.begin(let mode, let first, let second), .new):
            begin(mode, first, second, &context)
        case (.leave(let identity, let reason), .running(let sessions, _, _)):
            guard let other = partner(of: identity) else { return }
            state = .over
            for session in sessions { context.tell(.session(session, .matchClosed(id))) }
            let partnerReason: EndReason =
                switch reason {
                case .next, .blocked: .partnerNext
                case .stopped, .partnerNext, .partnerLeft, .banned: .partnerLeft
                }
            context.tell(other.identity, .matchEnded(id, partnerReason), at: other.node)
        case (.away(let identity, let isAway), .running):
            guard let other = partner(of: identity) else { return }
            context.tell(other.identity, .partnerAway(id, isAway), at: other.node)
        case (.moved(let identity, let address), .running):
            guard let other = partner(of: identity) else { return }
            context.tell(other.identity, .partnerMoved(id, address: address), at: other.node)
        default: return
        }
    }

    private mutating func begin(_ mode: ChatMode, _ first: PoolEntry, _ second: PoolEntry, _ context: inout Context) {
        let new = context.makeSessionID(mediaMode: context.rules.matchMediaMode, isPrivate: true)
        // Two native clients share one session. A legacy client always publishes in its home session. In a match with a legacy
        // client, each client therefore publishes in a separate session and subscribes in the other's.
        let sessions = [first.home ?? new, second.home ?? new]
        let isShared = first.home == nil && second.home == nil
        let bindings = [binding(of: first, context), binding(of: second, context)]
        // The person opens and closes a home session on another node.
        let here = isShared ? [new] : sessions.indices.filter { bindings[$0] == id }.map { sessions[$0] }
        state = .running(
            here, Side(identity: first.identity, node: first.node), Side(identity: second.identity, node: second.node))
        for session in here {
            // Only the partner joins a legacy client's home session with a match token, so one place is enough there.
            context.tell(.session(session, .matchOpened(id, places: session == new ? 2 : 1)))
            guard let one = first.node, let other = second.node, one != other else { continue }
            context.tell(.session(session, .matchSpans(id, [first.identity: one, second.identity: other])))
        }
        let shared = first.sharedInterests(with: second)
        for (person, partner, own, other) in [(first, second, 0, 1), (second, first, 1, 0)] {
            var matched = RouletteNotice.Matched()
            matched.match = id
            matched.mode = mode
            let holder = person.home == nil ? person.identity : nil
            matched.publish = context.admission(to: sessions[own], .publisher, match: bindings[own], for: holder)
            matched.subscribe =
                isShared
                ? matched.publish
                : context.admission(to: sessions[other], .subscriber, match: bindings[other], for: holder)
            matched.partner = PartnerInfo(name: partner.name, interests: shared)
            matched.textChat = isShared
            context.tell(
                person.identity,
                .matched(matched, partner: partner.identity, address: partner.address, at: partner.node),
                at: person.node)
        }
    }

    /// The id that tokens for this person's publishing session are bound to.
    private func binding(of person: PoolEntry, _ context: Context) -> MatchID {
        guard person.home != nil, let node = person.node, node != context.tag else { return id }
        return id.bound(to: node)
    }
}
