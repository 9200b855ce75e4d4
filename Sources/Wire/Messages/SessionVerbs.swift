/// What a client asks about a session that it joins or has joined (`protocol/README.md` §5 and §8).
public enum SessionVerb: Equatable, Sendable, MessageSet {
    case join(Join)
    case leave(Leave)
    case publish(Publish)
    case unpublish(StreamReference)
    case update(Update)
    case subscribe(Subscribe)
    case unsubscribe(StreamReference)
    case negotiate(Negotiate)
    case signal(Signal)
    case forceDisconnect(ForceDisconnect)
    case forceUnpublish(StreamReference)
    case forceMute(ForceMute)
    case connected(Connected)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .join(let payload): try visitor.message("session.join", payload)
        case .leave(let payload): try visitor.message("session.leave", payload)
        case .publish(let payload): try visitor.message("session.publish", payload)
        case .unpublish(let payload): try visitor.message("session.unpublish", payload)
        case .update(let payload): try visitor.message("session.update", payload)
        case .subscribe(let payload): try visitor.message("session.subscribe", payload)
        case .unsubscribe(let payload): try visitor.message("session.unsubscribe", payload)
        case .negotiate(let payload): try visitor.message("session.negotiate", payload)
        case .signal(let payload): try visitor.message("session.signal", payload)
        case .forceDisconnect(let payload): try visitor.message("session.forceDisconnect", payload)
        case .forceUnpublish(let payload): try visitor.message("session.forceUnpublish", payload)
        case .forceMute(let payload): try visitor.message("session.forceMute", payload)
        case .connected(let payload): try visitor.message("session.connected", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("session.join", Self.join),
        .init("session.leave", Self.leave),
        .init("session.publish", Self.publish),
        .init("session.unpublish", Self.unpublish),
        .init("session.update", Self.update),
        .init("session.subscribe", Self.subscribe),
        .init("session.unsubscribe", Self.unsubscribe),
        .init("session.negotiate", Self.negotiate),
        .init("session.signal", Self.signal),
        .init("session.forceDisconnect", Self.forceDisconnect),
        .init("session.forceUnpublish", Self.forceUnpublish),
        .init("session.forceMute", Self.forceMute),
        .init("session.connected", Self.connected),
    ]
}

extension SessionVerb {
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

    public struct Leave: Payload {
        public var session = SessionID.unset
        public init() {}
        public init(session: SessionID) { self.session = session }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.session(&session) }
    }

    public struct StreamReference: Payload {
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

    /// Of a relayed pair: whether its media arrives.
    public struct Connected: Payload {
        public var session = SessionID.unset
        public var connection = ConnectionID(high: 0, low: 0)
        public var connected = true
        public init() {}
        public init(session: SessionID, connection: ConnectionID, connected: Bool) {
            (self.session, self.connection, self.connected) = (session, connection, connected)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("connectionId", &connection)
            try coder.bool("connected", &connected)
        }
    }
}

extension SessionVerb {
    /// The session that the verb is about.
    public var session: SessionID {
        switch self {
        case .join(let verb): verb.session
        case .leave(let verb): verb.session
        case .publish(let verb): verb.session
        case .unpublish(let verb), .unsubscribe(let verb), .forceUnpublish(let verb): verb.session
        case .update(let verb): verb.session
        case .subscribe(let verb): verb.session
        case .negotiate(let verb): verb.session
        case .signal(let verb): verb.session
        case .forceDisconnect(let verb): verb.session
        case .forceMute(let verb): verb.session
        case .connected(let verb): verb.session
        }
    }
}

extension SessionVerb.Negotiate {
    /// About how many bytes it takes to pass on.
    public var size: Int {
        (description?.sdp.utf8.count ?? 0) + (candidate?.size ?? 0) + (streams?.size ?? 0)
    }
}
