/// What this side says of itself in a description.
public struct LocalParameters: Hashable, Sendable {
    public var ufrag: String
    public var pwd: String
    public var fingerprint: Fingerprint
    /// All of them: nothing is added later.
    public var candidates: [Candidate]
    /// Of `o=`. Below 2^63, because browsers read it as signed (RFC 8829 §5.2.1).
    public var sessionID: UInt64
    /// Of `o=`: one more with each description of the same session (RFC 3264 §8).
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

/// What the server does with the media of a connection.
public enum AnswerRole: Hashable, Sendable {
    /// The client publishes: it offers to send, and is answered `recvonly`.
    case receive
    /// The client watches: it offers to receive, and is answered `sendonly`, with sources that we choose.
    case send
}

/// What we send in a section.
public struct LocalSource: Hashable, Sendable {
    public var ssrc: UInt32
    /// For retransmissions; not written where none were negotiated.
    public var rtxSSRC: UInt32?
    /// Tracks of one stream are played in step, so an audio and a video section of one person share the stream.
    public var msid: MediaStreamID

    public init(ssrc: UInt32, rtxSSRC: UInt32?, msid: MediaStreamID) {
        (self.ssrc, self.rtxSSRC, self.msid) = (ssrc, rtxSSRC, msid)
    }
}

/// What the transport needs to know of the other side.
public struct RemoteParameters: Hashable, Sendable {
    public var ufrag: String
    public var pwd: String
    /// The SHA-256 one if there is one; it must be the certificate's (RFC 8122 §5).
    public var fingerprint: Fingerprint
    public var setup: Setup
    /// Of `o=`: another one is another peer connection.
    public var originSessionID: String
    public var isICELite: Bool
    /// Addresses only. The server never sends anything to them.
    public var candidates: [Candidate]
    public var hasEndOfCandidates: Bool

    /// - Throws: `.missing` with a sentence that names what is not there.
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
        // RFC 4145 §4: without one, whoever offers is active.
        setup = transport.setup ?? .active
        originSessionID = "\(session.origin.sessionID)"
        isICELite = session.isICELite
        (candidates, hasEndOfCandidates) = (transport.candidates, transport.hasEndOfCandidates)
    }
}

/// What was agreed for one section.
public struct NegotiatedMedia: Hashable, Sendable {
    /// Empty only where the section is rejected and had none.
    public var mid: String
    public var kind: MediaKind
    /// Ours.
    public var direction: MediaDirection
    public var isRejected: Bool
    /// In the offer's order, which is the offerer's preference.
    public var codecs: [Codec] = []
    public var extensions: [HeaderExtension: UInt8] = [:]
    /// Whether extensions may come in both forms, and ours may take the two-byte one (RFC 8285 §6).
    public var allowsMixedExtensions = false
    public var hasReducedSizeRTCP = false
    /// As `a=ssrc` has them, without those that only repair others. None where simulcast is told apart by rids.
    public var remoteSources: [RemoteSource] = []
    /// Of what the other side sends, in simulcast order: the preferred first (RFC 8853 §5.2).
    public var rids: [RID] = []
    /// What the other side calls what it sends.
    public var msid: MediaStreamID?
    /// What we were told to send here, and wrote.
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

/// A source that the other side announced.
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

/// One layer of simulcast.
public struct RID: Hashable, Sendable {
    public enum Direction: String, Hashable, Sendable {
        case send, recv
    }

    public var id: String
    /// Ours.
    public var direction: Direction
    /// The offerer does not send it for now (RFC 8853 §5.2).
    public var isPaused: Bool
    /// Empty is all of the section.
    public var payloadTypes: [UInt8]

    public init(id: String, direction: Direction, isPaused: Bool = false, payloadTypes: [UInt8] = []) {
        (self.id, self.direction, self.isPaused, self.payloadTypes) = (id, direction, isPaused, payloadTypes)
    }
}

/// An offer and the answer to it.
public struct Negotiated: Hashable, Sendable {
    public var remote: RemoteParameters
    /// As many as the offer has sections, in its order.
    public var media: [NegotiatedMedia]
    /// The answer as text.
    public var answer: String
}
