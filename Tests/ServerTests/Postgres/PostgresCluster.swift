import Dispatch
import Foundation
import Synchronization
import TestSupport

@testable import Server

/// A PostgreSQL server for tests, in a temporary directory, on a Unix socket.
///
/// It stops and its directory is removed when this process ends, in whatever way: the shell that started it waits for the end of
/// its input, which is a pipe from this process.
final class PostgresCluster: Sendable {
    /// The cluster that the suites share; nil if PostgreSQL is not installed or did not start. It is started when it is first
    /// used. It does not wait for the disk, so it must not be killed.
    static let shared: PostgresCluster? = isInstalled ? try? PostgresCluster(isDurable: false) : nil

    /// Why tests with PostgreSQL are skipped.
    static let missing: String =
        "PostgreSQL 15 or later is not installed (Debian: apt-get install postgresql), so its storage is not tested"
    static let isInstalled = binaries != nil && confabHasLibrary

    private static var confabHasLibrary: Bool { (try? PostgresAddress(SecretText("postgresql://x"))) != nil }

    /// The directory of the newest version's programs, which Debian does not put into the path.
    private static let binaries: String? = {
        let directory = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return versions.compactMap { Int($0) }.filter { $0 >= 15 }.sorted().reversed()
            .map { "\(directory)/\($0)/bin" }
            .first { FileManager.default.isExecutableFile(atPath: $0 + "/initdb") }
    }()

    /// A short path, because the path of a socket may have only 107 bytes.
    let directory: String
    private let isDurable: Bool
    private let running = Mutex<Running?>(nil)
    private let schemas = Atomic<Int>(0)

    struct Failure: Error { var text: String }

    /// A process that was started.
    private struct Running {
        var program: ChildProgram
        /// The process ends when this process does, because it reads from this pipe.
        var input: Pipe

        /// Waits until the process has ended, and kills it if that takes more than 30 seconds. Returns whether it succeeded.
        @discardableResult
        func waitForEnd() -> Bool { program.waitForEnd(seconds: 30) == 0 }
    }

