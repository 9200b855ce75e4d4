import ArgumentParser
import Foundation
import Robots
import Server
import Signaling
import Wire

/// Measurements that anybody can make on his own machine.
struct Bench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Measure this machine's server.", subcommands: [BenchSFU.self])
}

/// Sends media through a server and measures what that costs it.
struct BenchSFU: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sfu",
        abstract: "Send media through the server, and measure its processor time, memory, loss and delay.",
        discussion: """
            Each publisher sends 104 video packets of 1200 bytes and 50 audio packets of 100 bytes a second; robots
            receive them over UDP on this machine. Without --server it starts a server of its own, measures that, and ends
            it.

              confab bench sfu --subscribers 50
              confab bench sfu --rooms 10 --size 10 --seconds 20 --json
            """
    )

    /// Robots of one process; each takes a descriptor or two of each side.
    static let mostRobots = 5000

    @OptionGroup var data: DataOptions

    @Option(help: "How many watch, in one room.")
    var subscribers: Int?

    @Option(help: "How many publish in that room.")
    var publishers = 1

    @Option(help: "Rooms in which everybody publishes and watches everybody else.")
    var rooms: Int?

    @Option(help: "People in each of those rooms.")
    var size = 10

    @Option(help: "How long to measure, in seconds.")
    var seconds = 10

    @Option(help: "A server that runs already; sessions are made with the project of --data-dir.")
    var server: String?

    @Option(help: "A Janus to measure instead, by its HTTP API: http://127.0.0.1:8088/janus.")
    var janus: String?

    @Option(help: "The process of that server, when it runs on this machine.")
    var pid: Int32?

    @Option(
        help: "That Confab's GET /metrics, to tell its own losses from the machine's: http://127.0.0.1:9464/metrics.")
    var metrics: String?

    @Flag(help: "Print one JSON object.")
    var json = false

    func validate() throws {
        guard server == nil || janus == nil else { throw ValidationError("Give --server or --janus, not both.") }
        guard (subscribers != nil) != (rooms != nil) else {
            throw ValidationError("Give --subscribers or --rooms, one of the two.")
        }
        guard shape.receivers > 0, shape.senders > 0, shape.receivers + shape.senders <= Self.mostRobots else {
            throw ValidationError("There are 1 to \(Self.mostRobots) robots, of which some publish and some watch.")
        }
        guard (1...3600).contains(seconds) else { throw ValidationError("--seconds is a number from 1 to 3600.") }
    }

    private var shape: LoadShape {
        if let rooms { return .rooms(max(0, rooms), of: max(0, size)) }
        return .oneToMany(publishers: max(0, publishers), subscribers: max(0, subscribers ?? 0))
    }

    func run() async throws {
        raiseDescriptorLimit()
        do {
            let report = try await measure()
            if json {
                let encoder = JSONEncoder()
                encoder.outputFormatting = [.sortedKeys]
                encoder.nonConformingFloatEncodingStrategy = .convertToString(
                    positiveInfinity: "inf", negativeInfinity: "-inf", nan: "unknown")
                print(String(decoding: try encoder.encode(report), as: UTF8.self))
            } else {
                print(report.text)
            }
        } catch let error as WireError {
            throw Complaint(description: "\(error.message) (\(error.code.rawValue))")
        }
    }

    private func measure() async throws -> LoadReport {
        if let janus { return try await load(process: pid).run(janus: janus) }
        if let server {
            let (project, _) = try data.project()
            return try await measure(server, project, process: pid, metrics: metrics)
        }
        let child = try MeasuredServer.start()
        defer { child.stop() }
        return try await measure(child.url, child.project, process: child.id, metrics: child.metrics)
    }

    private func load(process: Int32?) -> LoadRun {
        var load = LoadRun(shape: shape, seconds: seconds, process: process)
        load.progress = { line in FileHandle.standardError.write(Data((line + "\n").utf8)) }
        return load
    }

    private func measure(
        _ server: String, _ project: Project, process: Int32?, metrics: String?
    ) async throws -> LoadReport {
        var load = load(process: process)
        load.metrics = metrics
        var generator = SystemRandomNumberGenerator()
        let sessions = (0..<shape.rooms).map { _ in
            project.makeSessionID(mediaMode: .routed, now: .now, using: &generator)
        }
        return try await load.run(confab: server) { room in
            var generator = SystemRandomNumberGenerator()
            let token = project.makeSessionToken(
                SessionTokenClaims(session: sessions[room], role: .publisher, lifetime: .seconds(3600)), now: .now,
                using: &generator)
            return Admission(session: sessions[room], token: token)
        }
    }
}

