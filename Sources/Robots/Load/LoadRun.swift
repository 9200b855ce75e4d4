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
    /// The server's process id, if the server runs on this computer. The nodes of a cluster have their own.
    public var process: Int32?
    /// The URL of the server's metrics, if they are readable. The nodes of a cluster have their own.
    public var metrics: String?
    /// The pause between the last client's joining and the start of the measured window, so that the cost of connecting is
    /// not measured.
    public var settling: Duration = .seconds(3)
    /// The number of clients that join after the measurement, one at a time.
    public var visits = 40
    /// The pause before each visitor in a cluster. It gives a node time to stop requesting streams that none of its clients receive.
    private static let visitPause: Duration = .seconds(1)
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
        try await run(ConfabLoad(server: server, admit: admit), name: "confab", at: [node(server)])
    }

    /// Measures rooms of a Confab server that all clients join by name.
    public func run(rooms server: String) async throws -> LoadReport {
        try await run(rooms: [node(server)])
    }

    /// Measures rooms that all clients join by name, on one server or on the nodes of a cluster. For rooms that span nodes, the relays
    /// between all nodes must be connected.
    ///
    /// - Parameter nodes: at least one node, with the process id and the metrics to read.
    public func run(rooms nodes: [LoadNode], spread: LoadSpread = .clients) async throws -> LoadReport {
        let size = shape.publishers + shape.subscribers + shape.members
        let target = RoomLoad(servers: nodes.map(\.server), spread: spread, size: size)
        return try await run(target, name: "confab rooms", at: nodes)
    }

    private func node(_ server: String) -> LoadNode { LoadNode(server: server, process: process, metrics: metrics) }

    private func run(_ target: some LoadTarget, name: String, at nodes: [LoadNode]) async throws -> LoadReport {
        let loop = try RobotLoop(yields: true)
        let crowd = LoadCrowd(loop: loop, packets: packets)
        do {
            let report = try await measure(target, crowd, name, nodes)
            await crowd.leave()
            await target.leave()
            return report
        } catch {
            await crowd.leave()
            await target.leave()
            throw error
        }
    }

    private func measure(
        _ target: some LoadTarget, _ crowd: LoadCrowd, _ name: String, _ nodes: [LoadNode]
    ) async throws -> LoadReport {
        let servers = nodes.map { $0.process.map { LoadProcess(id: $0) } }
        let isCluster = nodes.count > 1
        let empty = Self.residentBytes(servers)
        progress("Connecting publishers: \(shape.senders)")
        try await crowd.fill(shape, by: target, atOnce: Self.maxAtOnce)
        try await crowd.publish(atOnce: Self.maxAtOnce)
        try await crowd.connected(shape.senders)
        // Wait, so that memory is measured after the server's one-time allocations, which would otherwise be counted for
        // subscribers.
        try await Task.sleep(for: settling)
        let before = Self.residentBytes(servers)
        progress("Connecting subscribers: \(shape.receivers)")
        try await crowd.watch(atOnce: Self.maxAtOnce, measuresPaths: isCluster)
        try await crowd.connected(shape.senders + shape.receivers)
        try await crowd.flowing(shape.receivers)
        try await onFlowing()
        try await Task.sleep(for: settling)
        progress("Measuring for \(seconds) s")
        let ports = servers.reduce(into: Set<UInt16>()) { $0.formUnion($1?.datagramPorts() ?? []) }
        // Read the counters outside the window, because reading them costs the server CPU time.
        let counters = try await Self.counters(of: nodes)
        var start = try await crowd.sample(servers, serverPorts: ports, isBeginning: true)
        start.add(counters)
        try await Task.sleep(for: .seconds(seconds))
        var end = try await crowd.sample(servers, serverPorts: ports, isBeginning: false)
        let paths = try await isCluster ? crowd.paths() : nil
        end.add(try await Self.counters(of: nodes))
        try await onMeasured()
        var report = LoadReport(from: start, to: end, fanOut: Int64(shape.flows / max(1, shape.senders)))
        (report.target, report.packets) = (name, packets.rawValue)
        (report.publishers, report.subscribers) = (shape.senders, shape.receivers)
        report.paths = paths
        let after = Self.residentBytes(servers)
        report.memoryPerSubscriber = (after - before) / 1000 / Double(max(1, shape.receivers))
        report.memoryPerClient = (after - empty) / 1000 / Double(max(1, shape.clients))
        let pause = isCluster ? Self.visitPause : .zero
        let visited = try await crowd.visits(visits, to: target, pause: pause)
        report.noteVisits(visited.map(\.time))
        if isCluster {
            report.nodes = nodes.enumerated().map { place, node in
                LoadNodeReport(node, at: place, from: start, to: end, visited)
            }
        }
        return report
    }

    /// Returns the resident memory of all servers together; NaN if no process is known.
    private static func residentBytes(_ servers: [LoadProcess?]) -> Double {
        let known = servers.compactMap { $0 }
        return known.isEmpty ? .nan : known.reduce(0) { $0 + $1.residentBytes() }
    }

    /// Returns the counters of each node; nil for a node whose metrics are not readable.
    private static func counters(of nodes: [LoadNode]) async throws -> [LoadCounters?] {
        var all: [LoadCounters?] = []
        for node in nodes {
            if let metrics = node.metrics { all.append(try await LoadCounters.read(metrics)) } else { all.append(nil) }
        }
        return all
    }
}

extension LoadSample {
    /// Adds the counters of the servers.
    fileprivate mutating func add(_ all: [LoadCounters?]) {
        nodeCounters = all
        counters = all.reduce(into: LoadCounters()) { sum, counters in if let counters { sum += counters } }
    }
}

extension LoadRun {
    /// Measures Janus' VideoRoom.
    /// - Parameter server: the URL of Janus' API, such as `http://127.0.0.1:8088/janus`.
    public func run(janus server: String) async throws -> LoadReport {
        try await run(try await JanusLoad(server, rooms: shape.rooms), name: "janus", at: [node(server)])
    }
}
