import Cluster
import CoreMetrics
import DequeModule
import Logging
import NIOCore
import NIOSSL
import Signaling
import Wire

/// The gateway's interface to a connection of any transport. Used only on the gateway's event loop.
protocol GatewayConnection: AnyObject {
    /// The client's address, not a proxy's.
    var address: IPAddress { get }
    /// The number of the group in which this connection is pinged. Set by `Gateway.register`.
    var group: Int { get set }
    /// The account of the connection's address. Set by `Gateway.register`; nil before that and after
    /// `Gateway.release`.
    var slot: AddressBudgets.Slot? { get set }
    /// The connection's budget for messages that are read while its address exceeds the address's budget. Nil means
    /// that it is full.
    var excess: Budget? { get set }
    /// The number of bytes queued for the client: those that wait to be sent, and those that are held until a change
    /// is stored.
    var queuedBytes: Int { get }
    /// Closes the connection as if the network had failed, so that the client resumes.
    func drop()
    /// Called once per ping interval.
    func tick()
    /// Closes the connection with a reason and removes the client.
    func expel(_ error: WireError, _ code: CloseCode)
    /// Closes the connection because the server is restarting. Transports without close codes ignore the code.
    func goAway(_ code: CloseCode)
}

/// How often this server was reached since it started.
struct DoorTraffic {
    /// Requests to `/ready`, which load balancers send.
    var checks: UInt64 = 0
    /// Requests and data of clients.
    var heard: UInt64 = 0

    mutating func request(_ uri: String) {
        switch uri.prefix(while: { $0 != "?" }) {
        case "/ready": checks &+= 1
        case "/live", "/health": break
        default: heard &+= 1
        }
    }
}

/// State that all connections of the gateway share on one event loop: the runner, the bans, and the budgets per address.
final class Gateway {
    let runner: HubRunner
    let storage: any Storage
    private(set) var configuration: ConfabConfiguration
    let logger: Logger
    let metrics: GatewayMetrics

    /// The value of the header `Strict-Transport-Security` for every response. Nil for none.
    let strictTransport: String?

    private var connectionCounts: ConnectionCounts
    /// All accepted connections, including those that have not sent a request.
    private var channels: [AddressPlaces.Place: any Channel] = [:]
    var transfers: Transfers
    /// The connection of each transfer that is in progress.
    var transferChannels: [Transfers.Place: any Channel] = [:]
    var budgets: AddressBudgets
    /// The budgets for HTTP requests of projects, keyed by API key. Only existing projects have one.
    var projectBudgets: [String: Budget] = [:]
    /// For each address that exceeds its message budget, the WebSockets that are not read, in the order in which they
    /// were paused.
    var pausedReaders: [AddressBudgets.Slot: Deque<any PausedReader>] = [:]
    /// True if the disk is nearly full, so that only essential data is stored. Set by `DiskMeter`.
    var isDiskLow = false
    /// Measures the disk. Set when the server starts; nil if nothing is stored on a disk.
    var diskMeter: DiskMeter?
    /// The files of archives. Set when the server starts.
    var archiveFiles: ArchiveFiles?
    /// The bucket to which complete archives are moved; nil without one.
    var archiveBucket: S3Bucket?
    /// The routes of HTTP requests, for spans and for the log. Set when the server starts.
    var routes = RouteTemplates([])
    /// Judges samples of cameras. Set when the server starts; nil if nothing does.
    var sampleJudge: SampleJudge?
    /// What the operator's page shows of media. It stays empty without the page.
    var adminMedia = AdminMediaLog()
    /// Signs that this server can be reached.
    var doorTraffic = DoorTraffic()
    /// Why the cluster sends no new clients to this node. Set when the server starts, if it is a node.
    var clusterHolds: () -> Set<Readiness.Hold> = { [] }
    /// The nodes of the cluster. Set when the server starts, if it is a node.
    var nodes: (any ClusterNodes)?
    /// Updates the metrics of the cluster. Set when the server starts, if it is a node.
    var recordCluster: () -> Void = {}
    /// Called when the project's secret was rotated. Set when the server starts, if it is a node.
    var projectFileChanged: (ProjectFile) -> Void = { _ in }
    /// Reads the projects in the database again, and returns when changes are in effect. Set when the server starts.
    var reloadProjects: @Sendable () async -> Void = {}
    /// When a request with contradictory forwarding headers was last logged; nil if never.
    var contradictionLoggedAt: Timestamp?
    /// All connections, divided into groups. One timer pings the groups in turn, which spreads the pings over the ping
    /// interval.
    private var connections = [[ObjectIdentifier: any GatewayConnection]](repeating: [:], count: groupCount)
    private static let groupCount = 10
    private var currentGroup = 0
    var bans = GatewayBans()
    /// True while the process stops.
    private(set) var isDraining = false
    /// Whether an operator takes this server out of service.
    var nodeDrain = NodeDrain()
    /// Calls `nodeDrain` at its next timeout; nil if it has none.
    var drainTimer: Scheduled<Void>?

