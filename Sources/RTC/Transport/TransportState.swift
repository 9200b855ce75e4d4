/// The state of a transport.
///
/// new → connecting → connected ⇄ disconnected. Each of these can become failed or closed. Failed and closed are final, except
/// `failed(.noPath)`, from which an ICE restart can recover.
public enum TransportState: Hashable, Sendable {
    /// No path is validated yet.
    case new
    /// A path is validated, and the DTLS handshake is in progress.
    case connecting
    /// Media can flow in both directions.
    case connected
    /// All paths are lost: no check has arrived for `ICETimes.consent`, or the sockets were closed. The transport can
    /// recover automatically or by an ICE restart.
    case disconnected(since: MediaTime)
    case failed(TransportFailure)
    /// Either side closed the transport.
    case closed
}

/// The reason why a transport failed.
public enum TransportFailure: Error, Hashable, Sendable {
    /// No remote candidate answers checks.
    case noPath
    /// The DTLS handshake failed; a new connection is needed.
    case dtls(DTLSFailure)
}

/// The media in a datagram.
public enum Received: Hashable, Sendable {
    /// The datagram contained no media: it was STUN or DTLS, or it was dropped.
    case nothing
    /// An RTP packet, with its length in bytes from the start of the datagram.
    case rtp(Int)
    /// A compound RTCP packet, with its length in bytes from the start of the datagram.
    case rtcp(Int)
}

/// The numbers of dropped datagrams, by reason.
public struct TransportCounters: Hashable, Sendable {
    /// Datagrams that are not well-formed STUN, DTLS, RTP or RTCP (RFC 7983).
    public var malformed: UInt64 = 0
    /// STUN messages with an unknown username or without the right password, and responses without a request.
    public var strangers: UInt64 = 0
    /// DTLS or media on a path that ICE has not validated.
    public var unvalidated: UInt64 = 0
    /// Media that arrived before the keys were negotiated, or DTLS that arrived before the remote fingerprint was known.
    public var early: UInt64 = 0
    /// DTLS that arrived after the handshake was released.
    public var late: UInt64 = 0
    /// Media that failed authentication.
    public var forged: UInt64 = 0
    /// Media that was already received.
    public var replayed: UInt64 = 0
    /// Media from more SSRCs than a peer may use.
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
        case .unknownName, .unauthenticated, .unsolicited: strangers &+= 1
        }
    }
}
