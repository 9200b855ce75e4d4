/// Limits the estimate when packets are lost because of congestion, for example in queues that are too short to show a
/// delay (draft-ietf-rmcat-gcc-02 §6).
///
/// The draft treats every loss above 10 % as congestion, and does not raise its limit while the loss is above 2 %. On
/// a radio link that loses 3 % of all packets regardless of the bitrate, the limit would then never be raised. Losses
/// that do not depend on the bitrate are therefore estimated and subtracted, in a simpler way than libwebrtc has done
/// since 2021.
struct LossBasedEstimator: Sendable {
    /// Losses are counted over this time and at least this number of packets.
    private static let window = MediaInterval.milliseconds(200)
    private static let packets = 20
    /// The limit is lowered if the loss ratio exceeds the inherent one by more than `high`, and raised again if it
    /// exceeds the inherent one by less than `low`.
    private static let high = 0.10
    private static let low = 0.03
    /// The maximum loss ratio that may be attributed to causes other than congestion, and the weight of a new
    /// measurement in the estimate of this ratio. `maxInherent` and `learning` apply while packets are queued on the
    /// path, the other two constants while none are.
    private static let maxInherent = 0.08
    private static let learning = 0.02
    private static let maxInherentWithoutQueue = 0.3
    private static let learningWithoutQueue = 0.2
    private static let growth = 1.05

    /// The limit; nil while losses do not limit anything.
    private(set) var bitrate: Bitrate?
    /// The fraction of packets that are lost regardless of the bitrate.
    private(set) var inherent = 0.0
    /// The fraction of packets that were lost recently.
    private(set) var recent = 0.0
    /// The fraction of packets that were lost recently while none were queued on the path. Does not include packets
    /// dropped by a full queue.
    private(set) var withoutQueue = 0.0
    private var (arrived, lost) = (0, 0)
    private var since: MediaTime?
    private var loweredAt: MediaTime?

    /// Counts the packets of one report, and updates the limit.
    /// - Parameters:
    ///   - lost: the number of lost packets; negative if packets that were counted as lost have arrived.
    ///   - hasQueue: whether packets are queued on the path. Without a queue, most losses are inherent to the path.
    ///   - acknowledged: the bitrate that arrives; nil if unknown.
    ///   - estimate: the delay-based estimate, from which a new limit starts.
    mutating func add(
        arrived: Int, lost: Int, hasQueue: Bool, acknowledged: Bitrate?, estimate: Bitrate, now: MediaTime
    ) {
        self.arrived += arrived
        self.lost += lost
        guard let since else { return self.since = now }
        // Packets that were first counted as lost and then arrived late can make the number of lost packets negative.
        let lost = max(0, self.lost)
        let count = self.arrived + lost
        guard now - since >= Self.window, count >= Self.packets else { return }
        let loss = Double(lost) / Double(count)
        (self.arrived, self.lost, self.since) = (0, 0, now)
        recent += (loss - recent) * 0.3
        if !hasQueue { withoutQueue += (loss - withoutQueue) * 0.3 }
        if recent < inherent {
            inherent = recent
        } else {
            let most = hasQueue ? max(Self.maxInherent, inherent) : Self.maxInherentWithoutQueue
            let step = (recent - inherent) * (hasQueue ? Self.learning : Self.learningWithoutQueue)
            inherent = min(most, inherent + step)
        }
        let excess = recent - inherent
        if excess > Self.high {
            lower(by: excess, acknowledged, estimate, now: now)
        } else if let bitrate, excess < Self.low {
            let raised = bitrate * (1 + (Self.growth - 1) * min(1, Double((now - since).nanoseconds) / 1e9) * 4)
            // Remove a limit that is far above the bitrate sent, because it has no effect anymore.
            self.bitrate = raised > max(acknowledged ?? .zero, .kilobits(500)) * 4 ? nil : raised
        }
    }

    private mutating func lower(by excess: Double, _ acknowledged: Bitrate?, _ estimate: Bitrate, now: MediaTime) {
        if let loweredAt, now - loweredAt < .milliseconds(500) { return }
        loweredAt = now
        // The bitrate sent is the sum of what arrived and what was lost.
        let sent = acknowledged.map { $0 * (1 / max(0.1, 1 - recent)) } ?? estimate
        let base = min(bitrate ?? estimate, sent)
        // Keep most of the bitrate that arrives, because the path carried it.
        bitrate = min(base, max(base * (1 - 0.5 * min(1, excess)), (acknowledged ?? .zero) * RateControl.decrease))
    }
}
