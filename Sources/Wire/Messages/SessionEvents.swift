// What happens in a session, as told to its connections.

public struct Joined: Payload {
    public var re: UInt64 = 0
    public var session = SessionID.unset
    public var connection = Connection()
    public var mediaMode = MediaMode.relayed
    public var capabilities = Capabilities()
    public var connections: [Connection] = []
    public var streams: [Stream] = []
    public var muted = false
    public init() {}
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.re(&re)
        try coder.session(&session)
        var own = connection.id
        try coder.id("connectionId", &own)
        try coder.nested("connection", &connection)
        try coder.choice("mediaMode", &mediaMode)
        try coder.nested("capabilities", &capabilities)
        try coder.list("connections", &connections)
        try coder.list("streams", &streams)
        try coder.bool("muted", &muted)
    }
}

/// Why somebody or something is gone; OpenTok's words, and ours for a match.
public enum GoneReason: String, Hashable, Sendable {
    case clientDisconnected, networkDisconnected, forceDisconnected
    case clientUnpublished, forceUnpublished
    case matchEnded
}

public struct Left: Payload {
    public var session = SessionID.unset
    public var reason = GoneReason.forceDisconnected
    public init() {}
    public init(session: SessionID, reason: GoneReason) { (self.session, self.reason) = (session, reason) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.choice("reason", &reason)
    }
}

public struct ConnectionCreated: Payload {
    public var session = SessionID.unset
    public var connection = Connection()
    public init() {}
    public init(session: SessionID, connection: Connection) { (self.session, self.connection) = (session, connection) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.nested("connection", &connection)
    }
}

public struct ConnectionDestroyed: Payload {
    public var session = SessionID.unset
    public var connection = ConnectionID(high: 0, low: 0)
    public var reason = GoneReason.clientDisconnected
    public init() {}
    public init(session: SessionID, connection: ConnectionID, reason: GoneReason) {
        (self.session, self.connection, self.reason) = (session, connection, reason)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("connectionId", &connection)
        try coder.choice("reason", &reason)
    }
}

public struct OfConnection: Payload {
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

public struct Published: Payload {
    public var re: UInt64 = 0
    public var session = SessionID.unset
    public var stream = Stream()
    public init() {}
    public init(re: UInt64, session: SessionID, stream: Stream) {
        (self.re, self.session, self.stream) = (re, session, stream)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.re(&re)
        try coder.session(&session)
        try coder.nested("stream", &stream)
    }
}

public struct WithStream: Payload {
    public var session = SessionID.unset
    public var stream = Stream()
    public init() {}
    public init(session: SessionID, stream: Stream) { (self.session, self.stream) = (session, stream) }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.nested("stream", &stream)
    }
}

public struct StreamDestroyed: Payload {
    public var session = SessionID.unset
    public var stream = StreamID(high: 0, low: 0)
    public var reason = GoneReason.clientUnpublished
    public init() {}
    public init(session: SessionID, stream: StreamID, reason: GoneReason) {
        (self.session, self.stream, self.reason) = (session, stream, reason)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("streamId", &stream)
        try coder.choice("reason", &reason)
    }
}

/// To a publisher: somebody wants this stream, or wants it otherwise than before.
public struct Subscribed: Payload {
    public var session = SessionID.unset
    public var stream = StreamID(high: 0, low: 0)
    public var connection = ConnectionID(high: 0, low: 0)
    public var audio = true
    public var video = true
    public init() {}
    public init(session: SessionID, stream: StreamID, connection: ConnectionID, audio: Bool, video: Bool) {
        (self.session, self.stream, self.connection) = (session, stream, connection)
        (self.audio, self.video) = (audio, video)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("streamId", &stream)
        try coder.id("connectionId", &connection)
        try coder.bool("audio", &audio)
        try coder.bool("video", &video)
    }
}

public struct Unsubscribed: Payload {
    public var session = SessionID.unset
    public var stream = StreamID(high: 0, low: 0)
    public var connection = ConnectionID(high: 0, low: 0)
    public init() {}
    public init(session: SessionID, stream: StreamID, connection: ConnectionID) {
        (self.session, self.stream, self.connection) = (session, stream, connection)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("streamId", &stream)
        try coder.id("connectionId", &connection)
    }
}

public struct Negotiation: Payload {
    public var session = SessionID.unset
    public var from = ConnectionID(high: 0, low: 0)
    public var description: SessionDescription?
    public var candidate: JSONValue?
    public var streams: JSONValue?
    public init() {}
    public init(session: SessionID, from: ConnectionID, _ negotiate: Negotiate) {
        (self.session, self.from) = (session, from)
        (description, candidate, streams) = (negotiate.description, negotiate.candidate, negotiate.streams)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("from", &from)
        try coder.nested("description", &description)
        try coder.json("candidate", &candidate)
        try coder.json("streams", &streams)
    }
}

public struct SignalReceived: Payload {
    public var session = SessionID.unset
    public var from: ConnectionID?
    public var type: String?
    public var data: String?
    public init() {}
    public init(session: SessionID, from: ConnectionID?, type: String?, data: String?) {
        (self.session, self.from, self.type, self.data) = (session, from, type, data)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.id("from", &from)
        try coder.string("signalType", &type, max: Limits.signalType)
        try coder.string("data", &data, max: Limits.signalData)
    }
}

public struct Muted: Payload {
    public var session = SessionID.unset
    public var active = true
    public var stream: StreamID?
    public init() {}
    public init(session: SessionID, active: Bool, stream: StreamID? = nil) {
        (self.session, self.active, self.stream) = (session, active, stream)
    }
    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.bool("active", &active)
        try coder.id("streamId", &stream)
    }
}
