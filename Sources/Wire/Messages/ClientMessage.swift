/// Everything a client says. One case a verb; `protocol/README.md` has the tables.
public enum ClientMessage: Equatable, Sendable {
    case hello(Hello)
    case ack
    case ping
    case bye
    case join(Join)
    case leave(InSession)
    case publish(Publish)
    case unpublish(OfStream)
    case update(Update)
    case subscribe(Subscribe)
    case unsubscribe(OfStream)
    case negotiate(Negotiate)
    case signal(Signal)
    case forceDisconnect(ForceDisconnect)
    case forceUnpublish(OfStream)
    case forceMute(ForceMute)
    case start(Start)
    case next(OfMatch)
    case stop
    case report(ReportMatch)
    case block(OfMatch)
    case count
    case iceServers
    case connected(PairConnected)
    case mediaOffer(MediaOffer)
    case mediaClose(OfSide)
    case presence(PresenceVerb)
    case nearby(NearbyVerb)
    case call(CallVerb)
    case contact(ContactVerb)
    case push(PushVerb)

    /// The verb's name on the wire.
    public var type: String {
        switch self {
        case .hello: "hello"
        case .ack: "ack"
        case .ping: "ping"
        case .bye: "bye"
        case .join: "session.join"
        case .leave: "session.leave"
        case .publish: "session.publish"
        case .unpublish: "session.unpublish"
        case .update: "session.update"
        case .subscribe: "session.subscribe"
        case .unsubscribe: "session.unsubscribe"
        case .negotiate: "session.negotiate"
        case .signal: "session.signal"
        case .forceDisconnect: "session.forceDisconnect"
        case .forceUnpublish: "session.forceUnpublish"
        case .forceMute: "session.forceMute"
        case .start: "roulette.start"
        case .next: "roulette.next"
        case .stop: "roulette.stop"
        case .report: "roulette.report"
        case .block: "roulette.block"
        case .count: "roulette.count"
        case .iceServers: "ice.servers"
        case .connected: "session.connected"
        case .mediaOffer: "media.offer"
        case .mediaClose: "media.close"
        case .presence(let verb): verb.type
        case .nearby(let verb): verb.type
        case .call(let verb): verb.type
        case .contact(let verb): verb.type
        case .push(let verb): verb.type
        }
    }

    init(type: String, members: JSONObject) throws(WireError) {
        switch type {
        case "hello": self = .hello(try Hello(members: members))
        case "ack": self = .ack
        case "ping": self = .ping
        case "bye": self = .bye
        case "session.join": self = .join(try Join(members: members))
        case "session.leave": self = .leave(try InSession(members: members))
        case "session.publish": self = .publish(try Publish(members: members))
        case "session.unpublish": self = .unpublish(try OfStream(members: members))
        case "session.update": self = .update(try Update(members: members))
        case "session.subscribe": self = .subscribe(try Subscribe(members: members))
        case "session.unsubscribe": self = .unsubscribe(try OfStream(members: members))
        case "session.negotiate": self = .negotiate(try Negotiate(members: members))
        case "session.signal": self = .signal(try Signal(members: members))
        case "session.forceDisconnect": self = .forceDisconnect(try ForceDisconnect(members: members))
        case "session.forceUnpublish": self = .forceUnpublish(try OfStream(members: members))
        case "session.forceMute": self = .forceMute(try ForceMute(members: members))
        case "roulette.start": self = .start(try Start(members: members))
        case "roulette.next": self = .next(try OfMatch(members: members))
        case "roulette.stop": self = .stop
        case "roulette.report": self = .report(try ReportMatch(members: members))
        case "roulette.block": self = .block(try OfMatch(members: members))
        case "roulette.count": self = .count
        case "ice.servers": self = .iceServers
        case "session.connected": self = .connected(try PairConnected(members: members))
        case "media.offer": self = .mediaOffer(try MediaOffer(members: members))
        case "media.close": self = .mediaClose(try OfSide(members: members))
        default: self = try Self.peopleVerb(type, members)
        }
    }

