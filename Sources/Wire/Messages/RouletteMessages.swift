/// A client's request to the roulette (`protocol/README.md` §5).
public enum RouletteVerb: Equatable, Sendable, MessageSet {
    /// Starts a search, or changes the current search. Answered with ``RouletteNotice/waiting(_:)``, or with `ok`
    /// during a chat. Fails with `banned`, `elsewhere` or `invalid_interests`. A `queue_full` error without `re` may
    /// follow and ends the search.
    case start(Start)
    /// Ends the chat and searches again. Answered with ``RouletteNotice/waiting(_:)``, or with `ok` and no effect if the
    /// request names a match that is already over. Fails with `not_matched` if this device neither searches nor chats.
    case next(MatchReference)
    /// Ends the search and the chat. Answered with `ok`, after ``RouletteNotice/ended(_:)`` if there was a chat.
    case stop
    /// Reports a partner to the server's operator, and includes the most recent lines of the text chat. Answered with
    /// `ok`, or with `not_matched` or `rate_limited`.
    case report(Report)
    /// Blocks a partner. Ends the chat and searches again. Answered with `ok`, or with `not_matched`.
    case block(MatchReference)
    /// Requests how many people are online and waiting. Answered with ``RouletteNotice/count(_:)``.
    case count

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .start(let payload): try visitor.message("roulette.start", payload)
        case .next(let payload): try visitor.message("roulette.next", payload)
        case .stop: try visitor.message("roulette.stop", NoMembers())
        case .report(let payload): try visitor.message("roulette.report", payload)
        case .block(let payload): try visitor.message("roulette.block", payload)
        case .count: try visitor.message("roulette.count", NoMembers())
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("roulette.start", Self.start),
        .init("roulette.next", Self.next),
        .init("roulette.stop", .stop),
        .init("roulette.report", Self.report),
        .init("roulette.block", Self.block),
        .init("roulette.count", .count),
    ]
}

extension RouletteVerb {
    /// The search to start.
    public struct Start: Payload {
        /// Video or text chat; nil for video.
        public var mode: ChatMode?
        /// At most ``Welcome/Bounds/interests`` interests of 50 characters each; nil for none. Interests are compared
        /// without regard to case and surrounding white space.
        public var interests: [String]?
        /// The name that partners see, at most 256 bytes; nil for the name in ``Hello/name``. A name from a user token takes
        /// precedence.
        public var name: String?
        public init() {}
        public init(mode: ChatMode? = nil, interests: [String]? = nil, name: String? = nil) {
            (self.mode, self.interests, self.name) = (mode, interests, name)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.choice("mode", &mode)
            try coder.strings("interests", &interests, max: Limits.name)
            try coder.string("name", &name, max: Limits.name)
        }
    }

    /// A report about a partner.
    public struct Report: Payload {
        /// What happened, at most 500 bytes.
        public var reason = ""
        /// The id of the match to report, up to 60 s after its end; nil for the current or most recent match.
        public var match: MatchID?
        public init() {}
        public init(reason: String, match: MatchID? = nil) { (self.reason, self.match) = (reason, match) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("reason", &reason, max: Limits.reason)
            try coder.id("matchId", &match)
        }
    }

    /// The match that a request is about.
    public struct MatchReference: Payload {
        /// The id of the match; nil for the current match. For `block`, nil also means the most recent match, up to 60 s after
        /// its end.
        public var match: MatchID?
        public init() {}
        public init(match: MatchID?) { self.match = match }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("matchId", &match) }
    }
}

/// A server's message about the roulette (`protocol/README.md` §5).
public enum RouletteNotice: Equatable, Sendable, MessageSet {
    /// The client is searching. Answers `start` and `next`. Also sent when the search continues after a chat that the
    /// partner ended or that ended because this person blocked the partner.
    case waiting(Waiting)
    /// A partner was found: join both sessions, publish in one and subscribe in the other.
    case matched(Matched)
    /// The partner's connection dropped or was resumed.
    case partner(Partner)
    /// The chat is over: leave both sessions.
    case ended(Ended)
    /// Answers `roulette.count`.
    case count(Count)
    /// The person's video, or what a partner has reported, may break the rules. Also sent outside of a chat.
    case warning(Warning)
    /// A video of the chat must be blurred, or may be shown again.
    case blur(Blur)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .waiting(let payload): try visitor.message("roulette.waiting", payload)
        case .matched(let payload): try visitor.message("roulette.matched", payload)
        case .partner(let payload): try visitor.message("roulette.partner", payload)
        case .ended(let payload): try visitor.message("roulette.ended", payload)
        case .count(let payload): try visitor.message("roulette.count", payload)
        case .warning(let payload): try visitor.message("roulette.warning", payload)
        case .blur(let payload): try visitor.message("roulette.blur", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("roulette.waiting", Self.waiting),
        .init("roulette.matched", Self.matched),
        .init("roulette.partner", Self.partner),
        .init("roulette.ended", Self.ended),
        .init("roulette.count", Self.count),
        .init("roulette.warning", Self.warning),
        .init("roulette.blur", Self.blur),
    ]
}

