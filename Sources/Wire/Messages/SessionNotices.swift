/// What a client is told about its sessions (`protocol/README.md` §5 and §8).
public enum SessionNotice: Equatable, Sendable, MessageSet {
    case joined(Joined)
    case left(Left)
    case connectionCreated(ConnectionCreated)
    case connectionDestroyed(ConnectionDestroyed)
    case connectionReconnecting(ConnectionReference)
    case connectionReconnected(ConnectionReference)
    case published(Published)
    case streamCreated(StreamState)
    case streamDestroyed(StreamDestroyed)
    case streamChanged(StreamState)
    case subscribed(Subscribed)
    case unsubscribed(Unsubscribed)
    case negotiate(Negotiate)
    case signal(Signal)
    case muted(Muted)
    case mediaModeChanged(MediaModeChanged)
    case subscriptionChanged(SubscriptionChanged)
    case layersWanted(LayersWanted)
    case speaking(Speaking)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .joined(let payload): try visitor.message("session.joined", payload)
        case .left(let payload): try visitor.message("session.left", payload)
        case .connectionCreated(let payload): try visitor.message("session.connectionCreated", payload)
        case .connectionDestroyed(let payload): try visitor.message("session.connectionDestroyed", payload)
        case .connectionReconnecting(let payload): try visitor.message("session.connectionReconnecting", payload)
        case .connectionReconnected(let payload): try visitor.message("session.connectionReconnected", payload)
        case .published(let payload): try visitor.message("session.published", payload)
        case .streamCreated(let payload): try visitor.message("session.streamCreated", payload)
        case .streamDestroyed(let payload): try visitor.message("session.streamDestroyed", payload)
        case .streamChanged(let payload): try visitor.message("session.streamChanged", payload)
        case .subscribed(let payload): try visitor.message("session.subscribed", payload)
        case .unsubscribed(let payload): try visitor.message("session.unsubscribed", payload)
        case .negotiate(let payload): try visitor.message("session.negotiate", payload)
        case .signal(let payload): try visitor.message("session.signal", payload)
        case .muted(let payload): try visitor.message("session.muted", payload)
        case .mediaModeChanged(let payload): try visitor.message("session.mediaModeChanged", payload)
        case .subscriptionChanged(let payload): try visitor.message("session.subscriptionChanged", payload)
        case .layersWanted(let payload): try visitor.message("session.layersWanted", payload)
        case .speaking(let payload): try visitor.message("session.speaking", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("session.joined", Self.joined),
        .init("session.left", Self.left),
        .init("session.connectionCreated", Self.connectionCreated),
        .init("session.connectionDestroyed", Self.connectionDestroyed),
        .init("session.connectionReconnecting", Self.connectionReconnecting),
        .init("session.connectionReconnected", Self.connectionReconnected),
        .init("session.published", Self.published),
        .init("session.streamCreated", Self.streamCreated),
        .init("session.streamDestroyed", Self.streamDestroyed),
        .init("session.streamChanged", Self.streamChanged),
        .init("session.subscribed", Self.subscribed),
        .init("session.unsubscribed", Self.unsubscribed),
        .init("session.negotiate", Self.negotiate),
        .init("session.signal", Self.signal),
        .init("session.muted", Self.muted),
        .init("session.mediaModeChanged", Self.mediaModeChanged),
        .init("session.subscriptionChanged", Self.subscriptionChanged),
        .init("session.layersWanted", Self.layersWanted),
        .init("session.speaking", Self.speaking),
    ]
}

extension SessionNotice {
    public struct Joined: AnswerPayload {
        public var re: UInt64 = 0
        public var session = SessionID.unset
        public var connection = ConnectionInfo()
        public var mediaMode = MediaMode.relayed
        public var capabilities = Capabilities()
        public var connections: [ConnectionInfo] = []
        public var streams: [StreamInfo] = []
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
        public var connection = ConnectionInfo()
        public init() {}
        public init(session: SessionID, connection: ConnectionInfo) {
            (self.session, self.connection) = (session, connection)
        }
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

    public struct ConnectionReference: Payload {
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

    public struct Published: AnswerPayload {
        public var re: UInt64 = 0
        public var session = SessionID.unset
        public var stream = StreamInfo()
        public init() {}
        public init(re: UInt64, session: SessionID, stream: StreamInfo) {
            (self.re, self.session, self.stream) = (re, session, stream)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.re(&re)
            try coder.session(&session)
            try coder.nested("stream", &stream)
        }
    }

    public struct StreamState: Payload {
        public var session = SessionID.unset
        public var stream = StreamInfo()
        public init() {}
        public init(session: SessionID, stream: StreamInfo) { (self.session, self.stream) = (session, stream) }
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

    public struct Negotiate: Payload {
        public var session = SessionID.unset
        public var from = ConnectionID(high: 0, low: 0)
        public var description: SessionDescription?
        public var candidate: JSONValue?
        public var streams: JSONValue?
        public init() {}
        public init(session: SessionID, from: ConnectionID, _ negotiate: SessionVerb.Negotiate) {
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

    public struct Signal: Payload {
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

    public struct MediaModeChanged: Payload {
        public var session = SessionID.unset
        public var mediaMode = MediaMode.routed
        public init() {}
        public init(session: SessionID, mediaMode: MediaMode) { (self.session, self.mediaMode) = (session, mediaMode) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.choice("mediaMode", &mediaMode)
        }
    }

    /// To a subscriber: his video was paused, or goes on.
    public struct SubscriptionChanged: Payload {
        public var session = SessionID.unset
        public var stream = StreamID(high: 0, low: 0)
        public var videoPaused = true
        /// Of the pause that began or ended.
        public var reason = PauseReason.slow
        public init() {}
        public init(session: SessionID, stream: StreamID, videoPaused: Bool, reason: PauseReason) {
            (self.session, self.stream, self.videoPaused, self.reason) = (session, stream, videoPaused, reason)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("streamId", &stream)
            try coder.bool("videoPaused", &videoPaused)
            try coder.choice("reason", &reason)
        }
    }

    /// To a publisher: which of a stream's simulcast layers anybody wants. The others need not be made.
    public struct LayersWanted: Payload {
        public var session = SessionID.unset
        public var stream = StreamID(high: 0, low: 0)
        /// In the order of his description; none while nobody watches.
        public var rids: [String]? = []
        public init() {}
        public init(session: SessionID, stream: StreamID, rids: [String]) {
            (self.session, self.stream, self.rids) = (session, stream, rids)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("streamId", &stream)
            try coder.strings("rids", &rids, max: Limits.name)
        }
    }

    /// Who speaks now; nobody without a stream.
    public struct Speaking: Payload {
        public var session = SessionID.unset
        public var stream: StreamID?
        public init() {}
        public init(session: SessionID, stream: StreamID?) { (self.session, self.stream) = (session, stream) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("streamId", &stream)
        }
    }
}

/// Why somebody or something is gone; OpenTok's words, and ours for a match.
public enum GoneReason: String, Hashable, Sendable {
    case clientDisconnected, networkDisconnected, forceDisconnected
    case clientUnpublished, forceUnpublished
    case matchEnded
}

/// Why a subscriber gets no video of a stream that has some.
public enum PauseReason: String, Hashable, Sendable, CaseIterable {
    /// The subscriber's connection cannot keep up.
    case slow
    /// The subscriber cannot decode it.
    case codec
}
