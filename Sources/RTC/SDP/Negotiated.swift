/// The parameters of the local side that go into a description.
public struct LocalParameters: Hashable, Sendable {
    public var ufrag: String
    public var pwd: String
    public var fingerprint: Fingerprint
    /// All local candidates, because none are sent later (no trickle ICE).
    public var candidates: [Candidate]
    /// The session id in `o=`. It must be below 2^63, because browsers read it as a signed number (RFC 8829 §5.2.1).
    public var sessionID: UInt64
    /// The version in `o=`, which increases with each description in a session (RFC 3264 §8).
    public var version: UInt64
    public var cname: String

    public init(
        ufrag: String, pwd: String, fingerprint: Fingerprint, candidates: [Candidate], sessionID: UInt64,
        version: UInt64 = 1, cname: String
    ) {
        (self.ufrag, self.pwd, self.fingerprint, self.candidates) = (ufrag, pwd, fingerprint, candidates)
        (self.sessionID, self.version, self.cname) = (sessionID, version, cname)
    }

    func transport(setup: Setup) -> TransportDescription {
        var transport = TransportDescription()
        (transport.ufrag, transport.pwd, transport.setup) = (ufrag, pwd, setup)
        transport.fingerprints = [fingerprint]
        return transport
    }
}

/// Whether the server receives or sends media on a connection.
public enum AnswerRole: Hashable, Sendable {
    /// The client publishes: it offers to send, and the answer is `recvonly`.
    case receive
    /// The client subscribes: it offers to receive, and the answer is `sendonly` with sources that the server chooses.
    case send
}

/// The RTP source to send in a section.
public struct LocalSource: Hashable, Sendable {
    public var ssrc: UInt32
    /// The SSRC of the source's retransmissions. Not written unless RTX was negotiated.
    public var rtxSSRC: UInt32?
    /// The ids of the media stream and the track. Browsers synchronize the tracks of one stream, so the audio and video
    /// sections of one publisher share a stream id.
    public var msid: MediaStreamID

    public init(ssrc: UInt32, rtxSSRC: UInt32?, msid: MediaStreamID) {
        (self.ssrc, self.rtxSSRC, self.msid) = (ssrc, rtxSSRC, msid)
    }
}

/// The transport parameters of the other side.
public struct RemoteParameters: Hashable, Sendable {
    public var ufrag: String
    public var pwd: String
    /// The fingerprint of the remote certificate (RFC 8122 §5). If the description contains several, SHA-256 is preferred.
    public var fingerprint: Fingerprint
    public var setup: Setup
    /// The session id in `o=`. A different id means a different peer connection.
    public var originSessionID: String
    public var isICELite: Bool
    /// The remote candidates. An ICE-lite server ignores them.
    public var candidates: [Candidate]
    public var hasEndOfCandidates: Bool

    /// - Throws: `.missing` with a message that names the missing attribute.
    init(_ transport: TransportDescription, of session: SessionDescription) throws(SDPError) {
        guard let ufrag = transport.ufrag else { throw SDPError(.missing, "The description has no a=ice-ufrag.") }
        guard let pwd = transport.pwd else { throw SDPError(.missing, "The description has no a=ice-pwd.") }
        let byStrength = Fingerprint.Algorithm.allCases.compactMap { algorithm in
            transport.fingerprints.first { $0.algorithm == algorithm }
        }
        guard let fingerprint = byStrength.first else {
            throw SDPError(.missing, "The description has no a=fingerprint with sha-256, sha-384 or sha-512.")
        }
        (self.ufrag, self.pwd, self.fingerprint) = (ufrag, pwd, fingerprint)
        // Without a=setup, the offerer is active (RFC 4145 §4).
        setup = transport.setup ?? .active
        originSessionID = "\(session.origin.sessionID)"
        isICELite = session.isICELite
        (candidates, hasEndOfCandidates) = (transport.candidates, transport.hasEndOfCandidates)
    }
}

