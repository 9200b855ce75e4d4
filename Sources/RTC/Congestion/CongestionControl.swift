/// Estimates the available bitrate of the path to one receiver, from the receiver's feedback about packets with
/// transport-wide sequence numbers, or from the receiver's own estimate (REMB) if it sends no such feedback.
///
/// The method is Google's congestion control as published (draft-ietf-rmcat-gcc-02), with later changes from
/// libwebrtc: a trend line, probes, and a separate estimate of losses that congestion does not cause. Four things
/// differ, because a server forwards media that others encode. The estimate is unlimited until the path shows its
/// first congestion, so that a good path is never held back. When the path's bitrate has dropped, the budget for media
/// is temporarily below the estimate, to drain the queue. Lost feedback changes nothing, because bitrates are measured
/// only over reported packets. Media is paced only while the path is limited.
///
/// ```swift
/// let number = control.sent(bytes: length, at: now)
/// control.receive(report, now: now)
/// if let estimate = control.estimate { … }
/// ```
public struct CongestionControl: Sendable {
    /// The estimate before the first congestion. It counts as unlimited.
    public static let unlimited = Bitrate.kilobits(1_000_000)
    /// The minimum estimate, enough for one voice.
    public static let smallest = Bitrate.kilobits(30)
    /// If packets were sent but there was no feedback for this long, the path is assumed to be blocked.
    private static let silence = MediaInterval.seconds(1)
    /// A queueing delay above these thresholds shows a queue; a smaller one may be jitter. `noticedAtFirst` applies
    /// before the first congestion, `noticedWhenFull` while a probe's result is verified, and `noticed` otherwise.
    /// `noticedAtFirst` is the largest, because a busy computer also delays packets by some tens of milliseconds.
    private static let noticed = MediaInterval.milliseconds(15)
    private static let noticedAtFirst = MediaInterval.milliseconds(50)
    private static let noticedWhenFull = MediaInterval.milliseconds(30)
    /// A queue longer than `long` shows that the path carries far less than before. While it is longer than
    /// `veryLong`, it delays the audio too much, so `floor` is zero and the queue is drained faster.
    private static let long = MediaInterval.milliseconds(100)
    private static let veryLong = MediaInterval.milliseconds(150)
    /// If the delay grows by more than `risen` within one report, and less than the fraction `slowed` of the mean
    /// bitrate arrives, the path has slowed.
    private static let risen = MediaInterval.milliseconds(50)
    private static let slowed = 0.6
    /// The maximum time for which video waits because of a suspicion: three reports of a browser.
    private static let longestHold = MediaInterval.milliseconds(150)
    /// The queueing delay above which a queue is drained.
    static let drained = MediaInterval.milliseconds(60)
    /// How long a queue is drained before the effect is evaluated.
    private static let draining = MediaInterval.seconds(3)
    /// A change in the delay by this much or more is caused by a clock that has jumped, not by the path.
    private static let jump = MediaInterval.seconds(3)
    /// How long the estimate must suffice for the wanted bitrate before it becomes unlimited again.
    static let sufficient = MediaInterval.seconds(30)

    // These properties are stored first, because every packet needs them.
    var sentPackets = SentPackets()
    var pacer = Pacer()
    private var groups = PacketGroups()
    private var trend = DelayTrend()
    private var acknowledged = AcknowledgedBitrate()
    var rates = RateControl(estimate: CongestionControl.unlimited)
    var loss = LossBasedEstimator()
    private var carried = SustainedBitrate()
    private var competition = CrossTrafficDetector()
    private var queue = QueueDelay()
    private var slowdown = SlowdownDetector()
    /// When the path was first suspected to have become much slower; nil while it is not suspected.
    private var suspectedAt: MediaTime?
    /// Whether packets are in a long queue, and the delay is not only due to packets that the receiver or a radio
    /// link held back.
    private var isQueueStanding = false
    var probing = Probing()
    var remb = ReceiverEstimate()
    private var reference = ReferenceTime()
    /// The extended number of the first packet on the current path.
    private var firstOnPath: Int64 = 0
    var feedbackAt: MediaTime?
    private var reducedAt: MediaTime?
    /// The bitrate before the feedback stopped; nil while feedback arrives.
    private var beforeSilence: Bitrate?
    private var drainUntil: MediaTime?
    /// The length of the queue when draining started; zero after the queue was drained. A later queue counts as a new
    /// one.
    private var drainedQueue = MediaInterval.zero
    /// When the estimate began to suffice for the wanted bitrate without a queue; nil if it does not.
    var sufficientSince: MediaTime?
    var paddingDue = PaddingBudget()
    /// The time from sending a packet until its arrival is reported; 200 ms is assumed before the first report.
    public private(set) var roundTrip = MediaInterval.milliseconds(200)

