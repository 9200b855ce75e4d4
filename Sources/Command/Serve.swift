import ArgumentParser
import Foundation
import Logging
import Metrics
import Server

/// The `confab serve` command. Runs the server until SIGTERM or SIGINT.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Run the server.")

    @OptionGroup var data: DataOptions

    @Option(help: "Address to listen on (default: \(ConfabConfiguration().host)).")
    var host: String?

    @Option(help: "Port to listen on; 0 picks a free port (default: \(String(ConfabConfiguration().port))).")
    var port: Int?

    @Option(help: "UDP and TCP port for media (default: \(String(ConfabConfiguration().media.port))).")
    var mediaPort: Int?

    @Option(help: "Address announced to browsers for media (default: this machine's address).")
    var mediaAddress: String?

    @Flag(
        help: "Make the server available on the local network: use all interfaces and a local CA, and show a QR code.")
    var lan = false

    @Flag(help: "Print all settings with their defaults and meanings.")
    var helpConfig = false

    func run() async throws {
        if helpConfig { return print(ConfabConfiguration.help, terminator: "") }
        raiseDescriptorLimit()
        var overrides: [String: String] = [:]
        overrides["host"] = host
        overrides["port"] = port.map(String.init)
        overrides["media.port"] = mediaPort.map(String.init)
        overrides["media.address"] = mediaAddress
        if lan { overrides["lan"] = "true" }
        let configuration = try data.configuration(overrides: overrides)
        let project = try openProject(configuration)
        let log = LogSettings(configuration: configuration, project: project)
        LoggingSystem.bootstrap { label in
            ServerLogHandler(label: label, format: configuration.log.format, settings: log)
        }
        let metrics = PrometheusMetrics(help: ConfabServer.metricsHelp, buckets: ConfabServer.metricsBuckets)
        MetricsSystem.bootstrap(metrics)
        let logger = Logger(label: "confab")
        let environment = ProcessInfo.processInfo.environment
        for warning in project.warnings + ConfabConfiguration.warnings(about: environment) {
            logger.warning("\(warning)")
        }
        let reloading = await reloading(overrides)
        @Sendable func makeServer(
            _ configuration: ConfabConfiguration, _ project: ProjectFile, _ life: NodeLife?
        ) throws -> ConfabServer {
            try ConfabServer(
                configuration: configuration, project: project, life: life, logger: logger, prometheus: metrics,
                supervisor: Supervisor(environment: environment), log: log, reloading: reloading
            ) { ready in
                Self.say(ready.line)
                for note in ready.notes { Self.say(note) }
            }
        }
        guard configuration.cluster.node != nil else {
            return try await makeServer(configuration, project, nil).run(signals: true)
        }
        // Before the first life, so that a signal between two of them counts.
        let stop = await StopSignal.onTermination()
        let isStopped: @Sendable () async -> Void = { await stop.wait() }
        try await NodeLives(stop: stop, logger: logger).run {
            let configuration = reloading?.latest ?? configuration
            let life = try await NodeLife.begin(configuration, logger: logger)
            return try await Self.blocking {
                // The secret may have been rotated during an earlier life.
                try makeServer(configuration, try openProject(configuration), life)
            }
        } serve: { server in
            try await server.run(signals: false, until: isStopped)
        }
    }

    /// Runs code that blocks, such as a migration, on a thread of its own: while it runs, the node's lease must be renewed.
    private static func blocking<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }

    /// Returns the source that reloads the configuration on SIGHUP. Nil in a terminal, because closing the terminal
    /// also sends SIGHUP and must stop the server.
    private func reloading(_ overrides: [String: String]) async -> Reloading? {
        guard isatty(STDERR_FILENO) == 0 else { return nil }
        let data = data
        return await .onHangup { try data.load(overrides: overrides) }
    }

    private static func say(_ line: String) {
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }
}
