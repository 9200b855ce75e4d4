// The objects inside messages. `protocol/README.md` says what each member means.

/// A token's role, OpenTok's four.
public enum Role: String, Hashable, Sendable, CaseIterable {
    case subscriber
    case publisher
    case publisherOnly = "publisheronly"
    case moderator
}

/// Whether a session's media goes through the server or from peer to peer.
public enum MediaMode: String, Hashable, Sendable, CaseIterable {
    case relayed
    case routed
}

/// With or without cameras and microphones. People are only paired within one mode.
public enum ChatMode: String, Hashable, Sendable, CaseIterable {
    case video
    case text
}

public struct ConnectionInfo: Payload, Hashable {
    public var id = ConnectionID(high: 0, low: 0)
    public var createdAt = Timestamp(milliseconds: 0)
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

public enum VideoType: String, Hashable, Sendable {
    case camera, screen, custom
}

public struct StreamInfo: Payload, Hashable {
    public var id = StreamID(high: 0, low: 0)
    public var connection = ConnectionID(high: 0, low: 0)
    public var createdAt = Timestamp(milliseconds: 0)
    public var name = ""
    public var hasAudio = false
    public var hasVideo = false
    public var videoType: VideoType?
    public var width: Int?
    public var height: Int?

    public init() {}

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.id("streamId", &id)
        try coder.id("connectionId", &connection)
        try coder.timestamp("createdAt", &createdAt)
        try coder.string("name", &name, max: Limits.name)
        try coder.bool("hasAudio", &hasAudio)
        try coder.bool("hasVideo", &hasVideo)
        try coder.choice("videoType", &videoType)
        try coder.integer("width", &width, in: 0...16384)
        try coder.integer("height", &height, in: 0...16384)
    }
}

/// What a role allows its holder.
public struct Capabilities: Payload, Hashable {
    public var publish = false
    public var subscribe = false
    public var signal = false
    public var forceDisconnect = false
    public var forceUnpublish = false
    public var forceMute = false

    public init() {}
    public init(_ role: Role) {
        publish = role != .subscriber
        subscribe = role != .publisherOnly
        signal = role == .publisher || role == .moderator
        forceDisconnect = role == .moderator
        forceUnpublish = role == .moderator
        forceMute = role == .moderator
    }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.bool("publish", &publish)
        try coder.bool("subscribe", &subscribe)
        try coder.bool("signal", &signal)
        try coder.bool("forceDisconnect", &forceDisconnect)
        try coder.bool("forceUnpublish", &forceUnpublish)
        try coder.bool("forceMute", &forceMute)
    }
}

/// Where to publish or subscribe, and the token that lets one in.
public struct Admission: Payload, Hashable {
    public var session = SessionID.unset
    public var token = ""

    public init() {}
    public init(session: SessionID, token: String) { (self.session, self.token) = (session, token) }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.session(&session)
        try coder.string("token", &token, max: Limits.token)
    }
}

public struct PartnerInfo: Payload, Hashable {
    public var name = ""
    /// The interests both named.
    public var interests: [String]? = []

    public init() {}
    public init(name: String, interests: [String]) { (self.name, self.interests) = (name, interests) }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.string("name", &name, max: Limits.name)
        try coder.strings("interests", &interests, max: Limits.name)
    }
}

/// An `RTCIceServer`.
public struct ICEServer: Payload, Hashable {
    public var urls: [String]? = []
    public var username: String?
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

public struct ICEConfiguration: Payload, Hashable {
    public var servers: [ICEServer] = []
    /// Roulette pages use the relay alone, so that strangers do not learn each other's address.
    public var relayOnly = false
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

/// An `RTCSessionDescriptionInit`.
public struct SessionDescription: Payload, Hashable {
    public enum Kind: String, Hashable, Sendable { case offer, answer, pranswer, rollback }
    public var type: Kind = .offer
    public var sdp = ""

    public init() {}
    public init(type: Kind, sdp: String) { (self.type, self.sdp) = (type, sdp) }

    public mutating func fields(_ coder: inout FieldCoder) throws(WireError) {
        try coder.choice("type", &type)
        try coder.string("sdp", &sdp, max: Limits.description)
    }
}

/// The textual id of a session (`protocol/README.md` §7). Only `Signaling` can tell whether it verifies.
public struct SessionID: Hashable, Sendable, CustomStringConvertible {
    public let text: String
    /// What a payload holds before it is read.
    public static let unset = SessionID(unchecked: "")

    init(unchecked text: String) { self.text = text }

    /// `nil` unless `text` has 1 to 255 characters of base64url: an id is safe in a path, a log line and a JSON string.
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
            throw WireError(.sessionInvalid, "This is not a session id of this server.")
        }
        value = session
    }
}

extension FieldCoder {
    mutating func re(_ value: inout UInt64) throws(WireError) { try integer("re", &value, in: 0...(1 << 53)) }
    mutating func re(_ value: inout UInt64?) throws(WireError) { try integer("re", &value, in: 0...(1 << 53)) }
}