/// Each robot takes a line and one or two sockets.
private func raiseDescriptorLimit() {
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

/// `confab serve` in a process of its own, with a project and a data directory that end with it.
private struct MeasuredServer {
    let url: String
    let metrics: String?
    let project: Project
    let id: Int32
    private let process: Process
    private let directory: URL

    /// A server says that it is ready within a second, and one that is busy within some.
    private static let patience: TimeInterval = 60
    private static let readyMark = "Confab is ready: "

    static func start() throws -> MeasuredServer {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
            "confab-bench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        var generator = SystemRandomNumberGenerator()
        let secret = (0..<3).map { _ in String(generator.next() as UInt64, radix: 16) }.joined() + "0123456789abcdef"
        guard let project = Project(apiKey: "10000000", secret: secret) else {
            throw Complaint(description: "No project can be made.")
        }
        let log = directory.appendingPathComponent("log")
        FileManager.default.createFile(atPath: log.path, contents: nil)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Bundle.main.executablePath ?? CommandLine.arguments[0])
        process.arguments = [
            "serve", "--host", "127.0.0.1", "--port", "0", "--media-port", "0", "--media-address", "127.0.0.1",
            "--data-dir", directory.appendingPathComponent("data").path,
        ]
        process.environment = environment(secret)
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

    /// As a server has it by default, but for what many people from one machine would run into.
    private static func environment(_ secret: String) -> [String: String] {
        let limits = [
            "VERBS_PER_SECOND": "1000000", "VERB_BURST": "1000000", "HELLOS_PER_SECOND": "1000000",
            "HELLO_BURST": "1000000", "SOCKETS_PER_ADDRESS": "1000000",
        ]
        var environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("CONFAB_") }
        for (name, value) in limits { environment["CONFAB_LIMITS_\(name)"] = value }
        environment["CONFAB_METRICS_PORT"] = "0"
        environment["CONFAB_API_KEY"] = "10000000"
        environment["CONFAB_API_SECRET"] = secret
        return environment
    }

    /// - Returns: where it is, and where its metrics are if they could be had.
    private static func ready(_ process: Process, _ log: URL) throws -> (String, metrics: String?) {
        let end = Date().addingTimeInterval(patience)
        while process.isRunning, Date() < end {
            let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            let lines = text.split(separator: "\n")
            // One port is open sooner than the other, or cannot be had.
            if let line = lines.first(where: { $0.hasPrefix(readyMark) }),
                let news = lines.first(where: { $0.contains("Metrics ready") || $0.contains("No metrics") })
            {
                let metrics = news.firstRange(of: "url=").map { news[$0.upperBound...].prefix { $0 != " " } }
                return (String(line.dropFirst(readyMark.count).prefix { $0 != " " }), metrics.map(String.init))
            }
            usleep(20_000)
        }
        let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
        throw Complaint(description: "The server to measure did not start. It said:\n\(text)")
    }

    func stop() {
        process.terminate()
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: directory)
    }
}

extension LoadReport {
    /// For people.
    var text: String {
        func figure(_ value: Double, _ digits: Int) -> String {
            value.isFinite ? String(format: "%.\(digits)f", value) : "unknown"
        }
        let share = figure(100 * Double(lost) / Double(max(1, expected)), 3)
        let (ours, theirs) = (figure(robotsLoad * 100, 1), figure(serverLoad * 100, 1))
        var lines = [
            "\(target): \(publishers) publishing, \(subscribers) watching, \(figure(seconds, 1)) s",
            "forwarded      \(received) packets, \(figure(packetsPerSecond, 0)) a second",
            "processor      \(figure(processorPerPacket, 2)) µs a packet; the server used \(theirs) % of a core, "
                + "this load \(ours) %",
            "memory         \(figure(memoryPerSubscriber, 1)) kB a subscriber",
            "delay          median \(figure(delayMedian, 2)) ms, 99 % within \(figure(delay99, 2)) ms, at most "
                + "\(figure(delayMost, 2)) ms",
            "lost           \(lost) of \(expected) (\(share) %): \(lostByServer) by the server, \(lostByMachine) by this "
                + "machine, \(unexplained) unexplained",
            "dropped        \(droppedAtServer) datagrams that the server read too late, \(droppedHere) that this load "
                + "read too late, \(droppedBetween) by a full backlog; not taken from the server \(unsentByServer), "
                + "from this load \(unsentHere)",
        ]
        if pauses > 0 { lines.append("This load was too late to send \(pauses) times: the machine is too busy.") }
        if broken > 0 { lines.append("\(broken) connections broke.") }
        return lines.joined(separator: "\n")
    }
}
