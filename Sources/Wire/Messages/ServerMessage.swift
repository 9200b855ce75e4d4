/// Everything the server says. `re` is the `seq` of the request that an answer belongs to.
public enum ServerMessage: Equatable, Sendable {
    case welcome(Welcome)
    case error(ErrorMessage)
    case ack
    case pong
    case ok(Answer)
    case joined(Joined)
    case left(Left)
    case connectionCreated(ConnectionCreated)
    case connectionDestroyed(ConnectionDestroyed)
    case connectionReconnecting(OfConnection)
    case connectionReconnected(OfConnection)
    case published(Published)
    case streamCreated(WithStream)
    case streamDestroyed(StreamDestroyed)
    case streamChanged(WithStream)
    case subscribed(Subscribed)
    case unsubscribed(Unsubscribed)
    case negotiate(Negotiation)
    case signal(SignalReceived)
    case muted(Muted)
    case waiting(Waiting)
    case matched(Matched)
    case partner(PartnerState)
    case ended(Ended)
    case count(Count)
    case iceServers(ICEAnswer)
    case mediaModeChanged(MediaModeChanged)
    case subscriptionChanged(SubscriptionChanged)
    case layersWanted(LayersWanted)
    case speaking(Speaking)
    case mediaAnswer(MediaAnswer)
    case mediaClosed(MediaClosed)
    case presence(PresenceNews)
    case nearby(NearbyNews)
    case call(CallNews)
    case contact(ContactNews)

    /// The event's name on the wire.
    public var type: String {
        switch self {
        case .welcome: "welcome"
        case .error: "error"
        case .ack: "ack"
        case .pong: "pong"
        case .ok: "ok"
        case .joined: "session.joined"
        case .left: "session.left"
        case .connectionCreated: "session.connectionCreated"
        case .connectionDestroyed: "session.connectionDestroyed"
        case .connectionReconnecting: "session.connectionReconnecting"
        case .connectionReconnected: "session.connectionReconnected"
        case .published: "session.published"
        case .streamCreated: "session.streamCreated"
        case .streamDestroyed: "session.streamDestroyed"
        case .streamChanged: "session.streamChanged"
        case .subscribed: "session.subscribed"
        case .unsubscribed: "session.unsubscribed"
        case .negotiate: "session.negotiate"
        case .signal: "session.signal"
        case .muted: "session.muted"
        case .waiting: "roulette.waiting"
        case .matched: "roulette.matched"
        case .partner: "roulette.partner"
        case .ended: "roulette.ended"
        case .count: "roulette.count"
        case .iceServers: "ice.servers"
        case .mediaModeChanged: "session.mediaModeChanged"
        case .subscriptionChanged: "session.subscriptionChanged"
        case .layersWanted: "session.layersWanted"
        case .speaking: "session.speaking"
        case .mediaAnswer: "media.answer"
        case .mediaClosed: "media.closed"
        case .presence(let news): news.type
        case .nearby(let news): news.type
        case .call(let news): news.type
        case .contact(let news): news.type
        }
    }

    init(type: String, members: JSONObject) throws(WireError) {
        switch type {
        case "welcome": self = .welcome(try Welcome(members: members))
        case "error": self = .error(try ErrorMessage(members: members))
        case "ack": self = .ack
        case "pong": self = .pong
        case "ok": self = .ok(try Answer(members: members))
        case "session.joined": self = .joined(try Joined(members: members))
        case "session.left": self = .left(try Left(members: members))
        case "session.connectionCreated": self = .connectionCreated(try ConnectionCreated(members: members))
        case "session.connectionDestroyed": self = .connectionDestroyed(try ConnectionDestroyed(members: members))
        case "session.connectionReconnecting": self = .connectionReconnecting(try OfConnection(members: members))
        case "session.connectionReconnected": self = .connectionReconnected(try OfConnection(members: members))
        case "session.published": self = .published(try Published(members: members))
        case "session.streamCreated": self = .streamCreated(try WithStream(members: members))
        case "session.streamDestroyed": self = .streamDestroyed(try StreamDestroyed(members: members))
        case "session.streamChanged": self = .streamChanged(try WithStream(members: members))
        case "session.subscribed": self = .subscribed(try Subscribed(members: members))
        case "session.unsubscribed": self = .unsubscribed(try Unsubscribed(members: members))
        case "session.negotiate": self = .negotiate(try Negotiation(members: members))
        case "session.signal": self = .signal(try SignalReceived(members: members))
        case "session.muted": self = .muted(try Muted(members: members))
        case "roulette.waiting": self = .waiting(try Waiting(members: members))
        case "roulette.matched": self = .matched(try Matched(members: members))
        case "roulette.partner": self = .partner(try PartnerState(members: members))
        case "roulette.ended": self = .ended(try Ended(members: members))
        case "roulette.count": self = .count(try Count(members: members))
        case "ice.servers": self = .iceServers(try ICEAnswer(members: members))
        case "session.mediaModeChanged": self = .mediaModeChanged(try MediaModeChanged(members: members))
        case "session.subscriptionChanged": self = .subscriptionChanged(try SubscriptionChanged(members: members))
        case "session.layersWanted": self = .layersWanted(try LayersWanted(members: members))
        case "session.speaking": self = .speaking(try Speaking(members: members))
        case "media.answer": self = .mediaAnswer(try MediaAnswer(members: members))
        case "media.closed": self = .mediaClosed(try MediaClosed(members: members))
        default: self = try Self.peopleNews(type, members)
        }
    }

