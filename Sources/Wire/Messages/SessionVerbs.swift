/// A client's request about a session (`protocol/README.md` §4 and §8). All requests except `join` fail with
/// `not_joined` if the client is not in the session.
public enum SessionVerb: Equatable, Sendable, MessageSet {
    /// Joins a session. Answered with ``SessionNotice/joined(_:)``, or with `token_*`, `session_invalid`, `already_joined` or
    /// `session_full`.
    case join(Join)
    /// Leaves a session. Answered with `ok`.
    case leave(Leave)
    /// Publishes a stream. Answered with ``SessionNotice/published(_:)``, or with `not_permitted`, `session_full`,
    /// `media_unavailable` or `bandwidth_exceeded`.
    case publish(Publish)
    /// Ends one of the client's streams. Answered with `ok`, or with `not_found`.
    case unpublish(StreamReference)
    /// Changes the properties of one of the client's streams. Answered with `ok`, or with `not_found` or
    /// `bandwidth_exceeded`.
    case update(Update)
    /// Subscribes to a stream, or changes a subscription. Answered with `ok`, or with `not_permitted`, `not_found`,
    /// `media_unavailable` or `bandwidth_exceeded`.
    case subscribe(Subscribe)
    /// Ends a subscription. Answered with `ok`, or with `not_found`.
    case unsubscribe(StreamReference)
    /// Sends a session description or an ICE candidate to another client. Answered with `ok`, or with `not_found`. Fails with
    /// `not_permitted` in a routed session, or if neither client subscribes to the other.
    case negotiate(Negotiate)
    /// Sends a signal. Answered with `ok`, or with `not_permitted`, `not_found`, `signal_invalid` or `signal_too_large`.
    case signal(Signal)
    /// Removes a client from the session and revokes its token. Moderators only. Answered with `ok`, or with `not_permitted` or
    /// `not_found`.
    case forceDisconnect(ForceDisconnect)
    /// Ends a stream of another client. Moderators only. Answered with `ok`, or with `not_permitted` or `not_found`.
    case forceUnpublish(StreamReference)
    /// Mutes streams, or ends the muting. Moderators only. Answered with `ok`, or with `not_permitted` or `not_found`.
    case forceMute(ForceMute)
    /// Reports whether media between this client and another client works. Answered with `ok`, or with `not_found`.
    case connected(Connected)
    /// Accepts or refuses that the client's streams are recorded. Answered with `ok`.
    case consent(Consent)
    /// Starts to record the session. Moderators only, and only if the server permits it. Answered with `ok`, directly after
    /// ``SessionNotice/archiveStarted(_:)``. Fails with `not_permitted`, `recording_unavailable`, `archive_conflict`,
    /// `media_unavailable`, `rate_limited` or `storage_full`.
    case startArchive(StartArchive)
    /// Stops an archive of the session. Moderators only, and only if the server permits it. Answered with `ok`, or with
    /// `not_permitted` or `archive_conflict`.
    case stopArchive(StopArchive)

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
        case .consent(let payload): try visitor.message("session.consent", payload)
        case .startArchive(let payload): try visitor.message("session.startArchive", payload)
        case .stopArchive(let payload): try visitor.message("session.stopArchive", payload)
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
        .init("session.consent", Self.consent),
        .init("session.startArchive", Self.startArchive),
        .init("session.stopArchive", Self.stopArchive),
    ]
}

extension SessionVerb {
    /// The session to join, and a token for it.
    public struct Join: Payload {
        /// The id of the session to join. The application that creates the token also provides this id.
        public var session = SessionID.unset
        /// A session token for this session, at most 8 KiB.
        public var token = ""
        public init() {}
        public init(session: SessionID, token: String) { (self.session, self.token) = (session, token) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.string("token", &token, max: Limits.message)
        }
    }

