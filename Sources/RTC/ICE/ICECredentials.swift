/// The short-term credentials of one agent (RFC 8445 §5.3). The username fragment identifies the agent, and the password
/// authenticates checks.
public struct ICECredentials: Hashable, Sendable {
    public let ufrag: String
    public let password: String

    /// The allowed lengths: 4 to 256 characters for the ufrag and 22 to 256 for the password, each a letter, a digit, `+` or
    /// `/` (RFC 8839 §5.4).
    public static let ufragLengths = 4...256
    public static let passwordLengths = 22...256

    /// Creates credentials with this username fragment and password.
    ///
    /// - Returns: nil if RFC 8839 does not allow these credentials.
    public init?(ufrag: String, password: String) {
        guard Self.ufragLengths.contains(ufrag.utf8.count), Self.passwordLengths.contains(password.utf8.count),
            ufrag.utf8.allSatisfy(Self.isAllowed), password.utf8.allSatisfy(Self.isAllowed)
        else { return nil }
        (self.ufrag, self.password) = (ufrag, password)
    }

    /// Creates a random username fragment of 48 bits and a random password of 144 bits. RFC 8445 §5.3 requires at least 24 and
    /// 128 bits. The longer username fragment is unique among many connections.
    public init(using random: inout some RandomNumberGenerator) {
        ufrag = Self.text(8, &random)
        password = Self.text(24, &random)
    }

    /// The owners that ``owner(ofUfrag:)`` can tell apart: one for each character that a username fragment may contain.
    public static let owners = 0..<64

    /// Creates random credentials whose username fragment begins with a character for their owner, and is one character longer
    /// than others. Several routers that share a TCP port find the owner of a connection by this character of its first check.
    /// - Parameter owner: must be one of ``owners``. Only the lowest six bits count.
    public init(using random: inout some RandomNumberGenerator, owner: Int) {
        ufrag = String(decoding: [Self.alphabet[owner & 63]], as: UTF8.self) + Self.text(8, &random)
        password = Self.text(24, &random)
    }

    /// Returns the owner in the username fragment of credentials that were created with an owner; nil if the fragment is
    /// empty, or begins with a character that is not allowed. Any other fragment has an owner too, so the owner must
    /// check whether the fragment is one of its own.
    public static func owner(ofUfrag ufrag: some Collection<UInt8>) -> Int? {
        ufrag.first.flatMap { alphabet.firstIndex(of: $0) }
    }

    private static func isAllowed(_ byte: UInt8) -> Bool { alphabet.contains(byte) }

    private static func text(_ count: Int, _ random: inout some RandomNumberGenerator) -> String {
        String(decoding: (0..<count).map { _ in alphabet[Int(random.next() & 63)] }, as: UTF8.self)
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
}

/// The result of processing a STUN datagram.
public enum ICEOutcome: Hashable, Sendable {
    /// The message was ignored: nothing was sent and no state changed.
    case dropped(ICEDrop)
    /// The request was authentic but was answered with this error code.
    case refused(UInt16)
    /// The request or response was authentic, but no path was newly validated or selected.
    case refreshed
    /// A new path was validated.
    case validated
    /// `selectedPath` changed.
    case selected
}

/// The reason why a STUN message was dropped.
public enum ICEDrop: Hashable, Sendable {
    /// The datagram is not a message of RFC 8489, or not of a kind that this agent processes.
    case malformed
    /// The request's username does not consist of the username fragments of the two agents.
    case unknownName
    /// MESSAGE-INTEGRITY is missing or wrong.
    case unauthenticated
    /// The response matches no request, or arrived on a different path than its request was sent on.
    case unsolicited
}

/// The timers of both agents.
public enum ICETimes {
    /// How long a path stays valid after its last request or response (RFC 7675 §5.1).
    public static let consent = MediaInterval.seconds(30)
    /// The time between consent checks. It is randomized by a fifth so that clients do not synchronize (RFC 7675 §5.1).
    static let consentCheck = MediaInterval.seconds(5)
    /// The time between consent checks while responses are missing. It is shorter than `consentCheck`, because otherwise five
    /// losses in a row would end a call.
    static let consentRetry = MediaInterval.seconds(1)
    /// The time between the initial checks of two pairs (`Ta` in RFC 8445 §14.2).
    static let pacing = MediaInterval.milliseconds(50)
    /// The initial retransmission timeout. RFC 8445 §14.3 recommends 500 ms for agents without better information. With
    /// one server and few candidates, half of that still exceeds the round-trip time.
    static let firstRetransmission = MediaInterval.milliseconds(250)
    static let longestRetransmission = MediaInterval.milliseconds(1600)
    /// How long to wait for a better pair once one pair works.
    static let nominationDelay = MediaInterval.milliseconds(300)
}