    /// The verbs about people, each area in a file of its own.
    private static func peopleVerb(_ type: String, _ members: JSONObject) throws(WireError) -> ClientMessage {
        if let verb = try PresenceVerb(type: type, members: members) { return .presence(verb) }
        if let verb = try NearbyVerb(type: type, members: members) { return .nearby(verb) }
        if let verb = try CallVerb(type: type, members: members) { return .call(verb) }
        if let verb = try ContactVerb(type: type, members: members) { return .contact(verb) }
        if let verb = try PushVerb(type: type, members: members) { return .push(verb) }
        throw WireError(.unknownType, "This server does not know the message \"\(type.prefix(64))\".")
    }

    func write(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .ack, .ping, .bye, .stop, .count, .iceServers: break
        case .hello(var payload): try payload.fields(&coder)
        case .join(var payload): try payload.fields(&coder)
        case .leave(var payload): try payload.fields(&coder)
        case .publish(var payload): try payload.fields(&coder)
        case .unpublish(var payload), .unsubscribe(var payload), .forceUnpublish(var payload):
            try payload.fields(&coder)
        case .update(var payload): try payload.fields(&coder)
        case .subscribe(var payload): try payload.fields(&coder)
        case .negotiate(var payload): try payload.fields(&coder)
        case .signal(var payload): try payload.fields(&coder)
        case .forceDisconnect(var payload): try payload.fields(&coder)
        case .forceMute(var payload): try payload.fields(&coder)
        case .start(var payload): try payload.fields(&coder)
        case .report(var payload): try payload.fields(&coder)
        case .next(var payload), .block(var payload): try payload.fields(&coder)
        case .connected(var payload): try payload.fields(&coder)
        case .mediaOffer(var payload): try payload.fields(&coder)
        case .mediaClose(var payload): try payload.fields(&coder)
        case .presence(let verb): try verb.write(&coder)
        case .nearby(let verb): try verb.write(&coder)
        case .call(let verb): try verb.write(&coder)
        case .contact(let verb): try verb.write(&coder)
        case .push(let verb): try verb.write(&coder)
        }
    }

    /// Whether this message is outside the numbering (protocol §1).
    public var isUnnumbered: Bool {
        switch self {
        case .hello, .ack, .ping, .bye: true
        default: false
        }
    }
}

public struct Hello: Payload {
    public struct Resume: Payload {
        public var secret = ""
        public var received: UInt64 = 0
        public init() {}
        public init(secret: String, received: UInt64) { (self.secret, self.received) = (secret, received) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.string("secret", &secret, max: Limits.name)
            try coder.integer("received", &received, in: 0...(1 << 53))
        }
    }

    public var version = 1
    public var identity: String?
    public var token: String?
    public var name: String?
    public var resume: Resume?
    public var client: String?

    public init() {}

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.integer("version", &version, in: 0...Int(Int32.max))
        // Tokens are judged by whoever verifies them; here only a bound.
        try coder.string("identity", &identity, max: Limits.message)
        try coder.string("token", &token, max: Limits.message)
        try coder.string("name", &name, max: Limits.name)
        try coder.nested("resume", &resume)
        try coder.string("client", &client, max: Limits.name)
    }
}

public struct Join: Payload {
    public var session = SessionID.unset
    public var token = ""
    public init() {}
    public init(session: SessionID, token: String) { (self.session, self.token) = (session, token) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.string("token", &token, max: Limits.message)
    }
}

public struct InSession: Payload {
    public var session = SessionID.unset
    public init() {}
    public init(session: SessionID) { self.session = session }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.session(&session) }
}

public struct OfStream: Payload {
    public var session = SessionID.unset
    public var stream = StreamID(high: 0, low: 0)
    public init() {}
    public init(session: SessionID, stream: StreamID) { (self.session, self.stream) = (session, stream) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("streamId", &stream)
    }
}

