import Foundation
import Logging
import Signaling
import Wire

@testable import Server

/// A complete server in the test's process, on a free port, with a temporary data directory.
struct TestServer: Sendable {
    let port: Int
    let dataDirectory: String
    let project: ProjectFile
    /// Requests a shutdown. The server stops when all clients have disconnected or the grace period ends.
    let stop: @Sendable () -> Void

    /// Starts a server, runs `body` and stops the server.
    ///
    /// - Parameters:
    ///   - prometheus: what the metrics endpoint serves, if the configuration enables it.
    ///   - logger: where the server logs; nil for nowhere.
    ///   - reloading: when and how the server reloads its configuration.
    ///   - recorder: what records sessions; nil for the server's own recorder.
    ///   - broadcaster: what composes broadcasts; nil for the server's own, if it has one.
    ///   - nodes: what knows the nodes of a cluster; nil for a server that is alone.
    ///   - admin: what gets the port of the operator's page, if the configuration enables it.
    ///   - clock: the machine's clocks.
    ///   - configure: changes settings. All timeouts are settings, so tests can shorten them.
    static func run<Result: Sendable>(
        dataDirectory: String? = nil, prometheus: PrometheusMetrics? = nil, supervisor: Supervisor? = nil,
        logger: Logger? = nil, log: LogSettings? = nil, reloading: Reloading? = nil,
        recorder: TestServerRecorder? = nil, broadcaster: TestServerBroadcaster? = nil, nodes: TestServerNodes? = nil,
        admin: AdminPort? = nil, clock: ClockSource = .system,
        _ configure: (inout ConfabConfiguration) -> Void = { _ in },
        _ body: @escaping @Sendable (TestServer) async throws -> Result
    ) async throws -> Result {
        let directory = dataDirectory ?? NSTemporaryDirectory() + "confab-test-\(UUID().uuidString)"
        defer { if dataDirectory == nil { try? FileManager.default.removeItem(atPath: directory) } }
        var configuration = ConfabConfiguration()
        configuration.port = 0
        configuration.dataDirectory = directory
        configuration.metrics.enabled = .never
        configuration.media.port = 0
        configuration.shutdown.grace = .milliseconds(500)
        // On a busy machine, clients of tests may be slow to send their hello, and most send no pings while they wait.
        configuration.limits.handshakeTimeout = .seconds(60)
        configuration.rules.pingInterval = .seconds(120)
        // Most tests have no viewers who wait for the end.
        configuration.broadcasts.stopTimeout = .zero
        // Most tests compose nothing. A server with ffmpeg starts it to check it.
        configuration.archives.ffmpeg = "/missing/ffmpeg"
        configure(&configuration)
        let project = try ProjectFile.open(configuration)
        let (ready, announce) = AsyncStream<Int>.makeStream()
        let (stop, askToStop) = AsyncStream<Void>.makeStream()
        var server = try ConfabServer(
            configuration: configuration, project: project,
            logger: logger ?? Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
            prometheus: prometheus, supervisor: supervisor, log: log, reloading: reloading
        ) { announce.yield($0.port) }
        server.makeRecorder = recorder?.make
        server.makeBroadcaster = broadcaster?.make
        server.makeClusterNodes = nodes?.make
        if let admin { server.onAdminReady = { admin.announce.yield($0) } }
        server.clockSource = clock
        let running = server
        // Not a child task, so that a test that fails or exceeds its time limit does not cancel its server too. Hummingbird
        // starts its graceful shutdown in a task of its own. If the server were canceled meanwhile, that task could find the
        // event loop shut down, and SwiftNIO would end the process because of a promise that is never kept.
        let serving = Task(executorPreference: OwnThreads.executor) {
            try await running.run(signals: false) {
                for await _ in stop { return }
            }
        }
        return try await withThrowingTaskGroup(of: Result?.self) { tasks in
            tasks.addTask {
                try await serving.value
                return nil
            }
            tasks.addTask {
                defer { askToStop.yield() }
                var ports = ready.makeAsyncIterator()
                guard let port = await ports.next() else { return nil }
                let server = TestServer(
                    port: port, dataDirectory: directory, project: project, stop: { askToStop.yield() })
                return try await body(server)
            }
            var result: Result?
            do {
                while let next = try await tasks.next() { result = next ?? result }
            } catch {
                askToStop.yield()
                throw error
            }
            guard let result else { throw CancellationError() }
            return result
        }
    }
}

/// Makes the recorder of a test server. A value, because a function would be mistaken for a trailing closure.
struct TestServerRecorder: Sendable {
    let make: RecorderFactory
}

/// Makes the broadcaster of a test server, in the same way.
struct TestServerBroadcaster: Sendable {
    let make: BroadcasterFactory
}

/// Makes what knows the nodes of a test server's cluster, in the same way.
struct TestServerNodes: Sendable {
    let make: @Sendable (Gateway) -> any ClusterNodes
}

/// The port of the operator's page of a test server.
struct AdminPort: Sendable {
    fileprivate let announce: AsyncStream<Int>.Continuation
    private let ports: AsyncStream<Int>

    init() { (ports, announce) = AsyncStream<Int>.makeStream() }

    /// Waits until the page is served. Call this once.
    func opened() async throws -> Int {
        for await port in ports { return port }
        throw CancellationError()
    }
}