extension RouletteNotice {
    /// The state of a client's search.
    public struct Waiting: PossibleAnswerPayload {
        /// The `seq` of the request that this message answers; nil for an event.
        public var re: UInt64?
        /// How long the search is delayed after too many quick skips; nil if the search is in progress.
        public var retryAfter: Duration?
        public init() {}
        public init(re: UInt64? = nil, retryAfter: Duration? = nil) { (self.re, self.retryAfter) = (re, retryAfter) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.milliseconds("retryAfterMs", &retryAfter)
        }
    }

    /// A match and access to its sessions.
    public struct Matched: Payload {
        /// The id of the match, which the server assigns. Requests such as `next` and `report` can name it.
        public var match = MatchID(high: 0, low: 0)
        /// Whether this is a video or a text chat.
        public var mode = ChatMode.video
        /// The session to publish in. The token becomes invalid when the match ends.
        public var publish = Admission()
        /// The session to subscribe in. It is the same as `publish`, unless the partner uses RouletteTok's protocol.
        public var subscribe = Admission()
        /// The partner's name, and the interests that both people share.
        public var partner = PartnerInfo()
        /// Whether the two people can use text chat, which is only possible if both are in the same session.
        public var textChat = true
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("matchId", &match)
            try coder.choice("mode", &mode)
            try coder.nested("publish", &publish)
            try coder.nested("subscribe", &subscribe)
            try coder.nested("partner", &partner)
            try coder.bool("textChat", &textChat)
        }
    }

    /// The state of the partner's connection.
    public struct Partner: Payload {
        /// The id of the match that the two people are in.
        public var match = MatchID(high: 0, low: 0)
        /// Whether the partner is connected, or disconnected but able to return.
        public var state = PartnerState.connected
        public init() {}
        public init(match: MatchID, state: PartnerState) { (self.match, self.state) = (match, state) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("matchId", &match)
            try coder.choice("state", &state)
        }
    }

    /// The match that is over, and the reason.
    public struct Ended: Payload {
        /// The id of the match that ended.
        public var match = MatchID(high: 0, low: 0)
        /// Why the match ended. After `next`, `blocked`, `partnerNext` and `partnerLeft` the server continues the search and
        /// sends `waiting`.
        public var reason = EndReason.partnerLeft
        public init() {}
        public init(match: MatchID, reason: EndReason) { (self.match, self.reason) = (match, reason) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("matchId", &match)
            try coder.choice("reason", &reason)
        }
    }

    /// The number of people on the server.
    public struct Count: AnswerPayload {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// Number of client connections to the server.
        public var online = 0
        /// Number of people waiting for a partner.
        public var waiting = 0
        public init() {}
        public init(re: UInt64, online: Int, waiting: Int) {
            (self.re, self.online, self.waiting) = (re, online, waiting)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.integer("online", &online, in: 0...Int(Int32.max))
            try coder.integer("waiting", &waiting, in: 0...Int(Int32.max))
        }
    }
}

/// The reason why a match ended, from the point of view of the client to which it is sent.
public enum EndReason: String, Hashable, Sendable {
    /// This client sent `roulette.next`.
    case next
    /// This client sent `roulette.stop`, or the person accepted a call or started a search in another tab or on
    /// another device.
    case stopped
    /// This person blocked the partner.
    case blocked
    /// The partner skipped to the next person, or blocked this person.
    case partnerNext
    /// The partner stopped, closed the page, did not reconnect in time, or was banned.
    case partnerLeft
    /// This person was banned.
    case banned
}

/// The state of the other person's connection in a match or call.
public enum PartnerState: String, Hashable, Sendable {
    /// The connection dropped, and may be resumed.
    case reconnecting
    /// The connection is working.
    case connected
}
