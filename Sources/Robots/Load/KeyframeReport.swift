import RTC

/// The packet delays in a room of two, measured alone and next to a room whose keyframes go to a crowd.
public struct KeyframeReport: Codable, Sendable {
    /// The measurements of one of the two windows.
    public struct Delays: Codable, Sendable {
        /// The number of packets that the room's subscriber received.
        public var packets: Int64 = 0
        /// The number of packets that the room's subscriber missed.
        public var lost: Int64 = 0
        /// The time from sending a packet to its arrival at the subscriber's socket, in milliseconds: the median, the
        /// 99th percentile and the maximum.
        public var median = 0.0
        public var late = 0.0
        public var most = 0.0
        /// The number of packets in each band of delays: below the element of `bounds` with the same index, and not
        /// below the previous element. The last band has no bound.
        public var counts: [Int64] = []
        /// The server's own measurements, from its metrics; empty without metrics. In each wake-up, the server
        /// measures how long the oldest packet that it forwards has waited. An element counts the waits up to the
        /// element of `serverBounds` with the same index, but above the previous element. The last element counts all
        /// longer waits.
        public var serverCounts: [Int64] = []
        /// The CPU usage of the server; 1 is one core.
        public var serverLoad = 0.0

        public init() {}
    }

    /// The server under test, such as Confab or Janus.
    public var target = ""
    /// The number of subscribers to the keyframes.
    public var crowd = 0
    /// The number of packets in each keyframe.
    public var keyframePackets = 0
    /// The length of the second window in seconds.
    public var seconds = 0.0
    /// The number of keyframes sent in the second window.
    public var keyframes = 0
    /// The number of packets that the crowd should have received in the second window.
    public var expected: Int64 = 0
    /// The number of packets that the crowd did receive in the second window. The others cannot have delayed the other
    /// room.
    public var received: Int64 = 0
    /// The upper bounds of `counts`, in milliseconds.
    public var bounds: [Int64] = DelayHistogram.bandBounds
    /// The upper bounds of `serverCounts`, in seconds.
    public var serverBounds: [Double] = []
    /// The delays in the room of two while it is alone.
    public var alone = Delays()
    /// The delays in the room of two next to the crowd.
    public var beside = Delays()
    /// The number of connections that failed.
    public var broken = 0
    /// The number of times that the load test itself was too late to send.
    public var pauses = 0
}

extension KeyframeReport {
    /// The values of all counters at one moment. `pair` also contains the counters of the server.
    struct Sample: Sendable {
        var publisher = LoadSample()
        var crowd = LoadSample()
        var pair = LoadSample()
    }

    /// The start and the end of a measurement.
    struct Window: Sendable {
        var start: Sample
        var end = Sample()
    }

    init(crowd: Int, keyframePackets: Int, alone: Window, beside: Window) {
        (self.crowd, self.keyframePackets) = (crowd, keyframePackets)
        let (start, end) = (beside.start, beside.end)
        seconds = Double((end.pair.at - start.pair.at).nanoseconds) / 1e9
        keyframes = end.publisher.keyframes - start.publisher.keyframes
        expected = (end.publisher.sent - start.publisher.sent) * Int64(crowd)
        received = end.crowd.received - start.crowd.received
        (self.alone, self.beside) = (Delays(alone), Delays(beside))
        let counters = end.pair.counters
        serverBounds = counters.waits.map(\.bound).filter(\.isFinite)
        broken = end.publisher.broken + end.crowd.broken + end.pair.broken
        let pauses = { (sample: Sample) in sample.publisher.pauses + sample.pair.pauses }
        self.pauses = pauses(alone.end) - pauses(alone.start) + pauses(end) - pauses(start)
    }
}

extension KeyframeReport.Delays {
    init(_ window: KeyframeReport.Window) {
        let (start, end) = (window.start.pair, window.end.pair)
        (packets, lost) = (end.received - start.received, end.lost - start.lost)
        (median, late, most) = (
            end.delays.quantile(0.5).inMilliseconds, end.delays.quantile(0.99).inMilliseconds,
            end.delays.most.inMilliseconds
        )
        counts = end.delays.bands.map { Int64(clamping: $0) }
        serverCounts = end.counters.waits(since: start.counters).map(\.count)
        serverLoad = (end.serverSeconds - start.serverSeconds) * 1e9 / Double((end.at - start.at).nanoseconds)
    }
}
