import Peers
import RTC

/// A server under load: Confab, or another server for comparison.
protocol LoadTarget: Sendable {
    /// Adds a client to a room. `number` is the client's index among all clients.
    func enter(room: Int, number: Int) async throws -> any LoadSeat
    /// Returns the place of a client's node among the servers of a cluster; 0 if there is one server.
    func node(room: Int, number: Int) -> Int
    /// Adds a client that only subscribes, and removes it once it has received a first frame of all streams.
    /// - Returns: the time from joining to the first frame of all streams; nil if this target does not measure it.
    func visit(room: Int, number: Int, _ streams: [LoadStream], on loop: RobotLoop) async throws -> MediaInterval?
    /// Ends everything that this load test started on the server.
    func leave() async
}

extension LoadTarget {
    func node(room: Int, number: Int) -> Int { 0 }

    func visit(room: Int, number: Int, _ streams: [LoadStream], on loop: RobotLoop) async throws -> MediaInterval? {
        nil
    }
}

/// One client in a room.
protocol LoadSeat: Sendable {
    /// Starts sending audio and video.
    /// - Returns: the connection, and the stream's id, which subscribers need.
    func publish(_ media: LoadMedia, on loop: RobotLoop) async throws -> (RobotConnection, LoadStream)
    /// Receives these streams over one connection.
    func watch(_ streams: [LoadStream], on loop: RobotLoop, meter: LoadMeterBox) async throws -> RobotConnection
    func leave() async
}

/// The id of a stream on its server.
enum LoadStream: Sendable {
    case confab(String)
    case janus(Int64)
}

/// A box that carries a meter to the loop's thread, which then owns the meter.
final class LoadMeterBox: @unchecked Sendable {
    /// The meter, used only on the loop's thread.
    let meter = LoadMeter()
}

/// The number of rooms, and of the clients in them that publish and subscribe.
public struct LoadShape: Sendable, Equatable {
    /// The number of rooms.
    public var rooms: Int
    /// The number of clients in each room that only publish.
    public var publishers: Int
    /// The number of clients in each room that only subscribe.
    public var subscribers: Int
    /// The number of clients in each room that publish and subscribe.
    public var members: Int

    /// Returns the shape of one room in which clients only publish or only subscribe.
    public static func oneToMany(publishers: Int, subscribers: Int) -> LoadShape {
        LoadShape(rooms: 1, publishers: publishers, subscribers: subscribers, members: 0)
    }
    /// Returns the shape of rooms in which every member subscribes to all others.
    public static func rooms(_ count: Int, of size: Int) -> LoadShape {
        LoadShape(rooms: count, publishers: 0, subscribers: 0, members: size)
    }

    public var clients: Int { rooms * (publishers + subscribers + members) }
    /// The number of connections that receive media.
    public var receivers: Int { rooms * (subscribers + members) }
    /// The number of connections that send media.
    public var senders: Int { rooms * (publishers + members) }
    /// Returns the number of streams that one client of a room receives. Members do not receive their own stream.
    func watched(isMember: Bool) -> Int { publishers + members - (isMember ? 1 : 0) }
    /// The number of streams that all clients together receive.
    public var flows: Int {
        rooms * (subscribers * watched(isMember: false) + members * watched(isMember: true))
    }
}
