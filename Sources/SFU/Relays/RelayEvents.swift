import RTC

/// Identifies a relay among those of a router.
public struct RelayID: Hashable, Sendable {
    /// The number of the other node.
    public var node: UInt16
    /// The number of the other node's life. Late events about a relay to an earlier life therefore have no effect on relays to the current
    /// one.
    public var life: UInt32
    /// The index of the relay among those between the two nodes. Of a node with *n* media loops, loop *index* mod *n* has its end. The
    /// relay carries what the clients of the loop with its index publish.
    public var index: UInt8

    public init(node: UInt16, life: UInt32, index: UInt8) { (self.node, self.life, self.index) = (node, life, index) }
}

/// What a node must know of another one to connect a relay. It is from the other node's sealed record.
public struct RelayPeer: Sendable {
    /// The fingerprint of the other node's certificate. No other certificate is accepted.
    public var fingerprint: Fingerprint
    /// The addresses of the other end, with the sockets to reach them from. At most `ICEControllingAgent.maxPairs` are used.
    public var paths: [Path]
    /// Whether this end is controlling in ICE and the client in DTLS: that of the node with the lower number.
    public var isController: Bool

    public init(fingerprint: Fingerprint, paths: [Path], isController: Bool) {
        (self.fingerprint, self.paths, self.isController) = (fingerprint, paths, isController)
    }
}

/// An event about a relay.
public enum RelayEvent: Equatable, Sendable {
    /// The credentials of this end in an attempt to connect. The owner must pass them to `receiveRelayCredentials` of the router at
    /// the other end.
    case credentials(RelayID, attempt: UInt32, ICECredentials)
    /// The relay can carry media now (true), or no longer (false).
    case connected(RelayID, Bool)
    /// The relay has reached a limit for the first time since it was opened.
    case full(RelayID, RelayLimit)
    /// The number of the largest layers of each video that the relay does not offer, because it loses too many packets. Zero if it offers
    /// all layers again.
    case thinned(RelayID, layers: Int)

    /// The relay that the event is about.
    public var relay: RelayID {
        switch self {
        case .credentials(let id, _, _), .connected(let id, _), .full(let id, _), .thinned(let id, _): id
        }
    }
}

/// A limit on the streams in one direction of a relay. Streams beyond the limit wait until there is room.
public enum RelayLimit: Hashable, Sendable {
    /// The clients whose streams this end demands: `RelayMessage.maxClients`.
    case clients
    /// The clients whose streams the other end demands: also `RelayMessage.maxClients`. It is exceeded if the other end ignores the limit,
    /// or if a new demand arrives before the message that ends an earlier one. The streams of clients beyond the limit are not sent.
    case demands
    /// The encodings that are sent at a time: `RelayChannels.count`.
    case encodings
}
