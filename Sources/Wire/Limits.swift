/// Size limits that are part of the protocol, so that client and server agree on them. Limits that an operator can change are
/// in the server's configuration.
public enum Limits {
    /// The maximum size of a WebSocket message without a session description, in bytes.
    public static let message = 64 * 1024
    /// The maximum size of a message with a session description, in bytes. The SDP of a large meeting does not fit in
    /// 64 KiB.
    public static let description = 256 * 1024
    /// The maximum length of the `mid` of a media section, in bytes. Browsers count from 0, and RFC 8829 §5.2.1
    /// recommends at most 3 bytes.
    public static let mid = 16
    /// The maximum length of a name or id, in bytes of UTF-8.
    public static let name = 256
    /// The maximum length of a stream's initials, in bytes of UTF-8.
    public static let initials = 32
    /// The maximum length of a session id, in characters, as in OpenTok's SDKs.
    public static let sessionID = 255
    /// The maximum length of a token, in bytes. The server's own tokens are below 1 KiB. An application's token with
    /// 1000 characters of connection data (up to 4 kB) has 5.4 kB after base64.
    public static let token = 8 * 1024
    /// The maximum length of connection data, in characters.
    public static let connectionData = 1000
    /// The maximum length of a signal's type, in bytes.
    public static let signalType = 128
    /// The maximum length of the id of a negotiation, in bytes. PerchRTC's clients use UUIDs, which have 36 bytes.
    public static let negotiationID = 64
    /// The highest number of an offer. At one offer per second, a negotiation reaches it after 11 days.
    public static let offerNumber = 1_000_000
    /// The maximum size of a signal's data, in bytes of UTF-8.
    public static let signalData = 8 * 1024
    /// The maximum length of one interest, in characters.
    public static let interest = 50
    /// The maximum number of members in a JSON object. Real messages have at most 12.
    public static let jsonMembers = 64
    /// The maximum nesting depth of JSON. Real messages nest 4 deep.
    public static let jsonDepth = 12
    /// The maximum number of elements in a list of strings or ids.
    public static let list = 64
    /// The maximum and default number of rows on a page of people nearby.
    public static let nearbyRows = 50
    /// The maximum and default number of rows on a page of the call log.
    public static let callLogRows = 50
    /// The maximum length of a push subscription's URL, in bytes. The URLs of Google, Mozilla and Apple are below 300
    /// bytes. Those of Microsoft (Edge) have grown beyond 500.
    public static let pushEndpoint = 1024
    /// The maximum length of a person's name, in characters.
    public static let personName = 40
    /// The maximum length of a person's name, in bytes of UTF-8.
    public static let personNameBytes = 160
    /// The maximum length of the reason in a report, in bytes of UTF-8.
    public static let reason = 500
    /// The maximum length of a room's name, in characters. It is short, because the name is part of a link.
    public static let roomName = 64
    /// The maximum length of a room's name, in bytes of UTF-8.
    public static let roomNameBytes = name
    /// The maximum length of a room's password, in bytes of UTF-8.
    public static let roomPassword = 128
    /// The maximum lifetime of a token for a room, in seconds: 30 days, as for the token of a session.
    public static let roomTokenLifetime = 30 * 86400
    /// The maximum length of an archive's name, in bytes of UTF-8: 80 characters.
    public static let archiveName = 320
    /// The maximum length of one message in a room's chat, in bytes of UTF-8.
    public static let roomText = 4096
    /// The maximum length of a reaction, in bytes of UTF-8. The longest standard emoji (a kissing couple with skin
    /// tones) takes 35 bytes.
    public static let reaction = 40
    /// The maximum length of the name of a file in a room, in bytes of UTF-8. File systems allow 255, and browsers
    /// append a number to the name of a downloaded file.
    public static let fileName = 200
    /// The largest size, in bytes, that an operator can allow for files in rooms.
    public static let roomFile = 1 << 30
    /// The maximum and default number of rooms on a page of the list of rooms.
    public static let roomsPage = 100
    /// The maximum number of people in a routed room. Each of them receives the media of everyone else.
    public static let routedRoom = 100
    /// The maximum number of people in a mesh room. Each sends its media to everyone else.
    public static let meshRoom = 6
    /// The maximum size of a sample of a camera, in bytes. A JPEG with a width of 320 pixels has 8 to 20 KiB.
    public static let sample = 32 * 1024
    /// The width of a sample in pixels, which clients scale the camera's frame to.
    public static let sampleWidth = 320
    /// The maximum width and height of a sample in pixels. A larger image could cost the operator's program much memory.
    public static let sampleSide = 1280
    /// The maximum length of the sentence in a warning, in bytes of UTF-8.
    public static let warning = 300
}
