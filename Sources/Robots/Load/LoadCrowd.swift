import Datagrams
import Foundation
import Peers
import RTC

/// Clients of a load test whose connections share one thread: all of the test's clients, or some of them.
final class LoadCrowd: @unchecked Sendable {
    /// The timeout for all clients to connect, and also for all subscribers to receive media.
    private static let stepTimeout: Duration = .seconds(60)

    /// One client and its part in the load test.
    private struct Seat: Sendable {
        var room: Int
        var publishes: Bool
        var watches: Bool
        /// The place of the client's node among the servers.
        var node: Int
        var seat: any LoadSeat
    }

    let loop: RobotLoop
    private let box = LoadMeterBox()
    /// The clients, in the order of their numbers. Changed only between phases, by the task that runs the load test.
    private var seats: [Seat] = []
    /// The streams of each room, with the index of the publisher in `seats`. The index is nil if the publisher belongs
    /// to another crowd.
    private var streams: [Int: [(seat: Int?, node: Int, stream: LoadStream)]] = [:]
    private var senders: [RobotConnection] = []
    private var receivers: [RobotConnection] = []
    private var ports: Set<UInt16> = []

    /// The numbers of this crowd's first room and first client. Several crowds of one load test share the numbering of
    /// clients.
    private let firstRoom: Int
    private let firstNumber: Int
    private let packets: LoadPackets

    init(loop: RobotLoop, packets: LoadPackets = .uniform, firstRoom: Int = 0, firstNumber: Int = 0) {
        (self.loop, self.packets, self.firstRoom, self.firstNumber) = (loop, packets, firstRoom, firstNumber)
    }

    // MARK: Joining and leaving

    func fill(_ shape: LoadShape, by target: some LoadTarget, atOnce: Int) async throws {
        var wanted: [(room: Int, publishes: Bool, watches: Bool)] = []
        for room in firstRoom..<firstRoom + shape.rooms {
            wanted += Array(repeating: (room, true, false), count: shape.publishers)
            wanted += Array(repeating: (room, true, true), count: shape.members)
            wanted += Array(repeating: (room, false, true), count: shape.subscribers)
        }
        let plan = wanted
        seats = try await each(plan.indices, atOnce: atOnce) { [firstNumber] number in
            let (room, publishes, watches) = plan[number]
            let seat = try await target.enter(room: room, number: firstNumber + number)
            let node = target.node(room: room, number: firstNumber + number)
            return Seat(room: room, publishes: publishes, watches: watches, node: node, seat: seat)
        }
    }

    func publish(atOnce: Int) async throws {
        let (seats, loop, packets) = (seats, loop, packets)
        let numbers = seats.indices.filter { seats[$0].publishes }
        let made = try await each(numbers, atOnce: atOnce) { number in
            // Spread the sending times of the publishers over one frame interval.
            let phase = MediaInterval(nanoseconds: Int64(number) &* 7_919_000 % LoadSource.frameInterval.nanoseconds)
            let media = LoadMedia(packets: packets, phase: phase, seed: UInt64(number))
            return (number, try await seats[number].seat.publish(media, on: loop))
        }
        for (number, (connection, stream)) in made {
            senders.append(connection)
            streams[seats[number].room, default: []].append((number, seats[number].node, stream))
        }
    }

    /// Makes the publishers send regular keyframes of this many packets.
    func sendKeyframes(of packets: Int) async throws {
        try await loop.run { [senders] in
            for sender in senders { (sender.source as? LoadSource)?.sendKeyframes(of: packets) }
        }
    }

    /// Makes the streams of another crowd visible to the subscribers of this crowd.
    func see(_ other: LoadCrowd) {
        for (room, some) in other.streams { streams[room, default: []] += some.map { (nil, $0.node, $0.stream) } }
    }

    /// - Parameter measuresPaths: whether to measure the media between the nodes of a cluster.
    func watch(atOnce: Int, measuresPaths: Bool = false) async throws {
        let (seats, streams, loop, box) = (seats, streams, loop, box)
        let numbers = seats.indices.filter { seats[$0].watches }
        receivers = try await each(numbers, atOnce: atOnce) { number in
            let others = (streams[seats[number].room] ?? []).filter { $0.seat != number }
            let connection = try await seats[number].seat.watch(others.map(\.stream), on: loop, meter: box)
            guard measuresPaths else { return connection }
            let (nodes, mids) = (others.map(\.node), others.indices.map { MidPair(slot: $0) })
            try await loop.run { box.meter.paths.measure(connection, mids, from: nodes, to: seats[number].node) }
            return connection
        }
    }

    /// Returns the measurements of the media between the nodes of a cluster.
    func paths() async throws -> [LoadPathReport] {
        try await loop.run { [box, loop] in box.meter.paths.reports(at: loop.now) }
    }

    /// Lets clients join the first room one at a time, and returns how long each took to receive a first frame of
    /// every stream. Returns none if the target does not measure this.
    ///
    /// - Parameter pause: the time before each of them.
    func visits(_ count: Int, to target: some LoadTarget, pause: Duration) async throws -> [LoadVisit] {
        var visits: [LoadVisit] = []
        let streams = (streams[0] ?? []).map(\.stream)
        for number in seats.count..<seats.count + count {
            if pause > .zero { try await Task.sleep(for: pause) }
            let time = try await target.visit(room: 0, number: number, streams, on: loop)
            guard let time else { break }
            visits.append(LoadVisit(node: target.node(room: 0, number: number), time: time))
        }
        return visits
    }

