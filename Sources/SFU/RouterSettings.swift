import RTC

/// A destination for the router's datagrams.
public protocol MediaSink: DatagramSink {
    /// Returns how long the oldest queued data for this path has been waiting. A UDP socket has practically no queue.
    func queuedTime(on path: Path) -> MediaInterval
}

/// The settings of a router: its candidates, its limits and the origin of its clock.
public struct RouterSettings: Sendable {
    /// The server's ICE candidates, in order of preference, that all descriptions contain.
    public var candidates: [Candidate]
    /// The maximum time that data to a subscriber may wait in the queue before the video is paused. Video resumes at half this
    /// time.
    public var longestQueue = MediaInterval.milliseconds(500)
    /// The maximum number of video packets sent in one flush or tick, about 1.5 ms of work. It bounds how long other
    /// streams wait.
    public var longestFlush = 300
    /// Whether to estimate the bitrate of each subscriber's connection, and to choose layers accordingly.
    public var controlsCongestion = true
    /// The maximum number of publishers in a session whose audio is forwarded. If there are more, only the loudest are.
    public var loudestStreams = Int.max
    /// The maximum bitrate sent to the subscribers of one session, in bits per second; nil for no limit.
    public var sessionBitrate: Int?
    /// The maximum bitrate sent to the subscribers of all sessions, in bits per second; nil for no limit.
    public var totalBitrate: Int?
    /// The router's number among the routers that share a TCP port, which its username fragments contain
    /// (`ICECredentials.owner`); nil if no other router shares the port.
    public var owner: Int?
    /// The wall-clock time at `MediaTime` 0.
    public var clockOrigin: NTPTime
    public init(candidates: [Candidate], clockOrigin: NTPTime) {
        (self.candidates, self.clockOrigin) = (candidates, clockOrigin)
    }

    func wallClock(_ now: MediaTime) -> NTPTime { NTPTime(now, origin: clockOrigin) }
}

/// Counters for metrics, summed over all peers.
public struct RouterCounters: Equatable, Sendable {
    public var datagramsIn: UInt64 = 0
    /// The number of datagrams that belong to no known peer.
    public var strayDatagrams: UInt64 = 0
    public var packetsIn: UInt64 = 0
    public var packetsForwarded: UInt64 = 0
    /// The number of packets passed to routers of other event loops. Each copy counts.
    public var packetsPiped: UInt64 = 0
    /// The number of packets sent to other nodes. Each copy counts, but not retransmissions.
    public var packetsRelayed: UInt64 = 0
    /// The number of clients whose streams had to wait because a relay was at its limit: clients of other nodes (`RelayLimit.clients`), and
    /// clients of this node that another node demanded beyond the limit (`RelayLimit.demands`).
    public var relayClientsOverLimit: UInt64 = 0
    /// The number of encodings of other nodes that had to wait because a relay was at its limit (`RelayLimit.encodings`).
    public var relayEncodingsOverLimit: UInt64 = 0
    public var packetsDropped: UInt64 = 0
    /// The number of packets passed to the recorder. Each copy counts.
    public var packetsRecorded: UInt64 = 0
    /// The number of packets that were not recorded, because the recorder was too slow.
    public var recordingPacketsDropped: UInt64 = 0
    public var packetsRetransmitted: UInt64 = 0
    public var packetsRecovered: UInt64 = 0
    public var nacksSent: UInt64 = 0
    public var nacksReceived: UInt64 = 0
    public var keyframesRequested: UInt64 = 0
    public var malformed: UInt64 = 0
    /// The bytes of padding sent only to probe subscribers' connections.
    public var paddingBytes: UInt64 = 0
    /// The number of times that a video was paused because the subscriber's connection could not keep up, or was
    /// resumed afterward.
    public var changesForSlowness: UInt64 = 0
    /// The number of times that a video was paused because the subscriber could not decode the codec, or was resumed
    /// afterward.
    public var changesForCodec: UInt64 = 0
    /// The number of changes (layer switches, warnings and limits) reported because the bitrate that a subscriber's
    /// connection carries changed.
    public var changesForBandwidth: UInt64 = 0
    /// The number of layer switches made because the subscriber requested another size or frame rate.
    public var changesForSize: UInt64 = 0
    /// The number of layer switches made because the publisher started or stopped sending a layer.
    public var changesForPublisher: UInt64 = 0
    /// A gauge: the number of sessions that have reached their bandwidth limit. If the server has reached its own
    /// limit, this is the number of all sessions.
    public var fullSessions: UInt64 = 0

    /// All counters.
    static let all: [any WritableKeyPath<RouterCounters, UInt64> & Sendable] = [
        \.datagramsIn, \.strayDatagrams, \.packetsIn, \.packetsForwarded, \.packetsPiped, \.packetsRelayed,
        \.relayClientsOverLimit, \.relayEncodingsOverLimit,
        \.packetsDropped, \.packetsRecorded, \.recordingPacketsDropped, \.packetsRetransmitted, \.packetsRecovered,
        \.nacksSent, \.nacksReceived,
        \.keyframesRequested, \.malformed, \.paddingBytes,
        \.changesForSlowness, \.changesForCodec, \.changesForBandwidth, \.changesForSize, \.changesForPublisher,
        \.fullSessions,
    ]

    public init() {}

    /// Adds the counters of another router.
    public static func += (left: inout RouterCounters, right: RouterCounters) {
        for counter in all { left[keyPath: counter] &+= right[keyPath: counter] }
    }
}
