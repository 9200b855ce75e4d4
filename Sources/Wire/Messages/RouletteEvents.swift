// What the roulette tells somebody.

public struct Waiting: Payload {
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
    public var partner = Partner()
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

public struct PartnerState: Payload {
    public enum State: String, Hashable, Sendable { case reconnecting, connected }
    public var match = MatchID(high: 0, low: 0)
    public var state = State.connected
    public init() {}
    public init(match: MatchID, state: State) { (self.match, self.state) = (match, state) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("matchId", &match)
        try coder.choice("state", &state)
    }
}

/// Why a match is over, from the point of view of whoever is told.
public enum EndReason: String, Hashable, Sendable {
    case next, stopped, blocked
    case partnerNext, partnerLeft
    case banned
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

public struct Count: Payload {
    public var re: UInt64 = 0
    public var online = 0
    public var waiting = 0
    public init() {}
    public init(re: UInt64, online: Int, waiting: Int) { (self.re, self.online, self.waiting) = (re, online, waiting) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.re(&re)
        try coder.integer("online", &online, in: 0...Int(Int32.max))
        try coder.integer("waiting", &waiting, in: 0...Int(Int32.max))
    }
}

public struct ICEAnswer: Payload {
    public var re: UInt64 = 0
    public var ice = ICEConfiguration()
    public init() {}
    public init(re: UInt64, ice: ICEConfiguration) { (self.re, self.ice) = (re, ice) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.re(&re)
        try coder.nested("ice", &ice)
    }
}
