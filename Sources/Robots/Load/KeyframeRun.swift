import Foundation
import Peers
import RTC
import Wire

/// Measures the delays in a room of two while the keyframes of another room go to a crowd: first with the room of two
/// alone, then with both.
///
/// Three threads run the clients, so that neither sending a keyframe nor receiving it hundreds of times delays the
/// measured packets. The crowd's thread yields to the server. The delay ends when the kernel has a packet for the
/// subscriber, so it excludes the time until a busy computer lets the subscriber read it.
public struct KeyframeRun: Sendable {
    /// The allowed numbers of packets in a keyframe: from those of an ordinary frame to the most that the robots can
    /// retransmit and that the server stores for one stream.
    public static let keyframeSizes = LoadSource.packetsPerFrame...200

    /// The number of subscribers to the publisher of the keyframes.
    public var crowd: Int
    /// The number of packets of each keyframe.
    public var keyframePackets: Int
    /// The length of each of the two measured windows in seconds.
    public var seconds: Int
    /// The server's process id, if the server runs on this computer.
    public var process: Int32?
    /// The URL of the server's metrics, if they are readable.
    public var metrics: String?
    /// The pause between the last client's joining and a measured window.
    public var settling: Duration = .seconds(3)
    /// Receives progress text for the terminal.
    public var progress: @Sendable (String) -> Void = { _ in }

    /// The number of rooms: one with the keyframes, and the room of two.
    public static let rooms = 2
    /// Returns the number of clients: two publishers, the crowd, and the other room's subscriber.
    public static func clients(crowd: Int) -> Int { crowd + 3 }

    private static let maxAtOnce = 8

    public init(crowd: Int, keyframePackets: Int, seconds: Int, process: Int32?) {
        (self.crowd, self.keyframePackets, self.seconds) = (crowd, keyframePackets, seconds)
        self.process = process
    }

    /// Measures a Confab server.
    /// - Parameter admit: returns a session and a token for a new member of a room.
    public func run(
        confab server: String, admit: @escaping @Sendable (_ room: Int) throws -> Admission
    ) async throws -> KeyframeReport {
        try await run(ConfabLoad(server: server, admit: admit), name: "confab")
    }

    /// Measures Janus' VideoRoom.
    /// - Parameter server: the URL of Janus' API, such as `http://127.0.0.1:8088/janus`.
    public func run(janus server: String) async throws -> KeyframeReport {
        try await run(try await JanusLoad(server, rooms: Self.rooms), name: "janus")
    }

    private func run(_ target: some LoadTarget, name: String) async throws -> KeyframeReport {
        let clients = try Clients()
        do {
            var report = try await measure(target, clients)
            report.target = name
            await clients.leave()
            await target.leave()
            return report
        } catch {
            await clients.leave()
            await target.leave()
            throw error
        }
    }

    private func measure(_ target: some LoadTarget, _ clients: Clients) async throws -> KeyframeReport {
        progress("Connecting the room of two")
        try await clients.connectPair(to: target)
        try await Task.sleep(for: settling)
        let alone = try await window(clients)
        progress("Connecting subscribers: \(crowd)")
        try await clients.connectCrowd(crowd, to: target, keyframePackets: keyframePackets, atOnce: Self.maxAtOnce)
        try await Task.sleep(for: settling)
        let beside = try await window(clients)
        return KeyframeReport(crowd: crowd, keyframePackets: keyframePackets, alone: alone, beside: beside)
    }

    private func window(_ clients: Clients) async throws -> KeyframeReport.Window {
        progress("Measuring for \(seconds) s")
        let server = process.map { LoadProcess(id: $0) }
        // Read the counters outside the window, because reading them costs the server time.
        let counters = try await counters()
        var window = KeyframeReport.Window(start: try await clients.sample(server, isBeginning: true))
        try await Task.sleep(for: .seconds(seconds))
        window.end = try await clients.sample(server, isBeginning: false)
        window.start.pair.counters = counters
        window.end.pair.counters = try await self.counters()
        return window
    }

    private func counters() async throws -> LoadCounters {
        guard let metrics else { return LoadCounters() }
        return try await LoadCounters.read(metrics)
    }
}

extension KeyframeRun {
    /// The clients, grouped by the thread that runs them.
    private struct Clients {
        let pair: LoadCrowd
        let publisher: LoadCrowd
        let crowd: LoadCrowd

        init() throws {
            publisher = LoadCrowd(loop: try RobotLoop())
            pair = LoadCrowd(loop: try RobotLoop(stampsArrivals: true), firstRoom: 1, firstNumber: 1)
            crowd = LoadCrowd(loop: try RobotLoop(yields: true), firstNumber: 3)
        }

        func connectPair(to target: some LoadTarget) async throws {
            try await pair.fill(.oneToMany(publishers: 1, subscribers: 1), by: target, atOnce: 1)
            try await pair.publish(atOnce: 1)
            try await pair.connected(1)
            try await pair.watch(atOnce: 1)
            try await pair.connected(2)
            try await pair.flowing(1)
        }

        func connectCrowd(
            _ count: Int, to target: some LoadTarget, keyframePackets: Int, atOnce: Int
        ) async throws {
            try await publisher.fill(.oneToMany(publishers: 1, subscribers: 0), by: target, atOnce: 1)
            try await publisher.publish(atOnce: 1)
            try await publisher.connected(1)
            try await crowd.fill(.oneToMany(publishers: 0, subscribers: count), by: target, atOnce: atOnce)
            crowd.see(publisher)
            try await crowd.watch(atOnce: atOnce)
            try await crowd.connected(count)
            try await crowd.flowing(count)
            // Start the regular keyframes only now, because every new subscriber requests a keyframe.
            try await publisher.sendKeyframes(of: keyframePackets)
        }

        func sample(_ server: LoadProcess?, isBeginning: Bool) async throws -> KeyframeReport.Sample {
            let servers = server.map { [$0] } ?? []
            return KeyframeReport.Sample(
                publisher: try await publisher.sample([], serverPorts: [], isBeginning: isBeginning),
                crowd: try await crowd.sample([], serverPorts: [], isBeginning: isBeginning),
                pair: try await pair.sample(servers, serverPorts: [], isBeginning: isBeginning))
        }

        func leave() async {
            for crowd in [crowd, publisher, pair] { await crowd.leave() }
        }
    }
}
