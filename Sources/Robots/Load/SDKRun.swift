import Confab
import ConfabHeadless
import Foundation
import Peers

/// Measures the resource usage of SDK clients, which all run in this process, and how quickly two of them receive each
/// other's video.
public struct SDKRun: Sendable {
    /// The results. CPU times are those of this process, without the server.
    public struct Report: Codable, Sendable {
        /// The number of connected, idle clients.
        public var clients = 0
        /// The growth of the resident memory per idle client, in kB.
        public var memoryPerClient = 0.0
        /// The CPU time per idle client per second, in microseconds.
        public var processorPerClient = 0.0
        /// The number of signals that one client sent and another received.
        public var signals = 0
        /// The number of signals per second of CPU time, of the sending and the receiving client together.
        public var signalsPerSecond = 0.0
        /// The number of matches in which two new clients received each other's video.
        public var matches = 0
        /// The time from `matched` to the first frame, in milliseconds: the median and the 95th percentile.
        public var firstFrameMedian = 0.0
        public var firstFrame95 = 0.0

        public init() {}
    }

    /// The number of clients that connect before memory is measured, so that one-time allocations of the process are
    /// not counted.
    private static let warmUp = 20
    /// The number of clients that connect at the same time.
    private static let atOnce = 20
    /// The number of pairs that send signals at the same time. Each pair has one signal in transit, as in a
    /// conversation.
    private static let pairs = 16
    /// The data of each signal.
    private static let data = String(repeating: "x", count: 200)
    private static let longestMatch = Duration.seconds(30)

    /// The server's address.
    public var server: URL
    /// The number of idle clients.
    public var clients: Int
    /// The period in which the CPU time of idle clients is measured, in seconds.
    public var seconds: Int
    /// The number of signals to send.
    public var signals: Int
    /// The number of matches to measure.
    public var matches: Int
    /// Receives one line of progress text.
    public var progress: @Sendable (String) -> Void = { _ in }

    public init(server: URL, clients: Int, seconds: Int, signals: Int, matches: Int) {
        (self.server, self.clients, self.seconds) = (server, clients, seconds)
        (self.signals, self.matches) = (signals, matches)
    }

    /// Runs three measurements, one after the other: the memory and CPU time of idle clients, the CPU time for sending
    /// and receiving signals, and how quickly matched clients receive each other's video.
    /// - Parameters:
    ///   - session: the session in which clients send each other signals.
    ///   - token: a token for that session. All clients that send and receive signals join with this token.
    public func run(in session: SessionID, _ token: String) async throws -> Report {
        var report = Report()
        progress("Connecting \(clients) clients")
        try await idle(&report)
        progress("Sending \(signals) signals")
        try await converse(in: session, token, &report)
        progress("Matching \(matches) times")
        try await meet(&report)
        return report
    }

    private func client(_ media: (any MediaEngine)? = nil) async throws -> ConfabClient {
        var options = ConfabClient.Options()
        options.clientName = "confab-bench"
        let client = ConfabClient(
            server: server, credential: .anonymous(MemoryIdentity()), media: media, options: options)
        try await client.connect()
        return client
    }

    private func connected(_ count: Int) async throws -> [ConfabClient] {
        var all: [ConfabClient] = []
        while all.count < count {
            all += try await withThrowingTaskGroup(of: ConfabClient.self) { tasks in
                for _ in 0..<min(Self.atOnce, count - all.count) { tasks.addTask { try await client() } }
                return try await tasks.reduce(into: []) { $0.append($1) }
            }
        }
        return all
    }

    // MARK: Idle clients

    private func idle(_ report: inout Report) async throws {
        let process = LoadProcess(id: getpid())
        let first = try await connected(Self.warmUp)
        let before = process.residentBytes()
        let others = try await connected(clients)
        try await Task.sleep(for: .seconds(2))
        report.clients = clients
        report.memoryPerClient = (process.residentBytes() - before) / Double(max(1, clients)) / 1000
        let used = process.processorSeconds()
        try await Task.sleep(for: .seconds(seconds))
        let share = Double(max(1, clients + Self.warmUp) * max(1, seconds))
        report.processorPerClient = (process.processorSeconds() - used) / share * 1e6
        for client in first + others { await client.leave() }
    }

    // MARK: Signals

    private func converse(in id: SessionID, _ token: String, _ report: inout Report) async throws {
        let process = LoadProcess(id: getpid())
        var pairs: [(one: Session, other: Session)] = []
        for _ in 0..<Self.pairs {
            pairs.append((try await client().join(id, token: token), try await client().join(id, token: token)))
        }
        let each = max(1, signals / Self.pairs)
        // Send a tenth of the signals first, to warm up.
        try await exchange(each / 10 + 1, between: pairs)
        let used = process.processorSeconds()
        try await exchange(each, between: pairs)
        report.signals = each * Self.pairs
        report.signalsPerSecond = Double(report.signals) / (process.processorSeconds() - used)
        for pair in pairs {
            await pair.one.disconnect()
            await pair.other.disconnect()
        }
    }

    private func exchange(_ count: Int, between pairs: [(one: Session, other: Session)]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for pair in pairs {
                tasks.addTask {
                    guard let receiver = pair.other.connection?.id else { throw RobotError("A client left.") }
                    let events = pair.other.events.makeAsyncIterator()
                    for _ in 0..<count {
                        try await pair.one.signal("bench", Self.data, to: receiver)
                        try await Self.signal(in: events)
                    }
                }
            }
            try await tasks.waitForAll()
        }
    }

    private static func signal(in events: Events<Session.Event>.Iterator) async throws {
        while let event = await events.next() {
            if case .signal = event { return }
        }
        throw RobotError("A client lost its session.")
    }

    // MARK: First frames

    private func meet(_ report: inout Report) async throws {
        var times: [Double] = []
        for _ in 0..<matches {
            let pair = (
                try await client(FileEngine(publishing: [])), try await client(FileEngine(publishing: []))
            )
            async let one = Self.firstFrame(of: pair.0.roulette)
            async let other = Self.firstFrame(of: pair.1.roulette)
            times += [try await one, try await other]
            await pair.0.leave()
            await pair.1.leave()
        }
        times.sort()
        report.matches = matches
        guard !times.isEmpty else { return }
        report.firstFrameMedian = times[times.count / 2]
        report.firstFrame95 = times[min(times.count - 1, times.count * 95 / 100)]
    }

    /// Returns the time from `matched` to the first frame, in milliseconds.
    private static func firstFrame(of roulette: Roulette) async throws -> Double {
        try await withThrowingTaskGroup(of: Double.self) { tasks in
            tasks.addTask {
                let events = roulette.events.makeAsyncIterator()
                await roulette.preview(FileMedia(.sample))
                try await roulette.start()
                var matched: ContinuousClock.Instant?
                while let event = await events.next() {
                    if case .matched = event { matched = .now }
                    guard case .video(let video) = event, let matched, let source = video as? EncodedSource else {
                        continue
                    }
                    for await _ in source.frames { return (ContinuousClock.now - matched) / .milliseconds(1) }
                }
                throw RobotError("A chat ended before a frame arrived.")
            }
            tasks.addTask {
                try await Task.sleep(for: longestMatch)
                throw RobotError("Two clients did not see each other within \(longestMatch).")
            }
            defer { tasks.cancelAll() }
            guard let time = try await tasks.next() else { throw CancellationError() }
            return time
        }
    }
}
