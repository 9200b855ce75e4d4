/// Sizes that both ends agree on. What an operator may tune lives in the configuration; these are part of the protocol.
public enum Limits {
    /// One WebSocket message.
    public static let message = 64 * 1024
    /// One message that carries a session description: a large meeting's SDP does not fit in 64 KiB.
    public static let description = 256 * 1024
    /// The `mid` of a media section, in UTF-8 bytes. Browsers count from 0, and RFC 8829 §5.2.1 recommends at most 3.
    public static let mid = 16
    /// Names and ids, in UTF-8 bytes.
    public static let name = 256
    /// A session id, as OpenTok's SDKs allow.
    public static let sessionID = 255
    /// Any token. Ours are below 1 KiB; 1000 characters of connection data are at most 4 kB, base64 makes 5.4 kB.
    public static let token = 8 * 1024
    /// Connection data, in characters.
    public static let connectionData = 1000
    /// A signal's type and data, in UTF-8 bytes.
    public static let signalType = 128
    public static let signalData = 8 * 1024
    /// One interest, in characters.
    public static let interest = 50
    /// Any one JSON object's members and any nesting. Real messages have at most 12 members and nest 4 deep.
    public static let jsonMembers = 64
    public static let jsonDepth = 12
    /// Elements of a list that a client sends.
    public static let list = 64
    /// Rows of one page of people nearby, and of one page of the call log.
    public static let nearbyRows = 50
    public static let callLogRows = 50
    /// The address of a push service's subscription. Those of today's browsers are below 500 bytes.
    public static let pushEndpoint = 2048
    /// A person's name, in characters and in UTF-8 bytes.
    public static let personName = 40
    public static let personNameBytes = 160
    /// A free-text reason.
    public static let reason = 500
}
