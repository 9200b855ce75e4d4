import Cluster
import Signaling
import Wire

/// The rules for the relays of a node: which are open, and to which life of each other node.
///
/// A relay is opened when the record of the other node was read, and closed when the other life is over, or when the node has begun
/// another one. A record that is missing closes nothing: Redis may be away, and relays do not need it. A client of another node is
/// pulled over all relays to it while it has streams here.
struct RelayBook: Equatable, Sendable {
    /// What the shell has to do, in order.
    enum Effect: Equatable, Sendable {
        /// Open this node's end of a relay.
        case open(PlannedRelay, to: NodeTag, NodeRelays)
        /// Close this node's end of the relay with this index for good.
        case close(index: Int, to: NodeTag)
        /// Pass the credentials of the other end on to this one, which is open.
        case receive(RelayCredentials, from: NodeTag)
        /// Let the streams of this client of the other node arrive over the relay with this index.
        case pull(ConnectionID, index: Int, from: NodeTag)
        /// They must not arrive any more.
        case stopPulling(ConnectionID, index: Int, from: NodeTag)
        /// Warn the operator that a relay does not connect.
        case report(RelayFault, PlannedRelay, to: NodeTag)
    }

    /// The states of a relay, for the metrics.
    enum State: String, CaseIterable {
        /// Media can cross.
        case connected
        /// The two ends try to reach each other.
        case connecting
    }

    /// A life of another node to which there are relays.
    private struct Peer: Equatable {
        let life: NodeTag
        /// The relays by index.
        var relays: [Int: Relay]
    }

    /// A relay to a life, with the results of its attempts to connect.
    private struct Relay: Equatable {
        let plan: PlannedRelay
        var isConnected = false
        /// How many of the largest layers of each video it does not carry.
        var missingLayers = 0
        var attempts = RelayAttempts()
    }

    /// Credentials of a life whose record was not read yet. They are the newest of each relay.
    private struct Early: Equatable {
        let life: NodeTag
        var credentials: [UInt8: RelayCredentials] = [:]
    }

    /// The life of this node.
    let tag: NodeTag
    private let own: NodeRelays
    /// One life of each other node, keyed by the node's number.
    private var peers: [UInt16: Peer] = [:]
    private var early: [UInt16: Early] = [:]
    /// For each other life, its clients that have streams on this node's media plane, with these streams.
    private var streams: [NodeTag: [ConnectionID: Set<StreamID>]] = [:]
    /// The last life of each node that is known to be over, keyed by the node's number.
    private var lastEnded: [UInt16: UInt32] = [:]

    /// - Parameter own: what this node publishes.
    init(of tag: NodeTag, _ own: NodeRelays) { (self.tag, self.own) = (tag, own) }

    /// Returns the indices of the relays to a life, in ascending order.
    func indices(to life: NodeTag) -> [Int] {
        guard let peer = peers[life.node], peer.life == life else { return [] }
        return peer.relays.keys.sorted()
    }

    /// The lives to which all relays are connected.
    var connectedLives: Set<NodeTag> {
        Set(peers.values.filter { $0.relays.values.allSatisfy(\.isConnected) }.map(\.life))
    }

    /// The number of relays in each state.
    var counts: [State: Int] {
        var counts: [State: Int] = [:]
        for peer in peers.values {
            for relay in peer.relays.values { counts[relay.isConnected ? .connected : .connecting, default: 0] += 1 }
        }
        return counts
    }

    /// What operators see of the relays, keyed by the life of the other node.
    var states: [NodeTag: RelayStates] {
        var states: [NodeTag: RelayStates] = [:]
        for peer in peers.values {
            var sum = RelayStates()
            for (_, relay) in peer.relays.sorted(by: { $0.key < $1.key }) {
                sum.fault = sum.fault ?? relay.attempts.fault
                guard relay.isConnected else {
                    sum.connecting += 1
                    continue
                }
                sum.connected += 1
                if relay.missingLayers > 0 { sum.thinned += 1 }
            }
            states[peer.life] = sum
        }
        return states
    }

    // MARK: Events

    /// The records of the other living nodes were read. Opens what is missing.
    mutating func read(_ records: [NodeTag: NodeRelays]) -> [Effect] {
        var effects: [Effect] = []
        for (life, theirs) in records.sorted(by: { $0.key.life < $1.key.life }) where isNew(life) {
            let plan = own.plan(from: tag, to: life, theirs)
            guard !plan.isEmpty else { continue }
            effects += close(life.node)
            let relays = Dictionary(uniqueKeysWithValues: plan.map { ($0.index, Relay(plan: $0)) })
            peers[life.node] = Peer(life: life, relays: relays)
            effects += plan.map { Effect.open($0, to: life, theirs) }
            effects += takeEarly(of: life)
            for client in (streams[life] ?? [:]).keys.sorted() { effects += pull(client, from: life) }
        }
        return effects
    }

