/// The state of a transport.
///
/// new → connecting → connected ⇄ disconnected; each of them → failed or closed. Failed and closed are final, except
/// `failed(.noPath)`, which an ICE restart can recover.
public enum TransportState: Hashable, Sendable {
    /// No authenticated check has arrived yet.
    case new
    /// A path is validated, and the DTLS handshake is in progress.
    case connecting
    /// Media can flow in both directions.
    case connected
    /// No check arrived over any path for `ICETimes.consent`. The transport can recover automatically or by an ICE restart.
    case disconnected(since: MediaTime)
    case failed(TransportFailure)
    /// Either side closed the transport.
    case closed
}

public enum TransportFailure: Error, Hashable, Sendable {
    /// No remote candidate answers checks.
    case noPath
    /// The DTLS handshake failed; a new connection is needed.
    case dtls(DTLSFailure)
}

/// The media in a datagram.
public enum Received: Hashable, Sendable {
    /// No media: STUN, DTLS, or a dropped datagram.
    case nothing
    /// RTP packet: length in bytes from the start of the datagram.
    case rtp(Int)
    /// Compound RTCP packet: length in bytes from the start of the datagram.
    case rtcp(Int)
}

/// Datagrams that were dropped, by reason.
public struct TransportCounters: Hashable, Sendable {
    /// Not well-formed STUN, DTLS, RTP or RTCP (RFC 7983).
    public var malformed: UInt64 = 0
    /// STUN with an unknown username, without the right password, or a response without a request.
    public var strangers: UInt64 = 0
    /// DTLS or media on a path that ICE has not validated.
    public var unvalidated: UInt64 = 0
    /// Media before the keys, or DTLS before the remote fingerprint was known.
    public var early: UInt64 = 0
    /// DTLS after the handshake was released.
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