    /// The events about people, each area in a file of its own.
    private static func peopleNews(_ type: String, _ members: JSONObject) throws(WireError) -> ServerMessage {
        if let news = try PresenceNews(type: type, members: members) { return .presence(news) }
        if let news = try NearbyNews(type: type, members: members) { return .nearby(news) }
        if let news = try CallNews(type: type, members: members) { return .call(news) }
        if let news = try ContactNews(type: type, members: members) { return .contact(news) }
        throw WireError(.unknownType, "This client does not know the message \"\(type.prefix(64))\".")
    }

    func write(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .ack, .pong: break
        case .welcome(var payload): try payload.fields(&coder)
        case .error(var payload): try payload.fields(&coder)
        case .ok(var payload): try payload.fields(&coder)
        case .joined(var payload): try payload.fields(&coder)
        case .left(var payload): try payload.fields(&coder)
        case .connectionCreated(var payload): try payload.fields(&coder)
        case .connectionDestroyed(var payload): try payload.fields(&coder)
        case .connectionReconnecting(var payload), .connectionReconnected(var payload): try payload.fields(&coder)
        case .published(var payload): try payload.fields(&coder)
        case .streamCreated(var payload), .streamChanged(var payload): try payload.fields(&coder)
        case .streamDestroyed(var payload): try payload.fields(&coder)
        case .subscribed(var payload): try payload.fields(&coder)
        case .unsubscribed(var payload): try payload.fields(&coder)
        case .negotiate(var payload): try payload.fields(&coder)
        case .signal(var payload): try payload.fields(&coder)
        case .muted(var payload): try payload.fields(&coder)
        case .waiting(var payload): try payload.fields(&coder)
        case .matched(var payload): try payload.fields(&coder)
        case .partner(var payload): try payload.fields(&coder)
        case .ended(var payload): try payload.fields(&coder)
        case .count(var payload): try payload.fields(&coder)
        case .iceServers(var payload): try payload.fields(&coder)
        case .mediaModeChanged(var payload): try payload.fields(&coder)
        case .subscriptionChanged(var payload): try payload.fields(&coder)
        case .layersWanted(var payload): try payload.fields(&coder)
        case .speaking(var payload): try payload.fields(&coder)
        case .mediaAnswer(var payload): try payload.fields(&coder)
        case .mediaClosed(var payload): try payload.fields(&coder)
        case .presence(let news): try news.write(&coder)
        case .nearby(let news): try news.write(&coder)
        case .call(let news): try news.write(&coder)
        case .contact(let news): try news.write(&coder)
        }
    }
}

public struct Answer: Payload {
    public var re: UInt64 = 0
    public init() {}
    public init(re: UInt64) { self.re = re }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.re(&re) }
}

public struct ErrorMessage: Payload {
    public var re: UInt64?
    public var error = WireError("", "")
    public init() {}
    public init(_ error: WireError, re: UInt64? = nil) { (self.error, self.re) = (error, re) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.integer("re", &re, in: 0...(1 << 53))
        try coder.string("code", &error.code.rawValue, max: Limits.name)
        try coder.string("message", &error.message, max: 4096)
        try coder.bool("retryable", &error.retryable)
        try coder.milliseconds("retryAfterMs", &error.retryAfter)
    }
}