    /// - Parameter isDurable: whether commits wait for the disk.
    init(isDurable: Bool) throws {
        self.isDurable = isDurable
        directory = "/tmp/confab-pg-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        if let user = Self.user {
            chmod(directory, 0o700)
            chown(directory, user.pw_uid, user.pw_gid)
        }
        let initialize = [
            "exec", (Self.binaries ?? "") + "/initdb", "--pgdata=data", "--auth=trust", "--username=confab",
            "--encoding=UTF8",
            "--locale=C", "--no-sync", ">initdb.log", "2>&1",
        ]
        let initdb = try Self.run(initialize.joined(separator: " "), in: directory)
        guard initdb.waitForEnd() else {
            let log = (try? String(contentsOfFile: directory + "/initdb.log", encoding: .utf8)) ?? ""
            try? FileManager.default.removeItem(atPath: directory)
            throw Failure(text: "initdb failed: \(log)")
        }
        try start()
    }

    /// The user that runs PostgreSQL, which refuses root; nil if this process is not root.
    private static var user: passwd? {
        guard getuid() == 0 else { return nil }
        return (getpwnam("postgres") ?? getpwnam("nobody"))?.pointee
    }

    private static func run(_ command: String, in directory: String) throws -> Running {
        let shell = ["/bin/sh", "-c", "cd \(directory) && \(command)"]
        let words =
            user.map { ["/usr/bin/setpriv", "--reuid=\($0.pw_uid)", "--regid=\($0.pw_gid)", "--clear-groups"] + shell }
            ?? shell
        let input = Pipe()
        let program = try ChildProgram(
            words[0], Array(words.dropFirst()), input: input.fileHandleForReading.fileDescriptor)
        return Running(program: program, input: input)
    }

    /// Starts PostgreSQL. Returns before it accepts connections.
    func start() throws {
        // Port 1 only names the socket. There is no TCP.
        let options =
            "-c listen_addresses= -c unix_socket_directories=\(directory) -c max_connections=200 -c shared_buffers=16MB "
            + "-c autovacuum=off" + (isDurable ? "" : " -c fsync=off -c full_page_writes=off")
        let started = try Self.run(
            """
            exec 3<&0
            \(Self.binaries ?? "")/postgres -D data \(options) </dev/null 3<&- >>log 2>&1 &
            server=$!
            (read -r _ <&3; touch over; kill -INT $server 2>/dev/null) &
            wait $server
            kill -KILL $! 2>/dev/null
            [ -e over ] && rm -rf \(directory)
            """, in: directory)
        running.withLock { $0 = started }
    }

    /// Ends all processes of PostgreSQL at once, like a power failure but without losing what the system has cached.
    func kill() throws {
        try signal(SIGKILL)
    }

    /// Stops all processes of PostgreSQL while `body` runs: connections stay open, and nobody answers.
    func whileStopped(_ body: () async throws -> Void) async throws {
        let all = try serverProcesses(Self.stop)
        for id in all { Foundation.kill(id, SIGSTOP) }
        defer { for id in all.reversed() { Foundation.kill(id, SIGCONT) } }
        try await body()
    }

    /// Stops the postmaster, which could otherwise start children that are not in the list.
    private static func stop(_ id: Int32) throws {
        Foundation.kill(id, SIGSTOP)
        try wait { state(id) == "T" ? nil : "PostgreSQL is not stopped yet" }
    }

    /// Returns the process IDs of the postmaster and its children.
    ///
    /// - Parameter prepare: called with the postmaster's before its children are listed.
    private func serverProcesses(_ prepare: (Int32) throws -> Void) throws -> [Int32] {
        let text = try String(contentsOfFile: directory + "/data/postmaster.pid", encoding: .utf8)
        guard let line = text.split(separator: "\n").first, let id = Int32(line) else {
            throw Failure(text: "no process ID")
        }
        try prepare(id)
        let children = (try? String(contentsOfFile: "/proc/\(id)/task/\(id)/children", encoding: .utf8)) ?? ""
        return [id] + children.split(separator: " ").compactMap { Int32($0) }
    }

    private func signal(_ signal: Int32) throws {
        let all = try serverProcesses { if signal == SIGKILL { try Self.stop($0) } }
        for id in signal == SIGKILL ? all : Array(all.prefix(1)) { Foundation.kill(id, signal) }
        // The shell waits for PostgreSQL.
        running.withLock { started in
            started?.waitForEnd()
            started = nil
        }
        // A new server does not start while a process of the old one is left. One that has ended may stay in the list of
        // processes.
        try Self.wait {
            let left = all.filter { Self.state($0) != nil && Self.state($0) != "Z" }
            return left.isEmpty ? nil : "the processes \(left) of PostgreSQL have not ended"
        }
    }

    /// Returns the letter of a process's state, as in proc_pid_stat(5); nil if there is no such process.
    private static func state(_ id: Int32) -> Character? {
        guard let line = try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8) else { return nil }
        return line.split(separator: ") ").last?.first
    }

    /// Waits until `whyNotYet` returns nil.
    ///
    /// - Throws: `Failure` with the last reason if that takes longer than `limit`.
    private static func wait(for limit: Duration = .seconds(30), _ whyNotYet: () -> String?) throws {
        let end = ContinuousClock.now + limit
        while let reason = whyNotYet() {
            guard ContinuousClock.now < end else { throw Failure(text: "Timed out: \(reason)") }
            sched_yield()
        }
    }

    /// Stops PostgreSQL and removes its files.
    func stop() {
        try? signal(SIGINT)
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// The URL of a schema of the database `postgres`. Each test has its own.
    func url(schema: String = "public") -> SecretText {
        SecretText("postgresql:///postgres?host=\(directory)&user=confab&options=-csearch_path%3D\(schema)")
    }

    /// Waits until PostgreSQL accepts connections, creates an empty schema, and returns its URL.
    func newSchema() throws -> SecretText {
        let name = "test\(schemas.add(1, ordering: .relaxed).newValue)"
        let connection = try connect()
        try connection.command("CREATE SCHEMA \(name)")
        return url(schema: name)
    }

    private func connect() throws -> PostgresConnection {
        var connection: PostgresConnection?
        try Self.wait(for: .seconds(60)) {
            do {
                connection = try PostgresConnection(PostgresAddress(url()))
                return nil
            } catch {
                return "PostgreSQL accepts no connection: \(error)"
            }
        }
        guard let connection else { throw Failure(text: "there is no connection") }
        return connection
    }
}
