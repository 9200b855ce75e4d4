import RTC

/// What a load found.
public struct LoadReport: Codable, Sendable {
    public var target = ""
    public var publishers = 0
    public var subscribers = 0
    /// Of the window, in seconds.
    public var seconds = 0.0
    /// Packets of publishers.
    public var sent: Int64 = 0
    /// Media packets that subscribers should have got, that they got, and that did not come.
    public var expected: Int64 = 0
    public var received: Int64 = 0
    public var lost: Int64 = 0
    /// Of `lost`: what the server's own counters and the drops of its sockets explain, what the machine or this load
    /// explains, and what nothing explains.
    public var lostByServer: Int64 = 0
    public var lostByMachine: Int64 = 0
    public var unexplained: Int64 = 0
    /// What the kernel threw away: at the server's sockets because the server did not read in time, at this load's
    /// because this load did not, and before any socket because more waited than the machine lets wait
    /// (`net.core.netdev_max_backlog`). Several packets that travelled as one datagram (GSO) count as one.
    public var droppedAtServer: Int64 = 0
    public var droppedHere: Int64 = 0
    public var droppedBetween: Int64 = 0
    /// Datagrams that the system did not take from the server, or from this load.
    public var unsentByServer: Int64 = 0
    public var unsentHere: Int64 = 0
    /// Of the server process: microseconds of processor for each packet that subscribers received, in its own code and
    /// in the kernel on its behalf.
    public var processorPerPacket = 0.0
    /// Shares of one core.
    public var serverLoad = 0.0
    public var robotsLoad = 0.0
    /// In kB of 1000 bytes: how its resident memory grew from before the subscribers came to the end, by subscriber.
    public var memoryPerSubscriber = 0.0
    /// In milliseconds, from being sent to being received.
    public var delayMedian = 0.0
    public var delay99 = 0.0
    public var delayMost = 0.0
    /// Connections that broke.
    public var broken = 0
    /// Times at which the load itself was too late to send.
    public var pauses = 0

    public var packetsPerSecond: Double { seconds > 0 ? Double(received) / seconds : 0 }
}

extension LoadReport {
    /// - Parameter fanOut: how many get each packet of a publisher.
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

    /// Tells loss by the server from loss by the machine. The kernel counts datagrams, of which each may be several
    /// packets, so where it threw away anything outside the server, what the server does not explain is laid to that.
    private mutating func blame(forgotten: Int64, _ fanOut: Int64) {
        let missing = max(0, lost)
        lostByServer = min(missing, (droppedAtServer + max(0, forgotten)) * fanOut + unsentByServer)
        let rest = missing - lostByServer
        if droppedHere + droppedBetween + unsentHere > 0 { lostByMachine = rest } else { unexplained = rest }
    }
}

extension MediaInterval {
    fileprivate var inMilliseconds: Double { Double(nanoseconds) / 1e6 }
}
