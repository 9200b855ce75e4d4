import Cluster
import Wire

/// The types that describe what a person does in the roulette: searching, chatting, or neither.
extension RouletteState {
    /// The settings of a search. They are kept during a chat, so that "Next" can search again with the same settings.
    struct Search: Equatable, Sendable {
        var client: ConnectionID
        var mode: ChatMode
        var interests: [String]
        var name: String
    }

    /// The other person in a match.
    struct Partner: Equatable, Sendable {
        var identity: IdentityID
        /// The partner's address, reduced to the block of addresses that limits count as one.
        var address: String
        /// The partner's node; nil without a cluster.
        var node: NodeTag?
    }

    /// A current or recent chat with a partner.
    struct Chat: Equatable, Sendable {
        var match: MatchID
        var partner: IdentityID
        /// The partner's address for a report, reduced to the block of addresses that limits count as one.
        var partnerAddress: String
        /// The node on which the partner was when the chat began; nil without a cluster.
        var partnerNode: NodeTag?
        var session: SessionID
        /// The legacy client's home session, if the match is on another node; otherwise nil. This person then opens and closes the session
        /// instead of the match.
        var home: SessionID?
        var began: Timestamp
        var isReported = false
        var ended: Timestamp?
        /// Whether the partner's client blurs this person's video.
        var isBlurred = false
        /// When this person last got a warning in this chat.
        var warnedAt: Timestamp?
        /// Whether a sample of this person's camera has arrived.
        var hasSample = false
    }

    /// Legal transitions: `idle` → `penalized`, `waiting`; `penalized` → `waiting`, `away`, `idle`; `waiting` → `reserved`,
    /// `away`, `idle`; `reserved` → `chatting`, `waiting`, `away`, `idle`; `chatting` → `waiting`, `penalized`, `away`, `idle`;
    /// `away` → `waiting`, `penalized`, `idle`.
    enum Activity: Equatable, Sendable {
        case idle
        /// The person skipped too often, and enters the queue at the time `until`.
        case penalized(Search, until: Timestamp)
        /// The person has an entry in the pool.
        case waiting(Search)
        /// The pool has reserved the person for this match.
        case reserved(Search, MatchID)
        case chatting(Search, Chat)
        /// The person was searching when their device lost its connection. When the device reconnects, they enter at the end of
        /// the queue.
        case away(Search)
    }
}