    public init() {}
}

extension CongestionControl {
    /// The highest extended number that was reported.
    @inline(__always)
    private var reported: Int64 { sentPackets.newestReported }

    /// The bitrate for everything sent to the receiver; nil while nothing limits it.
    @inline(__always)
    public var estimate: Bitrate? {
        let lowest = min(rates.estimate, remb.bitrate ?? Self.unlimited, loss.bitrate ?? Self.unlimited)
        return lowest < Self.unlimited ? max(lowest, Self.smallest) : nil
    }

    /// Returns the current bitrate for media; nil while nothing limits it. It is below the estimate while a queue is
    /// drained. If another flow keeps the queue full, it is below the estimate only during a trial.
    @inline(__always)
    public func budget(now: MediaTime) -> Bitrate? {
        guard let estimate, isDraining(now: now), isTrying || !competition.isPresent else { return estimate }
        // Stay below the estimate so that the queue drains. Cut deeper for a very long queue, because it delays the audio.
        return max(estimate * (queue.latest > Self.veryLong ? 0.3 : isTrying ? 0.5 : 0.6), Self.smallest)
    }

    /// The bitrate that media may always use, because the path recently sustained it; zero while there is a very long
    /// queue. It does not decrease with the estimate when a short queue grows.
    public var floor: Bitrate {
        guard let carried = carried.bitrate, queue.current <= Self.veryLong else { return .zero }
        return min(carried, remb.bitrate ?? carried, loss.bitrate ?? carried)
    }

    /// Returns whether a queue is being drained. Meanwhile, the sender usually sends less than the estimate; see
    /// `budget`.
    @inline(__always)
    public func isDraining(now: MediaTime) -> Bool {
        isTrying || drainUntil.map { now < $0 && queue.current > Self.drained } ?? false
    }

    /// Whether a trial is running. During a trial, little is sent for a short time, to determine which flow caused the
    /// queue.
    private var isTrying: Bool { competition.trial != nil }

    /// The queueing delay on the path, according to the latest feedback.
    public var queueDelay: MediaInterval { queue.current }
    /// The fraction of packets that were lost recently, 0 to 1.
    public var lossRatio: Double { loss.recent }
    /// The fraction of packets that the path loses regardless of the bitrate, 0 to 1. Does not include packets dropped
    /// by a full queue.
    public var inherentLossRatio: Double { loss.withoutQueue }
    /// The bitrate that arrives at the receiver; nil if unknown.
    public var acknowledgedBitrate: Bitrate? { acknowledged.bitrate }
    /// Returns whether a queue is being drained, or a probe's result has not been verified yet.
    public func isUnsettled(now: MediaTime) -> Bool { isVerifying || isDraining(now: now) }
    /// Whether more than the estimate is being sent, to determine whether the path carries it.
    public var isProbing: Bool { probing.probe?.isSending ?? false }
    /// Whether a probe's result is being verified.
    public var isVerifying: Bool { probing.isUnverified }
    /// Returns whether a probe's result was refuted so recently that the queue filled by its padding is still
    /// draining.
    public func isFilled(now: MediaTime) -> Bool { probing.hasRefuted(now: now) }
    /// Whether the path shows neither a significant queue nor losses, so that the current bitrate does no harm yet.
    public var isCalm: Bool { queue.current < Self.drained && loss.recent < 0.02 + loss.inherent }
    /// Whether the receiver sends no feedback about packets, and has stated its own estimate (REMB).
    @inline(__always)
    public var followsReceiver: Bool { remb.bitrate != nil }
    public var hasFeedback: Bool { feedbackAt != nil || remb.bitrate != nil }

    /// Reads the memory that `sent` needs, so that it is in the cache.
    @inline(__always)
    public func prefetch() -> UInt64 { sentPackets.prefetch() }

    /// Records a packet that is sent now.
    /// - Parameter bytes: the number of bytes that the packet takes on the link, with all headers and the
    ///   authentication tag.
    /// - Returns: its transport-wide sequence number.
    public mutating func sent(bytes: Int, at now: MediaTime) -> UInt16 {
        pacer.sent(bytes)
        competition.sent(bytes)
        return sentPackets.add(bytes: bytes, at: now)
    }

