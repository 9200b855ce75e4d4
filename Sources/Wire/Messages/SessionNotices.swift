/// A server's message about a session (`protocol/README.md` §4 and §8).
public enum SessionNotice: Equatable, Sendable, MessageSet {
    /// Answers `session.join`.
    case joined(Joined)
    /// The next page of the session's connections and streams. The first page is in `joined`.
    case roster(Roster)
    /// The client was removed from the session.
    case left(Left)
    /// Another client joined.
    case connectionCreated(ConnectionCreated)
    /// Another client left the session.
    case connectionDestroyed(ConnectionDestroyed)
    /// Another client's connection dropped. It may be resumed.
    case connectionReconnecting(ConnectionReference)
    /// A client whose connection had dropped has reconnected.
    case connectionReconnected(ConnectionReference)
    /// Answers `session.publish`.
    case published(Published)
    /// Another client published a stream.
    case streamCreated(StreamState)
    /// A stream ended. The stream's publisher receives this only if a moderator ended the stream.
    case streamDestroyed(StreamDestroyed)
    /// The properties of a stream changed. The stream's publisher receives this as well.
    case streamChanged(StreamState)
    /// Notifies the publisher that a client subscribed to the stream or changed its subscription.
    case subscribed(Subscribed)
    /// Notifies the publisher that a client no longer subscribes to the stream.
    case unsubscribed(Unsubscribed)
    /// Another client sent a session description or an ICE candidate. Sent only in relayed sessions.
    case negotiate(Negotiate)
    /// A client sent a signal. If the signal is for everyone, the sender receives it as well.
    case signal(Signal)
    /// A moderator muted streams, or ended the muting.
    case muted(Muted)
    /// A relayed session became a routed one. Streams keep their ids. Clients must now send `update` for their streams and
    /// `subscribe` for their subscriptions, both with mids.
    case mediaModeChanged(MediaModeChanged)
    /// Notifies a subscriber in a routed session that the server pauses or resumes video, or forwards another layer.
    case subscriptionChanged(SubscriptionChanged)
    /// Notifies a stream's publisher and subscribers in a routed session how well the server receives the stream.
    case streamQuality(StreamQuality)
    /// Notifies the publisher in a routed session which layers and which codec of its video subscribers need.
    case layersWanted(LayersWanted)
    /// Notifies the members of a routed session who is speaking.
    case speaking(Speaking)
    /// A recording of the session is about to begin.
    case archiveStarted(ArchiveStarted)
    /// The session is no longer recorded into this archive.
    case archiveStopped(ArchiveStopped)
    /// The session is about to be broadcast live.
    case broadcastStarted(BroadcastStarted)
    /// A broadcast of the session has ended.
    case broadcastStopped(BroadcastStopped)

    func visit(_ visitor: inout some MessageVisitor) throws(WireError) {
        switch self {
        case .joined(let payload): try visitor.message("session.joined", payload)
        case .roster(let payload): try visitor.message("session.roster", payload)
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
        case .streamQuality(let payload): try visitor.message("session.streamQuality", payload)
        case .layersWanted(let payload): try visitor.message("session.layersWanted", payload)
        case .speaking(let payload): try visitor.message("session.speaking", payload)
        case .archiveStarted(let payload): try visitor.message("session.archiveStarted", payload)
        case .archiveStopped(let payload): try visitor.message("session.archiveStopped", payload)
        case .broadcastStarted(let payload): try visitor.message("session.broadcastStarted", payload)
        case .broadcastStopped(let payload): try visitor.message("session.broadcastStopped", payload)
        }
    }

    static let readers: [MessageReader<Self>] = [
        .init("session.joined", Self.joined),
        .init("session.roster", Self.roster),
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
        .init("session.streamQuality", Self.streamQuality),
        .init("session.layersWanted", Self.layersWanted),
        .init("session.speaking", Self.speaking),
        .init("session.archiveStarted", Self.archiveStarted),
        .init("session.archiveStopped", Self.archiveStopped),
        .init("session.broadcastStarted", Self.broadcastStarted),
        .init("session.broadcastStopped", Self.broadcastStopped),
    ]
}

