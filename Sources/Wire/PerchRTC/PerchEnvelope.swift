/// The two forms of PerchRTC's messages (`protocol/perchrtc.md` §3). The URL of the WebSocket determines which one is
/// used.
public enum PerchEnvelope: String, Hashable, Sendable, CaseIterable {
    /// The form of 2014: `{"eventName":…,"targetUserId":…,"data":{…}}`.
    case flat
    /// The form of 2015: `{"t":"u","m":{…},"p":{…}}`.
    case layered
}

/// The room and user names of a client of PerchRTC's protocol, and the other values that its messages contain.
public struct PerchPlace: Hashable, Sendable {
    /// The form of the client's messages.
    public var envelope: PerchEnvelope
    /// The domain that the client sent. The server only repeats it in its messages.
    public var domain: String
    /// The application that the client sent. The server only repeats it in its messages.
    public var application: String
    /// The name of the room, as the client wrote it.
    public var room: String
    /// The name of the device, which is also the client's own user id.
    public var user: String

    public init(envelope: PerchEnvelope, domain: String, application: String, room: String, user: String) {
        (self.envelope, self.domain, self.application) = (envelope, domain, application)
        (self.room, self.user) = (room, user)
    }

    fileprivate var roomPath: String { "/\(domain)/\(application)/\(room)" }
}

/// A message from a client of PerchRTC's protocol.
public enum PerchRequest: Hashable, Sendable {
    /// The text `ping`, which is not JSON. It keeps the connection alive.
    case ping
    /// A message for another user.
    case signal(PerchSignal, to: String)
    /// A message that could not be read.
    case unreadable

    /// The maximum length of a user id, in bytes. In practice, ids are much shorter: a user id is the name of a
    /// device, possibly followed by `~` and a number.
    public static let maxUser = Limits.name

    /// Parses a message that has the given form.
    ///
    /// - Throws: `malformed` or `unknown_type`.
    public init(parsing bytes: [UInt8], _ envelope: PerchEnvelope) throws(WireError) {
        if bytes.elementsEqual("ping".utf8) {
            self = .ping
            return
        }
        guard let value = try? JSONReader.parse(bytes), case .object(let object) = value else {
            throw WireError(.malformed, "A message must be a JSON object, or the text \"ping\".")
        }
        switch envelope {
        case .flat:
            let name = try object.text("eventName", 1...Limits.name)
            let target = try object.text("targetUserId", 1...Self.maxUser)
            self = .signal(try PerchSignal(name: name, try object.nested("data")), to: target)
        case .layered:
            let head = try object.nested("m")
            let name = try head.text("o", 1...Limits.name)
            let target = try head.text("t", 1...4 * Self.maxUser)
            let user = target.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? ""
            guard (1...Self.maxUser).contains(user.utf8.count) else {
                throw WireError(.malformed, "\"t\" must be the name of a user.")
            }
            self = .signal(try PerchSignal(name: name, try object.nested("p")), to: user)
        }
    }
}

/// A message for a client of PerchRTC's protocol.
public enum PerchNotice: Hashable, Sendable {
    /// The client has entered the room, and should wait for offers from these users, who were there before.
    case peers([String])
    /// A user is present, and the client should send that user an offer.
    case connected(String)
    /// A user left.
    case removed(String)
    /// A message from another user.
    case signal(PerchSignal, from: String)
    /// The client was not admitted to the room or is removed from it. The connection then closes. PerchRTC's clients
    /// do not understand this message.
    case refused(WireError)

    private var name: String {
        switch self {
        case .peers: "peers"
        case .connected: "peer_connected"
        case .removed: "peer_removed"
        case .signal(let signal, _): signal.name
        case .refused: "refused"
        }
    }

    /// The user whom the message is about, or who sent it; nil if it is about no particular user.
    private var user: String? {
        switch self {
        case .connected(let user), .removed(let user), .signal(_, from: let user): user
        case .peers, .refused: nil
        }
    }

    public func encode(for place: PerchPlace) -> [UInt8] {
        var writer = JSONWriter()
        writer.beginObject()
        switch place.envelope {
        case .flat: writeFlat(place, &writer)
        case .layered: writeLayered(place, &writer)
        }
        writer.endObject()
        return writer.bytes
    }

    private func writeFlat(_ place: PerchPlace, _ writer: inout JSONWriter) {
        writer.name("type")
        writer.string(name)
        if let user {
            writer.name("userid")
            writer.string(user)
        }
        writer.name("room")
        writer.string(place.room)
        switch self {
        case .connected, .removed: return
        case .peers(let users):
            writer.name("message")
            writer.beginObject()
            writer.name("users")
            Self.write(users, &writer)
            writer.endObject()
        case .refused(let error):
            writer.name("message")
            error.write(&writer)
        case .signal(let signal, _):
            writer.name("message")
            writer.beginObject()
            writer.name("eventName")
            writer.string(signal.name)
            writer.name("targetUserId")
            writer.string(place.user)
            writer.name("data")
            signal.write(&writer)
            writer.endObject()
        }
    }

    private func writeLayered(_ place: PerchPlace, _ writer: inout JSONWriter) {
        writer.name("t")
        writer.string("u")
        writer.name("m")
        writer.beginObject()
        writer.name("f")
        writer.string(user.map { "\(place.roomPath)/\($0)" } ?? place.roomPath)
        if case .signal = self {
            writer.name("t")
            writer.string(place.user)
        }
        writer.name("o")
        writer.string(name)
        writer.endObject()
        switch self {
        case .connected, .removed: return
        case .peers(let users):
            writer.name("p")
            Self.write(users, &writer)
        case .refused(let error):
            writer.name("p")
            error.write(&writer)
        case .signal(let signal, _):
            writer.name("p")
            signal.write(&writer)
        }
    }

    private static func write(_ users: [String], _ writer: inout JSONWriter) {
        writer.beginArray()
        for user in users { writer.string(user) }
        writer.endArray()
    }
}

extension WireError {
    fileprivate func write(_ writer: inout JSONWriter) {
        writer.beginObject()
        writer.name("code")
        writer.string(code.rawValue)
        writer.name("message")
        writer.string(message)
        writer.endObject()
    }
}
