/// One end's short-term credentials (RFC 8445 §5.3): the fragment says who is meant, the password that one may ask.
public struct ICECredentials: Hashable, Sendable {
    public let ufrag: String
    public let password: String

    /// RFC 8839 §5.4: 4 to 256 and 22 to 256 characters, each a letter, a digit, `+` or `/`.
    public static let ufragLengths = 4...256
    public static let passwordLengths = 22...256

    /// - Returns: nil if RFC 8839 does not allow them.
    public init?(ufrag: String, password: String) {
        guard Self.ufragLengths.contains(ufrag.utf8.count), Self.passwordLengths.contains(password.utf8.count),
            ufrag.utf8.allSatisfy(Self.isAllowed), password.utf8.allSatisfy(Self.isAllowed)
        else { return nil }
        (self.ufrag, self.password) = (ufrag, password)
    }

    /// 48 and 144 random bits; RFC 8445 §5.3 wants 24 and 128 at least, and no name among many connections twice.
    public init(using random: inout some RandomNumberGenerator) {
        ufrag = Self.text(8, &random)
        password = Self.text(24, &random)
    }

    private static func isAllowed(_ byte: UInt8) -> Bool { alphabet.contains(byte) }

    private static func text(_ count: Int, _ random: inout some RandomNumberGenerator) -> String {
        String(decoding: (0..<count).map { _ in alphabet[Int(random.next() & 63)] }, as: UTF8.self)
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
}

/// What became of a datagram that looked like STUN.
public enum ICEOutcome: Hashable, Sendable {
    /// Nothing was sent and nothing changed.
    case dropped(ICEDrop)
    /// The other end may ask, and was told that not like this.
    case refused(UInt16)
    /// A path known to be good has proved it again.
    case refreshed
    /// A path is good that was not before.
    case validated
    /// `selectedPath` is another one now.
    case selected
}

/// Why a STUN message was dropped.
public enum ICEDrop: Hashable, Sendable {
    /// No message of RFC 8489, or none that is for this end.
    case malformed
    /// For somebody else, or from somebody else.
    case unknownName
    /// Made without the password.
    case unauthenticated
    /// An answer to nothing that was asked, or on another path than the question.
    case unasked
}

/// Times that both ends of a path go by.
public enum ICETimes {
    /// RFC 7675 §5.1: how long a path is good after it was last asked for, or answered.
    public static let consent = MediaInterval.seconds(30)
    /// RFC 7675 §5.1: between two questions, give or take a fifth, so that many do not ask together.
    static let consentCheck = MediaInterval.seconds(5)
    /// A question without an answer is asked again sooner: five losses in a row would otherwise end a call.
    static let consentRetry = MediaInterval.seconds(1)
    /// RFC 8445 §14.2, `Ta`: between the first checks of two pairs.
    static let pacing = MediaInterval.milliseconds(50)
    /// The first retransmission timeout. RFC 8445 §14.3 has 500 ms for agents that cannot know better; there is one server
    /// with few candidates here, and half of that is still longer than the way to it and back.
    static let firstRetransmission = MediaInterval.milliseconds(250)
    static let longestRetransmission = MediaInterval.milliseconds(1600)
    /// How long a better pair is waited for when one works.
    static let patience = MediaInterval.milliseconds(300)
}
