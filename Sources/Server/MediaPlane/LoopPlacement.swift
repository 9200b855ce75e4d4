import Cluster
import Signaling
import Wire

/// Decides which media loop serves each client, and so where each command for the media plane goes.
///
/// A client is placed by its first offer, stream or subscription. Its peer connections cannot move, so it keeps its loop
/// until it leaves. Packets between two loops cost more than packets within one, so a session stays on one loop while
/// it is small. A large session is spread, because one core cannot serve it.
///
/// The load of a loop is the sum of its clients' loads. A client counts one, plus one for each of its streams and
/// subscriptions; of the subscriptions, at most ``countedSubscriptions`` count. A client with many subscriptions gets
/// smaller layers, since its network limits what it can receive, so further ones add little. Until its first
/// subscription, a client counts as if it had that many: clients are usually placed before they subscribe, and many
/// may join at once.
///
/// A client of another node has no loop here: its streams arrive on the loops that have relays to its node.
///
/// Invariant: only clients with an offer, a stream or a subscription are stored, and only streams of such clients and of those of other
/// nodes.
struct LoopPlacement: Equatable, Sendable {
    /// The loops that a command goes to.
    enum Destination: Equatable, Sendable {
        case loop(Int)
        case all
    }

    /// The number of subscriptions of a client above which further ones do not count as load.
    static let countedSubscriptions = 8
    /// The load of a session on one loop above which its new clients go to the loop with the least load. A room of 25 in
    /// which each person publishes a camera and a screen stays below. A webinar of 500 viewers has three times as much.
    static let maxLoadTogether = 300

    /// A client that is placed, and what it has.
    private struct Client: Equatable {
        let loop: Int
        var hasOffered = false
        /// The session of the latest offer.
        var offered: SessionID?
        var streams: Set<StreamID> = []
        var subscriptions: Set<StreamID> = []
        /// Whether the client has ever subscribed.
        var hasSubscribed = false
        /// The client's sessions, each with the number of its streams, subscriptions and offers that name it.
        var sessions: [SessionID: Int] = [:]

        var isPresent: Bool { hasOffered || !streams.isEmpty || !subscriptions.isEmpty }
        var load: Int {
            1 + streams.count + (hasSubscribed ? min(subscriptions.count, countedSubscriptions) : countedSubscriptions)
        }

        mutating func enter(_ session: SessionID) { sessions[session, default: 0] += 1 }

        mutating func exit(_ session: SessionID) {
            sessions[session] = sessions[session].flatMap { $0 > 1 ? $0 - 1 : nil }
        }
    }

    /// A published stream.
    private struct Stream: Equatable {
        let session: SessionID
        let publisher: ConnectionID
        var subscribers: Set<ConnectionID> = []
    }

    /// What a session has on one loop.
    private struct Share: Equatable {
        var clients = 0
        var load = 0
    }

    /// The load of each loop.
    private(set) var loads: [Int]
    private var clients: [ConnectionID: Client] = [:]
    private var streams: [StreamID: Stream] = [:]
    /// The shares of each session, keyed by loop.
    private var sessions: [SessionID: [Int: Share]] = [:]

    /// The life of this node; nil without a cluster.
    private let tag: NodeTag?

    /// - Parameter tag: the life of this node; nil without a cluster.
    init(loops: Int, tag: NodeTag? = nil) {
        loads = Array(repeating: 0, count: max(1, loops))
        self.tag = tag
    }

    /// Returns the client's loop; nil if it is not placed.
    func loop(of client: ConnectionID) -> Int? { clients[client]?.loop }

    /// Records a command, and returns where it goes. Every router must know every stream, so commands about streams go to
    /// all loops. A command that names a client without a loop goes to the first loop, which answers it if necessary.
    mutating func place(_ command: MediaCommand) -> Destination {
        guard loads.count > 1 else { return .loop(0) }
        switch command {
        case .offer(let client, let session, _, _, _):
            change(client, in: session) { client in
                client.hasOffered = true
                if let former = client.offered { client.exit(former) }
                if let session { client.enter(session) }
                client.offered = session
            }
        case .publish(let stream, let session, let client, _, _, _, _):
            publish(stream, session, client)
            return .all
        case .subscribe(let stream, _, let client, _, _, _, _): subscribe(stream, client)
        case .unsubscribe(let stream, let client):
            // Look up the loop first: the client is removed if this was its last subscription.
            defer { unsubscribe(stream, client) }
            return .loop(loop(of: client) ?? 0)
        case .unpublish(let stream, _):
            unpublish(stream)
            return .all
        case .leave(let client):
            leave(client)
            return .all
        case .update: return .all
        case .close, .estimate: break
        }
        return .loop(command.client.flatMap(loop(of:)) ?? 0)
    }

