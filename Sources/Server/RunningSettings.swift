import Logging
import NIOCore
import ServiceLifecycle
import Signaling
import Synchronization
import UnixSignals
import Wire

/// Owns everything that can change while the server runs: the settings marked as live, the API secret, and the
/// projects in the database.
///
/// It reads the files and the database, and passes changes to the gateway, which passes them to the hub as an input.
/// If a file cannot be used, nothing changes and the reason is logged. A change does not close any connections.
actor RunningSettings {
    private let gateway: NIOLoopBound<Gateway>
    private let storage: any Storage
    private let live: LiveConfiguration
    private let certificates: TLSCertificates?
    private let log: LogSettings?
    private let logger: Logger
    private var file: ProjectFile
    /// The projects in the database, each as it was last read successfully.
    private var stored: [StoredProject]
    /// The projects that could not be read the last time, and the latest problem with reading the database, so that each
    /// is logged only once.
    private var (unreadable, storageProblem): (Set<StoredProjects.Unreadable>, String?)
    /// The number of the latest read of the projects, and of the last read whose result was adopted. Reads can
    /// overlap, so the result of a read that began before the adopted one is ignored: it may be outdated.
    private var (lastRead, adoptedRead) = (0, 0)
    /// The problem with the project file that was logged last, which is not logged again. Nil if the file could be
    /// used when it was last read.
    private var problem: String?

    init(
        _ gateway: NIOLoopBound<Gateway>, _ storage: any Storage, _ live: LiveConfiguration, _ file: ProjectFile,
        _ stored: StoredProjects, certificates: TLSCertificates?, log: LogSettings?, logger: Logger
    ) {
        (self.gateway, self.storage, self.live, self.file) = (gateway, storage, live, file)
        (self.stored, unreadable, storageProblem) = (stored.projects, Set(stored.unreadable), nil)
        (self.certificates, self.log, self.logger) = (certificates, log, logger)
        log?.apply(live.current, file, stored.projects)
    }

    // MARK: Projects

    /// Reads the projects in the database again and applies changes. The command `confab project`, which is a
    /// separate process, or an operator's request may have changed them.
    func checkStoredProjects() async {
        lastRead += 1
        let read = lastRead
        do {
            let found = try await storage.projects()
            // Projects that could not be read when the server started. Their moderation was not restored then.
            let repaired = Set(unreadable.compactMap(\.apiKey)).subtracting(stored.map(\.apiKey))
                .intersection(found.projects.map(\.apiKey))
            let moderation = repaired.isEmpty ? [] : try await storage.moderation(at: .distantPast)
            guard read > adoptedRead else { return }
            (adoptedRead, storageProblem) = (read, nil)
            found.logUnreadable(logger, except: unreadable)
            unreadable = Set(found.unreadable)
            // A project that cannot be read was not deleted: keep it, and with it its sessions.
            let kept = stored.filter { project in unreadable.contains { $0.apiKey == project.apiKey } }
            let projects = found.projects + kept
            guard Set(projects) != Set(stored) else { return }
            stored = projects
            await apply(
                try file.project,
                restoring: moderation.filter { Project.apiKey(in: $0.session).map(repaired.contains) ?? false })
            logger.notice("The projects have changed", metadata: ["count": "\(stored.count { $0.secret != nil } + 1)"])
        } catch {
            guard storageProblem != "\(error)" else { return }
            storageProblem = "\(error)"
            logger.error(
                "Could not read the projects. The server continues with the current ones.",
                metadata: ["error": "\(error)"])
        }
    }

    // MARK: The API secret

    /// Reads the project file again and applies a changed secret. The command `confab project rotate`, which is a
    /// separate process, may have changed it.
    func checkProject() async {
        do throws(DataDirectoryError) {
            let found = try open(live.current)
            problem = nil
            guard found.apiSecret != file.apiSecret || found.previous != file.previous else { return }
            try await adopt(found)
        } catch {
            guard problem != error.description else { return }
            problem = error.description
            logger.error(
                "The API secret was not reloaded. The server continues with the current one.",
                metadata: ["error": "\(error)"])
        }
    }

    private func open(_ configuration: ConfabConfiguration) throws(DataDirectoryError) -> ProjectFile {
        let found = try ProjectFile.reopen(configuration)
        guard found.apiKey == file.apiKey, found.serverKey == file.serverKey else {
            throw DataDirectoryError(
                "The API key or the server key has changed. Restart the server to use the new ones.")
        }
        return found
    }

    private func adopt(_ found: ProjectFile) async throws(DataDirectoryError) {
        let project = try found.project
        let isRotated = found.apiSecret != file.apiSecret
        file = found
        await apply(project)
        let gateway = gateway
        // Ignore an error: submitting fails only if the event loop has stopped.
        try? await gateway.eventLoop.submit { gateway.value.projectFileChanged(found) }.get()
        guard isRotated else { return }
        logger.notice(
            "The API secret has changed",
            metadata: ["previousAcceptedUntil": "\(found.previous.map { TimeText.write($0.acceptedUntil) } ?? "now")"])
    }

    /// Passes the current settings to the log handlers and the gateway, which have copies of them.
    ///
    /// - Parameter moderation: the revoked tokens and mutes of repaired projects, which apply before anyone can join their
    ///   sessions.
    private func apply(_ project: Project, restoring moderation: [SessionModeration] = []) async {
        let (gateway, configuration, projects) = (gateway, live.current, Projects(main: project, stored: stored))
        log?.apply(configuration, file, stored)
        // Ignore an error: submitting fails only if the event loop has stopped.
        try? await gateway.eventLoop.submit {
            gateway.value.apply(configuration, projects)
            for session in moderation { gateway.value.runner.submit(.moderated(session)) }
        }.get()
    }

    // MARK: The configuration

    var configuration: ConfabConfiguration { live.current }

    /// Loads the configuration and applies the changes that need no restart. If it or the project file cannot be used,
    /// logs the reason and changes nothing.
    func reload(_ load: @Sendable () throws -> ConfabConfiguration) async {
        let change: ConfigurationChange
        do {
            change = ConfigurationChange(from: live.current, to: try load())
            let found = try open(change.result)
            // Check the keys before anything changes, because they can be invalid.
            _ = try found.project
            live.replace(change.result)
            problem = nil
            try await adopt(found)
        } catch {
            let problems = (error as? ConfigurationError)?.problems.map(\.description) ?? ["\(error)"]
            logger.error(
                "The configuration was not reloaded. The current one stays in use.",
                metadata: ["error": "\(problems.joined(separator: "; "))"])
            return
        }
        // Check the certificate files now. They are also checked regularly, but an operator who requests a reload
        // expects the new certificate immediately.
        certificates?.reload()
        report(change)
    }

    private func report(_ change: ConfigurationChange) {
        func metadata(_ difference: ConfigurationChange.Difference) -> Logger.Metadata {
            ["setting": "\(difference.key)", "before": "\(difference.before)", "after": "\(difference.after)"]
        }
        for difference in change.applied { logger.notice("Setting changed", metadata: metadata(difference)) }
        for difference in change.pending {
            logger.warning("Restart the server to apply this setting", metadata: metadata(difference))
        }
        logger.notice(
            "Configuration reloaded",
            metadata: [
                "changed": "\(change.applied.count)", "needRestart": "\(change.pending.count)",
                "unchanged": "\(change.unchanged)",
            ])
    }
}

