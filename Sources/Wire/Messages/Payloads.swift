// The objects that messages contain (`protocol/README.md`).

/// The role that a token gives its holder in a session. OpenTok has the same four roles.
public enum Role: String, Hashable, Sendable, CaseIterable {
    /// May subscribe, but not publish or send signals.
    case subscriber
    /// May publish, subscribe and send signals.
    case publisher
    /// May publish, but not subscribe or send signals.
    case publisherOnly = "publisheronly"
    /// Has the permissions of a publisher, and may also disconnect, unpublish and mute others.
    case moderator
}

/// Whether the media of a session goes through the server.
public enum MediaMode: String, Hashable, Sendable, CaseIterable {
    /// Media goes from browser to browser, through a TURN server if necessary.
    case relayed
    /// Media goes through the server.
    case routed
}

/// The kind of chat between strangers. People are only matched with others who chose the same kind.
public enum ChatMode: String, Hashable, Sendable, CaseIterable {
    /// A chat with camera and microphone.
    case video
    /// A chat with text only.
    case text
}

/// A connection in a session, as the other members see it.
public struct ConnectionInfo: Payload, Hashable {
    /// The id of the connection, which the server assigns. It is the same in all sessions.
    public var id = ConnectionID(high: 0, low: 0)
    /// When the connection joined the session.
    public var createdAt = Timestamp(milliseconds: 0)
    /// The connection data from the token, at most 1000 characters; empty if there is none.
    public var data = ""

    public init() {}
    public init(id: ConnectionID, createdAt: Timestamp, data: String) {
        (self.id, self.createdAt, self.data) = (id, createdAt, data)
    }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("connectionId", &id)
        try coder.timestamp("createdAt", &createdAt)
        try coder.string("data", &data, max: Limits.connectionData * 4)
    }
}

/// The kind of content that a stream's video shows.
public enum VideoType: String, Hashable, Sendable {
    /// A camera on the publisher's device.
    case camera
    /// A shared screen or window.
    case screen
    /// Any other source.
    case custom
}

/// A stream in a session.
public struct StreamInfo: Payload, Hashable {
    /// The id of the stream, which the server assigns.
    public var id = StreamID(high: 0, low: 0)
    /// The id of the connection that publishes the stream.
    public var connection = ConnectionID(high: 0, low: 0)
    /// When the stream was published.
    public var createdAt = Timestamp(milliseconds: 0)
    /// The name that the publisher gave the stream, at most 256 bytes; may be empty.
    public var name = ""
    /// The initials to show while the video is off, at most 32 bytes; nil if the publisher gave none.
    public var initials: String?
    /// Whether the stream currently has audio.
    public var hasAudio = false
    /// Whether the stream currently has video.
    public var hasVideo = false
    /// The kind of content that the video shows; nil if the publisher did not specify it.
    public var videoType: VideoType?
    /// Width of the video in pixels, 0 to 16384; nil if the publisher did not specify it.
    public var width: Int?
    /// Height of the video in pixels, 0 to 16384; nil if the publisher did not specify it.
    public var height: Int?
    /// The frames per second that the publisher requested from its camera, 1 to 240; nil if it did not request any.
    public var frameRate: Int?

    public init() {}

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("streamId", &id)
        try coder.id("connectionId", &connection)
        try coder.timestamp("createdAt", &createdAt)
        try coder.string("name", &name, max: Limits.name)
        try coder.string("initials", &initials, max: Limits.initials)
        try coder.bool("hasAudio", &hasAudio)
        try coder.bool("hasVideo", &hasVideo)
        try coder.choice("videoType", &videoType)
        try coder.integer("width", &width, in: 0...16384)
        try coder.integer("height", &height, in: 0...16384)
        try coder.integer("frameRate", &frameRate, in: 1...240)
    }
}

/// The permissions of a client in a session, which depend on its role. A request for which the client has no
/// permission fails with `not_permitted`.
public struct Capabilities: Payload, Hashable {
    /// Whether the client may publish streams.
    public var publish = false
    /// Whether the client may subscribe to streams.
    public var subscribe = false
    /// Whether the client may send signals.
    public var signal = false
    /// Whether the client may remove connections from the session.
    public var forceDisconnect = false
    /// Whether the client may end streams of other clients.
    public var forceUnpublish = false
    /// Whether the client may mute streams of other clients.
    public var forceMute = false

    public init() {}

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.bool("publish", &publish)
        try coder.bool("subscribe", &subscribe)
        try coder.bool("signal", &signal)
        try coder.bool("forceDisconnect", &forceDisconnect)
        try coder.bool("forceUnpublish", &forceUnpublish)
        try coder.bool("forceMute", &forceMute)
    }
}