    /// Records a packet without a number. It counts for pacing only if the receiver's own estimate is the limit,
    /// because that estimate covers all packets. Feedback about numbered packets covers only those.
    @inline(__always)
    public mutating func sentUnnumbered(bytes: Int) {
        if followsReceiver { pacer.sent(bytes) }
    }

    /// Takes back the packet that was recorded last, because it was not sent. The next packet gets its number.
    public mutating func withdraw() { sentPackets.removeLast() }

    /// Sets the receiver's own estimate (REMB) of the bitrate of everything that it receives. Ignored once feedback
    /// about packets has arrived.
    public mutating func receive(remb bitrate: Bitrate, now: MediaTime) {
        if feedbackAt == nil { remb.receive(bitrate, now: now) }
    }

    /// Drops the receiver's own estimate if it is outdated. Must be called when a receiver report (RFC 3550 §6.4.2)
    /// arrives.
    public mutating func receiveReport(now: MediaTime) { remb.receiveReport(now: now) }

    /// Handles feedback. Packets that are unknown or were already reported change nothing.
    /// - Returns: whether the budget has become smaller.
    @discardableResult
    public mutating func receive(_ report: TransportFeedbackReport, now: MediaTime) -> Bool {
        let before = budget(now: now)
        read(report, now: now)
        return budget(now: now).map { $0 < before ?? Self.unlimited } ?? false
    }

    private mutating func read(_ report: TransportFeedbackReport, now: MediaTime) {
        let offset = reference.offset(of: report.referenceTime)
        var (arrived, lost) = (0, 0)
        var delays = ReportedDelays()
        // Do not count the packets of a report that arrives out of order toward the arriving bitrate, because packets
        // sent after them were already counted.
        let end = report.baseSequenceNumber &+ UInt16(truncatingIfNeeded: report.statusCount - 1)
        let (isNewest, isProbing) = (sentPackets.extended(end).map { $0 > reported } ?? true, probing.probe != nil)
        // The numbers of a report are consecutive, so only the first one needs to be extended.
        let oldest = max(firstOnPath, sentPackets.oldest)
        let first = sentPackets.nearest(report.baseSequenceNumber)
        report.forEachPacket { number, arrival in
            let number = first &+ Int64(number &- report.baseSequenceNumber)
            guard number >= oldest, number < sentPackets.count else { return }
            // Whether feedback has covered all packets before this one, so that none is missing in between.
            let continues = number <= reported + 1
            guard let arrival else {
                guard number > reported else { return }
                lost &+= 1
                return sentPackets.markLost(number)
            }
            let packet = sentPackets.arrived(number, now: now)
            guard !packet.hasArrived else { return }
            // Correct the count, because the packet was counted as lost but was only late.
            if packet.wasLost { lost &-= 1 }
            let at = arrival + offset
            arrived &+= 1
            if isNewest { acknowledged.add(bytes: packet.bytes, arrival: at, continues: continues) }
            let oneWay = QueueDelay.oneWay(packet.sentAt, at)
            delays.add(packet.sentAt, oneWay)
            slowdown.add(bytes: packet.bytes, oneWay: oneWay, arrival: at)
            if isProbing { probing.add(number, packet, arrival: at) }
            add(sentAt: packet.sentAt, arrival: at, now: now)
        }
        if let lowest = delays.lowest { queue.add(lowest, now: now) }
        if let newest = delays.newest { roundTrip = now - newest }
        guard arrived > 0 || lost != 0 else { return }
        (feedbackAt, remb) = (now, ReceiverEstimate())
        isQueueStanding =
            queue.current > Self.long || queue.latest > Self.long && delays.isQueue || hasSlowed(delays)
        suspectSlowdown(now: now)
        endSilence(now: now)
        update(arrived: arrived, lost: lost, now: now)
    }

    /// Checks whether an unlimited path may have become much slower. If the reports about one fall show this twice, and
    /// the delay has become significant, the path counts as slow.
    private mutating func suspectSlowdown(now: MediaTime) {
        guard rates.estimate == Self.unlimited, let base = queue.base, let mean = acknowledged.bitrate,
            slowdown.suspects(base: base, mean: mean)
        else { return suspectedAt = nil }
        if suspectedAt != nil, let delay = slowdown.delay, delay - base > Self.risen { isQueueStanding = true }
        suspectedAt = suspectedAt ?? now
    }

