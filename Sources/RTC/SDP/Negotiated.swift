/// The local parameters of a description.
public struct LocalParameters: Hashable, Sendable {
    public var ufrag: String
    public var pwd: String
    public var fingerprint: Fingerprint
    /// All local candidates; none are trickled later.
    public var candidates: [Candidate]
    /// The session id in `o=`, below 2^63 because browsers read it as signed (RFC 8829 §5.2.1).
    public var sessionID: UInt64
    /// The version in `o=`, which increases with each description of the session (RFC 3264 §8).
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

/// Whether the server receives or sends the media of a connection.
public enum AnswerRole: Hashable, Sendable {
    /// The client publishes: it offers to send, and the answer is `recvonly`.
    case receive
    /// The client subscribes: it offers to receive, and the answer is `sendonly` with sources that the server chooses.
    case send
}

/// The RTP source that is sent in a section.
public struct LocalSource: Hashable, Sendable {
    public var ssrc: UInt32
    /// The SSRC of retransmissions; not written unless RTX was negotiated.
    public var rtxSSRC: UInt32?
    /// Browsers synchronize the tracks of one stream, so the audio and video sections of one publisher share it.
    public var msid: MediaStreamID

    public init(ssrc: UInt32, rtxSSRC: UInt32?, msid: MediaStreamID) {
        (self.ssrc, self.rtxSSRC, self.msid) = (ssrc, rtxSSRC, msid)
    }
}

/// The transport parameters of the other side.
public struct RemoteParameters: Hashable, Sendable {
    public var ufrag: String
    public var pwd: String
    /// The fingerprint of the certificate (RFC 8122 §5); SHA-256 if there are several.
    public var fingerprint: Fingerprint
    public var setup: Setup
    /// The session id in `o=`. Another id means another peer connection.
    public var originSessionID: String
    public var isICELite: Bool
    /// Addresses only. An ICE-lite server ignores them.
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
        // RFC 4145 §4: without a=setup the offerer is active.
        setup = transport.setup ?? .active
        originSessionID = "\(session.origin.sessionID)"
        isICELite = session.isICELite
        (candidates, hasEndOfCandidates) = (transport.candidates, transport.hasEndOfCandidates)
    }
}

/// The result of negotiation for one section.
public struct NegotiatedMedia: Hashable, Sendable {
    /// Empty only if the section is rejected and had none.
    public var mid: String
    public var kind: MediaKind
    /// From the local point of view.
    public var direction: MediaDirection
    public var isRejected: Bool
    /// In the offer's order of preference.
    public var codecs: [Codec] = []
    public var extensions: [HeaderExtension: UInt8] = [:]
    /// Whether both sides may mix one-byte and two-byte header extensions (RFC 8285 §6).
    public var allowsMixedExtensions = false
    public var hasReducedSizeRTCP = false
    /// The sources in `a=ssrc`, without those for retransmission or error correction. Empty if simulcast uses RIDs.
    public var remoteSources: [RemoteSource] = []
    /// The layers that the other side sends, in simulcast order with the preferred first (RFC 8853 §5.2).
    public var rids: [RID] = []
    /// The stream and track ids of what the other side sends.
    public var msid: MediaStreamID?
    /// The source to send here, as written into the answer.
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
    public enum Direction: String, Hashable, Sendable {
        case send, recv
    }

    public var id: String
    /// From the local point of view.
    public var direction: Direction
    /// Whether the offerer starts with this layer paused (RFC 8853 §5.2).
    public var isPaused: Bool
    /// Empty means all payload types of the section.
    public var payloadTypes: [UInt8]

    public init(id: String, direction: Direction, isPaused: Bool = false, payloadTypes: [UInt8] = []) {
        (self.id, self.direction, self.isPaused, self.payloadTypes) = (id, direction, isPaused, payloadTypes)
    }
}

/// The result of answering an offer.
public struct Negotiated: Hashable, Sendable {
    public var remote: RemoteParameters
    /// One value for each section of the offer, in its order.
    public var media: [NegotiatedMedia]
    /// The answer as text.
    public var answer: String
}
