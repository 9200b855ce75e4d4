import Foundation
import Signaling
import Synchronization
import TestSupport
import Testing

/// The result of a command of the executable.
struct CommandResult: Sendable {
    var status: Int32
    var output: String
    var errors: String
}

/// `confab serve` in a separate process. Its memory can be measured, and a crash does not end the tests.
final class ServerProcess: Sendable {
    private struct State: Sendable {
        var process: RunningProcess?
        var port = 0
        var wasKilled = false
    }

    /// Settings that every server in these tests has, besides those of the test.
    ///
    /// Attackers and the people who must not be disturbed share an address in most tests. So the budgets of addresses are large,
    /// except in the tests of these budgets.
    private static let defaults = [
        "CONFAB_MEDIA_PORT": "0", "CONFAB_METRICS_ENABLED": "false",
        "CONFAB_LIMITS_ADDRESS_MESSAGES_PER_SECOND": "1000000", "CONFAB_LIMITS_ADDRESS_MESSAGE_BURST": "1000000",
        "CONFAB_LIMITS_STORED_PER_ADDRESS_AND_DAY": "1048576MiB",
    ]
    private static let startTimeout: Duration = .seconds(30)
    private static let stopTimeout: Duration = .seconds(10)

    let dataDirectory: String
    /// The settings of this test, without the defaults above.
    let settings: [String: String]
    private let flags: [String]
    private let descriptorLimit: Int?
    private let directory: String
    private let state = Mutex(State())

    private init(_ settings: [String: String], _ flags: [String], descriptors: Int?) throws {
        self.settings = settings
        self.flags = flags
        descriptorLimit = descriptors
        directory = NSTemporaryDirectory() + "confab-hostile-\(UUID().uuidString)"
        dataDirectory = directory + "/data"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    }

    /// Starts a server, runs `body` on threads that may block, and stops the server.
    ///
    /// - Parameters:
    ///   - settings: variables such as `CONFAB_LIMITS_HANDSHAKE_TIMEOUT`.
    ///   - flags: additional arguments of `confab serve`.
    ///   - descriptors: how many files and sockets the server may open; nil for as many as the system allows.
    static func run<R>(
        _ settings: [String: String] = [:], flags: [String] = [], descriptors: Int? = nil,
        _ body: (ServerProcess) async throws -> R
    ) async throws -> R {
        try await blocking {
            let server = try ServerProcess(settings, flags, descriptors: descriptors)
            defer { try? FileManager.default.removeItem(atPath: server.directory) }
            let result: R
            do {
                // Not 0: after a restart, the server listens on the same port.
                try server.start(port: TestPorts.next())
                result = try await body(server)
            } catch {
                server.stop()
                throw error
            }
            server.stop()
            return result
        }
    }

    // MARK: Starting and stopping

    private func start(port: Int) throws {
        raiseDescriptorLimit()
        var command = [try Executable.confab(), "serve", "--port", "\(port)", "--data-dir", dataDirectory] + flags
        if let limit = descriptorLimit {
            command = ["/bin/sh", "-c", "ulimit -n \(limit) && exec \"$@\"", "sh"] + command
        }
        let process = try RunningProcess(
            command[0], Array(command.dropFirst()), environment: environment, logFile: directory + "/log")
        state.withLock { ($0.process, $0.wasKilled) = (process, false) }
        let linesBefore = log.components(separatedBy: Self.readyMark).count
        try eventually("the server is not ready: \(log)", within: Self.startTimeout) {
            log.components(separatedBy: Self.readyMark).count > linesBefore || !process.isRunning
        }
        guard let port = Self.port(in: log) else { throw TimedOut("the server did not start: \(log)") }
        state.withLock { $0.port = port }
    }

    private static let readyMark = "Confab is ready: "

    private static func port(in log: String) -> Int? {
        guard let line = log.components(separatedBy: "\n").last(where: { $0.contains(readyMark) }) else { return nil }
        let url = line.components(separatedBy: readyMark).last?.prefix { !$0.isWhitespace } ?? ""
        return url.split(separator: ":").last.flatMap { Int($0) }
    }

