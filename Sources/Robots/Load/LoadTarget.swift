import RTC

/// A server under load: Confab, or another one for comparison.
protocol LoadTarget: Sendable {
    /// Adds a client to a room. `number` is its index among all clients.
    func enter(room: Int, number: Int) async throws -> any LoadSeat
    /// Ends everything this load test started on the server.
    func leave() async
}

/// One client in a room.
protocol LoadSeat: Sendable {
    /// Starts sending audio and video.
    /// - Returns: the connection, and the stream's ID for subscribers.
    func publish(on loop: RobotLoop, phase: MediaInterval) async throws -> (RobotConnection, LoadStream)
    /// Receives these streams over one connection.
    func watch(_ streams: [LoadStream], on loop: RobotLoop, meter: LoadMeterBox) async throws -> RobotConnection
    func leave() async
}

/// A stream's ID on its server.
enum LoadStream: Sendable {
    case confab(String)
    case janus(Int64)
}

/// Carries a meter to the loop's thread, which owns it.
final class LoadMeterBox: @unchecked Sendable {
    /// Used only on the loop's thread.
    let meter = LoadMeter()
}

/// How many clients publish and subscribe.
public struct LoadShape: Sendable, Equatable {
    /// Number of rooms. Each has this many clients that only publish, only subscribe, and do both.
    public var rooms: Int
    public var publishers: Int
    public var subscribers: Int
    public var members: Int

    /// One room.
    public static func oneToMany(publishers: Int, subscribers: Int) -> LoadShape {
        LoadShape(rooms: 1, publishers: publishers, subscribers: subscribers, members: 0)
    }
    /// Rooms in which every member subscribes to all others.
    public static func rooms(_ count: Int, of size: Int) -> LoadShape {
        LoadShape(rooms: count, publishers: 0, subscribers: 0, members: size)
    }

    /// Connections that receive media.
    public var receivers: Int { rooms * (subscribers + members) }
    public var senders: Int { rooms * (publishers + members) }
    /// Streams that one client of a room receives. Members do not receive their own.
    func watched(isMember: Bool) -> Int { publishers + members - (isMember ? 1 : 0) }
    /// Streams received by all clients together.
    public var flows: Int {
        rooms * (subscribers * watched(isMember: false) + members * watched(isMember: true))
    }
}
