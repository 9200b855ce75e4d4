import ArgumentParser
import Foundation
import Peers
import Robots
import Server
import Signaling
import Wire

/// The `confab bench` command: benchmarks for the operator's machine.
struct Bench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Benchmark the server on this machine.",
        subcommands: [BenchSFU.self, BenchNetwork.self, BenchSDK.self])
}

/// The `confab bench sfu` command. Sends media through a server and measures the server's load.
struct BenchSFU: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sfu",
        abstract: "Send media through a server and measure CPU time, memory, packet loss and delay.",
        discussion: """
            Each publisher sends 104 video packets of 1200 bytes and 50 audio packets of 100 bytes per second. Simulated
            clients on this machine receive them over UDP. Without --server, the command starts a temporary server and
            measures that. With --packets libwebrtc, the sizes and times of the packets are those of browsers, at about
            the same rate.

              confab bench sfu --subscribers 50
              confab bench sfu --subscribers 50 --packets libwebrtc
              confab bench sfu --rooms 10 --size 10 --seconds 20 --json
              confab bench sfu --rooms 1 --size 30 --by-name
              confab bench sfu --subscribers 50 --record

            With --crowd, a publisher sends one large keyframe every second to that many subscribers. The command measures
            the delay in a second room, of one publisher and one subscriber: first alone, then beside the crowd.

              confab bench sfu --crowd 500 --keyframe-packets 60

            With --by-name, --server can be repeated to measure the nodes of a cluster, over which the clients of each room are
            distributed. The command then also measures the media from each node to each other one. The nodes need
            cluster.relays, and their relays must be connected.
            """
    )

    /// The maximum number of simulated clients per process. Each client needs one or two file descriptors here and in
    /// the server.
    static let maxRobots = 5000
    /// The number of packets in a keyframe of a 720p camera.
    private static let defaultKeyframePackets = 60

    @OptionGroup var data: DataOptions

    @Option(help: "Number of subscribers, all in one room.")
    var subscribers: Int?

    @Option(help: "Number of publishers in that room.")
    var publishers = 1

    @Option(help: "Number of rooms in which every client publishes and subscribes to all others.")
    var rooms: Int?

    @Option(help: "Clients per room.")
    var size = 10

    @Option(
        help: .init(
            "Sizes and times of the packets: uniform (equal sizes, frames sent at once) or libwebrtc (frames of various "
                + "sizes in equal parts, paced)."))
    var packets = LoadPackets.uniform

    @Flag(
        help: .init(
            "Join rooms by name, as people do, with simulcast, and measure the time from joining to the first frame of "
                + "everyone."))
    var byName = false

    @Flag(help: "Record all rooms during the measurement. Compare with a run without it.")
    var record = false

    @Option(help: "Number of subscribers that receive large keyframes. Measures how much they delay another room.")
    var crowd: Int?

    @Option(help: "Packets of 1200 bytes in each keyframe for --crowd (default: \(defaultKeyframePackets)).")
    var keyframePackets: Int?

    @Option(help: "Duration of the measurement in seconds. With --crowd, the duration of each of the two measurements.")
    var seconds = 10

    @Option(help: "Number of media loops of the temporary server (default: the server's own).")
    var loops: Int?

    @Option(
        help: .init(
            "URL of a running server. Sessions are created with the project in --data-dir. Repeat it for the nodes of a "
                + "cluster, with --by-name."))
    var server: [String] = []

    @Option(
        help: .init(
            "How clients are distributed among several servers: clients (each room spans all of them) or rooms (each room "
                + "is on one of them)."))
    var spread = LoadSpread.clients

    @Option(help: "Number of clients that join after the measurement, with --by-name.")
    var visits: Int?

    @Option(
        help: .init(
            "URL of a Janus server's HTTP API, to measure that server instead "
                + "(for example http://127.0.0.1:8088/janus)."))
    var janus: String?

    @Option(
        help: .init(
            "Process ID of the server being measured, if it runs on this machine. Repeat it for several servers, in the "
                + "same order."))
    var pid: [Int32] = []

    @Option(
        help: .init(
            "Metrics URL of the server being measured, to distinguish packet loss in the server from loss on this "
                + "machine (for example http://127.0.0.1:9464/metrics). Repeat it for several servers, in the same order."
        ))
    var metrics: [String] = []

    @Flag(help: "Print the result as JSON.")
    var json = false

    func validate() throws {
        guard server.isEmpty || janus == nil else {
            throw ValidationError("Specify either --server or --janus, not both.")
        }
        guard [subscribers, rooms, crowd].count(where: { $0 != nil }) == 1 else {
            throw ValidationError("Specify either --subscribers, --rooms or --crowd.")
        }
        try validateCrowd()
        guard packets == .uniform || crowd == nil && !byName else {
            throw ValidationError("--packets excludes --crowd and --by-name.")
        }
        guard !record || crowd == nil && !byName && janus == nil else {
            throw ValidationError("--record excludes --crowd, --by-name and --janus.")
        }
        try validateRooms()
        try validateServers()
        guard
            crowd != nil
                || shape.receivers > 0 && shape.senders > 0 && shape.receivers + shape.senders <= Self.maxRobots
        else {
            throw ValidationError(
                "Use at least one publisher and one subscriber, and at most \(Self.maxRobots) clients in total.")
        }
        guard (1...3600).contains(seconds) else { throw ValidationError("--seconds must be from 1 to 3600.") }
        guard let loops else { return }
        guard server.isEmpty, janus == nil else { throw ValidationError("--loops excludes --server and --janus.") }
        let most = ConfabConfiguration.Media.maxLoops
        guard (1...most).contains(loops) else { throw ValidationError("--loops must be from 1 to \(most).") }
    }

    private func validateRooms() throws {
        guard byName else {
            guard visits == nil else { throw ValidationError("--visits requires --by-name.") }
            return
        }
        let sizes = 2..<Limits.routedRoom
        guard crowd == nil, janus == nil, sizes.contains(shape.clients / max(1, shape.rooms)) else {
            throw ValidationError(
                "--by-name requires rooms of \(sizes.lowerBound) to \(sizes.upperBound - 1) clients, and excludes --crowd and "
                    + "--janus.")
        }
        guard (0...10_000).contains(visits ?? 0) else { throw ValidationError("--visits must be from 0 to 10000.") }
    }

    private func validateServers() throws {
        guard server.count < 2 || byName else { throw ValidationError("Several servers require --by-name.") }
        guard spread == .clients || server.count > 1 else {
            throw ValidationError("--spread requires several servers.")
        }
        let count = max(1, server.count)
        guard [0, count].contains(pid.count), [0, count].contains(metrics.count) else {
            throw ValidationError("Specify --pid and --metrics once for each server, or not at all.")
        }
    }

    private func validateCrowd() throws {
        guard let crowd else {
            guard keyframePackets == nil else { throw ValidationError("--keyframe-packets requires --crowd.") }
            return
        }
        guard crowd > 0, crowd <= Self.maxRobots - KeyframeRun.clients(crowd: 0) else {
            let most = Self.maxRobots - KeyframeRun.clients(crowd: 0)
            throw ValidationError("--crowd must be from 1 to \(most).")
        }
        let sizes = KeyframeRun.keyframeSizes
        guard keyframePackets.map(sizes.contains) ?? true else {
            throw ValidationError("--keyframe-packets must be from \(sizes.lowerBound) to \(sizes.upperBound).")
        }
    }

    private var shape: LoadShape {
        if let rooms { return .rooms(max(0, rooms), of: max(0, size)) }
        return .oneToMany(publishers: max(0, publishers), subscribers: max(0, subscribers ?? 0))
    }

    func run() async throws {
        raiseDescriptorLimit()
        do {
            if let crowd {
                let report = try await measure(crowd: crowd)
                try show(report, as: report.text)
            } else {
                let report = try await measure()
                try show(report, as: report.text)
            }
        } catch let error as WireError {
            throw CommandError(description: "\(error.message) (\(error.code.rawValue))")
        }
    }

    private func show(_ report: some Encodable, as text: String) throws {
        guard json else { return print(text) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "unknown")
        print(String(decoding: try encoder.encode(report), as: UTF8.self))
    }

    private func measure() async throws -> LoadReport {
        var load = LoadRun(shape: shape, seconds: seconds, process: pid.first)
        (load.packets, load.progress, load.visits) = (packets, Self.say, visits ?? load.visits)
        if let janus { return try await load.run(janus: janus) }
        return try await withServer { [load] target in
            var load = load
            (load.process, load.metrics) = (target.process, target.metrics)
            if byName { return try await load.run(rooms: nodes(target), spread: spread) }
            let sessions = Self.sessions(target.project, rooms: shape.rooms)
            if record {
                let recordings = BenchRecordings(target, of: sessions)
                load.onFlowing = { try await recordings.start() }
                load.onMeasured = { Self.say("Recorded \(try await recordings.stop()) bytes") }
            }
            return try await load.run(confab: target.server, admit: Self.admission(target.project, to: sessions))
        }
    }

    private func measure(crowd: Int) async throws -> KeyframeReport {
        var load = KeyframeRun(
            crowd: crowd, keyframePackets: keyframePackets ?? Self.defaultKeyframePackets, seconds: seconds,
            process: pid.first)
        load.progress = Self.say
        if let janus { return try await load.run(janus: janus) }
        return try await withServer { [load] target in
            var load = load
            (load.process, load.metrics) = (target.process, target.metrics)
            let sessions = Self.sessions(target.project, rooms: KeyframeRun.rooms)
            let admit = Self.admission(target.project, to: sessions)
            return try await load.run(confab: target.server, admit: admit)
        }
    }

    private static let say: @Sendable (String) -> Void = { line in
        FileHandle.standardError.write(Data((line + "\n").utf8))
    }

    /// A Confab server to measure.
    struct Target {
        var server: String
        var project: Project
        var process: Int32?
        var metrics: String?
    }

    /// Runs `body` with the server in `--server`, or with a temporary one if the option is not set.
    private func withServer<Report>(_ body: (Target) async throws -> Report) async throws -> Report {
        if let first = server.first {
            let (project, _) = try data.project()
            return try await body(
                Target(server: first, project: project, process: pid.first, metrics: metrics.first))
        }
        let child = try MeasuredServer.start(loops: loops)
        defer { child.stop() }
        return try await body(
            Target(server: child.url, project: child.project, process: child.id, metrics: child.metrics))
    }

    /// Returns the servers to measure: those in the options, or the temporary one.
    private func nodes(_ target: Target) -> [LoadNode] {
        if server.isEmpty { return [LoadNode(server: target.server, process: target.process, metrics: target.metrics)] }
        return server.indices.map { place in
            LoadNode(
                server: server[place], process: pid.isEmpty ? nil : pid[place],
                metrics: metrics.isEmpty ? nil : metrics[place])
        }
    }

    /// Creates one session per room.
    private static func sessions(_ project: Project, rooms: Int) -> [SessionID] {
        var generator = SystemRandomNumberGenerator()
        return (0..<rooms).map { _ in project.makeSessionID(mediaMode: .routed, now: .now, using: &generator) }
    }

    /// Returns a function that creates a token to join the session of a room.
    private static func admission(
        _ project: Project, to sessions: [SessionID]
    ) -> @Sendable (_ room: Int) throws -> Admission {
        { room in
            var generator = SystemRandomNumberGenerator()
            let token = project.makeSessionToken(
                SessionTokenClaims(session: sessions[room], role: .publisher, lifetime: .seconds(3600)), now: .now,
                using: &generator)
            return Admission(session: sessions[room], token: token)
        }
    }
}

