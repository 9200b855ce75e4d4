import Foundation
import Peers
import RTC
import Wire

/// A load test: connects the clients, lets them run, and measures a window in which no client joins or leaves.
public struct LoadRun: Sendable {
    public var shape: LoadShape
    /// How the publishers send. Publishers in rooms that are joined by name send simulcast instead.
    public var packets = LoadPackets.uniform
    /// The length of the measured window in seconds.
    public var seconds: Int
    /// The server's process id, if the server runs on this computer.
    public var process: Int32?
    /// The URL of the server's metrics, if they are readable.
    public var metrics: String?
    /// The pause between the last client's joining and the start of the measured window, so that the cost of connecting is
    /// not measured.
    public var settling: Duration = .seconds(3)
    /// The number of clients that join after the measurement, one at a time.
    public var visits = 40
    /// Called before the measured window, when all subscribers receive media, for example to begin recording the rooms.
    public var onFlowing: @Sendable () async throws -> Void = {}
    /// Called after the measured window, with all clients still connected.
    public var onMeasured: @Sendable () async throws -> Void = {}
    /// Receives progress text for the terminal.
    public var progress: @Sendable (String) -> Void = { _ in }

    /// The number of clients that connect at the same time. More would only wait, because the server handles them one
    /// at a time.
    private static let maxAtOnce = 8

    public init(shape: LoadShape, seconds: Int, process: Int32?) {
        (self.shape, self.seconds, self.process) = (shape, seconds, process)
    }

    /// Measures a Confab server.
    /// - Parameter admit: returns a session and a token for a new member of a room.
    public func run(
        confab server: String, admit: @escaping @Sendable (_ room: Int) throws -> Admission
    ) async throws -> LoadReport {
        try await run(ConfabLoad(server: server, admit: admit), name: "confab")
    }

    /// Measures rooms of a Confab server that all clients join by name.
    public func run(rooms server: String) async throws -> LoadReport {
        try await run(RoomLoad(server: server, size: shape.members), name: "confab rooms")
    }

    func run(_ target: some LoadTarget, name: String) async throws -> LoadReport {
        let loop = try RobotLoop(yields: true)
        let crowd = LoadCrowd(loop: loop, packets: packets)
        do {
            let report = try await measure(target, crowd, name)
            await crowd.leave()
            await target.leave()
            return report
        } catch {
            await crowd.leave()
            await target.leave()
            throw error
        }
    }

    private func measure(_ target: some LoadTarget, _ crowd: LoadCrowd, _ name: String) async throws -> LoadReport {
        let server = process.map { LoadProcess(id: $0) }
        let empty = server?.residentBytes() ?? .nan
        progress("Connecting publishers: \(shape.senders)")
        try await crowd.fill(shape, by: target, atOnce: Self.maxAtOnce)
        try await crowd.publish(atOnce: Self.maxAtOnce)
        try await crowd.connected(shape.senders)
        // Wait, so that memory is measured after the server's one-time allocations, which would otherwise be counted for
        // subscribers.
        try await Task.sleep(for: settling)
        let before = server?.residentBytes() ?? .nan
        progress("Connecting subscribers: \(shape.receivers)")
        try await crowd.watch(atOnce: Self.maxAtOnce)
        try await crowd.connected(shape.senders + shape.receivers)
        try await crowd.flowing(shape.receivers)
        try await onFlowing()
        try await Task.sleep(for: settling)
        progress("Measuring for \(seconds) s")
        let ports = server?.datagramPorts() ?? []
        // Read the counters outside the window, because reading them costs the server CPU time.
        let counters = try await counters()
        var start = try await crowd.sample(server, serverPorts: ports, isBeginning: true)
        start.counters = counters
        try await Task.sleep(for: .seconds(seconds))
        var end = try await crowd.sample(server, serverPorts: ports, isBeginning: false)
        end.counters = try await self.counters()
        try await onMeasured()
        var report = LoadReport(from: start, to: end, fanOut: Int64(shape.flows / max(1, shape.senders)))
        (report.target, report.packets) = (name, packets.rawValue)
        (report.publishers, report.subscribers) = (shape.senders, shape.receivers)
        let after = server?.residentBytes() ?? .nan
        report.memoryPerSubscriber = (after - before) / 1000 / Double(max(1, shape.receivers))
        report.memoryPerClient = (after - empty) / 1000 / Double(max(1, shape.clients))
        report.noteVisits(try await crowd.visits(visits, to: target))
        return report
    }

    private func counters() async throws -> LoadCounters {
        guard let metrics else { return LoadCounters() }
        return try await LoadCounters.read(metrics)
    }
}

extension LoadRun {
    /// Measures Janus' VideoRoom.
    /// - Parameter server: the URL of Janus' API, such as `http://127.0.0.1:8088/janus`.
    public func run(janus server: String) async throws -> LoadReport {
        try await run(try await JanusLoad(server, rooms: shape.rooms), name: "janus")
    }
}