/// A session, and a token to join it.
public struct Admission: Payload, Hashable {
    /// The id of the session to join.
    public var session = SessionID.unset
    /// The session token.
    public var token = ""

    public init() {}
    public init(session: SessionID, token: String) { (self.session, self.token) = (session, token) }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.string("token", &token, max: Limits.token)
    }
}

/// A roulette partner, as the other person in the match sees them.
public struct PartnerInfo: Payload, Hashable {
    /// The partner's name; may be empty.
    public var name = ""
    /// The interests that both people share; nil is the same as an empty list.
    public var interests: [String]? = []

    public init() {}
    public init(name: String, interests: [String]) { (self.name, self.interests) = (name, interests) }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.string("name", &name, max: Limits.name)
        try coder.strings("interests", &interests, max: Limits.name)
    }
}

/// An ICE server, with the members of `RTCIceServer`.
public struct ICEServer: Payload, Hashable {
    /// The URLs of the server (`stun:`, `turn:`, `turns:`); nil is the same as an empty list.
    public var urls: [String]? = []
    /// The user name for TURN; nil for STUN.
    public var username: String?
    /// The password for TURN; nil for STUN.
    public var credential: String?

    public init() {}
    public init(urls: [String], username: String? = nil, credential: String? = nil) {
        (self.urls, self.username, self.credential) = (urls, username, credential)
    }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.strings("urls", &urls, max: 1024)
        try coder.string("username", &username, max: 1024)
        try coder.string("credential", &credential, max: 1024)
    }
}

/// The ICE servers to use, how to use them, and when their credentials expire.
public struct ICEConfiguration: Payload, Hashable {
    /// The ICE servers; empty if none are configured.
    public var servers: [ICEServer] = []
    /// Whether clients must use only TURN candidates in relayed sessions, so that people do not see each other's IP
    /// addresses. True if the server has a TURN server.
    public var relayOnly = false
    /// When the credentials expire, in milliseconds since 1970; nil if they do not expire. Clients should request `ice.servers`
    /// again before an ICE restart.
    public var expiresAt: Int64?

    public init() {}
    public init(servers: [ICEServer], relayOnly: Bool, expiresAt: Timestamp?) {
        (self.servers, self.relayOnly, self.expiresAt) = (servers, relayOnly, expiresAt?.milliseconds)
    }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.list("servers", &servers)
        try coder.bool("relayOnly", &relayOnly)
        try coder.integer("expiresAt", &expiresAt, in: 0...(1 << 53))
    }
}

/// An SDP session description, with the members of `RTCSessionDescriptionInit`.
public struct SessionDescription: Payload, Hashable {
    /// The kind of a session description, as in `RTCSdpType`.
    public enum Kind: String, Hashable, Sendable {
        /// Proposes a connection, or a change to it.
        case offer
        /// Accepts an offer.
        case answer
        /// Accepts an offer provisionally.
        case pranswer
        /// Withdraws the most recent offer.
        case rollback
    }

    /// The kind of this description.
    public var type: Kind = .offer
    /// The SDP text, at most 256 KiB; may be empty for a rollback.
    public var sdp = ""

    public init() {}
    public init(type: Kind, sdp: String) { (self.type, self.sdp) = (type, sdp) }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.choice("type", &type)
        try coder.string("sdp", &sdp, max: Limits.description)
    }
}

/// The id of a session as text (`protocol/README.md` §7). This type checks only the form of the id. The server verifies its
/// signature.
public struct SessionID: Hashable, Sendable, CustomStringConvertible {
    /// The text of the id: 1 to 255 characters of `A-Z a-z 0-9 - _`, or an empty string for ``unset``.
    public let text: String
    /// A placeholder for payloads whose members have not been read yet.
    public static let unset = SessionID(unchecked: "")

    init(unchecked text: String) { self.text = text }

    /// Creates an id, or returns nil unless `text` has 1 to 255 characters of base64url. These characters are safe in paths,
    /// logs and JSON strings.
    public init?(_ text: String) {
        let isSafe = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard isSafe, !text.isEmpty, text.utf8.count <= Limits.sessionID else { return nil }
        self.text = text
    }

    public var description: String { text }
}

extension FieldCoder {
    mutating func session(_ value: inout SessionID) throws(WireError) {
        var text = value.text
        try string("sessionId", &text, max: 4096)
        guard isReading else { return }
        guard let session = SessionID(text) else {
            throw WireError(.sessionInvalid, "Invalid session ID. Send the one that came with the token.")
        }
        value = session
    }
}

extension FieldCoder {
    mutating func re(_ value: inout UInt64) throws(WireError) { try integer("re", &value, in: 0...(1 << 53)) }
    mutating func re(_ value: inout UInt64?) throws(WireError) { try integer("re", &value, in: 0...(1 << 53)) }
}
