import Cluster
import Foundation
import Hummingbird
import HummingbirdCore
import Logging
import Metrics
import NIOCore
import NIOPosix
import ServiceLifecycle
import Signaling
import Synchronization
import UnixSignals
import Wire

/// The whole server. Takes one configuration, opens storage, and runs the gateway until the server is stopped.
///
/// It determines the order in which the components start and stop. `Signaling` implements the rules, and the gateway
/// owns the sockets. Invariant: in a graceful shutdown, every connected client receives close code 1001 before the
/// port closes.
public struct ConfabServer: Sendable {
    public static let version = OperatingMetrics.version

    public let configuration: ConfabConfiguration
    private let project: ProjectFile
    private let storage: any Storage
    private let webhookTargets: any WebhookTargets
    /// The lock on the data directory, held as long as the server exists. Nil if the caller of `init` supplied the
    /// storage.
    private let lock: DirectoryLock?
    /// The life of this server as a node of a cluster; nil if it is alone.
    private let life: NodeLife?
    private let logger: Logger
    private let prometheus: PrometheusMetrics?
    private let supervisor: Supervisor?
    private let log: LogSettings?
    private let reloading: Reloading?
    private let onReady: @Sendable (Ready) -> Void
    /// Makes the recorder of sessions; nil for the one that records the media plane's streams. Tests replace it.
    var makeRecorder: RecorderFactory?
    /// Makes what composes broadcasts; nil for what runs a compositor. Tests replace it.
    var makeBroadcaster: BroadcasterFactory?
    /// Makes what knows the nodes of a cluster; nil for the cluster of this server, if it is in one. Tests replace it. Called on the
    /// gateway's event loop.
    var makeClusterNodes: (@Sendable (Gateway) -> any ClusterNodes)?
    /// Makes what judges samples of cameras; nil for what the configuration names. Tests replace it.
    var makeExaminer: SampleExaminerFactory?
    /// Called with the port of the operator's page when it is open. Tests set it.
    var onAdminReady: @Sendable (Int) -> Void = { _ in }
    /// The machine's clocks. Tests replace them.
    var clockSource = ClockSource.system

    /// The server's port and URL, and messages for the operator. Passed to `onReady` when the server is listening.
    public struct Ready: Sendable {
        public var port: Int
        public var url: String
        /// The line of output that scripts wait for.
        public var line: String
        /// Further hints for the operator, such as other URLs of this server.
        public var notes: [String]
    }

    /// - Parameters:
    ///   - storage: The storage to use. If nil, the server locks the data directory and opens the configured database.
    ///   - life: The life of this server as a node of a cluster, which has locked the data directory. Nil if the server is alone.
    ///   - supervisor: Receives the server's status (systemd).
    ///   - log: The settings of the log handlers, which a reload changes.
    ///   - reloading: When and how to reload the configuration; nil for never.
    public init(
        configuration: ConfabConfiguration, project: ProjectFile, storage: SQLiteStorage? = nil,
        life: NodeLife? = nil, logger: Logger,
        prometheus: PrometheusMetrics? = nil, supervisor: Supervisor? = nil, log: LogSettings? = nil,
        reloading: Reloading? = nil,
        onReady: @escaping @Sendable (Ready) -> Void = { _ in }
    ) throws {
        self.configuration = configuration
        self.project = project
        self.logger = logger
        (self.log, self.reloading, self.life) = (log, reloading, life)
        if let storage {
            (lock, self.storage, webhookTargets) = (nil, storage, StoredWebhookTargets(storage: storage))
        } else {
            let directory = configuration.dataDirectory
            lock =
                try life?.lock
                ?? DirectoryLock(directory: directory, timeout: configuration.storage.lockTimeout) {
                    logger.notice("\($0)")
                }
            try project.keepServerKey(in: directory)
            let opened = try configuration.openServerStorage(serverKey: project.serverKey, node: life?.tag) {
                logger.warning("\($0)")
            }
            for note in opened.notes { logger.notice("\(note)") }
            (self.storage, webhookTargets) = (opened, Self.webhookTargets(of: opened))
        }
        self.prometheus = prometheus
        self.supervisor = supervisor
        self.onReady = onReady
    }

