import Wire

public enum MatchEvent: Equatable, Sendable {
    /// Both were reserved; the match begins.
    case begin(ChatMode, PoolEntry, PoolEntry)
    /// This member is out of it, for a reason of his own.
    case leave(IdentityID, EndReason)
    /// This member's line dropped, or is back.
    case away(IdentityID, Bool)
}

/// One pairing of two strangers: it makes their session and tokens, and ends them.
///
/// It owns that the two are together; it holds no connection and no chat. Legal states: `new` → `running` → `over`.
/// Invariant: when it is over, its session has been told so before anybody else has.
public struct Match: Equatable, Sendable {
    private enum State: Equatable, Sendable {
        case new
        case running(SessionID, IdentityID, IdentityID)
        case over
    }

    let id: MatchID
    private var state = State.new

    init(id: MatchID) { self.id = id }

    var isOver: Bool { state == .over }

    mutating func handle(
        _ event: MatchEvent, now: Timestamp, in surroundings: Surroundings,
        using generator: inout some RandomNumberGenerator, into effects: inout [Effect]
    ) {
        switch (event, state) {
        case (.begin(let mode, let first, let second), .new):
            begin(mode, first, second, now: now, surroundings, using: &generator, into: &effects)
        case (.leave(let identity, let reason), .running(let session, let first, let second)):
            guard identity == first || identity == second else { return }
            state = .over
            effects.tell(.session(session, .matchClosed(id)))
            let other = identity == first ? second : first
            let told: EndReason =
                switch reason {
                case .next, .blocked: .partnerNext
                case .stopped, .partnerNext, .partnerLeft, .banned: .partnerLeft
                }
            effects.tell(.person(other, .matchEnded(id, told)))
        case (.away(let identity, let isAway), .running(_, let first, let second)):
            guard identity == first || identity == second else { return }
            effects.tell(.person(identity == first ? second : first, .partnerAway(id, isAway)))
        default: return
        }
    }

    private mutating func begin(
        _ mode: ChatMode, _ first: PoolEntry, _ second: PoolEntry, now: Timestamp, _ surroundings: Surroundings,
        using generator: inout some RandomNumberGenerator, into effects: inout [Effect]
    ) {
        let project = surroundings.project
        let session = project.makeSessionID(
            mediaMode: surroundings.rules.rouletteMediaMode, now: now, using: &generator
        )
        state = .running(session, first.identity, second.identity)
        effects.tell(.session(session, .matchOpened(id)))
        let shared = first.sharedInterests(with: second)
        for (person, partner) in [(first, second), (second, first)] {
            let token = project.makeSessionToken(
                session: session, role: .publisher, match: id, now: now,
                lifetime: surroundings.rules.matchTokenLifetime, using: &generator
            )
            var matched = Matched()
            matched.match = id
            matched.mode = mode
            matched.publish = Admission(session: session, token: token)
            matched.subscribe = matched.publish
            matched.partner = Partner(name: partner.name, interests: shared)
            effects.tell(.person(person.identity, .matched(matched, partner: partner.identity)))
        }
    }
}
