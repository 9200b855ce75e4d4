import Cluster
import Datagrams
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
        _ life: NodeLife, _ configuration: ConfabConfiguration, _ project: ProjectFile, gateway: NIOLoopBound<Gateway>,
        storage: any Storage,
        media: MediaPlane?, logger: Logger, clock: ServerClock, fence: FenceSignal,
        turn: WebhookTurn?
    ) async throws -> ClusterService {
        let settings = RedisConfiguration(try configuration.cluster.redisLocation())
        for warning in settings.warnings { logger.warning("\(warning)") }
        let redis = try NIORedisClient(settings, on: gateway.eventLoop)
        let secrets = SecretReview(project, at: clock.wallNow)
        let seal = NodeRecordSeal(secrets.secrets)
        do {
            try await compareClock(of: life, clock, logger)
            try await compareSecret(seal, of: life, RedisPlaces(redis, of: life.tag), logger)
        } catch {
            await redis.close()
            throw error
        }
        let takeover = CallTakeover(
            openCalls: { try await storage.openCalls(of: $0) },
            restoring: { try await storage.restoring($0, at: clock.wallNow) },
            takeOver: { try await storage.takeOverCalls(of: $0) })
        let node = try await gateway.eventLoop.submit {
            let start = ContinuousClock.now
            let monotonic = { Cluster.Instant(ContinuousClock.now - start) }
            let table = ConnectedPlaces(redis, of: life.tag, eventLoop: gateway.eventLoop, logger: logger)
            let post = RedisPost(
                redis, of: life.tag, secrets: secrets.secrets,
                eventLoop: gateway.eventLoop, logger: logger, clock: monotonic)
            table.post = post
            let node = ClusterNode(
                tag: life.tag, former: life.former, ledger: life.ledger, table: table,
                runner: gateway.value.runner,
                reading: ClusterNode.Reading(
                    state: { machine in try await storage.state(of: machine, at: clock.wallNow) },
                    calls: { try await takeover.inputs(of: $0) },
                    endSessions: { life in
                        let count = try await storage.endReportedSessions(of: life, at: clock.wallNow)
                        if count > 0 {
                            logger.info(
                                "Ends of sessions reported to webhooks",
                                metadata: ["events": "\(count)", "life": "\(life)"])
                        }
                    }),
                describe: describing(life.tag, configuration, gateway.value, media),
                eventLoop: gateway.eventLoop, logger: logger, clock: monotonic)
            node.post = post
            if let media, configuration.cluster.relays {
                let relays = ClusterRelays(of: life.tag, NodeRelays(media), media, logger: logger) {
                    [weak runner = gateway.value.runner] in runner?.submit($0)
                }
                relays.start(on: gateway.eventLoop)
                node.relays = relays
            }
            node.door = DoorWatch(pingInterval: configuration.rules.pingInterval, at: monotonic())
            node.doorTraffic = { [unowned gateway = gateway.value] in gateway.doorTraffic }
            node.wall = { .milliseconds(clock.wallNow.milliseconds) }
            node.onFenced = { _ in fence.signal() }
            node.turn = turn
            node.onFirstAct = { fence.noteAct() }
            (node.secrets, node.records) = (secrets, NodeRecords(seal))
            gateway.value.projectFileChanged = { [weak node] in node?.use($0) }
            node.requestedCondition = { [unowned gateway = gateway.value] in gateway.requestedCondition }
            node.changeService = { [unowned gateway = gateway.value] in _ = gateway.change(to: $0) }
            gateway.value.clusterHolds = { [weak node] in node?.holds ?? [] }
            gateway.value.nodes = node
            gateway.value.recordCluster = { [weak node] in node?.recordMetrics() }
            // Nothing may happen before the lease is valid.
            node.start()
            life.renewal.stop()
            return NIOLoopBound(node, eventLoop: gateway.eventLoop)
        }.get()
        return ClusterService(node: node, redis: redis, ledger: life.ledger)
    }

    /// Refuses to start with a clock that is wrong by seconds.
    ///
    /// - Throws: ``NodeClockDiffers``, but not if PostgreSQL cannot be asked.
    private static func compareClock(of life: NodeLife, _ clock: ServerClock, _ logger: Logger) async throws {
        let start = ContinuousClock.now
        let view: LedgerView
        do throws(LedgerError) { view = try await life.ledger.look() } catch {
            return logger.warning("This machine's clock was not compared with that of PostgreSQL: \(error)")
        }
        let difference = ClockCheck.difference(
            ledger: view.clock, wall: .milliseconds(clock.wallNow.milliseconds), waited: ContinuousClock.now - start)
        guard max(difference, .zero - difference) <= ClockCheck.maxAtStart else {
            throw NodeClockDiffers(difference: difference)
        }
    }

    /// Refuses to start with a secret that no other node has: tokens of one node would not be valid on another.
    ///
    /// - Throws: ``NodeSecretDiffers``, but not if PostgreSQL or Redis cannot be asked.
    private static func compareSecret(
        _ seal: NodeRecordSeal, of life: NodeLife, _ places: RedisPlaces, _ logger: Logger
    ) async throws {
        let others: [NodeTag]
        do throws(LedgerError) {
            others = try await life.ledger.look().lives.filter { $0.isUnfenced && $0.tag != life.tag }.map(\.tag)
        } catch {
            return logger.warning("This node's secret was not compared with that of other nodes: \(error)")
        }
        let found: [NodeTag: [UInt8]]
        do throws(RedisError) {
            found = try await places.records(of: others)
        } catch {
            // Later, each record that cannot be opened is a warning.
            return logger.warning("This node's secret was not compared with that of other nodes: \(error)")
        }
        if case .different(let tags) = NodeRecords.compare(seal, with: found) { throw NodeSecretDiffers(nodes: tags) }
    }

    /// Returns a function that describes this node for the others, except for what only ``ClusterNode`` knows.
    private static func describing(
        _ tag: NodeTag, _ configuration: ConfabConfiguration, _ gateway: Gateway, _ media: MediaPlane?
    ) -> () -> NodeRecord {
        var meter = LoadMeter()
        return { [unowned gateway] in
            meter.measure(
                LoadMeter.read(packets: media?.counters.sockets.sent ?? 0), mediaLoops: media?.udpPorts.count ?? 1,
                sockets: gateway.runner.socketCount)
            var record = NodeRecord(
                tag: tag, url: configuration.publicURL ?? "",
                socketAddress: "\(configuration.host):\(configuration.port)",
                region: "", version: ConfabServer.version, letters: .init(speaks: 1, reads: 1...1))
            if configuration.cluster.relays { record.relays = media.map { NodeRelays($0) } }
            record.load = meter.load
            record.counts = .init(
                clients: gateway.runner.hub.clientCount, waiting: gateway.runner.hub.waitingCount,
                sessions: gateway.runner.hub.sessionCount)
            let condition = gateway.condition
            record.state = condition == .serving ? .serving : .draining
            record.condition = condition.rawValue
            record.isOutOfService = gateway.requestedCondition != .serving
            record.disconnectsInMs = gateway.drainLeft?.wholeMilliseconds
            return record
        }
    }

    func run() async throws {
        try? await gracefulShutdown()
        await close()
    }

    /// Stops the node and closes its connections. Can be called again.
    func close() async {
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
            try await room(named: name).map(StoredState.room) ?? .nothing
        case .session(let id):
            try await moderation(of: id).map(StoredState.session) ?? .nothing
        case .hall, .directory, .deviceCodes: .nothing
        }
    }
}