    private static func webhookTargets(of storage: some SQLStorage) -> any WebhookTargets {
        StoredWebhookTargets(storage: storage)
    }

    /// Runs until SIGTERM or SIGINT (if `signals` is true) or until `stop` returns, and then shuts down gracefully.
    /// Stops immediately if the surrounding task is canceled. If storage fails for good, shuts down and throws the
    /// error. If this server is a node of a cluster and was declared dead, shuts down and throws ``NodeFenced``.
    public func run(signals: Bool, until stop: (@Sendable () async -> Void)? = nil) async throws {
        // Use one event loop for all signaling: the rules then need no locks and no thread hops, and one core handles
        // tens of thousands of messages per second. Media has its own thread.
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { if lock != nil { ServerAddressFile.remove(from: configuration.dataDirectory) } }
        let opened = OpenedParts()
        opened.add { try? await group.shutdownGracefully() }
        opened.add { [storage] in try? await storage.close() }
        if let life {
            opened.add {
                life.renewal.stop()
                await life.ledger.close()
            }
        }
        let media: RunningMedia?
        let (gateway, services, fence): (NIOLoopBound<Gateway>, [any Service], FenceSignal)
        do {
            media = configuration.rules.routesMedia ? try startMedia() : nil
            if let media { opened.add { media.plane.stop() } }
            (gateway, services, fence) = try await assemble(on: group, media, opened)
        } catch {
            await opened.closeAll()
            throw error
        }
        defer { media?.plane.stop() }
        let lifecycle = ServiceGroup(
            configuration: .init(
                services: services.map { .init(service: $0) },
                gracefulShutdownSignals: signals ? [.sigterm, .sigint] : [], logger: logger
            )
        )
        let storageFault = Mutex<StorageError?>(nil)
        let isNode = life != nil
        try await gateway.eventLoop.submit {
            gateway.value.runner.writer.onStorageLost = { error in
                storageFault.withLock { $0 = error }
                // Storage may refuse a fenced life before its next renewal does.
                if isNode, error.code == .fenced { fence.signal() }
                Task { await lifecycle.triggerGracefulShutdown() }
            }
        }.get()
        fence.onFenced { Task { await lifecycle.triggerGracefulShutdown() } }
        let watch = Task {
            guard let stop else { return }
            await stop()
            await lifecycle.triggerGracefulShutdown()
        }
        defer { watch.cancel() }
        do {
            try await lifecycle.run()
        } catch {
            try? await storage.close()
            await Self.letQueuedTasksStart()
            try? await group.shutdownGracefully()
            // The life may have ended before the services ran. They refuse to run then.
            if fence.isFenced { throw NodeFenced(hasActed: fence.hasActed) }
            throw error
        }
        try await storage.close()
        try await group.shutdownGracefully()
        if fence.isFenced { throw NodeFenced(hasActed: fence.hasActed) }
        // Throw the error, because a supervisor restarts the server only after an error.
        if let error = storageFault.withLock({ $0 }) { throw error }
        logger.info("Stopped")
    }

    /// Gives tasks that are queued a chance to start.
    ///
    /// Hummingbird shuts down in a task that nothing awaits. If a service fails at the same time, the event loop could shut down before
    /// that task starts. The task would then leak a promise, which crashes a debug build.
    private static func letQueuedTasksStart() async {
        // Not Task.yield, because this task may have its own executor. Three times: for the task, its actor and its callback.
        for _ in 0..<3 { await Task.detached {}.value }
    }

    // MARK: Building the components

