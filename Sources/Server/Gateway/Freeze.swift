import Cluster
import Signaling
import Wire

/// What waits while the rules of a node must not act, and which sockets are closed if that lasts.
///
/// Memory stays bounded, however long it lasts: sockets are not read, the news of a stream or session replaces older news, and new
/// requests beyond ``maxInputs`` are refused. Inputs about what exists already, such as closed sockets, are always kept.
struct Freeze {
    /// How long clients without media stay connected. After that, they may find a node that acts.
    static let longestStay = Duration.seconds(30)
    /// The time between two closings after that, for clients that came in between.
    static let interval = Duration.seconds(5)
    /// How many inputs wait. An input has some hundred bytes, and its message at most as many as a client may send.
    static let maxInputs = 65_536

    /// What to do with an input.
    enum Verdict: Equatable {
        /// It waits behind the others.
        case append
        /// It replaces the one that waits at this index.
        case replace(Int)
        /// Too many wait. The socket is closed.
        case refuse(SocketID)
        /// It is not needed: the rules have never heard of its socket.
        case drop
    }

    /// Something of which only the latest news counts.
    private enum Topic: Hashable {
        case connection(ConnectionID, MediaSide)
        case subscription(SessionID, StreamID, ConnectionID)
        case quality(SessionID, StreamID)
        case layers(SessionID, StreamID)
        case bandwidth(SessionID)
        case speaker(SessionID)
        case relay(NodeTag, UInt8)
    }

    /// When to call ``handleTimeout(at:)``; nil while the rules act.
    private(set) var nextTimeout: Timestamp?
    private var indices: [Topic: Int] = [:]
    /// The open sockets whose arrival was refused. Without them, each refused arrival would leave an input about its end.
    private var refused: Set<SocketID> = []

    /// Whether the rules must not act.
    var isFrozen: Bool { nextTimeout != nil }

    mutating func begin(at now: Timestamp) {
        if !isFrozen { nextTimeout = now + Self.longestStay }
    }

    mutating func end() { self = Freeze() }

    /// - Returns: whether to close the sockets of clients without media.
    mutating func handleTimeout(at now: Timestamp) -> Bool {
        guard let due = nextTimeout, due <= now else { return false }
        nextTimeout = now + Self.interval
        return true
    }

    /// Decides about an input.
    ///
    /// - Parameter waiting: the number of inputs that wait. Until the end, none is removed.
    mutating func admit(_ input: Input, waiting: Int) -> Verdict {
        if let topic = Self.topic(of: input) {
            if let index = indices[topic] { return .replace(index) }
            indices[topic] = waiting
        } else if case .closed(let socket, _) = input, refused.remove(socket) != nil {
            return .drop
        } else if waiting >= Self.maxInputs, let socket = Self.requester(of: input) {
            if Self.isArrival(input) { refused.insert(socket) }
            return .refuse(socket)
        }
        return .append
    }

    /// Whether this is the first input about its socket.
    private static func isArrival(_ input: Input) -> Bool {
        switch input {
        case .arrived, .legacyArrived, .perchArrived, .resourceArrived, .operated: true
        default: false
        }
    }

    private static func topic(of input: Input) -> Topic? {
        switch input {
        case .media(let event): topic(of: event)
        case .relay(.credentials(let credentials), let life): .relay(life, credentials.index)
        default: nil
        }
    }

    private static func topic(of event: MediaEvent) -> Topic? {
        switch event {
        case .connected(let client, let side, _): .connection(client, side)
        case .subscriptionChanged(let news, let subscriber): .subscription(news.session, news.stream, subscriber)
        case .streamQuality(let quality): .quality(quality.session, quality.stream)
        case .layersWanted(let wanted, _): .layers(wanted.session, wanted.stream)
        case .full(let session, _): .bandwidth(session)
        case .speaking(let session, _): .speaker(session)
        case .answered, .refused, .estimated, .closed: nil
        }
    }

    /// The socket whose client requests something; nil for inputs that no client can cause without end.
    private static func requester(of input: Input) -> SocketID? {
        switch input {
        case .arrived(let arrival): arrival.socket
        case .legacyArrived(let arrival): arrival.socket
        case .perchArrived(let arrival): arrival.socket
        case .resourceArrived(let arrival): arrival.socket
        case .operated(let request): request.socket
        case .asked(let socket, _), .perch(let socket, _), .message(let socket, _), .unreadable(let socket, _),
            .requested(let socket, _), .moved(let socket, _), .suspended(let socket), .recovered(let socket):
            socket
        default: nil
        }
    }
}
