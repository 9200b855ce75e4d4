/// What a client asks of the roulette (`protocol/README.md` §6).
public enum RouletteVerb: Equatable, Sendable, MessageSet {
    case start(Start)
    case next(MatchReference)
    case stop
    case report(Report)
    case block(MatchReference)
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
    public struct Start: Payload {
        public var mode: ChatMode?
        public var interests: [String]?
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

    public struct Report: Payload {
        public var reason = ""
        public var match: MatchID?
        public init() {}
        public init(reason: String, match: MatchID? = nil) { (self.reason, self.match) = (reason, match) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("reason", &reason, max: Limits.reason)
            try coder.id("matchId", &match)
        }
    }

    /// A match that a verb is about; the present one unless it says otherwise.
    public struct MatchReference: Payload {
        public var match: MatchID?
        public init() {}
        public init(match: MatchID?) { self.match = match }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("matchId", &match) }
    }
}

/// What a client is told by the roulette (`protocol/README.md` §6).
public enum RouletteNotice: Equatable, Sendable, MessageSet {
    case waiting(Waiting)
    case matched(Matched)
    case partner(Partner)
    case ended(Ended)
    case count(Count)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .waiting(let payload): try visitor.message("roulette.waiting", payload)
        case .matched(let payload): try visitor.message("roulette.matched", payload)
        case .partner(let payload): try visitor.message("roulette.partner", payload)
        case .ended(let payload): try visitor.message("roulette.ended", payload)
        case .count(let payload): try visitor.message("roulette.count", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("roulette.waiting", Self.waiting),
        .init("roulette.matched", Self.matched),
        .init("roulette.partner", Self.partner),
        .init("roulette.ended", Self.ended),
        .init("roulette.count", Self.count),
    ]
}

extension RouletteNotice {
    public struct Waiting: PossibleAnswerPayload {
        public var re: UInt64?
        public var retryAfter: Duration?
        public init() {}
        public init(re: UInt64? = nil, retryAfter: Duration? = nil) { (self.re, self.retryAfter) = (re, retryAfter) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.milliseconds("retryAfterMs", &retryAfter)
        }
    }

    public struct Matched: Payload {
        public var match = MatchID(high: 0, low: 0)
        public var mode = ChatMode.video
        public var publish = Admission()
        public var subscribe = Admission()
        public var partner = PartnerInfo()
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

    public struct Partner: Payload {
        public var match = MatchID(high: 0, low: 0)
        public var state = PartnerState.connected
        public init() {}
        public init(match: MatchID, state: PartnerState) { (self.match, self.state) = (match, state) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("matchId", &match)
            try coder.choice("state", &state)
        }
    }

    public struct Ended: Payload {
        public var match = MatchID(high: 0, low: 0)
        public var reason = EndReason.partnerLeft
        public init() {}
        public init(match: MatchID, reason: EndReason) { (self.match, self.reason) = (match, reason) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("matchId", &match)
            try coder.choice("reason", &reason)
        }
    }

    public struct Count: AnswerPayload {
        public var re: UInt64 = 0
        public var online = 0
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

/// Why a match is over, as the receiver sees it.
public enum EndReason: String, Hashable, Sendable {
    case next, stopped, blocked
    case partnerNext, partnerLeft
    case banned
}

/// Whether the connection of the other in a match or a call holds.
public enum PartnerState: String, Hashable, Sendable { case reconnecting, connected }
