import RTC

/// A server under load. Several of them are the nodes of one cluster.
public struct LoadNode: Sendable {
    /// The server's URL.
    public var server: String
    /// The server's process id, if it runs on this computer.
    public var process: Int32?
    /// The URL of the server's metrics, if they are readable.
    public var metrics: String?

    public init(server: String, process: Int32? = nil, metrics: String? = nil) {
        (self.server, self.process, self.metrics) = (server, process, metrics)
    }
}

/// How the clients of a load test are distributed among the nodes of a cluster.
public enum LoadSpread: String, CaseIterable, Sendable {
    /// The clients of each room connect to the nodes in turn, so that the room spans all nodes.
    case clients
    /// All clients of a room connect to one node. Rooms take turns.
    case rooms
}

/// What a load test has measured of one node of a cluster.
public struct LoadNodeReport: Codable, Sendable {
    /// The node's URL.
    public var server = ""
    /// The CPU time of the server process in the measured window, in seconds; NaN if it is unknown.
    public var processorSeconds = Double.nan
    /// The number of media packets from clients in the measured window. Like the next two, zero if the metrics are not readable.
    public var taken: Int64 = 0
    /// The number of media packets sent to clients in the measured window.
    public var forwarded: Int64 = 0
    /// The number of media packets sent to other nodes in the measured window.
    public var relayed: Int64 = 0
    /// The number of clients that joined the first room at this node after the measurement.
    public var visits = 0
    /// The median time for which these clients waited for a first frame of every stream, in milliseconds.
    public var firstFramesMedian = 0.0
    /// The longest of these times, in milliseconds.
    public var firstFramesMost = 0.0
}

extension LoadNodeReport {
    /// - Parameter place: the node's place among the servers.
    init(_ node: LoadNode, at place: Int, from start: LoadSample, to end: LoadSample, _ visits: [LoadVisit]) {
        self.init()
        server = node.server
        if start.nodeSeconds.indices.contains(place), end.nodeSeconds.indices.contains(place) {
            processorSeconds = end.nodeSeconds[place] - start.nodeSeconds[place]
        }
        if start.nodeCounters.indices.contains(place), end.nodeCounters.indices.contains(place),
            let before = start.nodeCounters[place], let after = end.nodeCounters[place]
        {
            taken = after.taken - before.taken
            forwarded = after.forwarded - before.forwarded
            relayed = after.relayed - before.relayed
        }
        let times = visits.filter { $0.node == place }.map(\.time.inMilliseconds).sorted()
        self.visits = times.count
        if let most = times.last { (firstFramesMedian, firstFramesMost) = (times[times.count / 2], most) }
    }
}

/// What a load test has measured of the media on one path: from the clients of one node to those of the same or another node.
public struct LoadPathReport: Codable, Sendable, Equatable {
    /// The node of the publishers, by its place among the servers, counted from 1.
    public var from: Int
    /// The node of the subscribers, in the same way.
    public var to: Int
    /// The number of packets that arrived, without retransmissions.
    public var packets = 0
    /// The number of packets that arrived as retransmissions.
    public var retransmissions = 0
    /// The number of video packets that did not arrive.
    public var missing = 0
    /// The number of video packets that arrived after a later one, because they were lost and retransmitted.
    public var late = 0
    /// The number of frames.
    public var frames = 0
    /// The number of incomplete frames.
    public var incompleteFrames = 0
    /// The longest time in which a subscriber received no packet of a video, in milliseconds.
    public var longestGap = 0.0
    /// The median delay of packets from sending to receiving, in milliseconds.
    public var delayMedian = 0.0
    /// The 99th percentile of this delay, in milliseconds.
    public var delay99 = 0.0
    /// The longest of these delays, in milliseconds.
    public var delayMost = 0.0

    init(from: Int, to: Int) { (self.from, self.to) = (from, to) }
}

/// A client that joined after the measurement.
struct LoadVisit: Sendable {
    /// The place of its node among the servers.
    let node: Int
    /// From joining to a first frame of every stream.
    let time: MediaInterval
}