    /// Creates the gateway, restores the state from before a restart, and returns the gateway with all services, in the
    /// order in which they start.
    private func assemble(
        on group: MultiThreadedEventLoopGroup, _ media: RunningMedia?, _ opened: OpenedParts
    ) async throws -> (NIOLoopBound<Gateway>, [any Service], FenceSignal) {
        let clock = ServerClock(source: clockSource)
        let endpoints = StoredPushDirectory(storage: storage, logger: logger)
        let pushes = try makePushes(endpoints, clock: clock)
        let stored = try await storage.projects()
        stored.logUnreadable(logger)
        let gateway = try await makeGateway(
            on: group.next(), clock: clock, media: media?.plane, pushes, stored.projects)
        media?.deliver { [logger] event in
            event.log(to: logger)
            gateway.eventLoop.execute {
                gateway.value.noteForAdmin(event)
                gateway.value.runner.submit(.media(event))
            }
        }
        endpoints.tell(gateway)
        let disk = DiskSpace(directory: configuration.dataDirectory, minimum: configuration.storage.minFreeSpace)
        let lowSpace = configuration.storage.lowSpace
        try await gateway.eventLoop.submit { gateway.value.diskMeter = DiskMeter(disk, mark: lowSpace) }.get()
        // Measure the disk before the first client can send a file.
        await gateway.measureDisk()
        let fence = FenceSignal()
        let turn = life.map { _ in WebhookTurn() }
        let cluster = try await clusterService(gateway, media?.plane, clock, fence, turn)
        if let cluster { opened.add { await cluster.close() } }
        if let makeClusterNodes {
            try await gateway.eventLoop.submit { gateway.value.nodes = makeClusterNodes(gateway.value) }.get()
        }
        // A node reads what storage keeps for a state machine when it has claimed the machine's place.
        if cluster == nil {
            try await endReportedSessions(at: clock.wallNow)
            try await restoreModeration(to: gateway)
            try await restoreRooms(to: gateway)
            try await restoreCalls(to: gateway)
        }
        let archives = ArchiveParts(
            storage: storage, folder: configuration.recordingFolder, node: life?.tag.nodeName ?? "", logger: logger)
        let usual: RecorderFactory = { [configuration, logger] report in
            Recorder.make(configuration, media: media?.plane, clock: clock, logger: logger, report: report)
        }
        let composer = FFmpegComposer(
            configuration.archives.ffmpeg, folder: configuration.recordingFolder,
            minFreeSpace: Int64(clamping: configuration.recording.minFreeSpace), logger: logger,
            wallClock: { clock.wallNow }
        ) { input in
            gateway.eventLoop.execute { gateway.value.runner.submit(input) }
        }
        opened.add { await composer.stop() }
        let isAvailable = composer.isInstalled
        try await gateway.eventLoop.submit { gateway.value.compose(with: composer, isAvailable: isAvailable) }.get()
        composer.check { gateway.eventLoop.execute { gateway.value.offerComposedArchives(false) } }
        let recorder = try await archives.start(on: gateway, makeRecorder ?? usual)
        if let recorder { opened.add { recorder.stop() } }
        // One thread reads what the media loops copy, for archives and for broadcasts.
        let reader =
            recorder as? Recorder
            ?? media.map { Recorder.forBroadcasts(configuration, media: $0.plane, clock: clock, logger: logger) }
        let broadcasts = BroadcastParts(storage: storage, node: life?.tag.nodeName ?? "", logger: logger)
        let ownsFolder = lock != nil
        let usualBroadcaster: BroadcasterFactory = { [configuration, logger] report in
            Broadcaster.make(
                configuration, recorder: reader, clock: clock, ownsFolder: ownsFolder, logger: logger, report: report)
        }
        let broadcaster = try await broadcasts.start(on: gateway, makeBroadcaster ?? usualBroadcaster)
        if let broadcaster {
            opened.add {
                await broadcaster.stop(waitsForViewers: false)
                reader?.stop()
            }
        }
        let usualExaminer: SampleExaminerFactory = { [configuration] report in
            SampleParts.examiner(configuration, report)
        }
        let examiner = try await SampleParts.start(configuration, on: gateway, makeExaminer ?? usualExaminer)
        if let examiner { opened.add { await examiner.stop() } }
        let lan = configuration.lan ? try LocalNetwork(configuration) : nil
        let readiness = ReadinessCheck(gateway: gateway, storage: storage, media: media?.plane, disk: disk)
        let certificates = try TLSCertificates(configuration, lan, logger)
        let live = LiveConfiguration(configuration)
        let clients = try await gateway.eventLoop.submit {
            NIOLoopBound(ForeignClients(gateway.value), eventLoop: gateway.eventLoop)
        }.get()
        let application = application(gateway, clients, readiness, lan, live, certificates, group)
        var services: [any Service] = [
            application, ClockWatch(clock: clock, logger: logger),
            BanWatch(gateway: gateway, storage: storage, live: live, logger: logger),
            Retention(storage: storage, clock: clock, live: live, logger: logger),
            ArchiveExpiry(gateway: gateway, parts: archives, clock: clock, live: live),
            DiskSpaceMonitor(gateway: gateway, mark: lowSpace, logger: logger),
            MallocTrimmer(gateway: gateway), pushes,
            WebhookSender(
                configuration.webhooks, outbox: storage, targets: webhookTargets, turn: turn, logger: logger
            ) {
                clock.moment
            },
        ]
        // Services stop in reverse order, so the exporter of traces stops last.
        services.insert(contentsOf: try await tracingServices(gateway), at: 0)
        if let certificates {
            services.append(certificates)
            if let automatic = AutomaticCertificates(configuration, gateway, certificates, clock, logger) {
                services.append(automatic)
            }
        }
        if let cluster { services.append(cluster) }
        services += try await settingsServices(gateway, live, stored, certificates)
        if let prometheus, configuration.metrics.isEnabled {
            services.append(
                MetricsEndpoint(
                    configuration: configuration.metrics, metrics: prometheus,
                    operating: OperatingMetrics(disk: disk), readiness: readiness, gateway: gateway, logger: logger
                )
            )
        }
        services += try adminServices(gateway, media?.plane, clock, live)
        services.append(ComposerStop(composer: composer))
        if let examiner { services.append(SampleExaminerStop(examiner: examiner)) }
        if let uploads = try await ArchiveUploads(configuration.archives.bucket, gateway, archives, clock) {
            services.append(uploads)
        }
        if let recorder { services.append(RecorderStop(recorder: recorder, gateway: gateway)) }
        if let reader, !(recorder is Recorder) { services.append(RecorderStop(recorder: reader, gateway: gateway)) }
        if let broadcaster {
            services.append(BroadcasterStop(broadcaster: broadcaster, gateway: gateway, live: live, fence: fence))
        }
        // Append the drain last: services stop in reverse order, so clients receive 1001 while the port is still
        // open.
        services.append(
            Drain(
                gateway: gateway, live: live, supervisor: supervisor, fence: fence,
                closesConnections: broadcaster == nil, logger: logger))
        return (gateway, services, fence)
    }