    /// Returns whether video must wait because the path may just have become much slower. It waits for the next reports, which
    /// confirm or refute that, for at most `longestHold`.
    @inline(__always)
    public func isHoldingVideo(now: MediaTime) -> Bool {
        suspectedAt.map { now - $0 < Self.longestHold } ?? false
    }

    @inline(__always)
    private mutating func add(sentAt: MediaTime, arrival: MediaInterval, now: MediaTime) {
        guard let difference = groups.add(sentAt: sentAt, arrival: arrival) else { return }
        // Start over if one of the clocks has jumped, for example because the device was asleep.
        guard abs((difference.arrived - difference.sent).nanoseconds) < Self.jump.nanoseconds else {
            (groups, trend) = (PacketGroups(), DelayTrend())
            return
        }
        trend.add(difference, hasQueue: hasQueue(now: now), now: now)
    }

    /// Returns whether an unlimited path has just become much slower: the delay has grown, and less arrives than
    /// before. A burst such as a keyframe also increases the delay, but then as much arrives as the path carries.
    /// Always false after the first congestion, when the check is not needed: the estimate then keeps the bitrate far
    /// below what would fill a queue of a second, and the trend detects a growing queue early enough.
    @inline(__always)
    private func hasSlowed(_ delays: ReportedDelays) -> Bool {
        guard rates.estimate == Self.unlimited, max(delays.rise, queue.latest) > Self.risen, delays.isGrowing,
            let latest = acknowledged.latest, let mean = acknowledged.bitrate
        else {
            return false
        }
        return latest < mean * Self.slowed
    }

    /// Returns whether packets are queued on the path.
    @inline(__always)
    private func hasQueue(now: MediaTime) -> Bool {
        if rates.estimate == Self.unlimited { return queue.current > Self.noticedAtFirst }
        // To verify a probe, padding fills the path on purpose, and each video frame then causes a short queue.
        return queue.current > (probing.isUnverified ? Self.noticedWhenFull : Self.noticed)
    }

    /// Restores half of the previous bitrate after a time without feedback, such as in a tunnel, and lets a probe
    /// start soon: the path probably carries what it carried before. Restores nothing if packets are queued on the
    /// path.
    private mutating func endSilence(now: MediaTime) {
        guard let former = beforeSilence else { return }
        beforeSilence = nil
        guard queue.latest <= Self.noticed else { return }
        rates.raise(to: former * 0.5)
        probing.retry(now: now)
    }

    /// Resets everything except the packets' numbers, which continue. Feedback about packets on the previous path then
    /// changes nothing.
    public mutating func pathChanged() {
        let sent = sentPackets
        self = CongestionControl()
        sentPackets = sent
        sentPackets.forgetUnreported()
        firstOnPath = sent.count
    }

    /// The bitrate that arrives; nil if unknown. While there is a long queue, exactly what the path carries arrives.
    /// The latest measurement is then used if it is below the mean, which takes more than a second to follow.
    @inline(__always)
    private var arriving: Bitrate? {
        guard isQueueStanding, let latest = acknowledged.latest else { return acknowledged.bitrate }
        return min(acknowledged.bitrate ?? latest, latest)
    }

    private mutating func update(arrived: Int, lost: Int, now: MediaTime) {
        // Use the arriving bitrate if that is lower: before the first congestion, the estimate says nothing about the
        // path.
        let former = min(rates.estimate, acknowledged.bitrate ?? rates.estimate)
        endDraining(now: now)
        findCompetitor(now: now)
        if competition.isPresent {
            let falls = competition.add(arrived: arrived, lost: lost, queue: queue.current, now: now)
            if !isTrying {
                rates.compete(falls: falls, acknowledged: acknowledged.bitrate, roundTrip: roundTrip, now: now)
            }
        } else {
            rates.isQueueLong = isQueueStanding
            // A queue that suddenly became long shows overuse without a trend. While such a queue drains, its length
            // shows nothing new.
            let isFlooded = isQueueStanding && !isDraining(now: now)
            rates.update(
                isFlooded ? .over : trend.usage, acknowledged: arriving, roundTrip: roundTrip, now: now)
        }
        loss.add(
            arrived: arrived, lost: lost, hasQueue: queue.current > Self.noticed, acknowledged: acknowledged.bitrate,
            estimate: rates.estimate, now: now)
        if hasQueue(now: now) || rates.decreasedAt == now { sufficientSince = nil }
        if rates.decreasedAt == now {
            probing.congested(now: now)
            // The estimate has dropped a lot, so there is a long queue: the path has become much slower, or never
            // carried the bitrate that was sent.
            if rates.estimate < former * 0.7 {
                (drainUntil, drainedQueue) = (now + Self.draining, queue.latest)
                if let arriving { acknowledged.restart(at: arriving) }
            }
        }
        if let former = probing.verify(queue: queue.latest, now: now) { rates.limit(to: former) }
        if let result = probing.takeResult(reported: reported, estimate: rates.estimate, now: now) {
            rates.raise(to: result)
            acknowledged.restart(at: result)
        }
        noteCarried(now: now)
    }