public struct Publish: Payload {
    public var session = SessionID.unset
    public var name: String?
    public var hasAudio = true
    public var hasVideo = true
    public var videoType: VideoType?
    public var width: Int?
    public var height: Int?
    public var mids = MediaMids()
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.string("name", &name, max: Limits.name)
        try coder.bool("hasAudio", &hasAudio)
        try coder.bool("hasVideo", &hasVideo)
        try coder.choice("videoType", &videoType)
        try coder.integer("width", &width, in: 0...16384)
        try coder.integer("height", &height, in: 0...16384)
        try coder.mids(&mids)
    }
}

public struct Update: Payload {
    public var session = SessionID.unset
    public var stream = StreamID(high: 0, low: 0)
    public var hasAudio: Bool?
    public var hasVideo: Bool?
    public var width: Int?
    public var height: Int?
    /// Those left out stay as they are.
    public var mids = MediaMids()
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("streamId", &stream)
        try coder.bool("hasAudio", &hasAudio)
        try coder.bool("hasVideo", &hasVideo)
        try coder.integer("width", &width, in: 0...16384)
        try coder.integer("height", &height, in: 0...16384)
        try coder.mids(&mids)
    }
}

public struct Subscribe: Payload {
    public var session = SessionID.unset
    public var stream = StreamID(high: 0, low: 0)
    public var audio = true
    public var video = true
    public var mids = MediaMids()
    public var preference = VideoPreference()
    public init() {}
    public init(
        session: SessionID, stream: StreamID, audio: Bool = true, video: Bool = true, mids: MediaMids = MediaMids(),
        preference: VideoPreference = VideoPreference()
    ) {
        (self.session, self.stream, self.audio, self.video) = (session, stream, audio, video)
        (self.mids, self.preference) = (mids, preference)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("streamId", &stream)
        try coder.bool("audio", &audio)
        try coder.bool("video", &video)
        try coder.mids(&mids)
        try coder.preference(&preference)
    }
}

public struct Negotiate: Payload {
    public var session = SessionID.unset
    public var to = ConnectionID(high: 0, low: 0)
    public var description: SessionDescription?
    public var candidate: JSONValue?
    /// Which `MediaStream` id in the description is which stream.
    public var streams: JSONValue?
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("to", &to)
        try coder.nested("description", &description)
        try coder.json("candidate", &candidate)
        try coder.json("streams", &streams)
        if coder.isReading, (description == nil) == (candidate == nil) {
            throw WireError(.malformed, "Negotiate with a description or with a candidate, one of the two.")
        }
    }
}

extension Negotiate {
    /// About how many bytes it takes to pass on.
    public var size: Int {
        (description?.sdp.utf8.count ?? 0) + (candidate?.size ?? 0) + (streams?.size ?? 0)
    }
}

public struct Signal: Payload {
    public var session = SessionID.unset
    public var type: String?
    public var data: String?
    public var to: ConnectionID?
    public init() {}
    public init(session: SessionID, type: String?, data: String?, to: ConnectionID? = nil) {
        (self.session, self.type, self.data, self.to) = (session, type, data, to)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        // The session judges type and data, with codes of their own.
        try coder.string("signalType", &type, max: Limits.message)
        try coder.string("data", &data, max: Limits.message)
        try coder.id("to", &to)
    }
}

public struct ForceDisconnect: Payload {
    public var session = SessionID.unset
    public var connection = ConnectionID(high: 0, low: 0)
    public init() {}
    public init(session: SessionID, connection: ConnectionID) {
        (self.session, self.connection) = (session, connection)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("connectionId", &connection)
    }
}

public struct ForceMute: Payload {
    public var session = SessionID.unset
    public var active = true
    public var stream: StreamID?
    public var excluded: [StreamID]?
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.bool("active", &active)
        try coder.id("streamId", &stream)
        try coder.ids("excluded", &excluded)
    }
}

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

public struct ReportMatch: Payload {
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
public struct OfMatch: Payload {
    public var match: MatchID?
    public init() {}
    public init(match: MatchID?) { self.match = match }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.id("matchId", &match) }
}