    /// Begins to record traces, and returns the service that sends them; none if tracing is off.
    private func tracingServices(_ gateway: NIOLoopBound<Gateway>) async throws -> [any Service] {
        guard let endpoint = configuration.tracing.endpoint else { return [] }
        let (queue, settings) = (TraceQueue(capacity: configuration.tracing.queueSize), configuration.tracing)
        try await gateway.eventLoop.submit { gateway.value.runner.traces = TraceRecorder(settings, queue: queue) }.get()
        logger.info("Recording traces", metadata: ["endpoint": "\(endpoint)", "ratio": "\(settings.ratio)"])
        return [TraceExporter(configuration, endpoint: endpoint, queue: queue, logger: logger)]
    }

    /// Returns the services of the operator's page; none if it is off.
    private func adminServices(
        _ gateway: NIOLoopBound<Gateway>, _ media: MediaPlane?, _ clock: ServerClock, _ live: LiveConfiguration
    ) throws -> [any Service] {
        guard configuration.admin.port != nil else { return [] }
        let token = try configuration.admin.token ?? AdminTokenFile.open(in: configuration.dataDirectory)
        let host = configuration.admin.host
        if host != "localhost", IPAddress(host)?.isLoopback != true {
            logger.warning(
                """
                The operator's page is not on a loopback address. Use a proxy with HTTPS, or the token is sent \
                unencrypted.
                """, metadata: ["host": "\(host)"])
        }
        let keeper = AdminFigureKeeper(startedAt: clock.wallNow)
        return [
            AdminSampler(
                gateway: gateway, media: media, clock: clock, keeper: keeper, certificate: ACMEFiles(configuration)),
            AdminEndpoint(
                configuration: configuration, live: live, token: token, figures: keeper,
                desk: AdminDesk(gateway: gateway, storage: storage, clock: clock), logger: logger,
                onReady: onAdminReady),
        ]
    }

