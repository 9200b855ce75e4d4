import RTC

/// The state of congestion control and allocation for one subscriber. Created only if the client's description has feedback
/// from which a bitrate can be estimated.
final class Downlink {
    // First, because every packet needs it.
    var control = CongestionControl()
    /// The bitrates of what is sent to the subscriber now.
    var sentBytes = 0
    var audioBytes = 0
    var media = Bitrate.zero
    var audio = Bitrate.zero
    var measuredAt: MediaTime?
    var allocatedAt: MediaTime?
    /// Whether the allocation limits anything.
    var isLimited = false
    /// What would be sent on an unlimited line.
    var wanted = Bitrate.zero
    /// When videos were raised and lowered, and how long to wait before they are raised again.
    var raisedAt: MediaTime?
    var loweredAt: MediaTime?
    var raiseDelay = Downlink.shortestRaiseDelay

    /// The time between two allocations, and how often bitrates are measured.
    static let interval = MediaInterval.milliseconds(100)
    static let (shortestRaiseDelay, longestRaiseDelay) = (MediaInterval.seconds(1), MediaInterval.seconds(4))
    /// Bytes of each packet that the link carries in addition to the RTP packet: the SRTP tag and the headers of UDP and IP.
    static let overhead = 44

    /// Reads what sending a packet needs; see `Router.warm`.
    @inline(__always)
    func warm() -> UInt64 { control.warm() }

    /// Records that videos were lowered. If they were raised only recently, that was too soon.
    func lowered(now: MediaTime) {
        if let raisedAt, now - raisedAt < .seconds(5) { raiseDelay = min(raiseDelay * 2, Self.longestRaiseDelay) }
        loweredAt = now
    }

    func mayRaise(now: MediaTime) -> Bool {
        guard !control.isUnsettled(now: now) else { return false }
        return loweredAt.map { now - $0 >= raiseDelay } ?? true
    }
}
