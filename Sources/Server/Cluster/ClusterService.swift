import Cluster
import Logging
import NIOCore
import Redis
import ServiceLifecycle
import Signaling
import Wire

/// Runs this server's part in its cluster: connects to Redis, renews the lease, and stops at the end.
struct ClusterService: Service {
    let node: NIOLoopBound<ClusterNode>
    let redis: NIORedisClient
    let ledger: PostgresLedger

    /// Creates the node on the gateway's event loop. It begins when the service runs.
    ///
    /// - Throws: an error of Redis if the configuration is invalid, or if that Redis may delete what the cluster relies on.
    static func make(
        _ life: NodeLife, _ configuration: ConfabConfiguration, gateway: NIOLoopBound<Gateway>, storage: any Storage,
        logger: Logger, clock: ServerClock, onFenced: @escaping @Sendable () -> Void
    ) async throws -> ClusterService {
        let settings = RedisConfiguration(try configuration.cluster.redisLocation())
        for warning in settings.warnings { logger.warning("\(warning)") }
        let redis = try NIORedisClient(settings, on: gateway.eventLoop)
        let node = try await gateway.eventLoop.submit {
            let start = ContinuousClock.now
            let node = ClusterNode(
                tag: life.tag, former: life.former, ledger: life.ledger,
                table: ConnectedPlaces(redis, of: life.tag, eventLoop: gateway.eventLoop, logger: logger),
                runner: gateway.value.runner,
                reading: ClusterNode.Reading(
                    state: { machine in try await storage.state(of: machine, at: clock.wallNow) },
                    calls: { life in
                        let calls = try await storage.openCalls(of: life)
                        guard !calls.isEmpty else { return [] }
                        // Read everything first: what fails before the calls are taken over can be repeated.
                        let inputs = try await storage.restoring(calls, at: clock.wallNow)
                        // Another node may have taken them over in between.
                        let taken = Set(try await storage.takeOverCalls(of: life).map(\.id))
                        return inputs.filter {
                            if case .restored(let call, _, _) = $0 { taken.contains(call.id) } else { false }
                        }
                    }),
                eventLoop: gateway.eventLoop, logger: logger,
                clock: { Cluster.Instant(ContinuousClock.now - start) })
            node.onFenced = { _ in onFenced() }
            node.isDraining = { [unowned gateway = gateway.value] in !gateway.nodeDrain.isServing }
            gateway.value.clusterHolds = { [weak node] in node?.holds ?? [] }
            // Nothing may happen before the lease is valid.
            node.start()
            return NIOLoopBound(node, eventLoop: gateway.eventLoop)
        }.get()
        return ClusterService(node: node, redis: redis, ledger: life.ledger)
    }

    func run() async throws {
        try? await gracefulShutdown()
        try? await node.eventLoop.submit { node.value.stop() }.get()
        await redis.close()
        await ledger.close()
    }
}

extension Storage {
    /// Returns the inputs that restore these calls, with the records of their people.
    func restoring(_ calls: [StoredCall], at now: Timestamp) async throws -> [Input] {
        var inputs: [Input] = []
        for call in calls {
            let caller = try await person(call.caller, at: now)
            inputs.append(.restored(call, caller: caller, callee: try await person(call.callee, at: now)))
        }
        return inputs
    }

    /// Returns what is kept for a state machine whose place was just claimed.
    func state(of machine: PlacedMachine, at now: Timestamp) async throws -> StoredState {
        switch machine {
        case .person(let id): .person(try await person(id, at: now))
        case .room(let name):
            // The newest room of a name keeps it, as after the start of a server that is alone.
            try await rooms().rooms.last { $0.name.folded == name.folded }.map(StoredState.room) ?? .nothing
        case .session(let id):
            try await moderation(at: .distantPast).first { $0.session == id }.map(StoredState.session) ?? .nothing
        case .hall, .directory, .deviceCodes: .nothing
        }
    }
}
