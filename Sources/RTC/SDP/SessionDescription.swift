/// A session description as WebRTC uses it (RFC 8866, RFC 8829).
///
/// Read are `v=`, `o=`, `m=` and the attributes that the types below have a place for. All others are tolerated and
/// dropped, among them `s=`, `t=`, `c=`, `b=`, `a=rtcp`, header extensions at session level, and groups that are not
/// BUNDLE. So writing what was read gives an equal description, not the same bytes.
public struct SessionDescription: Hashable, Sendable {
    public var origin: Origin
    /// The mids of each `a=group:BUNDLE`, as written (RFC 8843 §5).
    public var bundleGroups: [[String]] = []
    /// What holds for every section that does not say otherwise.
    public var transport = TransportDescription()
    public var direction: MediaDirection?
    /// `a=ice-lite` (RFC 8839 §5.3).
    public var isICELite = false
    /// `a=extmap-allow-mixed` for all sections (RFC 8285 §6).
    public var allowsMixedExtensions = false
    public var sections: [MediaSection] = []

    public init(origin: Origin) { self.origin = origin }

    /// In bytes: what a message may carry, and twenty times an ordinary offer.
    public static let mostBytes = 256 * 1024
    /// In bytes: a BUNDLE group of all sections with mids of full length takes 4.3 KiB.
    public static let mostLineBytes = 8 * 1024
    /// Two for each person in sight, with room to spare.
    public static let mostSections = 256
    /// Browsers write about 25 in a section.
    public static let mostExtensions = 64
    /// Three layers with retransmission and forward error correction are nine.
    public static let mostSources = 64
    /// `a=ssrc-group` lines of a section, and the sources of one.
    public static let mostSourceGroups = 32
    /// Of a section. Nobody sends more than four layers.
    public static let mostRIDs = 16
    /// `a=msid` lines of a section.
    public static let mostStreams = 16
    /// At each level. A machine with many interfaces has a few dozen.
    public static let mostCandidates = 128
    /// At each level: one for each hash function there is.
    public static let mostFingerprints = 8
    public static let mostBundleGroups = 8
    /// In characters: what fits the one-byte form of a header extension (RFC 8285 §4.2), which carries both.
    public static let mostMIDCharacters = 16
    public static let mostRIDCharacters = 16
}

/// The `o=` line (RFC 8866 §5.2). The address in it is not kept: it means nothing, and browsers write `127.0.0.1`.
public struct Origin: Hashable, Sendable {
    public var username: String
    /// Stays the same for as long as the peer connection lives.
    public var sessionID: UInt64
    /// Rises with every new description of it.
    public var version: UInt64

    public init(username: String = "-", sessionID: UInt64, version: UInt64) {
        (self.username, self.sessionID, self.version) = (username, sessionID, version)
    }
}

/// What a description says about ICE and DTLS, for the session or for one section.
public struct TransportDescription: Hashable, Sendable {
    /// 4 to 256 ICE characters (RFC 8839 §5.4).
    public var ufrag: String?
    /// 22 to 256 ICE characters (RFC 8839 §5.4).
    public var pwd: String?
    /// Those of hash functions that are known; the others are dropped (RFC 8122 §5).
    public var fingerprints: [Fingerprint] = []
    public var setup: Setup?
    /// Those that can be understood: the others are dropped (RFC 8839 §5.1).
    public var candidates: [Candidate] = []
    /// `a=end-of-candidates` (RFC 8840 §8.2).
    public var hasEndOfCandidates = false

    public init() {}

    /// This, with what it leaves open taken from `other`.
    func completed(from other: TransportDescription) -> TransportDescription {
        var whole = self
        // A username fragment and a password belong together.
        if ufrag == nil && pwd == nil { (whole.ufrag, whole.pwd) = (other.ufrag, other.pwd) }
        if fingerprints.isEmpty { whole.fingerprints = other.fingerprints }
        whole.setup = setup ?? other.setup
        if candidates.isEmpty { whole.candidates = other.candidates }
        whole.hasEndOfCandidates = hasEndOfCandidates || other.hasEndOfCandidates
        return whole
    }
}

/// Who begins the DTLS handshake (RFC 8842 §5.3, RFC 4145 §4).
public enum Setup: String, Hashable, Sendable {
    case actpass, active, passive, holdconn
}