    private var environment: [String: String] {
        ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("CONFAB_") }
            .merging(Self.defaults) { $1 }
            .merging(settings) { $1 }
    }

    /// Stops the server as an operator would, and checks its exit status and its log.
    private func stop() {
        let (process, wasKilled) = state.withLock { ($0.process, $0.wasKilled) }
        guard let process, !wasKilled else { return judge() }
        let hasDied = !process.isRunning
        process.send(SIGTERM)
        if !process.waits(within: Self.stopTimeout) {
            Issue.record("The server did not stop within \(Self.stopTimeout) of SIGTERM.")
            process.send(SIGKILL)
            _ = process.waits(within: Self.stopTimeout)
        } else if hasDied || process.misfortune != nil {
            // A crashed server may still be writing its report when it is asked to stop.
            Issue.record("The server died, with \(process.misfortune ?? "status 0"): \(log.suffix(20000))")
        }
        judge()
    }

    private func judge() {
        // Look for messages of Swift's runtime, and of its backtracer, which also reports signals.
        let log = log
        if log.contains("Fatal error") || log.contains("*** Signal ") {
            Issue.record("The server trapped: \(log.suffix(20000))")
        }
    }

    /// Sends SIGKILL, which leaves the data as a crash would.
    func kill() {
        let process = state.withLock {
            $0.wasKilled = true
            return $0.process
        }
        process?.send(SIGKILL)
        _ = process?.waits(within: Self.stopTimeout)
    }

    /// Restarts the server on the same port with the same data. Stops it first if it is running.
    func restart() throws {
        if isRunning {
            state.withLock { $0.process }?.send(SIGTERM)
            if state.withLock({ $0.process })?.waits(within: Self.stopTimeout) != true { kill() }
        }
        try start(port: port)
    }

    // MARK: Inspection

    var port: Int { state.withLock { $0.port } }
    var processID: Int32 { state.withLock { $0.process?.id ?? 0 } }
    var isRunning: Bool { state.withLock { $0.process?.isRunning ?? false } }

    /// Everything written so far to standard output and standard error.
    var log: String {
        String(decoding: FileManager.default.contents(atPath: directory + "/log") ?? Data(), as: UTF8.self)
    }

    /// The physical memory in bytes. `peakMemory` is its maximum.
    var memory: Int { ProcessFigures.memory(processID) }
    var peakMemory: Int { ProcessFigures.peakMemory(processID) }
    /// The number of open descriptors: sockets, files and those of the event loop.
    var descriptors: Int { ProcessFigures.descriptors(processID) }
    /// The number of open descriptors by kind.
    var openFiles: [String: Int] { ProcessFigures.openFiles(processID) }
    var sockets: Int { openFiles["socket", default: 0] }

    /// Runs another command of the executable with the same data.
    func command(_ arguments: [String]) async throws -> CommandResult {
        let log = directory + "/command-\(UUID().uuidString)"
        let (environment, dataDirectory) = (environment, dataDirectory)
        return try await onThread {
            let process = try RunningProcess(
                try Executable.confab(), arguments + ["--data-dir", dataDirectory], environment: environment,
                logFile: log, errorFile: log + ".errors"
            )
            guard process.waits(within: Self.startTimeout) else {
                process.send(SIGKILL)
                throw TimedOut("confab \(arguments) still runs after \(Self.startTimeout)")
            }
            func text(_ path: String) -> String {
                String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
            }
            return CommandResult(status: process.status, output: text(log), errors: text(log + ".errors"))
        }
    }

    /// The project that makes the server's sessions and tokens.
    func project() throws -> Project {
        struct File: Decodable { var apiKey: String, apiSecret: String }
        let path = dataDirectory + "/project.json"
        let file = try JSONDecoder().decode(File.self, from: FileManager.default.contents(atPath: path) ?? Data())
        let key = FileManager.default.contents(atPath: dataDirectory + "/server.key")
            .flatMap { Data(base64Encoded: String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .newlines)) }
            .flatMap { ServerKey(bytes: Array($0)) }
        guard let key, let project = Project(apiKey: file.apiKey, secret: file.apiSecret, serverKey: key) else {
            throw TimedOut("\(path) holds no project")
        }
        return project
    }
}
