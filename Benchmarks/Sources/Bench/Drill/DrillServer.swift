import Foundation

/// A server that a drill starts, kills and starts again with the same data.
///
/// The class is `@unchecked Sendable` because one task uses it at a time. The exception is `kill`, which only sends a signal.
final class DrillServer: @unchecked Sendable {
    /// The drill sends requests as fast as storage answers, which is faster than people are allowed to.
    private static let settings = [
        "CONFAB_METRICS_ENABLED": "false", "CONFAB_MEDIA_ENABLED": "false",
        "CONFAB_LIMITS_REQUESTS_PER_SECOND": "100000", "CONFAB_LIMITS_REQUEST_BURST": "100000",
        "CONFAB_LIMITS_PERSON_REQUESTS_PER_SECOND": "100000", "CONFAB_LIMITS_PERSON_REQUEST_BURST": "100000",
        // The file systems of the drills are small.
        "CONFAB_STORAGE_MIN_FREE_SPACE": "0B", "CONFAB_STORAGE_LOW_SPACE": "0B",
    ]
    private static let startLimit = Duration.seconds(30)
    private static let readyMark = "Confab is ready: "

    private let executable: String
    private let directory: String
    private let log: String
    private var process: Process?
    private(set) var port = 0

    init(executable: String, directory: String, log: String) {
        (self.executable, self.directory, self.log) = (executable, directory, log)
    }

    func start() throws {
        _ = FileManager.default.createFile(atPath: log, contents: nil)
        let process = try run(["serve", "--port", "0", "--data-dir", directory], output: log)
        self.process = process
        endWithThisProgram(process.processIdentifier)
        let deadline = ContinuousClock.now + Self.startLimit
        while true {
            let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
            if let port = Self.port(in: text) { return self.port = port }
            guard process.isRunning, ContinuousClock.now < deadline else {
                throw LoadClient.Failure(description: "the server did not start: \(text.suffix(1000))")
            }
            usleep(5000)
        }
    }

    private static func port(in log: String) -> Int? {
        // The line must be complete, because the port is near its end.
        guard let line = log.components(separatedBy: "\n").dropLast().last(where: { $0.contains(readyMark) }) else {
            return nil
        }
        let url = line.components(separatedBy: readyMark).last?.prefix { !$0.isWhitespace } ?? ""
        return url.split(separator: ":").last.flatMap { Int($0) }
    }

    /// Sends SIGKILL, which leaves the data as a crash would.
    func kill() {
        guard let process, process.isRunning else { return }
        Foundation.kill(process.processIdentifier, SIGKILL)
    }

    /// Waits until the process has ended, and returns its exit status; nil if it still runs.
    func exitStatus(within limit: Duration) -> Int32? {
        guard let process else { return 0 }
        let deadline = ContinuousClock.now + limit
        while process.isRunning, ContinuousClock.now < deadline { usleep(5000) }
        guard !process.isRunning else { return nil }
        // Another process may get this id.
        startedServer = -1
        return process.terminationStatus
    }

    /// Runs another command of the executable with the same data, and returns its output.
    func command(_ arguments: [String]) throws -> String {
        let output = log + ".command"
        _ = FileManager.default.createFile(atPath: output, contents: nil)
        let process = try run(arguments + ["--data-dir", directory], output: output)
        process.waitUntilExit()
        let text = try String(contentsOfFile: output, encoding: .utf8)
        guard process.terminationStatus == 0 else {
            throw LoadClient.Failure(description: "confab \(arguments.joined(separator: " ")) failed: \(text)")
        }
        return text
    }

    private func run(_ arguments: [String], output: String) throws -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: executable)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("CONFAB_DRILL_") && !$0.key.hasPrefix("CONFAB_BENCH_") }
            .merging(Self.settings) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
        process.standardError = process.standardOutput
        try process.run()
        return process
    }
}

/// Runs a command of the script, such as one that fills the disk. The variable names the command.
func runHook(_ variable: String) throws {
    guard let command = ProcessInfo.processInfo.environment[variable] else {
        throw LoadClient.Failure(description: "\(variable) is not set")
    }
    // Not with Foundation's `Process`, which would also wait for what the command leaves in the background.
    guard system("{ \(command)\n} >&2") == 0 else {
        throw LoadClient.Failure(description: "\(variable) failed: \(command)")
    }
}

/// The server that a drill has started last. A signal handler may read nothing else.
nonisolated(unsafe) private var startedServer: pid_t = 0

/// Ends the server when this program exits or is stopped.
private func endWithThisProgram(_ server: pid_t) {
    if startedServer == 0 {
        atexit { if startedServer > 0 { Foundation.kill(startedServer, SIGKILL) } }
        for number in [SIGTERM, SIGINT] {
            signal(number) { _ in
                if startedServer > 0 { Foundation.kill(startedServer, SIGKILL) }
                _exit(143)
            }
        }
    }
    startedServer = server
}
