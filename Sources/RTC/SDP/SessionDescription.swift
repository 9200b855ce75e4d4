/// A session description as WebRTC uses it (RFC 8866, RFC 8829).
///
/// The parser reads `v=`, `o=`, `m=` and the attributes for which the types below have properties. It ignores all
/// others, including `s=`, `t=`, `c=`, `b=`, `a=rtcp`, session-level header extensions, and groups other than BUNDLE.
/// Writing a parsed description and parsing the result gives an equal value, but the text may differ from the
/// original, because ignored lines are lost.
public struct SessionDescription: Hashable, Sendable {
    public var origin: Origin
    /// The mids of each `a=group:BUNDLE`, as written (RFC 8843 §5).
    public var bundleGroups: [[String]] = []
    /// The transport attributes of the session level, used by sections that do not set their own.
    public var transport = TransportDescription()
    public var direction: MediaDirection?
    /// Whether the description has `a=ice-lite` (RFC 8839 §5.3).
    public var isICELite = false
    /// Whether the session level has `a=extmap-allow-mixed`, which applies to all sections (RFC 8285 §6).
    public var allowsMixedExtensions = false
    public var sections: [MediaSection] = []

    public init(origin: Origin) { self.origin = origin }

    /// The maximum length of a description in bytes. It equals the maximum size of a signaling message and is twenty
    /// times that of an ordinary offer.
    public static let maxBytes = 256 * 1024
    /// The maximum length of a line in bytes. A BUNDLE group of `maxSections` mids of full length takes 4.3 KiB.
    public static let maxLineBytes = 8 * 1024
    /// The maximum number of sections. Each visible participant needs two, so this is enough for 128 participants.
    public static let maxSections = 256
    /// The maximum number of `a=extmap` lines in a section. Browsers write about 25.
    public static let maxExtensions = 64
    /// The maximum number of sources in a section. Three layers with retransmission and forward error correction need nine.
    public static let maxSources = 64
    /// The maximum number of `a=ssrc-group` lines in a section, and of sources in a group.
    public static let maxSourceGroups = 32
    /// The maximum number of RIDs in a section. Known clients send at most four layers.
    public static let maxRIDs = 16
    /// The maximum number of `a=msid` lines in a section.
    public static let maxStreams = 16
    /// The maximum number of candidates at session level and in each section. A host with many network interfaces has a few
    /// dozen.
    public static let maxCandidates = 128
    /// The maximum number of fingerprints at session level and in each section. One for each hash function is enough.
    public static let maxFingerprints = 8
    public static let maxBundleGroups = 8
    /// The maximum length of a MID or RID, the longest that fits in a header extension of the one-byte form (RFC 8285 §4.2).
    public static let maxMIDCharacters = 16
    public static let maxRIDCharacters = 16
}

/// The `o=` line (RFC 8866 §5.2). The address in it has no meaning (browsers write `127.0.0.1`) and is not stored.
public struct Origin: Hashable, Sendable {
    public var username: String
    /// The session id, which stays the same during the life of a peer connection.
    public var sessionID: UInt64
    /// The version, which increases with each new description.
    public var version: UInt64

    public init(username: String = "-", sessionID: UInt64, version: UInt64) {
        (self.username, self.sessionID, self.version) = (username, sessionID, version)
    }
}

/// The ICE and DTLS attributes of the session or of one section. Absent attributes are nil or empty.
public struct TransportDescription: Hashable, Sendable {
    /// The username fragment, 4 to 256 ICE characters (RFC 8839 §5.4).
    public var ufrag: String?
    /// The password, 22 to 256 ICE characters (RFC 8839 §5.4).
    public var pwd: String?
    /// The fingerprints with supported hash functions (RFC 8122 §5).
    public var fingerprints: [Fingerprint] = []
    public var setup: Setup?
    /// The supported candidates (RFC 8839 §5.1).
    public var candidates: [Candidate] = []
    /// Whether `a=end-of-candidates` is present (RFC 8840 §8.2).
    public var hasEndOfCandidates = false

    public init() {}

    /// Returns a copy in which missing attributes are filled in from `other`.
    func completed(from other: TransportDescription) -> TransportDescription {
        var whole = self
        // Take both or neither, because a username fragment and a password belong together.
        if ufrag == nil && pwd == nil { (whole.ufrag, whole.pwd) = (other.ufrag, other.pwd) }
        if fingerprints.isEmpty { whole.fingerprints = other.fingerprints }
        whole.setup = setup ?? other.setup
        if candidates.isEmpty { whole.candidates = other.candidates }
        whole.hasEndOfCandidates = hasEndOfCandidates || other.hasEndOfCandidates
        return whole
    }
}

/// The DTLS role. The active side starts the handshake (RFC 8842 §5.3, RFC 4145 §4).
public enum Setup: String, Hashable, Sendable {
    case actpass, active, passive, holdconn
}
