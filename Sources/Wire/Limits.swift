/// Size limits that are part of the protocol, so that client and server agree on them. Limits that an operator can change are
/// in the server's configuration.
public enum Limits {
    /// Maximum bytes of a WebSocket message without a session description.
    public static let message = 64 * 1024
    /// Maximum bytes of a message with a session description. The SDP of a large meeting does not fit in 64 KiB.
    public static let description = 256 * 1024
    /// Maximum bytes of the `mid` of a media section. Browsers count from 0, and RFC 8829 §5.2.1 recommends at most 3 bytes.
    public static let mid = 16
    /// Maximum bytes of a name or id, in UTF-8.
    public static let name = 256
    /// Maximum characters of a session id, as in OpenTok's SDKs.
    public static let sessionID = 255
    /// Maximum bytes of a token. The server's own tokens are below 1 KiB. An application's token with 1000 characters of
    /// connection data (up to 4 kB) has 5.4 kB after base64.
    public static let token = 8 * 1024
    /// Maximum characters of connection data.
    public static let connectionData = 1000
    /// Maximum bytes of a signal's type.
    public static let signalType = 128
    /// Maximum bytes of the id of a negotiation. PerchRTC's clients use UUIDs, which have 36 bytes.
    public static let negotiationID = 64
    /// The highest number of an offer. At one offer per second, a negotiation reaches it after 11 days.
    public static let offerNumber = 1_000_000
    /// Maximum bytes of a signal's data, in UTF-8.
    public static let signalData = 8 * 1024
    /// Maximum characters of one interest.
    public static let interest = 50
    /// Maximum members of a JSON object. Real messages have at most 12.
    public static let jsonMembers = 64
    /// Maximum nesting depth of JSON. Real messages nest 4 deep.
    public static let jsonDepth = 12
    /// Maximum elements of a list of strings or ids.
    public static let list = 64
    /// Maximum and default number of rows on a page of people nearby.
    public static let nearbyRows = 50
    /// Maximum and default number of rows on a page of the call log.
    public static let callLogRows = 50
    /// Maximum bytes of a push subscription's URL. The URLs of Google, Mozilla and Apple are below 300 bytes. Those of Microsoft
    /// (Edge) have grown beyond 500.
    public static let pushEndpoint = 1024
    /// Maximum characters of a person's name.
    public static let personName = 40
    /// Maximum bytes of a person's name, in UTF-8.
    public static let personNameBytes = 160
    /// Maximum bytes of the reason in a report, in UTF-8.
    public static let reason = 500
    /// Maximum characters of a room's name, because it is part of a link.
    public static let roomName = 64
    /// Maximum bytes of a room's name, in UTF-8.
    public static let roomNameBytes = name
    /// Maximum bytes of a room's password, in UTF-8.
    public static let roomPassword = 128
    /// Maximum lifetime of a token for a room, in seconds: 30 days, as for the token of a session.
    public static let roomTokenLifetime = 30 * 86400
    /// Maximum bytes of one message in a room's chat, in UTF-8.
    public static let roomText = 4096
    /// Maximum bytes of a reaction, in UTF-8. The longest emoji (families and flags) have about 30.
    public static let reaction = 40
    /// Maximum bytes of the name of a file in a room, in UTF-8. File systems allow 255, and browsers append a number
    /// to the name of a downloaded file.
    public static let fileName = 200
    /// Maximum bytes of a file in a room that an operator can allow.
    public static let roomFile = 1 << 30
    /// Maximum and default number of rooms on a page of the list of rooms.
    public static let roomsPage = 100
    /// Maximum people in a routed room. Each of them receives the media of everyone else.
    public static let routedRoom = 100
    /// Maximum people in a mesh room. Each sends its media to everyone else.
    public static let meshRoom = 6
}