    init(
        runner: HubRunner, storage: any Storage, configuration: ConfabConfiguration,
        logger: Logger, metrics: GatewayMetrics
    ) {
        self.runner = runner
        self.storage = storage
        self.configuration = configuration
        self.logger = logger
        self.metrics = metrics
        let descriptors = DescriptorBudget(configuration)
        strictTransport = configuration.strictTransport
        connectionCounts = ConnectionCounts(
            perAddress: configuration.limits.connectionsPerAddress, total: descriptors.connections,
            new: configuration.limits.newConnections)
        transfers = Transfers(
            perAddress: configuration.limits.transfersPerAddress, total: descriptors.transfers)
        budgets = AddressBudgets(.init(configuration.limits))
        runner.clientBudgets = self
    }

    var eventLoop: any EventLoop { runner.eventLoop }
    private(set) lazy var executor = EventLoopExecutor(eventLoop)

    /// The validator for hellos. Created on demand, because the keys can change.
    var reception: HelloValidator { HelloValidator(projects: runner.hubSettings.projects) }

    /// Starts the timer that pings the groups in turn. Call once.
    func startPinging() {
        let interval = TimeAmount.nanoseconds(configuration.rules.pingInterval / Self.groupCount)
        let gateway = NIOLoopBound(self, eventLoop: eventLoop)
        _ = eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in
            gateway.value.pingNextGroup()
        }
    }

    private func pingNextGroup() {
        currentGroup = (currentGroup + 1) % Self.groupCount
        for connection in connections[currentGroup].values { connection.tick() }
        endSlowTransfers()
    }

    /// How ids begin with which clients make later requests, such as polls: on a node of a cluster with its name, so that a load balancer
    /// sends these requests to it. Empty for a server that is alone.
    var idPrefix: String { runner.hubSettings.tag.map { "\($0.nodeName)-" } ?? "" }

    // MARK: Settings

    /// Applies changed settings from a reload, or a rotated secret. Does not close any connections.
    func apply(_ configuration: ConfabConfiguration, _ projects: Projects) {
        self.configuration = configuration
        runner.traces?.apply(configuration.tracing)
        connectionCounts.perAddress = configuration.limits.connectionsPerAddress
        transfers.perAddress = configuration.limits.transfersPerAddress
        budgets.limits = AddressBudgets.Limits(configuration.limits)
        var settings = runner.hubSettings
        (settings.rules, settings.projects) = (configuration.rules, projects)
        // These depend on parts of the server, not on the configuration.
        (settings.rules.recordsSessions, settings.rules.composesArchives) = (
            runner.recorder != nil, runner.hubSettings.rules.composesArchives
        )
        settings.rules.broadcastsSessions = runner.broadcaster != nil
        settings.rules.checksSamples = sampleJudge != nil
        settings.ice = ICEProvision(configuration.ice)
        projectBudgets = projectBudgets.filter { settings.projects[$0.key] != nil }
        if settings != runner.hubSettings { runner.submit(.settingsChanged(settings)) }
    }

    // MARK: Addresses

    /// Returns the address under which limits count this one: for IPv6 the first address of its /64, because one
    /// customer gets a whole /64.
    private func limited(_ address: IPAddress) -> IPAddress { address.limitingBlock.network }

    /// Counts a newly accepted connection until it closes. If too few descriptors are left, closes another connection
    /// to make room.
    ///
    /// - Returns: false if the connection's address, or the server as a whole, has too many connections, or if the
    ///   address makes new ones too fast.
    func admitConnection(_ channel: any Channel) -> Bool {
        var peer = channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
        if let address = peer, configuration.trustedProxies.contains(address) { peer = nil }
        guard let (place, dropped) = connectionCounts.admit(peer, now: runner.now) else {
            metrics.connectionsRefused.increment()
            return false
        }
        channels[place] = channel
        let gateway = NIOLoopBound(self, eventLoop: eventLoop)
        channel.closeFuture.whenComplete { _ in
            gateway.value.connectionCounts.release(place)
            gateway.value.channels[place] = nil
        }
        if let dropped, let channel = channels.removeValue(forKey: dropped) {
            metrics.connectionsRefused.increment()
            cut(channel)
        }
        return true
    }

    /// Closes a connection immediately, in any state, so that its descriptor is freed.
    func cut(_ channel: any Channel) {
        // Close below the TLS handler, which would first wait for the client's close_notify.
        let tls = try? channel.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self)
        if let tls { tls.close(promise: nil) } else { channel.close(promise: nil) }
    }

    /// The number of registered connections, including those that are closing. TCP connections without a client do not
    /// count.
    var openConnections: Int { connections.reduce(0) { $0 + $1.count } }

    /// True if nearly all connections that the process can have are in use.
    var isFull: Bool { connectionCounts.isFull() }

    /// True if the address may open another connection.
    func hasRoom(for address: IPAddress) -> Bool { budgets.hasRoom(for: address) }

    /// Counts the connection against its address's limit and starts pinging it.
    func register(_ connection: some GatewayConnection) {
        let group = connections.indices.min { connections[$0].count < connections[$1].count } ?? 0
        connections[group][ObjectIdentifier(connection)] = connection
        connection.group = group
        connection.slot = budgets.addSocket(of: connection.address, now: runner.now)
    }

    /// Counts the connection against its new address. The connection may be dropped if too much data is then queued
    /// for that address.
    func move(_ connection: some GatewayConnection) {
        guard let old = connection.slot else { return }
        connection.slot = budgets.addSocket(of: connection.address, now: runner.now)
        budgets.removeSocket(ObjectIdentifier(connection), in: old, now: runner.now)
        queueChanged(connection)
    }

    func release(_ connection: some GatewayConnection) {
        let id = ObjectIdentifier(connection)
        guard connections[connection.group].removeValue(forKey: id) != nil, let slot = connection.slot else { return }
        connection.slot = nil
        budgets.removeSocket(id, in: slot, now: runner.now)
    }

    /// All registered connections, in no particular order.
    var registeredConnections: [any GatewayConnection] { connections.flatMap(\.values) }

    func connection(_ id: ObjectIdentifier) -> (any GatewayConnection)? {
        for group in connections { if let connection = group[id] { return connection } }
        return nil
    }

    /// Returns the key under which limits count the clients from this address. All IPv6 addresses in the same /64 have
    /// the same key.
    func limitingText(_ address: IPAddress) -> String { limited(address).description }

    // MARK: Draining

    /// Refuses new connections and closes all others, including those that have not sent `hello`.
    func drain(_ code: CloseCode = .goingAway) {
        isDraining = true
        runner.forgetSockets()
        for connection in registeredConnections { connection.goAway(code) }
    }

    /// Closes all connections that are still open after the delay, in any state, so that none of them delays the
    /// shutdown.
    func closeAll(after delay: Duration) {
        let gateway = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.scheduleTask(in: .nanoseconds(delay)) {
            for channel in Array(gateway.value.channels.values) { channel.close(promise: nil) }
        }
    }
}