extension SessionNotice {
    /// The state of a session at the time when the client joined.
    public struct Joined: AnswerPayload {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// The id of the session that the client joined.
        public var session = SessionID.unset
        /// The client's own connection. In JSON, the id of the connection is also the member `connectionId`.
        public var connection = ConnectionInfo()
        /// Whether the session's media is relayed or routed.
        public var mediaMode = MediaMode.relayed
        /// The client's permissions. They depend on the token's role or, in a room's session, on the person's role in
        /// the room.
        public var capabilities = Capabilities()
        /// The other connections in the session, in the order of joining: all of them, or the first page.
        public var connections: [ConnectionInfo] = []
        /// The streams of these connections.
        public var streams: [StreamInfo] = []
        /// True if pages with more connections follow, as ``Roster``; otherwise nil.
        public var more: Bool?
        /// Whether a moderator has muted everyone, including streams published later.
        public var muted = false
        /// The archives into which the session is recorded now; nil if there are none.
        public var archives: [ArchiveInfo]?
        /// The broadcasts of the session now; nil if there are none.
        public var broadcasts: [BroadcastInfo]?
        /// How moderators may record the session: composed, or individually if the server cannot compose. Nil if they may
        /// not record it. It does not depend on the client's role, which can change in a room.
        public var moderatorArchives: ArchiveOutput?
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
            try coder.bool("more", &more)
            try coder.bool("muted", &muted)
            try coder.list("archives", &archives)
            try coder.list("broadcasts", &broadcasts)
            try coder.choice("moderatorArchives", &moderatorArchives)
        }
    }

    /// The session from which the client was removed, and the reason.
    public struct Left: Payload {
        /// The id of the session that the client is no longer in.
        public var session = SessionID.unset
        /// Why the client was removed: `forceDisconnected` or `matchEnded`.
        public var reason = GoneReason.forceDisconnected
        public init() {}
        public init(session: SessionID, reason: GoneReason) { (self.session, self.reason) = (session, reason) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.choice("reason", &reason)
        }
    }

    /// A connection that joined.
    public struct ConnectionCreated: Payload {
        /// The id of the session that the connection joined.
        public var session = SessionID.unset
        /// The new connection.
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

    /// A connection that left a session.
    public struct ConnectionDestroyed: Payload {
        /// The id of the session that the connection was in.
        public var session = SessionID.unset
        /// The id of the connection that left.
        public var connection = ConnectionID(high: 0, low: 0)
        /// Why the connection left: `clientDisconnected`, `networkDisconnected` or `forceDisconnected`.
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

    /// A connection in a session that dropped or reconnected.
    public struct ConnectionReference: Payload {
        /// The id of the session that both clients are in.
        public var session = SessionID.unset
        /// The id of the connection that dropped or reconnected.
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

    /// The stream that the client now publishes.
    public struct Published: AnswerPayload {
        /// The `seq` of the request that this message answers.
        public var re: UInt64 = 0
        /// The id of the session that the stream is in.
        public var session = SessionID.unset
        /// The stream with its new id. In a routed session in which everyone is muted, the stream has no audio.
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

    /// A stream with all its properties.
    public struct StreamState: Payload {
        /// The id of the session that the stream is in.
        public var session = SessionID.unset
        /// The current state of the stream.
        public var stream = StreamInfo()
        public init() {}
        public init(session: SessionID, stream: StreamInfo) { (self.session, self.stream) = (session, stream) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.nested("stream", &stream)
        }
    }

    /// A stream that ended.
    public struct StreamDestroyed: Payload {
        /// The id of the session that the stream was in.
        public var session = SessionID.unset
        /// The id of the stream that ended.
        public var stream = StreamID(high: 0, low: 0)
        /// Why the stream ended: any reason except `matchEnded`. If the publisher left, this is the reason why it
        /// left.
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

    /// A new or changed subscription to one of the client's streams.
    public struct Subscribed: Payload {
        /// The id of the session that the stream is in.
        public var session = SessionID.unset
        /// The id of the client's stream.
        public var stream = StreamID(high: 0, low: 0)
        /// The id of the subscriber's connection.
        public var connection = ConnectionID(high: 0, low: 0)
        /// Whether the subscriber receives audio.
        public var audio = true
        /// Whether the subscriber receives video.
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

    /// A subscription to one of the client's streams that ended.
    public struct Unsubscribed: Payload {
        /// The id of the session that the stream is in.
        public var session = SessionID.unset
        /// The id of the client's stream.
        public var stream = StreamID(high: 0, low: 0)
        /// The id of the connection that is no longer subscribed.
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

    /// A message for the peer connection with another client. It contains either a description or a candidate.
    public struct Negotiate: Payload {
        /// The id of the session that both clients are in.
        public var session = SessionID.unset
        /// The id of the connection that sent this message.
        public var from = ConnectionID(high: 0, low: 0)
        /// The offer or answer; nil if the message contains a candidate.
        public var description: SessionDescription?
        /// An `RTCIceCandidateInit`, or `.null` for the end of candidates; nil if the message contains a description.
        public var candidate: JSONValue?
        /// An object that maps `MediaStream` ids in the description to stream ids; nil if the ids are the same.
        public var streams: JSONValue?
        /// The id of the peer connection between the two clients to which this message belongs; nil if the sender does
        /// not specify it.
        public var negotiationID: String?
        /// The number of the offer on the peer connection `negotiationID`; both clients share one counter. An answer
        /// has the number of its offer. Nil for a candidate, or if the sender does not specify it.
        public var offerNumber: Int?
        public init() {}
        public init(session: SessionID, from: ConnectionID, _ negotiate: SessionVerb.Negotiate) {
            (self.session, self.from) = (session, from)
            (description, candidate, streams) = (negotiate.description, negotiate.candidate, negotiate.streams)
            (negotiationID, offerNumber) = (negotiate.negotiationID, negotiate.offerNumber)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("from", &from)
            try coder.nested("description", &description)
            try coder.json("candidate", &candidate)
            try coder.json("streams", &streams)
            try coder.string("negotiationId", &negotiationID, max: Limits.negotiationID)
            try coder.integer("offerNumber", &offerNumber, in: 1...Limits.offerNumber)
        }
    }

    /// A signal that was sent to this client.
    public struct Signal: Payload {
        /// The id of the session in which the signal was sent.
        public var session = SessionID.unset
        /// The id of the connection that sent the signal; nil if the server sent it.
        public var from: ConnectionID?
        /// The signal's type, at most 128 bytes; nil if it has none.
        public var type: String?
        /// The signal's data, at most 8 KiB; nil if it has none.
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

    /// Notifies a client that streams were muted, or that the muting ended.
    public struct Muted: Payload {
        /// The id of the session in which streams are muted.
        public var session = SessionID.unset
        /// True if streams are muted, false if the muting has ended.
        public var active = true
        /// The id of the client's stream that is muted or no longer muted; nil if this applies to the streams of
        /// everyone.
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
}

/// The reason why a client left or a stream ended. All names but `matchEnded` are the same as in OpenTok.
public enum GoneReason: String, Hashable, Sendable {
    /// The client left.
    case clientDisconnected
    /// The client's connection dropped and was not resumed in time.
    case networkDisconnected
    /// A moderator or the server removed the client.
    case forceDisconnected
    /// The publisher ended the stream.
    case clientUnpublished
    /// A moderator ended the stream.
    case forceUnpublished
    /// The match or call that the client joined for is over.
    case matchEnded
}
