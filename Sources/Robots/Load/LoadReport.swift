import RTC

/// The result of a load test.
public struct LoadReport: Codable, Sendable {
    public var target = ""
    public var publishers = 0
    public var subscribers = 0
    /// Length of the measured window.
    public var seconds = 0.0
    /// Packets sent by publishers.
    public var sent: Int64 = 0
    /// Media packets that subscribers should have received, did receive, and did not receive.
    public var expected: Int64 = 0
    public var received: Int64 = 0
    public var lost: Int64 = 0
    /// Parts of `lost`: explained by the server's counters and socket drops, explained by the machine or this load
    /// test, and unexplained.
    public var lostByServer: Int64 = 0
    public var lostByMachine: Int64 = 0
    public var unexplained: Int64 = 0
    /// Kernel drops: at the server's sockets because the server did not read in time, at the sockets of this load test
    /// for the same reason, and before any socket because the queue was full (`net.core.netdev_max_backlog`). Several
    /// packets sent as one datagram (GSO) count as one.
    public var droppedAtServer: Int64 = 0
    public var droppedHere: Int64 = 0
    public var droppedBetween: Int64 = 0
    /// Datagrams that the kernel did not accept from the server, and from this load test.
    public var unsentByServer: Int64 = 0
    public var unsentHere: Int64 = 0
    /// CPU time of the server process per packet received by subscribers, in microseconds, in user and kernel mode.
    public var processorPerPacket = 0.0
    /// CPU usage of the server and of this load test; 1 is one core.
    public var serverLoad = 0.0
    public var robotsLoad = 0.0
    /// Growth of the server's resident memory per subscriber, in kB of 1000 bytes, from before the subscribers joined
    /// to the end.
    public var memoryPerSubscriber = 0.0
    /// Delay from sending to receiving, in milliseconds.
    public var delayMedian = 0.0
    public var delay99 = 0.0
    public var delayMost = 0.0
    /// Connections that failed.
    public var broken = 0
    /// How often the load test itself was too late to send.
    public var pauses = 0

    public var packetsPerSecond: Double { seconds > 0 ? Double(received) / seconds : 0 }
}

extension LoadReport {
    /// - Parameter fanOut: number of subscribers of each published packet.
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

    /// Separates loss in the server from loss in the machine. The kernel counts datagrams, and each may carry several
    /// packets. So if it dropped any outside the server, all loss the server does not explain is attributed to the
    /// machine.
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
