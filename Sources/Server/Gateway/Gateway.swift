import Logging
import NIOCore
import Signaling
import Wire

/// What all sockets of the gateway share, on its one event loop: the runner, the door's rules, and who holds how many
/// sockets from where.
final class Gateway {
    let runner: HubRunner
    let reception: Reception
    let storage: any Storage
    let settings: Settings
    let logger: Logger
    let metrics: GatewayMetrics

    /// The numbers a socket needs.
    struct Settings: Sendable {
        var messageSize = Limits.message
        var descriptionSize = Limits.description
        var socketsPerAddress = 400
        var helloTimeout: Duration = .seconds(10)
        var pingInterval: Duration = .seconds(10)
        var missedPings = 3
        var sendQueue = 1 << 20
        var trustedProxies = TrustedProxies()
        var allowedOrigins: [String] = []
    }

    private var socketsByAddress: [IPAddress: Int] = [:]
    private var addressBans: [(CIDRBlock, Ban)] = []
    private var bannedIdentities: Set<IdentityID> = []
    private(set) var isDraining = false

    init(
        runner: HubRunner, reception: Reception, storage: any Storage, settings: Settings, logger: Logger,
        metrics: GatewayMetrics
    ) {
        self.runner = runner
        self.reception = reception
        self.storage = storage
        self.settings = settings
        self.logger = logger
        self.metrics = metrics
    }

    var eventLoop: any EventLoop { runner.eventLoop }

    // MARK: Addresses

    /// An IPv6 customer holds a /64: limits count the block, not the address.
    private func limited(_ address: IPAddress) -> IPAddress { address.limitingBlock.network }

    /// Sockets whose connection is not closed yet, the ones saying goodbye included.
    var openSockets: Int { socketsByAddress.values.reduce(0, +) }

    /// Whether this address may hold one more socket; counts it if so.
    func admit(_ address: IPAddress) -> Bool {
        let count = socketsByAddress[limited(address), default: 0]
        guard count < settings.socketsPerAddress else { return false }
        socketsByAddress[limited(address)] = count + 1
        return true
    }

    func release(_ address: IPAddress) {
        let left = socketsByAddress[limited(address), default: 1] - 1
        socketsByAddress[limited(address)] = left > 0 ? left : nil
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
        let identities = Set(
            bans.compactMap { ban in
                if case .identity(let identity) = ban.subject { identity } else { nil }
            }
        )
        for lifted in bannedIdentities.subtracting(identities) { runner.submit(.unbanned(lifted)) }
        bannedIdentities = identities
        for ban in bans { runner.submit(.banned(ban)) }
        var expelled: [(SocketID, Ban)] = []
        runner.forEachSocket { id, socket in
            if let socket = socket as? SocketHandler, let ban = ban(of: socket.address) { expelled.append((id, ban)) }
        }
        for (id, ban) in expelled { runner.submit(.expel(id, .banned(ban, now: runner.now), .forbidden)) }
    }

    // MARK: Going away

    /// No new sockets, 1001 to those there are.
    func drain() {
        isDraining = true
        runner.closeAll()
    }
}