    /// A life is over.
    mutating func ended(_ life: NodeTag) -> [Effect] {
        lastEnded[life.node] = max(lastEnded[life.node] ?? 0, life.life)
        if early[life.node]?.life == life { early[life.node] = nil }
        guard peers[life.node]?.life == life else { return [] }
        return close(life.node)
    }

    /// This life is over, or the server stops.
    mutating func closeAll() -> [Effect] {
        early = [:]
        return peers.keys.sorted().flatMap { close($0) }
    }

    /// Another life has posted the credentials of its end. They wait if the record of that life was not read yet.
    mutating func receive(_ credentials: RelayCredentials, from life: NodeTag) -> [Effect] {
        guard isNew(life) else {
            guard indices(to: life).contains(Int(credentials.index)) else { return [] }
            return pass(credentials, from: life)
        }
        let index = credentials.index
        guard life.node != tag.node, Int(index) < NodeRelays.maxLoops else { return [] }
        if let known = early[life.node], known.life.life > life.life { return [] }
        if early[life.node]?.life != life { early[life.node] = Early(life: life) }
        if let known = early[life.node]?.credentials[index], known.attempt > credentials.attempt { return [] }
        early[life.node]?.credentials[index] = credentials
        return []
    }

    /// This end of a relay has begun an attempt to connect.
    mutating func began(_ attempt: UInt32, _ index: Int, of life: NodeTag) -> [Effect] {
        guard let peer = peers[life.node], peer.life == life, let plan = peer.relays[index]?.plan,
            let fault = peers[life.node]?.relays[index]?.attempts.began(attempt)
        else { return [] }
        return [.report(fault, plan, to: life)]
    }

    /// Notes whether a relay can carry media. Returns whether this is a change.
    mutating func noted(_ index: Int, of life: NodeTag, isConnected: Bool) -> Bool {
        guard let peer = peers[life.node], peer.life == life, let relay = peer.relays[index] else { return false }
        peers[life.node]?.relays[index]?.isConnected = isConnected
        if isConnected { peers[life.node]?.relays[index]?.attempts.connected() }
        return relay.isConnected != isConnected
    }

    /// Notes how many of the largest layers of each video a relay does not carry, because it loses packets.
    mutating func thinned(_ index: Int, of life: NodeTag, layers: Int) {
        guard indices(to: life).contains(index) else { return }
        peers[life.node]?.relays[index]?.missingLayers = layers
    }

    /// A stream was published on this node's media plane. If the client is on another node, its streams arrive over the relays to it. Which
    /// of them has the client's media loop is not known here.
    mutating func published(_ stream: StreamID, by client: ConnectionID) -> [Effect] {
        guard let life = client.tag(unless: tag) else { return [] }
        let isFirst = streams[life]?[client] == nil
        streams[life, default: [:]][client, default: []].insert(stream)
        return isFirst ? pull(client, from: life) : []
    }

    /// A stream is no longer published here.
    mutating func unpublished(_ stream: StreamID, by client: ConnectionID) -> [Effect] {
        guard let life = client.tag(unless: tag), streams[life]?[client]?.remove(stream) != nil,
            streams[life]?[client]?.isEmpty == true
        else { return [] }
        streams[life]?[client] = nil
        if streams[life]?.isEmpty == true { streams[life] = nil }
        return indices(to: life).map { .stopPulling(client, index: $0, from: life) }
    }

    // MARK: Parts

    private func pull(_ client: ConnectionID, from life: NodeTag) -> [Effect] {
        indices(to: life).map { .pull(client, index: $0, from: life) }
    }

    private mutating func pass(_ credentials: RelayCredentials, from life: NodeTag) -> [Effect] {
        peers[life.node]?.relays[Int(credentials.index)]?.attempts.received(credentials.attempt)
        return [.receive(credentials, from: life)]
    }

    /// Whether this life is later than those of its node that are known. Lives are numbered across all nodes.
    private func isNew(_ life: NodeTag) -> Bool {
        life.life > max(lastEnded[life.node] ?? 0, peers[life.node]?.life.life ?? 0)
    }

    private mutating func close(_ node: UInt16) -> [Effect] {
        guard let peer = peers.removeValue(forKey: node) else { return [] }
        return peer.relays.keys.sorted().map { .close(index: $0, to: peer.life) }
    }

    private mutating func takeEarly(of life: NodeTag) -> [Effect] {
        guard let known = early[life.node], known.life.life <= life.life else { return [] }
        early[life.node] = nil
        guard known.life == life else { return [] }
        let open = Set(indices(to: life))
        return known.credentials.values.filter { open.contains(Int($0.index)) }.sorted { $0.index < $1.index }
            .flatMap { pass($0, from: life) }
    }
}