    /// Records the arriving bitrate as one that the path can sustain. While packets are queued, that bitrate is all
    /// that the path can carry, so a lower one is recorded, at which the queue can drain.
    private mutating func noteCarried(now: MediaTime) {
        guard let arriving else { return }
        if isQueueStanding { return carried.restart(at: arriving * RateControl.decrease, now: now) }
        // The result of a probe counts only after it is verified: some links let a burst pass and then become slow.
        guard probing.probe == nil, !probing.isUnverified else { return }
        carried.add(hasQueue(now: now) ? arriving * RateControl.decrease : arriving, now: now)
    }

    /// Decides how to continue when the time for draining is over. If the queue was empty at some time, or another
    /// flow is already assumed, draining ends. If the queue has hardly become shorter, another flow is assumed to
    /// cause it. If it has become shorter, draining continues.
    private mutating func endDraining(now: MediaTime) {
        guard let drainUntil else { return }
        // In the first second of draining, ignore a report that shows no queue. It may be about the time before the
        // queue grew.
        if queue.latest <= Self.drained, drainUntil - now < Self.draining - .seconds(1) { drainedQueue = .zero }
        guard now >= drainUntil else { return }
        self.drainUntil = nil
        guard drainedQueue > .zero, !competition.isPresent else { return }
        if queue.current.nanoseconds > drainedQueue.nanoseconds / 4 * 3 {
            competition.assume(now: now)
        } else {
            (self.drainUntil, drainedQueue) = (now + Self.draining, queue.current)
        }
    }

    /// Determines whether another flow keeps the queue full.
    private mutating func findCompetitor(now: MediaTime) {
        // While the estimate is unlimited, no trial is possible, because there is no bitrate to reduce.
        let known = rates.estimate < Self.unlimited ? arriving : nil
        let isCompeting = competition.isPresent
        competition.update(queue: queue.current, isDraining: isDraining(now: now), arriving: known, now: now)
        if let own = competition.endTrial(queue: queue.latest, roundTrip: roundTrip, now: now) {
            // While another flow was assumed, the estimate grew without regard to the queue, so it is not used here.
            rates.limit(to: (isCompeting ? own : max(own, rates.estimate)) * RateControl.decrease)
        }
    }

    /// Lowers the estimate while packets are sent and no feedback arrives. Must be called a few times per second.
    /// - Returns: the current status of the path.
    @discardableResult
    public mutating func handleTimeout(now: MediaTime) -> Status {
        checkSilence(now: now)
        return Status(
            estimate: estimate, budget: budget(now: now), queueDelay: queueDelay, inherentLossRatio: inherentLossRatio,
            isUnsettled: isUnsettled(now: now), isHoldingVideo: isHoldingVideo(now: now))
    }

    private mutating func checkSilence(now: MediaTime) {
        guard let feedbackAt, sentPackets.count - 1 > reported else { return }
        // Do not assume that the path is blocked too early. A receiver that received nothing for a while has nothing
        // to report, and reports about recent packets take a round trip.
        let oldest = max(reported + 1, sentPackets.oldest)
        let last = max(feedbackAt, reducedAt ?? feedbackAt, sentPackets.packet(oldest, now: now).sentAt)
        guard now - last >= Self.silence + roundTrip,
            now - sentPackets.packet(sentPackets.count - 1, now: now).sentAt < Self.silence
        else { return }
        reducedAt = now
        let base = min(rates.estimate, acknowledged.bitrate ?? rates.estimate)
        beforeSilence = beforeSilence ?? base
        rates.limit(to: max(base * 0.5, Self.smallest))
        carried = SustainedBitrate()
        probing.congested(now: now)
    }
}
