import RTC

/// A server that media is sent through: ours, or another that is measured beside it.
protocol LoadTarget: Sendable {
    /// Brings somebody into a room. `number` is his among all.
    func enter(room: Int, number: Int) async throws -> any LoadSeat
    /// Ends what was begun there.
    func leave() async
}

/// One who is in a room.
protocol LoadSeat: Sendable {
    /// Sends sound and picture from now on.
    /// - Returns: what others call it.
    func publish(on loop: RobotLoop, phase: MediaInterval) async throws -> (RobotConnection, LoadStream)
    /// Receives these in one connection.
    func watch(_ streams: [LoadStream], on loop: RobotLoop, meter: LoadMeterBox) async throws -> RobotConnection
    func leave() async
}

/// The name of what somebody publishes, as its server has it.
enum LoadStream: Sendable {
    case confab(String)
    case janus(Int64)
}

/// Carries a meter to the thread that it belongs to.
final class LoadMeterBox: @unchecked Sendable {
    /// The loop's thread's own.
    let meter = LoadMeter()
}

/// Who publishes and who watches.
public struct LoadShape: Sendable, Equatable {
    /// Rooms with as many who only publish, who only watch, and who do both, each.
    public var rooms: Int
    public var publishers: Int
    public var subscribers: Int
    public var members: Int

    /// One room.
    public static func oneToMany(publishers: Int, subscribers: Int) -> LoadShape {
        LoadShape(rooms: 1, publishers: publishers, subscribers: subscribers, members: 0)
    }
    /// Rooms in which everybody sees everybody else.
    public static func rooms(_ count: Int, of size: Int) -> LoadShape {
        LoadShape(rooms: count, publishers: 0, subscribers: 0, members: size)
    }

    /// Connections that receive.
    public var receivers: Int { rooms * (subscribers + members) }
    public var senders: Int { rooms * (publishers + members) }
    /// Streams of a room that somebody gets, who may be one who publishes himself.
    func watched(isMember: Bool) -> Int { publishers + members - (isMember ? 1 : 0) }
    /// Streams, of all who receive.
    public var flows: Int {
        rooms * (subscribers * watched(isMember: false) + members * watched(isMember: true))
    }
}