public struct Welcome: Payload {
    public struct Resume: Payload {
        public var secret = ""
        public var grace: Duration = .zero
        public init() {}
        public init(secret: String, grace: Duration) { (self.secret, self.grace) = (secret, grace) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("secret", &secret, max: Limits.name)
            try coder.milliseconds("graceMs", &grace)
        }
    }

    public struct Bounds: Payload {
        public var message = Limits.message
        public var description = Limits.description
        public var interests = 0
        public var signal = Limits.signalData
        /// Without a stream for this long after a match, the page says so.
        public var streamTimeout: Duration?
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.integer("message", &message, in: 0...Int(Int32.max))
            try coder.integer("description", &description, in: 0...Int(Int32.max))
            try coder.integer("interests", &interests, in: 0...1000)
            try coder.integer("signal", &signal, in: 0...Int(Int32.max))
            try coder.milliseconds("streamTimeoutMs", &streamTimeout)
        }
    }

    /// That this server routes media.
    public struct Media: Payload {
        /// What the sessions of matches will be, so that a page can open its connections during the preview.
        public var roulette = MediaMode.relayed
        public init() {}
        public init(roulette: MediaMode) { self.roulette = roulette }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.choice("roulette", &roulette)
        }
    }

    /// That this server can wake browsers (RFC 8292).
    public struct Push: Payload {
        /// Its public key, as `PushManager.subscribe` takes it: 65 bytes in base64url.
        public var vapidKey = ""
        public init() {}
        public init(vapidKey: String) { self.vapidKey = vapidKey }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("vapidKey", &vapidKey, max: Limits.name)
        }
    }

    public var version = 1
    public var server = ""
    public var connection = ConnectionID(high: 0, low: 0)
    public var identity: String?
    public var resumed = false
    public var received: UInt64 = 0
    public var resume = Resume()
    public var ping: Duration = .seconds(10)
    public var ice = ICEConfiguration()
    public var media: Media?
    public var push: Push?
    public var limits = Bounds()
    public var state = Snapshot()

    public init() {}

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.integer("version", &version, in: 0...1000)
        try coder.string("server", &server, max: Limits.name)
        try coder.id("connectionId", &connection)
        try coder.string("identity", &identity, max: Limits.name)
        try coder.bool("resumed", &resumed)
        try coder.integer("received", &received, in: 0...(1 << 53))
        try coder.nested("resume", &resume)
        try coder.milliseconds("pingMs", &ping)
        try coder.nested("ice", &ice)
        try coder.nested("media", &media)
        try coder.nested("push", &push)
        try coder.nested("limits", &limits)
        try coder.nested("state", &state)
    }
}

/// What the server believes about a client, whole.
public struct Snapshot: Payload {
    public enum RouletteState: String, Hashable, Sendable { case idle, waiting, matched }
    public struct Roulette: Payload {
        public var state = RouletteState.idle
        public var match: MatchID?
        public init() {}
        public init(state: RouletteState, match: MatchID? = nil) { (self.state, self.match) = (state, match) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.choice("state", &state)
            try coder.id("matchId", &match)
        }
    }

    public enum CallState: String, Hashable, Sendable { case ringing, active }
    /// The call that this device holds.
    public struct Call: Payload {
        public var id = CallID(high: 0, low: 0)
        public var state = CallState.ringing
        public init() {}
        public init(id: CallID, state: CallState) { (self.id, self.state) = (id, state) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.id("callId", &id)
            try coder.choice("state", &state)
        }
    }

    public var sessions: [String]? = []
    public var roulette = Roulette()
    public var call: Call?

    public init() {}
    public init(sessions: [SessionID], roulette: Roulette, call: Call? = nil) {
        self.sessions = sessions.map(\.text)
        self.roulette = roulette
        self.call = call
    }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.strings("sessions", &sessions, max: Limits.sessionID)
        try coder.nested("roulette", &roulette)
        try coder.nested("call", &call)
    }
}

extension FieldCoder {
    mutating func re(_ value: inout UInt64) throws(WireError) { try integer("re", &value, in: 0...(1 << 53)) }
    mutating func re(_ value: inout UInt64?) throws(WireError) { try integer("re", &value, in: 0...(1 << 53)) }
}
