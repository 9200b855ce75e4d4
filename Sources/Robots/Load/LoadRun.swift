import Foundation
import RTC
import Wire

/// Robots as load: brings them in, lets them run, and measures a window in which nobody comes or goes.
public struct LoadRun: Sendable {
    public var shape: LoadShape
    /// Of the window.
    public var seconds: Int
    /// The process that serves, if it runs here.
    public var process: Int32?
    /// Its `GET /metrics`, if it has one that is for us.
    public var metrics: String?
    /// Between the last who came and the window: what connecting costs is another figure.
    public var settling: Duration = .seconds(3)
    /// What happens, in lines for people.
    public var progress: @Sendable (String) -> Void = { _ in }

    /// At once: the server answers one after the other.
    private static let mostAtOnce = 8

    public init(shape: LoadShape, seconds: Int, process: Int32?) {
        (self.shape, self.seconds, self.process) = (shape, seconds, process)
    }

    /// Over Confab.
    /// - Parameter admit: a session and a token for somebody in a room.
    public func run(
        confab server: String, admit: @escaping @Sendable (_ room: Int) throws -> Admission
    ) async throws -> LoadReport {
        try await run(ConfabLoad(server: server, admit: admit), name: "confab")
    }

    func run(_ target: some LoadTarget, name: String) async throws -> LoadReport {
        let loop = try RobotLoop(givesWay: true)
        let crowd = LoadCrowd(loop: loop)
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
        progress("Publishers come: \(shape.senders)")
        try await crowd.fill(shape, by: target, atOnce: Self.mostAtOnce)
        try await crowd.publish(atOnce: Self.mostAtOnce)
        try await crowd.connected(shape.senders)
        // What a server that forwards needs once is no subscriber's.
        try await Task.sleep(for: settling)
        let before = server?.residentBytes() ?? .nan
        progress("Subscribers come: \(shape.receivers)")
        try await crowd.watch(shape, atOnce: Self.mostAtOnce)
        try await crowd.connected(shape.senders + shape.receivers)
        try await crowd.flowing(shape.receivers)
        try await Task.sleep(for: settling)
        progress("Measuring for \(seconds) s")
        let ports = server?.datagramPorts() ?? []
        // Before and after the window: being asked costs the server time.
        let counters = try await counters()
        var start = try await crowd.sample(server, serverPorts: ports, isBeginning: true)
        start.counters = counters
        try await Task.sleep(for: .seconds(seconds))
        var end = try await crowd.sample(server, serverPorts: ports, isBeginning: false)
        end.counters = try await self.counters()
        var report = LoadReport(from: start, to: end, fanOut: Int64(shape.flows / max(1, shape.senders)))
        report.target = name
        (report.publishers, report.subscribers) = (shape.senders, shape.receivers)
        let growth = (server?.residentBytes() ?? .nan) - before
        report.memoryPerSubscriber = growth / 1000 / Double(max(1, shape.receivers))
        return report
    }

    private func counters() async throws -> LoadCounters {
        guard let metrics else { return LoadCounters() }
        return try await LoadCounters.read(metrics)
    }
}

extension LoadRun {
    /// Over Janus' VideoRoom.
    /// - Parameter server: `http://127.0.0.1:8088/janus`.
    public func run(janus server: String) async throws -> LoadReport {
        try await run(try await JanusLoad(server, rooms: shape.rooms), name: "janus")
    }
}
