import NIOCore
import NIOPosix
import Signaling
import Wire

/// Drills in which storage fails or the server is killed. Afterwards nothing may be missing that the server had answered.
///
/// The class is `@unchecked Sendable` because one task uses it.
final class Drill: @unchecked Sendable {
    /// The longest silence that people who store nothing may notice. Their usual one is a few milliseconds; the limit leaves
    /// room for a busy computer.
    private static let longestGap = Duration.seconds(3)
    private static let writerCount = 8
    private static let targetCount = 200
    /// How long the server works normally before and after the fault.
    private static let calm = Duration.seconds(3)
    /// How long a server without a disk may take to stop. The default of `storage.faultTimeout` is 10 s.
    private static let stopLimit = Duration.seconds(60)
    /// How many requests may be answered between the fault and the first commit that fails.
    private static let answersWithoutStorage = 100

    private let server: DrillServer
    private let project: Project
    private let loop: any EventLoop
    private let seed: UInt64
    private let counter = DrillCounter()
    private var writers: [DrillWriter] = []
    private(set) var faults: [String] = []

    init(executable: String, folder: String, seed: UInt64, project: Project, loop: any EventLoop) {
        server = DrillServer(executable: executable, directory: folder + "/data", log: folder + ".log")
        (self.project, self.loop, self.seed) = (project, loop, seed)
    }

    var answeredCount: Int { counter.count }

    // MARK: Steps

    /// Starts the server and makes the people.
    private func prepare() async throws {
        try server.start()
        var targets: [PersonID] = []
        for number in 0..<Self.targetCount {
            let client = try await LoadClient.connect(port: server.port, number: 1000 + number, on: loop).get()
            _ = try await loop.flatSubmit { client.welcome() }.get()
            let appear = ClientMessage.presence(.appear(.init(name: "target \(number)")))
            guard case .presence(.own(let own)) = try await loop.flatSubmit({ client.request(appear) }).get() else {
                throw LoadClient.Failure(description: "a target could not go online")
            }
            targets.append(own.person)
            try await loop.submit { client.end() }.get()
        }
        writers = (0..<Self.writerCount).map { DrillWriter($0, targets: targets, seed: seed, on: loop) }
        for writer in writers { try await writer.connect(port: server.port) }
    }

    private func pairWriters() async throws {
        for pair in 0..<Self.writerCount / 2 { try await writers[2 * pair].meet(writers[2 * pair + 1]) }
    }

    /// Lets all writers work until they stop or lose their connections.
    private func work() async {
        await withTaskGroup(of: Void.self) { group in
            for writer in writers { group.addTask { [counter] in await writer.work(counter) } }
        }
    }

    /// Starts the server again and compares.
    private func restartAndCheck() async throws {
        try server.start()
        for writer in writers { try await writer.connect(port: server.port) }
        let reports = try server.command(["report", "export"])
        for writer in writers { faults += try await writer.check(reports: reports) }
    }

    /// Compares once more, and ends the server.
    private func finish() async throws {
        for writer in writers { faults += try await writer.checkBlocks() }
        try kill()
    }

    /// Kills the server. Returns when it has ended.
    private func kill() throws {
        server.kill()
        guard server.exitStatus(within: .seconds(10)) != nil else {
            throw LoadClient.Failure(description: "the server survived SIGKILL")
        }
    }

    // MARK: Drills

    /// Kills the server at random points while requests are stored.
    func killAtRandom(commits: Int, kills: Int) async throws {
        var random = SplitMix64(state: seed)
        var points: Set<Int> = [commits]
        while points.count < min(kills, commits) { points.insert(Int.random(in: 1..<commits, using: &random)) }
        try await prepare()
        for point in points.sorted() {
            try await pairWriters()
            let delay = TimeAmount.microseconds(Int64.random(in: 0..<5000, using: &random))
            let (server, loop) = (server, loop)
            // Other writers have requests under way then. The delay moves the kill to another moment of their commits.
            counter.call(at: max(point, counter.count + 1)) {
                loop.scheduleTask(in: delay) { server.kill() }
            }
            await work()
            try kill()
            try await restartAndCheck()
            guard faults.isEmpty else { break }
        }
        try await finish()
    }

    struct FaultFigures {
        var before = DrillTalkers.Figures()
        var during = DrillTalkers.Figures()
        /// How many requests the server answered during the fault.
        var answered = 0
        /// How long the server lived with the fault, if it stopped.
        var lifetime: Duration?
    }

