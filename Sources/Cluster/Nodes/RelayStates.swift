/// The states of the relays from the asked node to another one, for operators.
public struct RelayStates: Hashable, Sendable {
    /// The number of relays over which media can cross.
    public var connected = 0
    /// The number of relays whose two ends try to reach each other.
    public var connecting = 0
    /// How many of the connected relays do not carry the largest layers of videos, because they lose too many packets.
    public var thinned = 0
    /// Why a relay does not connect: the fault of its last failed attempt, from the third attempt on that failed so.
    public var fault: RelayFault?

    /// No relays.
    public init() {}
}

/// Why a relay does not connect, although both nodes try. The raw values are in responses.
public enum RelayFault: String, Hashable, Sendable {
    /// Both ends have each other's credentials, but no valid datagrams from the other node arrive.
    case unreachable
    /// The other node has not posted the credentials of its end.
    case unanswered
}