    private func clusterService(
        _ gateway: NIOLoopBound<Gateway>, _ media: MediaPlane?, _ clock: ServerClock, _ fence: FenceSignal,
        _ turn: WebhookTurn?
    ) async throws -> ClusterService? {
        guard let life else { return nil }
        return try await ClusterService.make(
            life, configuration, project, gateway: gateway, storage: storage, media: media, logger: logger,
            clock: clock,
            fence: fence, turn: turn)
    }

    /// Returns the services that change settings and keys while the server runs.
    private func settingsServices(
        _ gateway: NIOLoopBound<Gateway>, _ live: LiveConfiguration, _ stored: StoredProjects,
        _ certificates: TLSCertificates?
    ) async throws -> [any Service] {
        let settings = RunningSettings(
            gateway, storage, live, project, stored, certificates: certificates, log: log, logger: logger)
        try await gateway.eventLoop.submit { gateway.value.reloadProjects = { await settings.checkStoredProjects() } }
            .get()
        let reload: [any Service] = reloading.map { [ReloadWatch(reloading: $0, settings: settings)] } ?? []
        return [ProjectWatch(settings: settings, live: live)] + reload
    }

    /// Opens the media sockets and logs warnings about the configuration.
    private func startMedia() throws -> RunningMedia {
        var settings = try MediaPlane.Settings(configuration)
        settings.tag = life?.tag
        let media = try RunningMedia(settings, logger: logger)
        for note in media.plane.notes { logger.warning("\(note)") }
        var metadata: Logger.Metadata = [
            "port": "\(media.plane.port)", "addresses": "\(media.plane.addresses)",
            "srtp": "\(MediaPlane.srtpImplementation)",
        ]
        if media.plane.udpPorts.count > 1 { metadata["udpPorts"] = "\(media.plane.udpPorts)" }
        logger.info("Media", metadata: metadata)
        return media
    }

    /// Makes the sender of push notifications and logs warnings about its keys.
    private func makePushes(_ endpoints: StoredPushDirectory, clock: ServerClock) throws -> PushSender {
        let keys = try PushKeys.open(configuration)
        for warning in keys.warnings { logger.warning("\(warning)") }
        return PushSender(configuration, keys: keys, directory: endpoints, logger: logger) { clock.wallNow }
    }

    private func makeGateway(
        on eventLoop: any EventLoop, clock: ServerClock, media: MediaPlane?, _ pushes: PushSender,
        _ stored: [StoredProject]
    ) async throws -> NIOLoopBound<Gateway> {
        let hubSettings = HubSettings(
            rules: configuration.rules, projects: Projects(main: try project.project, stored: stored),
            ice: ICEProvision(configuration.ice),
            version: Self.version,
            vapidKey: pushes.vapidKey, tag: life?.tag
        )
        let pushNotifier = DevicePushNotifier(sender: pushes)
        let (storage, logger, configuration, supervisor) = (storage, logger, configuration, supervisor)
        let roomFiles = RoomFileStore(dataDirectory: configuration.dataDirectory)
        // Only the server that holds the lock may delete files, because another server could be using them.
        if lock != nil { clear(roomFiles) }
        return try await eventLoop.submit {
            let metrics = GatewayMetrics(mediaLoops: media?.udpPorts.count ?? 1)
            let runner = HubRunner(
                hubSettings: hubSettings, storage: storage, media: media, pushNotifier: pushNotifier,
                trouble: StorageTrouble(
                    busyLimit: configuration.storage.busyTimeout, faultLimit: configuration.storage.faultTimeout),
                maxHeldBytes: configuration.limits.sendQueue, clock: clock, logger: logger, metrics: metrics,
                eventLoop: eventLoop
            )
            runner.roomFiles = roomFiles
            let gateway = Gateway(
                runner: runner, storage: storage, configuration: configuration, logger: logger, metrics: metrics
            )
            gateway.routes = Routes.templates
            gateway.startPinging()
            EventLoopMonitor(eventLoop: eventLoop, metrics: metrics, supervisor: supervisor).start()
            return NIOLoopBound(gateway, eventLoop: eventLoop)
        }.get()
    }