    /// Breaks storage while some people store and two others talk, and mends it.
    ///
    /// - Parameter stops: whether the server must stop by itself, with an error, before storage is mended.
    func breakStorage(for time: Duration, stops: Bool) async throws -> FaultFigures {
        var figures = FaultFigures()
        try await prepare()
        try await pairWriters()
        let talkers = try await DrillTalkers(port: server.port, project: project, on: loop)
        async let working: Void = work()
        // Otherwise a drill that fails would wait forever for its writers.
        defer { for writer in writers { writer.stop() } }
        try await Task.sleep(for: Self.calm)
        // The command returns when storage is broken. A lock, for example, has to wait for the server's own.
        try runHook("CONFAB_DRILL_BREAK")
        figures.before = try await talkers.takeFigures()
        let answered = counter.count
        let broken = ContinuousClock.now
        if stops {
            guard let status = server.exitStatus(within: Self.stopLimit) else {
                throw LoadClient.Failure(description: "the server went on without storage for \(Self.stopLimit)")
            }
            figures.lifetime = ContinuousClock.now - broken
            if status == 0 { faults.append("the server stopped without an error, so nothing would start it again") }
        } else {
            try await Task.sleep(for: time)
        }
        figures.during = try await talkers.takeFigures()
        figures.answered = counter.count - answered
        if figures.answered > Self.answersWithoutStorage {
            faults.append("\(figures.answered) requests were answered during the fault, so it did not break storage")
        }
        try runHook("CONFAB_DRILL_MEND")
        if !stops { try await expectProgress() }
        for writer in writers { writer.stop() }
        await working
        if !stops, let end = try await talkers.takeFigures().end {
            faults.append("the two who store nothing lost the server: \(end)")
        }
        try await talkers.stop()
        if figures.during.longestGap > Self.longestGap {
            faults.append("the two who store nothing waited for \(figures.during.longestGap)")
        }
        try kill()
        try await restartAndCheck()
        try await finish()
        return figures
    }

    /// Checks that requests are answered again.
    private func expectProgress() async throws {
        let answered = counter.count
        try await Task.sleep(for: Self.calm)
        if counter.count == answered { faults.append("after the fault, no request was answered for \(Self.calm)") }
    }
}

extension Main {
    /// - Parameter numbers: commits, kills and seed.
    static func drillKill(_ executable: String, _ folder: String, _ numbers: [Int]) throws {
        let drill = try drill(executable, folder, seed: numbers[2])
        let what = "drill (kill -9): \(numbers[0]) commits, \(numbers[1]) kills, seed \(numbers[2])"
        try run(drill, what) {
            try await drill.killAtRandom(commits: numbers[0], kills: numbers[1])
            return []
        }
    }

    /// - Parameter numbers: seconds and seed.
    static func drillFault(
        _ name: String, _ outcome: String, _ executable: String, _ folder: String, _ numbers: [Int]
    ) throws {
        let drill = try drill(executable, folder, seed: numbers[1])
        let stops = outcome == "stops"
        try run(drill, "drill (\(name)): seed \(numbers[1])") {
            let figures = try await drill.breakStorage(for: .seconds(numbers[0]), stops: stops)
            return [
                ("longest silence of two people who store nothing, before", text(figures.before)),
                ("the same during the fault", text(figures.during)),
                ("requests answered during the fault", "\(figures.answered)"),
                ("the server", figures.lifetime.map { "stopped with an error after \(ms($0))" } ?? "went on"),
            ]
        }
    }

    private static func text(_ figures: DrillTalkers.Figures) -> String {
        "\(ms(figures.longestGap)), \(figures.signals) signals"
    }

    private static func ms(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        return "\((Double(seconds) * 1000 + Double(attoseconds) / 1e15).text(0)) ms"
    }

    private static func drill(_ executable: String, _ folder: String, seed: Int) throws -> Drill {
        let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
        return Drill(
            executable: executable, folder: folder, seed: UInt64(truncatingIfNeeded: seed), project: try project(),
            loop: loop)
    }

    private static func run(
        _ drill: Drill, _ what: String, _ body: @escaping @Sendable () async throws -> [(String, String)]
    ) throws {
        let rows = try MultiThreadedEventLoopGroup.singleton.next().makeFutureWithTask(body).wait()
        row("\(what): requests answered", "\(drill.answeredCount)", "")
        row(
            "\(what): answered and then missing",
            drill.faults.isEmpty ? "none" : "FAILED: \(drill.faults.prefix(5).joined(separator: "; "))", "none")
        for (title, figure) in rows { row("\(what): \(title)", figure, "") }
        if !drill.faults.isEmpty {
            throw LoadClient.Failure(description: "the drill found \(drill.faults.count) faults")
        }
    }
}
