import Foundation
import NIOCore
import NIOPosix
import TestSupport

@testable import Redis

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// A Redis server or a Sentinel, on a port of its own and with its files in a temporary folder.
final class RunningRedis: @unchecked Sendable {
    // Sendable, because a test uses it from one task only.

    static let executable = path(of: "redis-server")
    static let openssl = path(of: "openssl")

    private static func path(of name: String) -> String? {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
        return folders.map { "\($0)/\(name)" }.first(where: FileManager.default.isExecutableFile)
    }

    struct Failure: Error, CustomStringConvertible { let description: String }

    private(set) var port = 0
    private let folder: URL
    private let isSentinel: Bool
    private let isSecure: Bool
    private let settings: [String]
    private var program: ChildProgram?
    private var starts = 0

    /// Starts a server, and waits until it accepts connections.
    ///
    /// - Parameter settings: more lines of the configuration file. `FOLDER` is replaced by the path of the server's folder.
    init(
        _ settings: [String] = [], isSentinel: Bool = false, isSecure: Bool = false,
        prepare: (URL) throws -> Void = { _ in }
    ) async throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "confab-redis-\(UUID().uuidString)")
        (self.settings, self.isSentinel, self.isSecure) = (settings, isSentinel, isSecure)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try prepare(folder)
        // Another program can take a free port before the server does.
        for _ in 0..<10 {
            port = try TestPorts.next()
            if try await start() { return }
        }
        throw Failure(description: "no free port was found for redis-server")
    }

    var url: String { "\(isSecure ? "rediss" : "redis")://127.0.0.1:\(port)" }

    /// Starts the server on its port. Returns false if the port is in use.
    @discardableResult
    func start() async throws -> Bool {
        guard let executable = Self.executable else { throw Failure(description: "redis-server is not installed") }
        starts += 1
        let log = folder.appending(path: "log-\(starts)")
        let file = folder.appending(path: "redis.conf")
        var lines = ["bind 127.0.0.1", "dir \(folder.path)", "logfile \(log.path)", "daemonize no"]
        lines += isSecure ? ["port 0", "tls-port \(port)"] : ["port \(port)"]
        if !isSentinel { lines += ["save \"\"", "appendonly no", "repl-diskless-sync-delay 0"] }
        lines += settings.map { $0.replacingOccurrences(of: "FOLDER", with: folder.path) }
        try (lines.joined(separator: "\n") + "\n").write(to: file, atomically: true, encoding: .utf8)
        let null = open("/dev/null", O_WRONLY | O_CLOEXEC)
        defer { close(null) }
        let program = try ChildProgram(
            executable, [file.path] + (isSentinel ? ["--sentinel"] : []), output: null, errors: null)
        self.program = program
        var text = ""
        let sign = isSentinel ? "Sentinel ID is" : "Ready to accept connections"
        try await until("redis-server is ready") {
            text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            return text.contains(sign) || !program.isRunning
        }
        if program.isRunning { return true }
        guard text.contains("in use") else { throw Failure(description: "redis-server did not start: \(text)") }
        return false
    }

    func send(_ signal: Int32) { if let program, program.isRunning { _ = kill(program.id, signal) } }

    /// Waits until this Sentinel knows a replica of the primary with this name. Without one it cannot fail over.
    func waitForReplica(of primary: String) async throws {
        var settings = RedisConfiguration(.servers([try RedisURL(url)]))
        settings.connection.role = .sentinel
        let observed = try ObservedClient(settings)
        try await until("Sentinel knows the replica") {
            let command = RedisCommand("SENTINEL", "REPLICAS", .text(primary))
            return try await observed.client.send(command).elements?.count == 1
        }
        await observed.client.close()
    }

    /// Ends the server as a crash or a power failure would.
    func crash() {
        send(SIGKILL)
        program?.waitForEnd()
    }

    func remove() {
        crash()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Makes a certificate in a folder, as `certificate.pem` and `key.pem`.
    ///
    /// - Parameter names: for which hosts it is, in OpenSSL's form.
    static func makeCertificate(in folder: URL, for names: String = "IP:127.0.0.1,DNS:localhost") throws {
        let result = try ChildProgram.run(
            openssl ?? "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=confab", "-addext", "subjectAltName=\(names)",
                "-keyout", folder.appending(path: "key.pem").path,
                "-out", folder.appending(path: "certificate.pem").path,
            ])
        guard result.status == 0 else {
            throw Failure(description: "openssl made no certificate: \(result.standardError)")
        }
    }

    var certificate: String { folder.appending(path: "certificate.pem").path }
}

/// A client, and the states that it has reported.
struct ObservedClient {
    let client: NIORedisClient
    private let states: AsyncStream<RedisState>

    init(_ configuration: RedisConfiguration) throws {
        client = try NIORedisClient(configuration, on: MultiThreadedEventLoopGroup.singleton.next())
        let (states, report) = AsyncStream<RedisState>.makeStream()
        self.states = states
        client.observe { report.yield($0) }
    }

    init(_ redis: RunningRedis) throws { try self.init(RedisConfiguration(.servers([RedisURL(redis.url)]))) }

    /// Waits for a connection, or for the next one after those that were reported before.
    func ready() async throws -> RedisServer {
        for await state in states { if case .ready(let server) = state { return server } }
        throw RunningRedis.Failure(description: "the client was closed")
    }

    /// Waits for the next loss or failed attempt.
    func disconnected() async throws -> RedisError {
        for await state in states { if case .disconnected(let error) = state { return error } }
        throw RunningRedis.Failure(description: "the client was closed")
    }
}
