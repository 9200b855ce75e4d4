import Datagrams
import Peers
import RTC
import Wire

/// Rooms of a Confab server, or of the nodes of a cluster, as the target of a load test. All clients join by name, as people do, and
/// publish three simulcast layers.
struct RoomLoad: LoadTarget {
    let servers: [String]
    let spread: LoadSpread
    /// The capacity of each room: its clients, and one visitor.
    let capacity: Int
    /// A random prefix of the rooms' names, so that they differ from those of other load tests on the same server.
    let prefix: String

    /// - Parameters:
    ///   - servers: the URLs of at least one server.
    ///   - size: the number of clients in each room.
    init(servers: [String], spread: LoadSpread, size: Int) {
        (self.servers, self.spread, capacity) = (servers, spread, size + 1)
        var generator = SystemRandomNumberGenerator()
        prefix = "bench-\(String(generator.next() as UInt64, radix: 36))"
    }

    func enter(room: Int, number: Int) async throws -> any LoadSeat { try await join(room, number) }

    func node(room: Int, number: Int) -> Int {
        switch spread {
        case .clients: number % servers.count
        case .rooms: room % servers.count
        }
    }

    private func join(_ room: Int, _ number: Int) async throws -> RoomSeat {
        var hello = Hello()
        hello.client = "confab-bench"
        let server = servers[node(room: room, number: number)]
        let source = try LoadAddress.of(number, at: server)
        let client = try await RobotClient.connect(to: server, hello: hello, from: source)
        var options = RoomChanges()
        (options.media, options.capacity) = (.routed, capacity)
        let verb = RoomVerb.Join(
            name: RoomName("\(prefix)-\(room)"), displayName: "Load \(number)", options: options)
        let answer = try await client.ask(.room(.join(verb)))
        guard case .room(.joined(let joined)) = answer else {
            throw RobotError.answered(answer, insteadOf: "room.joined")
        }
        _ = try await client.join(joined.admission.session, token: joined.admission.token)
        return RoomSeat(base: ConfabSeat(client: client, session: joined.admission.session))
    }

    func leave() async {}

    func visit(room: Int, number: Int, _ streams: [LoadStream], on loop: RobotLoop) async throws -> MediaInterval? {
        let begun = MediaTime.monotonic
        let seat = try await join(room, number)
        let frames = FirstFrames(count: streams.count)
        let connection = try await seat.base.watch(streams, on: loop, handler: frames)
        let end = ContinuousClock.now + Self.longestVisit
        var complete: MediaTime?
        while complete == nil, ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(5))
            complete = try await loop.run { frames.completeAt }
        }
        try await loop.run { loop.end(connection) }
        await seat.leave()
        guard let complete else { throw RobotError("A visitor did not see everyone within \(Self.longestVisit).") }
        return complete - begun
    }

    private static let longestVisit: Duration = .seconds(30)
}

/// A member of a room.
private struct RoomSeat: LoadSeat {
    let base: ConfabSeat

    /// Publishes simulcast, whose packets do not follow `media.packets`.
    func publish(_ media: LoadMedia, on loop: RobotLoop) async throws -> (RobotConnection, LoadStream) {
        let connection = try await base.client.openMedia(.send, on: loop) { connection in
            var video = OfferedMedia.video(mid: "v", .sendonly)
            video.rids = SimulcastSource.layers.map(\.rid)
            return connection.offer([.audio(mid: "a", .sendonly), video])
        }
        try await loop.run { connection.source = SimulcastSource(of: connection, now: loop.now + media.phase) }
        return (connection, try await base.announce())
    }

    func watch(_ streams: [LoadStream], on loop: RobotLoop, meter: LoadMeterBox) async throws -> RobotConnection {
        try await base.watch(streams, on: loop, meter: meter)
    }

    func leave() async { await base.leave() }
}

/// Records the time by which at least one complete frame of each video has arrived.
///
/// The class is `@unchecked Sendable` because only the loop's thread uses its state.
final class FirstFrames: RobotHandler, @unchecked Sendable {
    private var missing: Int
    private var seen: Set<String> = []
    /// When the last of the first frames was complete; nil before that.
    private(set) var completeAt: MediaTime?

    init(count: Int) { missing = count }

    func received(_ packet: RobotPacket, of reception: RobotReception, over connection: RobotConnection) {
        // The last packet of a frame has the marker bit (RFC 7741 §4.1). The first frame to arrive is a keyframe.
        guard completeAt == nil, reception.kind == .video, packet.header.marker,
            seen.insert(reception.mid).inserted
        else { return }
        missing -= 1
        if missing <= 0 { completeAt = packet.at }
    }
}
