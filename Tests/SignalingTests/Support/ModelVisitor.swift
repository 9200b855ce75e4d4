import Signaling
import Wire

/// A message that the model expects a client to receive next. All roulette messages and answers of a client are in one
/// sequence, so a missing, duplicate or misplaced message is found immediately.
enum Expectation: Equatable, CustomStringConvertible {
    case ok(re: UInt64)
    case failure(re: UInt64?, WireError.Code)
    case joined(re: UInt64, SessionID)
    case waiting(re: UInt64?, retryAfter: Duration?)
    case ended(MatchID, EndReason)
    case partner(MatchID, PartnerState)
    case signal(String)

    /// The expected message, or nil for messages that are checked elsewhere: pairings and session membership.
    init?(_ message: ServerMessage) {
        switch message {
        case .ok(let answer): self = .ok(re: answer.re)
        case .error(let error): self = .failure(re: error.re, error.error.code)
        case .session(.joined(let joined)): self = .joined(re: joined.re, joined.session)
        case .roulette(.waiting(let waiting)): self = .waiting(re: waiting.re, retryAfter: waiting.retryAfter)
        case .roulette(.ended(let ended)): self = .ended(ended.match, ended.reason)
        case .roulette(.partner(let partner)): self = .partner(partner.match, partner.state)
        case .session(.signal(let signal)): self = .signal(signal.data ?? "")
        default: return nil
        }
    }

    var description: String {
        switch self {
        case .ok(let re): "ok \(re)"
        case .failure(let re, let code): "error \(code.rawValue) \(re.map(String.init) ?? "")"
        case .joined(let re, let session): "joined \(re) \(session.text.suffix(6))"
        case .waiting(let re, let wait): "waiting \(re.map(String.init) ?? "") \(wait.map { "\($0)" } ?? "")"
        case .ended(let match, let reason): "ended \(match.description.prefix(6)) \(reason)"
        case .partner(let match, let state): "partner \(match.description.prefix(6)) \(state)"
        case .signal(let data): "signal \(data)"
        }
    }
}

/// A client connection, with what it still expects according to the model.
final class Visitor: RandomClient {
    let number: Int
    var expected: [Expectation] = []
    /// The members of each session, as far as this client knows.
    var views: [SessionID: Set<ConnectionID>] = [:]
    /// Sessions that the client has requested to leave, by request. Once the answer arrives, the client no longer
    /// tracks the session.
    var leaving: [UInt64: SessionID] = [:]
    /// The matches of this client, newest last.
    var matches: [MatchID] = []

    init(_ guest: Guest, number: Int) {
        self.number = number
        super.init(guest)
    }

    var identity: IdentityID { guest.identity }
    var address: String { guest.address }
}

/// A session in the model. Clients join it with a token of a match or of an embedding program.
struct Place {
    /// The members in the order of joining, each with the match of its token.
    var members: [(visitor: Int, match: MatchID?)] = []
}

/// A token of a match, which only one person may use, or of an embedding program.
struct ModelToken {
    let session: SessionID
    let token: String
    let match: MatchID?
    let holder: IdentityID?

    init(_ admission: Admission, match: MatchID? = nil, of holder: IdentityID? = nil) {
        (session, token, self.match, self.holder) = (admission.session, admission.token, match, holder)
    }
}

/// A pairing, active or ended.
struct Pairing {
    let match: MatchID
    let session: SessionID
    /// Each person's own token.
    let tokens: [IdentityID: String]
    let people: [IdentityID]
    let began: Timestamp
    var ended: Timestamp?
    var reportedBy: Set<IdentityID> = []

    var isOver: Bool { ended != nil }

    func partner(of identity: IdentityID) -> IdentityID { people[0] == identity ? people[1] : people[0] }
}

/// The model's state of one identity.
final class Someone {
    struct Search: Equatable {
        var visitor: Int
        var mode: ChatMode
        var interests: Set<String>
        var name: String
    }

    enum State: Equatable {
        case idle
        case penalized(until: Timestamp)
        case waiting(since: Timestamp)
        case chatting(MatchID)
        /// The person is searching but disconnected.
        case away
    }

    let identity: IdentityID
    var visitors: Set<Int> = []
    var state = State.idle
    var search: Search?
    var blocked: Set<IdentityID>
    var ban: Ban?
    var lastPartner: IdentityID?
    /// The person's recent chats, with the newest last.
    var recentChats: [(match: MatchID, ended: Timestamp)] = []
    var skips: [Timestamp] = []
    var penaltyUntil: Timestamp?
    var emptySince: Timestamp?

    init(_ identity: IdentityID, _ record: PersonRecord) {
        (self.identity, blocked, ban) = (identity, Set(record.blocked), record.ban)
    }

    var since: Timestamp? { if case .waiting(let since) = state { since } else { nil } }
    var match: MatchID? { if case .chatting(let match) = state { match } else { nil } }
}