    /// Deletes the files that rooms stored before the restart. A file that cannot be deleted uses disk space without
    /// counting against `rooms.fileBytes`, so a failure is logged for the operator.
    private func clear(_ files: RoomFileStore) {
        do {
            try files.clear()
        } catch {
            logger.error(
                "Could not delete files that rooms left before the restart. Delete the folder files in the data directory.",
                metadata: ["error": "\(error)"])
        }
    }

    /// Restores the calls that had not ended when the server stopped. Runs before the first client can connect.
    private func restoreCalls(to gateway: NIOLoopBound<Gateway>) async throws {
        let calls = try await storage.openCalls()
        guard !calls.isEmpty else { return }
        let now = try await gateway.eventLoop.submit { gateway.value.runner.wallNow }.get()
        let restored = try await storage.restoring(calls, at: now)
        try await gateway.eventLoop.submit { for input in restored { gateway.value.runner.submit(input) } }.get()
        logger.info("Calls restored", metadata: ["count": "\(calls.count)"])
    }

    /// Restores persistent rooms before anyone can join them or create others with the same names.
    private func restoreRooms(to gateway: NIOLoopBound<Gateway>) async throws {
        let stored = try await storage.rooms()
        stored.logUnreadable(logger)
        // Restore the newest room first: if storage failed to delete a room, a newer room may have its name and must
        // keep it.
        let rooms = Array(stored.rooms.reversed())
        try await gateway.eventLoop.submit {
            for room in rooms { gateway.value.runner.submit(.restoredRoom(room)) }
        }.get()
        if !rooms.isEmpty { logger.info("Rooms restored", metadata: ["count": "\(rooms.count)"]) }
    }

    /// Reports to webhooks that the connections and streams from before the restart have ended.
    private func endReportedSessions(at now: Timestamp) async throws {
        let count = try await storage.endReportedSessions(at: now)
        if count > 0 { logger.info("Ends of sessions reported to webhooks", metadata: ["events": "\(count)"]) }
    }

    /// Restores revoked tokens and mutes before anyone can join a session.
    private func restoreModeration(to gateway: NIOLoopBound<Gateway>) async throws {
        // Read expired tokens too. Whether a token has expired is decided later, when the clock is confirmed.
        let sessions = try await storage.moderation(at: .distantPast)
        try await gateway.eventLoop.submit {
            for session in sessions { gateway.value.runner.submit(.moderated(session)) }
        }.get()
    }

    /// Maximum number of connections accepted per turn of the event loop. With NIO's default of four, a burst of new
    /// connections would wait long in the kernel's queue, because every turn also serves the open connections.
    private static let acceptedPerTurn: UInt = 32

    private func application(
        _ gateway: NIOLoopBound<Gateway>, _ clients: NIOLoopBound<ForeignClients>, _ readiness: ReadinessCheck,
        _ lan: LocalNetwork?, _ live: LiveConfiguration, _ certificates: TLSCertificates?,
        _ group: MultiThreadedEventLoopGroup
    ) -> some Service {
        let host = lan?.everyAddress ?? configuration.host
        let (configuration, supervisor, onReady) = (configuration, supervisor, onReady)
        let noteAddress = addressNote(host, isSecure: certificates != nil)
        let routes = Routes(gateway: gateway, live: live, lan: lan, readiness: readiness)
        var logger = logger
        logger[metadataKey: "serves"] = "clients"
        return Application(
            responder: routes.router().buildResponder(),
            server: HTTPServerBuilder {
                GatewayChannel(
                    responder: $0, clients: clients, certificates: certificates,
                    executor: EventLoopExecutor(gateway.eventLoop))
            },
            // Use a long backlog, because all pages reconnect at the same time after an outage.
            configuration: .init(
                address: .hostname(host, port: configuration.port), serverName: nil, backlog: 4096
            ),
            onServerRunning: { channel in
                try? await channel.setOption(.maxMessagesPerRead, value: Self.acceptedPerTurn).get()
                let port = channel.localAddress?.port ?? configuration.port
                noteAddress(port)
                supervisor?.tell(.ready)
                let addresses = (try? lanAddresses())?.map(\.address) ?? []
                onReady(
                    Ready(
                        configuration, port: port, isSecure: certificates != nil, lan: lan, addresses: addresses))
            },
            eventLoopGroupProvider: .shared(group),
            logger: logger
        )
    }
}