/// The result of negotiation for one section.
public struct NegotiatedMedia: Hashable, Sendable {
    /// The section's mid. Empty only if the section is rejected and has no mid.
    public var mid: String
    public var kind: MediaKind
    /// The direction of media, from the local point of view.
    public var direction: MediaDirection
    public var isRejected: Bool
    /// The accepted codecs. For a publisher, those that most subscribers can decode come first. For a subscriber,
    /// they have the offer's order.
    public var codecs: [Codec] = []
    public var extensions: [HeaderExtension: UInt8] = [:]
    /// Whether both sides may mix one-byte and two-byte header extensions (RFC 8285 §6).
    public var allowsMixedExtensions = false
    public var hasReducedSizeRTCP = false
    /// The sources that the other side announced in `a=ssrc`, without those for retransmission or error correction. Empty if
    /// simulcast uses RIDs.
    public var remoteSources: [RemoteSource] = []
    /// The simulcast layers, the preferred one first (RFC 8853 §5.2). For the answerer, these are the layers that the
    /// other side sends; for the offerer, those that the local side sends.
    public var rids: [RID] = []
    /// The stream and track ids of the media that the other side sends; nil if the description has none.
    public var msid: MediaStreamID?
    /// The source to send in this section, as written into the answer; nil if nothing is sent.
    public var localSource: LocalSource?

    public init(mid: String, kind: MediaKind, direction: MediaDirection, isRejected: Bool = false) {
        (self.mid, self.kind, self.direction, self.isRejected) = (mid, kind, direction, isRejected)
    }

    init(rejecting section: MediaSection) {
        (mid, kind, direction, isRejected) = (section.mid ?? "", section.kind, .inactive, true)
    }

    init(accepting section: MediaSection, mid: String, direction: MediaDirection) {
        (self.mid, kind, self.direction, isRejected) = (mid, section.kind, direction, false)
        hasReducedSizeRTCP = section.hasReducedSizeRTCP
        remoteSources = RemoteSource.all(in: section)
        msid = section.streams.first
    }
}

/// An RTP source that the other side announced.
public struct RemoteSource: Hashable, Sendable {
    public var ssrc: UInt32
    public var rtxSSRC: UInt32?
    public var cname: String?
    public var msid: MediaStreamID?

    public init(ssrc: UInt32, rtxSSRC: UInt32? = nil, cname: String? = nil, msid: MediaStreamID? = nil) {
        (self.ssrc, self.rtxSSRC, self.cname, self.msid) = (ssrc, rtxSSRC, cname, msid)
    }

    static func all(in section: MediaSection) -> [RemoteSource] {
        var retransmissions: [UInt32: UInt32] = [:]
        var repairing: Set<UInt32> = []
        for group in section.sourceGroups where group.semantics != .simulcast && group.ssrcs.count == 2 {
            let (source, repair) = (group.ssrcs[0], group.ssrcs[1])
            guard source != repair else { continue }
            repairing.insert(repair)
            if group.semantics == .retransmission { retransmissions[source] = repair }
        }
        return section.sources.filter { !repairing.contains($0.ssrc) }.map { source in
            RemoteSource(
                ssrc: source.ssrc, rtxSSRC: retransmissions[source.ssrc], cname: source.cname, msid: source.msid)
        }
    }
}

/// One simulcast layer.
public struct RID: Hashable, Sendable {
    /// Whether the layer is sent or received.
    public enum Direction: String, Hashable, Sendable {
        case send, recv
    }

    public var id: String
    /// The direction of the layer, from the local point of view.
    public var direction: Direction
    /// Whether the offerer starts with this layer paused (RFC 8853 §5.2).
    public var isPaused: Bool
    /// The payload types that the layer may use. Empty means all payload types of the section.
    public var payloadTypes: [UInt8]

    public init(id: String, direction: Direction, isPaused: Bool = false, payloadTypes: [UInt8] = []) {
        (self.id, self.direction, self.isPaused, self.payloadTypes) = (id, direction, isPaused, payloadTypes)
    }
}

/// The result of answering an offer.
public struct Negotiated: Hashable, Sendable {
    public var remote: RemoteParameters
    /// One value for each section of the offer, in the offer's order.
    public var media: [NegotiatedMedia]
    /// The answer as text.
    public var answer: String
}