    func leave() async {
        let (connections, loop) = (senders + receivers, loop)
        _ = try? await loop.run { for connection in connections { loop.end(connection) } }
        _ = try? await each(seats.indices, atOnce: 64) { [seats] in await seats[$0].seat.leave() }
        loop.stop()
    }

    /// Runs `body` for each number, up to `atOnce` at the same time, and returns the results in order.
    private func each<Number: Sendable, Value: Sendable>(
        _ numbers: some Collection<Number>, atOnce: Int, _ body: @escaping @Sendable (Number) async throws -> Value
    ) async throws -> [Value] {
        var results: [(Int, Value)] = []
        try await withThrowingTaskGroup(of: (Int, Value).self) { group in
            for (place, number) in numbers.enumerated() {
                if place >= atOnce, let result = try await group.next() { results.append(result) }
                group.addTask { (place, try await body(number)) }
            }
            for try await result in group { results.append(result) }
        }
        return results.sorted { $0.0 < $1.0 }.map(\.1)
    }

    // MARK: Waiting

    func connected(_ count: Int) async throws {
        try await until("not all connections are open") { crowd in
            let all = crowd.senders + crowd.receivers
            let open = all.count(where: \.isConnected)
            return (open == count, "\(open) of \(count), \(all.first { !$0.isConnected }.map { "\($0.state)" } ?? "")")
        }
    }

    /// Waits until every subscriber has received video of all its streams, and audio of at least one. In a large session the
    /// server forwards only the audio of the loudest (`media.loudestStreams`), and all robots are equally loud.
    func flowing(_ count: Int) async throws {
        try await until("not all subscribers receive media") { crowd in
            let done = crowd.receivers.count { Self.isFlowing($0.receptions) }
            let missing = crowd.receivers.lazy.compactMap { receiver in
                receiver.receptions.first { $0.kind == .video && $0.packets == 0 }?.mid
            }
            return (done == count, "\(done) of \(count)" + (missing.first.map { ", section \($0) is empty" } ?? ""))
        }
    }

    private static func isFlowing(_ receptions: [RobotReception]) -> Bool {
        receptions.allSatisfy { $0.kind == .audio || $0.packets > 0 }
            && receptions.contains { $0.kind == .audio && $0.packets > 0 }
    }

    private func until(
        _ problem: String, _ isDone: @escaping @Sendable (LoadCrowd) -> (Bool, String)
    ) async throws {
        let end = ContinuousClock.now + Self.stepTimeout
        while true {
            let (done, text) = try await loop.run { isDone(self) }
            if done { return }
            guard ContinuousClock.now < end else { throw RobotError("After \(Self.stepTimeout), \(problem): \(text).") }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    // MARK: Counting

    /// - Parameter servers: the servers' processes; nil for each that is unknown.
    func sample(_ servers: [LoadProcess?], serverPorts: Set<UInt16>, isBeginning: Bool) async throws -> LoadSample {
        if ports.isEmpty {
            ports = try await loop.run { [receivers, loop] in Set(receivers.compactMap { loop.port(of: $0) }) }
        }
        let drops = DatagramDrops.rows()
        let robotDrops = drops.filter { ports.contains($0.port) }.reduce(0) { $0 + $1.drops }
        let serverDrops = drops.filter { serverPorts.contains($0.port) }.reduce(0) { $0 + $1.drops }
        var sample = try await loop.run { [box] in self.count(box.meter, isBeginning, servers) }
        (sample.robotDrops, sample.serverDrops) = (robotDrops, serverDrops)
        sample.machineDrops = DatagramDrops.backlog()
        return sample
    }

    private func count(_ meter: LoadMeter, _ isBeginning: Bool, _ servers: [LoadProcess?]) -> LoadSample {
        var sample = LoadSample()
        sample.at = .monotonic
        let seconds = servers.map { $0?.processorSeconds() }
        let known = seconds.compactMap { $0 }
        sample.nodeSeconds = seconds.map { $0 ?? .nan }
        sample.serverSeconds = known.isEmpty ? .nan : known.reduce(0, +)
        sample.robotSeconds = LoadProcess(id: getpid()).processorSeconds()
        for reception in receivers.lazy.flatMap(\.receptions) {
            sample.received += Int64(reception.packets)
            sample.lost += reception.lost
        }
        sample.expected = sample.received + sample.lost
        for track in senders.lazy.flatMap(\.tracks) { sample.sent += Int64(track.packetsSent) }
        for source in senders.lazy.compactMap({ $0.source as? any CountedSource }) {
            sample.pauses += source.pauses
            sample.keyframes += source.keyframes
        }
        sample.robotUnsent = loop.unsent
        sample.broken = meter.failures.count
        if isBeginning {
            meter.delays = DelayHistogram()
            meter.paths.begin(at: sample.at)
        }
        meter.isMeasuring = isBeginning
        sample.delays = meter.delays
        return sample
    }
}