extension ConfabServer {
    /// Returns a function that stores the server's address in the data directory, where commands find it. The function
    /// does nothing if the server does not hold the lock on the directory.
    private func addressNote(_ host: String, isSecure: Bool) -> @Sendable (_ port: Int) -> Void {
        // Write nothing without the lock, because the data directory may belong to another server.
        let (directory, logger) = (lock == nil ? nil : configuration.dataDirectory, logger)
        return { port in
            guard let directory else { return }
            do throws(DataDirectoryError) {
                try ServerAddressFile.write(to: directory, host: host, port: port, isSecure: isSecure)
            } catch {
                logger.warning("Commands such as confab room cannot find this server; use --server. \(error)")
            }
        }
    }
}

/// The addresses and the certificate that `--lan` uses.
struct LocalNetwork: Sendable {
    let addresses: [IPAddress]
    let material: LocalCertificateAuthority.Material

    /// The wildcard address to listen on: the IPv6 one (`::`) if the machine has an IPv6 address, because a socket
    /// bound to it also accepts IPv4.
    var everyAddress: String { addresses.contains { !$0.isIPv4 } ? "::" : "0.0.0.0" }

    init(_ configuration: ConfabConfiguration) throws {
        addresses = try lanAddresses().map(\.address)
        material = try LocalCertificateAuthority(dataDirectory: configuration.dataDirectory)
            .material(addresses: addresses, hostName: ProcessInfo.processInfo.hostName)
    }
}

extension ConfabServer.Ready {
    /// - Parameter addresses: this machine's addresses except loopback and link-local ones, the most likely reachable
    ///   first.
    init(
        _ configuration: ConfabConfiguration, port: Int, isSecure: Bool, lan: LocalNetwork?, addresses: [IPAddress]
    ) {
        let own = lan?.addresses.first { $0.isIPv4 && !$0.isLoopback } ?? lan?.addresses.first
        let urls = ServerURLs(
            host: own?.description ?? configuration.host, port: port, isSecure: isSecure, addresses: addresses)
        let url = configuration.publicURL ?? urls.main
        var line = "Confab is ready: \(url)"
        if configuration.ice.isEmpty { line += " (LAN only: no STUN or TURN configured)" }
        line += " (to try it alone, open \(url)/?guest=1 in two tabs)"
        var notes: [String] = []
        if configuration.publicURL == nil, !urls.others.isEmpty {
            let camera = isSecure ? "" : " On other devices, browsers allow the camera only over HTTPS."
            notes.append("Also at \(urls.others.joined(separator: ", ")).\(camera)")
        }
        if lan != nil {
            notes.append("To connect a phone, first open \(url)/lan on it and trust this server's certificate.")
            if let code = try? QRCode(url + "/lan") { notes.append(code.terminalText()) }
        }
        self.init(port: port, url: url, line: line, notes: notes)
    }
}

extension ConfabServer {
    /// Upper bounds of the histograms that do not use the default buckets, keyed by metric name.
    public static var metricsBuckets: [String: [Double]] { [MediaWait.label: MediaWait.buckets] }

    /// The help text of every metric, keyed by metric name.
    public static var metricsHelp: [String: String] {
        let parts = [
            GatewayMetrics.help, PushMetrics.help, WebhookMetrics.help, OperatingMetrics.help, TraceMetrics.help,
            ClusterMetrics.help,
        ]
        return parts.reduce([:]) { all, help in all.merging(help) { first, _ in first } }
    }
}
