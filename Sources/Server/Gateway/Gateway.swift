import Logging
import NIOCore
import Signaling
import Wire

/// Somebody connected, by whatever transport, as the gateway sees everybody. On its event loop only.
protocol GatewayConnection: AnyObject {
    /// Of the client, not of a proxy.
    var address: IPAddress { get }
    /// Which of the gateway's groups it is pinged with.
    var group: Int { get set }
    /// Once in each ping interval.
    func tick()
    /// Out, with a reason.
    func expel(_ error: WireError, _ code: CloseCode)
    /// The server restarts.
    func goAway()
}

/// What all sockets of the gateway share, on its one event loop: the runner, the door's rules, and who holds how many
/// sockets from where.
final class Gateway {
    let runner: HubRunner
    let reception: Reception
    let storage: any Storage
    let configuration: ConfabConfiguration
    let logger: Logger
    let metrics: GatewayMetrics

    private var socketsByAddress: [IPAddress: Int] = [:]
    private static let mostGreetings = 10_000
    private var greetings: [IPAddress: Budget] = [:]
    /// Every connection, in as many groups as there are beats in a ping interval: one timer for all of them, and no moment in
    /// which all are pinged at once.
    private var connections = [[ObjectIdentifier: any GatewayConnection]](repeating: [:], count: beats)
    private static let beats = 10
    private var beat = 0
    private var addressBans: [(CIDRBlock, Ban)] = []
    private var bannedIdentities: [IdentityID: Ban] = [:]
    private(set) var isDraining = false
    private(set) lazy var whip = WHIPDirectory(gateway: self)
    private(set) lazy var socketIO = SocketIODirectory(gateway: self)

    init(
        runner: HubRunner, reception: Reception, storage: any Storage, configuration: ConfabConfiguration,
        logger: Logger, metrics: GatewayMetrics
    ) {
        self.runner = runner
        self.reception = reception
        self.storage = storage
        self.configuration = configuration
        self.logger = logger
        self.metrics = metrics
    }

    var eventLoop: any EventLoop { runner.eventLoop }

    /// Pings the sockets of one group after the other, for ever; called once.
    func startBeating() {
        let interval = TimeAmount.nanoseconds(configuration.rules.pingInterval / Self.beats)
        let gateway = NIOLoopBound(self, eventLoop: eventLoop)
        _ = eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
            gateway.value.nextBeat()
        }
    }

    private func nextBeat() {
        beat = (beat + 1) % Self.beats
        for connection in connections[beat].values { connection.tick() }
    }

    // MARK: Addresses

    /// An IPv6 customer holds a /64: limits count the block, not the address.
    private func limited(_ address: IPAddress) -> IPAddress { address.limitingBlock.network }

    /// Connections that are not closed yet, the ones saying goodbye included.
    var openConnections: Int { connections.reduce(0) { $0 + $1.count } }

    /// Whether the address may hold one more.
    func hasRoom(for address: IPAddress) -> Bool {
        socketsByAddress[limited(address), default: 0] < configuration.limits.socketsPerAddress
    }

    /// Counts the connection for its address, and pings it from now on.
    func register(_ connection: some GatewayConnection) {
        let group = connections.indices.min { connections[$0].count < connections[$1].count } ?? 0
        connections[group][ObjectIdentifier(connection)] = connection
        connection.group = group
        socketsByAddress[limited(connection.address), default: 0] += 1
    }

    func release(_ connection: some GatewayConnection) {
        guard connections[connection.group].removeValue(forKey: ObjectIdentifier(connection)) != nil else { return }
        let left = socketsByAddress[limited(connection.address), default: 1] - 1
        socketsByAddress[limited(connection.address)] = left > 0 ? left : nil
    }

    /// Whether a hello from this address is one too many for now.
    func isGreetingTooOften(_ address: IPAddress) -> Duration? {
        let (now, hellos) = (runner.now, configuration.limits.hellos)
        let key = limited(address)
        var budget = greetings[key] ?? Budget(hellos, now: now)
        let wait = budget.take(hellos, now: now)
        greetings[key] = budget
        // An address that has not been heard of for long has a full budget: forgetting it changes nothing.
        if greetings.count > Self.mostGreetings {
            greetings = greetings.filter { !$0.value.isFull(hellos, now: now) }
        }
        return wait
    }

    /// The text that the rules count queue entries by.
    func limitingText(_ address: IPAddress) -> String { limited(address).description }

    func ban(of address: IPAddress) -> Ban? {
        addressBans.first { $0.0.contains(address) && $0.1.isActive(at: runner.now) }?.1
    }

    /// The bans in force changed, perhaps by the operator's command in another process.
    func update(bans: [Ban]) {
        addressBans = bans.compactMap { ban in
            guard case .address(let text) = ban.subject else { return nil }
            guard let block = CIDRBlock(text) else { return nil }
            return (block, ban)
        }
        var identities: [IdentityID: Ban] = [:]
        for ban in bans {
            if case .identity(let identity) = ban.subject { identities[identity] = ban }
        }
        for lifted in bannedIdentities.keys where identities[lifted] == nil { runner.submit(.unbanned(lifted)) }
        bannedIdentities = identities
        for ban in bans { runner.submit(.banned(ban)) }
        for connection in connections.flatMap(\.values) {
            if let ban = ban(of: connection.address) { connection.expel(.banned(ban, now: runner.now), .forbidden) }
        }
    }

    /// A ban that came while storage was asked about this identity.
    func ban(of identity: IdentityID) -> Ban? { bannedIdentities[identity] }

    // MARK: Going away

    /// No new sockets, 1001 to those there are, whether they have said hello or not.
    func drain() {
        isDraining = true
        runner.forgetSockets()
        for connection in connections.flatMap(\.values) { connection.goAway() }
    }
}
