import RTC

/// The result of a load test.
public struct LoadReport: Codable, Sendable {
    /// The server under test, such as Confab or Janus.
    public var target = ""
    /// How the publishers sent, a raw value of `LoadPackets`.
    public var packets = ""
    public var publishers = 0
    public var subscribers = 0
    /// The length of the measured window in seconds.
    public var seconds = 0.0
    /// The number of packets that publishers sent.
    public var sent: Int64 = 0
    /// The number of media packets that subscribers should have received, did receive, and did not receive.
    public var expected: Int64 = 0
    public var received: Int64 = 0
    public var lost: Int64 = 0
    /// The packets in `lost` by cause: lost by the server or at its sockets, lost elsewhere on the host (in the
    /// kernel's queues or by this load test), and lost for an unknown reason.
    public var lostByServer: Int64 = 0
    public var lostByMachine: Int64 = 0
    public var unexplained: Int64 = 0
    /// The number of datagrams that the kernel dropped: at the server's sockets because the server did not read in time, at
    /// this load test's sockets for the same reason, and before any socket because the queue was full
    /// (`net.core.netdev_max_backlog`). Several packets sent as one datagram (GSO) count as one.
    public var droppedAtServer: Int64 = 0
    public var droppedHere: Int64 = 0
    public var droppedBetween: Int64 = 0
    /// The number of datagrams that the kernel did not accept from the server, and from this load test.
    public var unsentByServer: Int64 = 0
    public var unsentHere: Int64 = 0
    /// The CPU time of the server process per packet that subscribers received, in microseconds, in user and kernel mode.
    public var processorPerPacket = 0.0
    /// The CPU usage of the server; 1 is one core.
    public var serverLoad = 0.0
    /// The CPU usage of this load test; 1 is one core.
    public var robotsLoad = 0.0
    /// The growth of the server's resident memory per subscriber, in kB of 1000 bytes, measured from before the
    /// subscribers joined until the end of the measured window.
    public var memoryPerSubscriber = 0.0
    /// The growth of the server's resident memory per client, in kB of 1000 bytes, measured from before the first
    /// client joined. It includes the server's one-time allocations.
    public var memoryPerClient = 0.0
    /// The number of clients that joined the first room after the measurement.
    public var visits = 0
    /// The median time until these clients had received a first frame of every stream, in milliseconds.
    public var firstFramesMedian = 0.0
    /// The 95th percentile of that time, in milliseconds.
    public var firstFrames95 = 0.0
    /// The delay of packets from sending to receiving, in milliseconds: the median, the 99th percentile and the
    /// maximum.
    public var delayMedian = 0.0
    public var delay99 = 0.0
    public var delayMost = 0.0
    /// The number of connections that failed.
    public var broken = 0
    /// The number of times that the load test itself was too late to send.
    public var pauses = 0
    /// The nodes of a cluster under load, and the media between them; nil if there was one server.
    public var nodes: [LoadNodeReport]?
    public var paths: [LoadPathReport]?

    public var packetsPerSecond: Double { seconds > 0 ? Double(received) / seconds : 0 }
}

extension LoadReport {
    /// - Parameter fanOut: the number of subscribers to each published packet.
    init(from start: LoadSample, to end: LoadSample, fanOut: Int64) {
        self.init()
        seconds = Double((end.at - start.at).nanoseconds) / 1e9
        (expected, received) = (end.expected - start.expected, end.received - start.received)
        lost = end.lost - start.lost
        sent = end.sent - start.sent
        droppedAtServer = Int64(clamping: end.serverDrops &- start.serverDrops)
        droppedHere = Int64(clamping: end.robotDrops &- start.robotDrops)
        droppedBetween = Int64(clamping: end.machineDrops &- start.machineDrops)
        unsentByServer = end.counters.unsent - start.counters.unsent
        unsentHere = Int64(end.robotUnsent - start.robotUnsent)
        blame(forgotten: end.counters.dropped - start.counters.dropped, fanOut)
        let work = end.serverSeconds - start.serverSeconds
        processorPerPacket = received > 0 ? work * 1e6 / Double(received) : .nan
        (serverLoad, robotsLoad) = (work / seconds, (end.robotSeconds - start.robotSeconds) / seconds)
        (delayMedian, delay99, delayMost) = (
            end.delays.quantile(0.5).inMilliseconds, end.delays.quantile(0.99).inMilliseconds,
            end.delays.most.inMilliseconds
        )
        broken = end.broken
        pauses = end.pauses - start.pauses
    }

    mutating func noteVisits(_ times: [MediaInterval]) {
        let sorted = times.map(\.inMilliseconds).sorted()
        guard let last = sorted.last else { return }
        visits = sorted.count
        firstFramesMedian = sorted[sorted.count / 2]
        let rank = Int((0.95 * Double(sorted.count)).rounded(.up)) - 1
        firstFrames95 = sorted.indices.contains(rank) ? sorted[rank] : last
    }

    /// Separates loss in the server from loss elsewhere on the host. The kernel counts datagrams, and each may carry several
    /// packets. If the kernel dropped any datagram outside the server, all loss that the server does not explain is attributed
    /// to the host.
    private mutating func blame(forgotten: Int64, _ fanOut: Int64) {
        let missing = max(0, lost)
        lostByServer = min(missing, (droppedAtServer + max(0, forgotten)) * fanOut + unsentByServer)
        let rest = missing - lostByServer
        if droppedHere + droppedBetween + unsentHere > 0 { lostByMachine = rest } else { unexplained = rest }
    }
}

extension MediaInterval {
    var inMilliseconds: Double { Double(nanoseconds) / 1e6 }
}