/// Polls for changes that the command `confab project` has made to the project file and to the projects in the
/// database.
struct ProjectWatch: Service {
    let settings: RunningSettings
    let live: LiveConfiguration

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await settings.checkProject()
                await settings.checkStoredProjects()
                try? await Task.sleep(for: live.current.storage.pollInterval)
            }
        }
    }
}

/// When to reload the configuration, and how to load it. It outlives the server, because a node of a cluster can have several lives
/// in one process.
public final class Reloading: Sendable {
    /// Who receives requests, and what they have led to.
    private struct State {
        /// The server that runs now; nil if none does.
        var server: AsyncStream<Void>.Continuation?
        /// Whether a reload was requested while no server was running.
        var isPending = false
        var latest: ConfabConfiguration?
    }

    private let state = Mutex(State())
    let load: @Sendable () throws -> ConfabConfiguration

    /// - Parameter requests: yields an element for each requested reload.
    public init(requests: AsyncStream<Void>, load: @escaping @Sendable () throws -> ConfabConfiguration) {
        self.load = load
        Task { [weak self] in
            for await _ in requests { self?.request() }
        }
    }

    private func request() {
        state.withLock { state in
            // A stream whose reader has ended does not take it.
            if case .terminated? = state.server?.yield() { state.server = nil }
            state.isPending = state.server == nil
        }
    }

    /// Returns the requests for a server that has just started, including one from before. Earlier servers receive none any more.
    func requests() -> AsyncStream<Void> {
        let (requests, server) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { state in
            state.server?.finish()
            if state.isPending { server.yield() }
            (state.server, state.isPending) = (server, false)
        }
        return requests
    }

    /// Whether a reload was requested while no server was running.
    var isPending: Bool { state.withLock(\.isPending) }

    /// The configuration after the last reload, for the next life; nil if there was none.
    public var latest: ConfabConfiguration? { state.withLock(\.latest) }

    func keep(_ configuration: ConfabConfiguration) { state.withLock { $0.latest = configuration } }

    /// Returns a `Reloading` that requests a reload whenever the process receives SIGHUP after this function has
    /// returned.
    public static func onHangup(load: @escaping @Sendable () throws -> ConfabConfiguration) async -> Reloading {
        // Signals that arrive during a reload cause only one more reload.
        let (requests, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let signals = await UnixSignalsSequence(trapping: .sighup)
        Task {
            for await _ in signals { continuation.yield() }
        }
        return Reloading(requests: requests, load: load)
    }
}

/// Reloads the configuration whenever that is requested.
struct ReloadWatch: Service {
    let reloading: Reloading
    let settings: RunningSettings

    func run() async throws {
        await cancelWhenGracefulShutdown {
            for await _ in reloading.requests() {
                await settings.reload(reloading.load)
                reloading.keep(await settings.configuration)
            }
        }
        // Wait for the shutdown even if no more requests can follow: the service group stops all services when one of
        // them ends.
        try await gracefulShutdown()
    }
}