    /// The session to leave.
    public struct Leave: Payload {
        /// The id of a session that the client has joined.
        public var session = SessionID.unset
        public init() {}
        public init(session: SessionID) { self.session = session }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) { try coder.session(&session) }
    }

    /// A stream in a session.
    public struct StreamReference: Payload {
        /// The id of the session that the stream is in.
        public var session = SessionID.unset
        /// The stream's id, from ``SessionNotice/published(_:)``, `joined`, `roster` or `streamCreated`.
        public var stream = StreamID(high: 0, low: 0)
        public init() {}
        public init(session: SessionID, stream: StreamID) { (self.session, self.stream) = (session, stream) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("streamId", &stream)
        }
    }

    /// The stream to publish.
    public struct Publish: Payload {
        /// The id of the session to publish in, which the client must have joined.
        public var session = SessionID.unset
        /// The stream's name, at most 256 bytes; nil for an empty name.
        public var name: String?
        /// The initials to show while the video is off, at most 32 bytes; nil for none.
        public var initials: String?
        /// Whether the stream currently has audio.
        public var hasAudio = true
        /// Whether the stream currently has video.
        public var hasVideo = true
        /// The kind of content that the video shows; nil if unknown.
        public var videoType: VideoType?
        /// Width of the video in pixels, 0 to 16384; nil if unknown.
        public var width: Int?
        /// Height of the video in pixels, 0 to 16384; nil if unknown.
        public var height: Int?
        /// The frames per second that the publisher requested from its camera, 1 to 240; nil if it did not request any.
        public var frameRate: Int?
        /// The mids of the transceivers that carry the stream on the `send` connection. The client must first send an
        /// offer with these mids.
        public var mids = MediaMids()
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.string("name", &name, max: Limits.name)
            try coder.string("initials", &initials, max: Limits.initials)
            try coder.bool("hasAudio", &hasAudio)
            try coder.bool("hasVideo", &hasVideo)
            try coder.choice("videoType", &videoType)
            try coder.integer("width", &width, in: 0...16384)
            try coder.integer("height", &height, in: 0...16384)
            try coder.integer("frameRate", &frameRate, in: 1...240)
            try coder.mids(&mids)
        }
    }

    /// Changes to a stream. A member that is nil stays unchanged.
    public struct Update: Payload {
        /// The id of the session that the stream is in.
        public var session = SessionID.unset
        /// The id of the client's stream.
        public var stream = StreamID(high: 0, low: 0)
        /// Whether the stream currently has audio.
        public var hasAudio: Bool?
        /// Whether the stream currently has video.
        public var hasVideo: Bool?
        /// Width of the video in pixels, 0 to 16384.
        public var width: Int?
        /// Height of the video in pixels, 0 to 16384.
        public var height: Int?
        /// The mids of the transceivers that now carry the stream on the `send` connection.
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

    /// A subscription, with all its properties.
    public struct Subscribe: Payload {
        /// The id of the session that the stream is in.
        public var session = SessionID.unset
        /// The id of the stream to receive.
        public var stream = StreamID(high: 0, low: 0)
        /// Whether to receive audio.
        public var audio = true
        /// Whether to receive video.
        public var video = true
        /// The mids of the transceivers that carry the stream on the `receive` connection. In a routed session, a
        /// client that names none receives nothing.
        public var mids = MediaMids()
        /// The preferred size, frame rate and priority, in a routed session.
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

    /// A message for the peer connection with another client. Exactly one of `description` and `candidate` must be set.
    /// Otherwise the request fails with `malformed`.
    public struct Negotiate: Payload {
        /// The id of the session that both clients are in.
        public var session = SessionID.unset
        /// The id of the connection to which the server relays this message.
        public var to = ConnectionID(high: 0, low: 0)
        /// The offer or answer; nil if the message contains a candidate.
        public var description: SessionDescription?
        /// An `RTCIceCandidateInit`, or `.null` for the end of candidates; nil if the message contains a description.
        /// The server relays the candidate unchanged.
        public var candidate: JSONValue?
        /// An object that maps `MediaStream` ids in the description to stream ids; nil if the ids are the same.
        public var streams: JSONValue?
        /// The id of the peer connection between the two clients to which this message belongs; nil if the client does
        /// not specify it. The client that makes the first offer chooses the id.
        public var negotiationID: String?
        /// The number of the offer on the peer connection `negotiationID`; both clients share one counter. An answer
        /// has the number of its offer. Nil for a candidate, or if the client does not specify it.
        public var offerNumber: Int?
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("to", &to)
            try coder.nested("description", &description)
            try coder.json("candidate", &candidate)
            try coder.json("streams", &streams)
            try coder.string("negotiationId", &negotiationID, max: Limits.negotiationID)
            try coder.integer("offerNumber", &offerNumber, in: 1...Limits.offerNumber)
            if coder.isReading, (description == nil) == (candidate == nil) {
                throw WireError(.malformed, "Send either \"description\" or \"candidate\", not both.")
            }
        }
    }

    /// A signal to send.
    public struct Signal: Payload {
        /// The id of the session in which to send the signal.
        public var session = SessionID.unset
        /// The signal's type, at most 128 characters of `A-Z a-z 0-9 - _ ~`; nil for none. Text chat uses `chat`.
        public var type: String?
        /// The signal's data, at most 8 KiB; nil for none.
        public var data: String?
        /// The id of the only connection that receives the signal; nil for everyone, including the sender.
        public var to: ConnectionID?
        public init() {}
        public init(session: SessionID, type: String?, data: String?, to: ConnectionID? = nil) {
            (self.session, self.type, self.data, self.to) = (session, type, data, to)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            // The lengths of type and data are checked later, because they have their own error codes.
            try coder.string("signalType", &type, max: Limits.message)
            try coder.string("data", &data, max: Limits.message)
            try coder.id("to", &to)
        }
    }

    /// The connection to remove from a session.
    public struct ForceDisconnect: Payload {
        /// The id of the session that the connection is in.
        public var session = SessionID.unset
        /// The id of the connection to remove. The token with which it joined is revoked.
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

    /// The streams to mute, or the end of muting.
    public struct ForceMute: Payload {
        /// The id of the session that the streams are in.
        public var session = SessionID.unset
        /// True to mute, false to end the muting.
        public var active = true
        /// The id of the only stream to mute; nil for all streams, including those published later.
        public var stream: StreamID?
        /// The ids of streams to leave unmuted if `stream` is nil, at most 64; nil for none.
        public var excluded: [StreamID]?
        public init() {}
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.bool("active", &active)
            try coder.id("streamId", &stream)
            try coder.ids("excluded", &excluded)
        }
    }

    /// Whether the client agrees to be recorded, or to be broadcast. The answer applies until the session is no longer recorded or
    /// broadcast, and can be changed. Without an answer, an archive or a broadcast that asks for consent does not contain the client's
    /// streams.
    public struct Consent: Payload {
        /// The id of the session that is recorded or broadcast.
        public var session = SessionID.unset
        /// True to include the client's streams, false to leave them out.
        public var accept = false
        /// True if the answer is about broadcasts; nil if it is about recordings.
        public var broadcast: Bool?
        public init() {}
        public init(session: SessionID, accept: Bool, broadcast: Bool? = nil) {
            (self.session, self.accept, self.broadcast) = (session, accept, broadcast)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.bool("accept", &accept)
            try coder.bool("broadcast", &broadcast)
        }
    }

    /// What to record.
    public struct StartArchive: Payload {
        /// The id of the session.
        public var session = SessionID.unset
        /// The archive's name, at most 320 bytes without control characters; nil for none.
        public var name: String?
        /// How the streams become files; nil for `composed`.
        public var output: ArchiveOutput?
        public init() {}
        public init(session: SessionID, name: String? = nil, output: ArchiveOutput? = nil) {
            (self.session, self.name, self.output) = (session, name, output)
        }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.string("name", &name, max: Limits.archiveName)
            try coder.choice("outputMode", &output)
        }
    }

    /// One of the archives into which the session is recorded.
    public struct StopArchive: Payload {
        /// The id of the session.
        public var session = SessionID.unset
        /// The archive's id, from ``SessionNotice/archiveStarted(_:)`` or ``SessionNotice/joined(_:)``.
        public var archive = ArchiveID(high: 0, low: 0)
        public init() {}
        public init(session: SessionID, archive: ArchiveID) { (self.session, self.archive) = (session, archive) }
        public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
            try coder.session(&session)
            try coder.id("archiveId", &archive)
        }
    }

    /// A report on whether relayed media between this client and another client works. If neither of the two reports true
    /// within 8 s, the server may switch the whole session to routed media (`protocol/README.md` §8).
    public struct Connected: Payload {
        /// The id of the session that both clients are in.
        public var session = SessionID.unset
        /// The id of the other client's connection.
        public var connection = ConnectionID(high: 0, low: 0)
        /// True if media works. False has no effect.
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
    /// The id of the session that the request is about.
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
        case .consent(let verb): verb.session
        case .startArchive(let verb): verb.session
        case .stopArchive(let verb): verb.session
        }
    }
}

extension SessionVerb.Negotiate {
    /// The approximate number of bytes that the server relays.
    public var size: Int {
        (description?.sdp.utf8.count ?? 0) + (candidate?.size ?? 0) + (streams?.size ?? 0)
    }
}