/// Raises the limit of open files as far as the system allows, because each simulated client needs a WebSocket and one
/// or two sockets for media.
func raiseDescriptorLimit() {
    var limit = rlimit()
    #if os(Linux)
    let kind = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
    let kind = RLIMIT_NOFILE
    #endif
    guard getrlimit(kind, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(kind, &limit)
}

/// A `confab serve` child process with a temporary project and data directory.
struct MeasuredServer {
    let url: String
    let metrics: String?
    let project: Project
    let id: Int32
    private let process: Process
    private let directory: URL

    /// How long to wait for the server. A server is usually ready within a second, or within a few seconds on a busy machine.
    private static let readyTimeout: TimeInterval = 60
    private static let readyMark = "Confab is ready: "

    /// - Parameter loops: the number of media loops; nil for the server's default.
    static func start(loops: Int? = nil) throws -> MeasuredServer {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "confab-bench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        var generator = SystemRandomNumberGenerator()
        let secret = (0..<3).map { _ in String(generator.next() as UInt64, radix: 16) }.joined() + "0123456789abcdef"
        guard let project = Project(apiKey: "10000000", secret: secret) else {
            throw CommandError(description: "Cannot create a temporary project. Try again.")
        }
        let log = directory.appendingPathComponent("log")
        try Data().write(to: log)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Bundle.main.executablePath ?? CommandLine.arguments[0])
        process.arguments = [
            "serve", "--host", "127.0.0.1", "--port", "0", "--media-port", "0", "--media-address", "127.0.0.1",
            "--data-dir", directory.appendingPathComponent("data").path,
        ]
        process.environment = environment(secret, loops: loops)
        process.standardError = try FileHandle(forWritingTo: log)
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        do {
            let (url, metrics) = try ready(process, log)
            return MeasuredServer(
                url: url, metrics: metrics, project: project, id: process.processIdentifier, process: process,
                directory: directory)
        } catch {
            process.terminate()
            try? FileManager.default.removeItem(at: directory)
            throw error
        }
    }

    /// Returns the environment of the server process: the default configuration, but without the limits that many
    /// clients on one machine would exceed.
    private static func environment(_ secret: String, loops: Int?) -> [String: String] {
        let limits = [
            "REQUESTS_PER_SECOND": "1000000", "REQUEST_BURST": "1000000", "HANDSHAKES_PER_SECOND": "1000000",
            "HANDSHAKE_BURST": "1000000", "SOCKETS_PER_ADDRESS": "1000000",
            "ADDRESS_MESSAGES_PER_SECOND": "1000000", "ADDRESS_MESSAGE_BURST": "1000000",
        ]
        var environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("CONFAB_") }
        for (name, value) in limits { environment["CONFAB_LIMITS_\(name)"] = value }
        environment["CONFAB_METRICS_PORT"] = "0"
        environment["CONFAB_API_KEY"] = "10000000"
        environment["CONFAB_API_SECRET"] = secret
        environment["CONFAB_MEDIA_LOOPS"] = loops.map(String.init)
        return environment
    }

    /// Waits until the server is ready. Throws an error with the server's log if the server ends first, or takes too
    /// long.
    ///
    /// - Returns: the server's URL, and the URL of the server's metrics if it serves any.
    private static func ready(_ process: Process, _ log: URL) throws -> (String, metrics: String?) {
        let end = Date().addingTimeInterval(readyTimeout)
        while process.isRunning, Date() < end {
            let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            let lines = text.split(separator: "\n")
            // Wait for the messages about both ports. The ports open in any order, and the metrics port may be
            // unavailable.
            if let line = lines.first(where: { $0.hasPrefix(readyMark) }),
                let metricsLine = lines.first(where: { $0.contains("Metrics ready") || $0.contains("No metrics") })
            {
                let metrics = metricsLine.firstRange(of: "url=").map {
                    metricsLine[$0.upperBound...].prefix { $0 != " " }
                }
                return (String(line.dropFirst(readyMark.count).prefix { $0 != " " }), metrics.map(String.init))
            }
            usleep(20_000)
        }
        let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
        throw CommandError(description: "The server did not start. Its log:\n\(text)")
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: directory)
    }
}

extension LoadPackets: ExpressibleByArgument {}
extension LoadSpread: ExpressibleByArgument {}