    private mutating func publish(_ stream: StreamID, _ session: SessionID, _ client: ConnectionID) {
        guard streams[stream] == nil else { return }
        streams[stream] = Stream(session: session, publisher: client)
        if let tag, client.tag(unless: tag) != nil { return }
        change(client, in: session) { client in
            client.streams.insert(stream)
            client.enter(session)
        }
    }

    private mutating func unpublish(_ stream: StreamID) {
        guard let ended = streams.removeValue(forKey: stream) else { return }
        change(ended.publisher) { client in
            client.streams.remove(stream)
            client.exit(ended.session)
        }
        for subscriber in ended.subscribers { removeSubscription(to: stream, ended.session, of: subscriber) }
    }

    private mutating func subscribe(_ stream: StreamID, _ client: ConnectionID) {
        // The router ignores a subscription to a stream that does not exist.
        guard let session = streams[stream]?.session,
            streams[stream]?.subscribers.insert(client).inserted == true
        else { return }
        change(client, in: session) { client in
            client.subscriptions.insert(stream)
            client.hasSubscribed = true
            client.enter(session)
        }
    }

    private mutating func unsubscribe(_ stream: StreamID, _ client: ConnectionID) {
        guard let session = streams[stream]?.session, streams[stream]?.subscribers.remove(client) != nil else { return }
        removeSubscription(to: stream, session, of: client)
    }

    private mutating func removeSubscription(to stream: StreamID, _ session: SessionID, of client: ConnectionID) {
        change(client) { client in
            client.subscriptions.remove(stream)
            client.exit(session)
        }
    }

    private mutating func leave(_ client: ConnectionID) {
        for stream in clients[client]?.streams ?? [] { unpublish(stream) }
        for stream in clients[client]?.subscriptions ?? [] { unsubscribe(stream, client) }
        change(client) { client in
            client.hasOffered = false
            if let session = client.offered { client.exit(session) }
            client.offered = nil
        }
    }

    // MARK: Load

    /// Changes a client that is placed, and its part of the loads. Forgets the client if nothing is left of it.
    private mutating func change(_ id: ConnectionID, _ body: (inout Client) -> Void) {
        guard let client = clients.removeValue(forKey: id) else { return }
        change(id, client, body)
    }

    /// Changes a client, and its part of the loads. Places the client if it has no loop.
    /// - Parameter session: the session to which the client belongs.
    private mutating func change(_ id: ConnectionID, in session: SessionID?, _ body: (inout Client) -> Void) {
        // Remove the client from the table, so that the change does not copy its sets.
        change(id, clients.removeValue(forKey: id) ?? Client(loop: loop(for: session)), body)
    }

    private mutating func change(_ id: ConnectionID, _ client: consuming Client, _ body: (inout Client) -> Void) {
        count(client, -1)
        body(&client)
        count(client, 1)
        if client.isPresent { clients[id] = client }
    }

    /// Adds a client's load to its loop and to its sessions, or removes it.
    private mutating func count(_ client: borrowing Client, _ sign: Int) {
        guard client.isPresent else { return }
        let (loop, load) = (client.loop, sign * client.load)
        loads[loop] += load
        for session in client.sessions.keys {
            sessions[session, default: [:]][loop, default: Share()].clients += sign
            sessions[session]?[loop]?.load += load
            if sessions[session]?[loop]?.clients == 0 { sessions[session]?[loop] = nil }
            if sessions[session]?.isEmpty == true { sessions[session] = nil }
        }
    }

    /// Chooses the loop for a client of this session: the one with most of the session's clients, unless the session has
    /// too much load there; otherwise the loop with the least load. The lower index wins a tie.
    private func loop(for session: SessionID?) -> Int {
        let shares = session.flatMap { sessions[$0] } ?? [:]
        let main = shares.max { ($0.value.clients, $1.key) < ($1.value.clients, $0.key) }
        if let main, main.value.load <= Self.maxLoadTogether { return main.key }
        return loads.indices.min { (loads[$0], $0) < (loads[$1], $1) } ?? 0
    }
}

extension MediaCommand {
    /// The client whose peer connections the command is about; nil if it is about a stream only.
    fileprivate var client: ConnectionID? {
        switch self {
        case .offer(let client, _, _, _, _), .close(let client, _), .estimate(let client, _), .leave(let client),
            .publish(_, _, let client, _, _, _, _), .subscribe(_, _, let client, _, _, _, _),
            .unsubscribe(_, let client):
            client
        case .update, .unpublish: nil
        }
    }
}
