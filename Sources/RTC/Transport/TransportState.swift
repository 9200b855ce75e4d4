/// How it stands between us and one peer.
///
/// new → connecting → connected ⇄ disconnected; each of them → failed or closed. Only `failed(.noPath)` can be left again,
/// by an ICE restart.
public enum TransportState: Hashable, Sendable {
    /// Nobody with the right password has come yet.
    case new
    /// There is a path; the keys are being agreed on.
    case connecting
    /// Media can flow both ways.
    case connected
    /// Nothing was heard over any path for `ICETimes.consent`. It may come back by itself or by an ICE restart.
    case disconnected(since: MediaTime)
    case failed(TransportFailure)
    /// One of the two ended it.
    case closed
}

public enum TransportFailure: Error, Hashable, Sendable {
    /// No candidate of the other end answers.
    case noPath
    /// There are no keys, and will be none: a new connection is needed.
    case dtls(DTLSFailure)
}

/// What came with a datagram.
public enum Received: Hashable, Sendable {
    /// Nothing for the owner: it was the transport's own business, or worth nothing.
    case nothing
    /// An RTP packet: the datagram's first so many bytes.
    case rtp(Int)
    /// A compound of RTCP packets: the datagram's first so many bytes.
    case rtcp(Int)
}

/// Datagrams that were dropped, by reason.
public struct TransportCounters: Hashable, Sendable {
    /// No STUN, DTLS, RTP or RTCP (RFC 7983), or none that is well formed.
    public var malformed: UInt64 = 0
    /// STUN for another name, or without the password, or answering nothing.
    public var strangers: UInt64 = 0
    /// DTLS or media from an address that has not proved itself by ICE.
    public var unvalidated: UInt64 = 0
    /// Media before there were keys, or DTLS before the other end's fingerprint was known.
    public var early: UInt64 = 0
    /// DTLS when the handshake is over and gone.
    public var late: UInt64 = 0
    /// Media that was not made with the keys.
    public var forged: UInt64 = 0
    /// Media that had come already.
    public var replayed: UInt64 = 0
    /// Media from more sources than a peer may have.
    public var tooManySources: UInt64 = 0

    public init() {}

    mutating func count(_ failure: SRTPFailure) {
        switch failure {
        case .malformed: malformed &+= 1
        case .authentication: forged &+= 1
        case .replayed: replayed &+= 1
        case .tooManySources: tooManySources &+= 1
        }
    }

    mutating func count(_ drop: ICEDrop) {
        switch drop {
        case .malformed: malformed &+= 1
        case .unknownName, .unauthenticated, .unasked: strangers &+= 1
        }
    }
}
