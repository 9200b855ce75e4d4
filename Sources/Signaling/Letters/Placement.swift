import Cluster
import Wire

/// A state machine that exists at most once in a cluster, so that its node must have claimed its place.
///
/// All other machines need no place. A client is on the node of its socket, and a match or call where it was made; their
/// ids begin with the node's tag. The sessions of matches, calls, rooms and legacy clients are on the same node as those. An
/// application can make tokens for them, so their ids have the tag of that node, too.
public enum PlacedMachine: Hashable, Sendable {
    case person(IdentityID)
    /// A room with its session.
    case room(RoomName)
    /// A session that people join with tokens of an application.
    case session(SessionID)
    /// The queue of strangers who found nobody on their own node.
    case hall
    case directory
    case deviceCodes
}

/// What storage keeps for a machine. The shell reads it after it has claimed the machine's place: what was read before the
/// claim may be older than what another node has stored.
public enum StoredState: Equatable, Sendable {
    /// Storage keeps nothing for this machine.
    case nothing
    case person(PersonRecord)
    case room(StoredRoom)
    case session(SessionModeration)
}

extension WireError {
    /// The error for a request that needs a machine on another node.
    ///
    /// - Parameter tag: the node; nil if the client should connect to any node.
    static func elsewhere(_ machine: PlacedMachine, at tag: NodeTag?) -> WireError {
        let sentence =
            switch machine {
            case .person: "You are connected to another server of this cluster. Connect to that server."
            case .room: "This room is on another server of this cluster. Join it there."
            case .session: "This session is on another server of this cluster. Join it there."
            case .hall: "Strangers meet on another server of this cluster. Search there."
            case .directory: "The people nearby are on another server of this cluster. Look for them there."
            case .deviceCodes: "Devices are linked on another server of this cluster. Link yours there."
            }
        return WireError(.elsewhere, sentence, retryable: true, at: tag?.nodeName)
    }

    /// The error for a client that was redirected to this node, but whose person remains on another one. It sends the client back,
    /// and is not retryable: if the client repeated the request that led here, it would be redirected back and forth for as
    /// long as the person's other device stays.
    static func heldElsewhere(at tag: NodeTag) -> WireError {
        WireError(
            .elsewhere,
            "You are also connected with another tab or device, to another server of this cluster. End what you do there "
                + "first.", at: tag.nodeName)
    }

    /// The error for a request to call a contact who is online on another node.
    static func calleeElsewhere(at tag: NodeTag) -> WireError {
        WireError(
            .elsewhere, "This person is on another server of this cluster. Call them there.", retryable: true,
            at: tag.nodeName)
    }

    /// The error for a request to rejoin a call that another node has.
    static func callElsewhere(at tag: NodeTag) -> WireError {
        WireError(
            .elsewhere, "This call is on another server of this cluster. Rejoin it there.", retryable: true,
            at: tag.nodeName)
    }

    /// The error for a request to rejoin a call whose node has stopped, and which no other node has continued yet.
    static let callMoves = WireError(
        .clusterUnavailable, "Another server of this cluster is about to continue this call. Try again in a moment.",
        retryable: true, retryAfter: .seconds(1))

    /// The error for an idle client of a node that is about to stop.
    static let serverStops = WireError(
        .elsewhere, "This server is about to stop. Connect to another server of this cluster.", retryable: true)

    /// The error for a request that needs a machine whose node cannot be found now.
    static let placesUnavailable = WireError(
        .clusterUnavailable, "The servers of this cluster cannot reach each other. Try again in a moment.",
        retryable: true, retryAfter: .seconds(2))

    /// The error for a request that would have to wait for a machine's place with too many others.
    static let placeCrowded = WireError(
        .clusterUnavailable, "Too many requests wait for the other servers of this cluster. Try again in a moment.",
        retryable: true, retryAfter: .seconds(2))
}
