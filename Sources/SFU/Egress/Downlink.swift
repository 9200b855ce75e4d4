import RTC

/// The state of congestion control and allocation for one subscriber. Created only if congestion control is enabled
/// and the client's description negotiates feedback from which a bitrate can be estimated.
final class Downlink {
    // This is the first property, so that it is close to the object's header in memory: every packet needs it.
    var control = CongestionControl()
    /// Whether bursts of video are paced.
    var isPacing = false
    /// Whether any paced packets are waiting.
    var hasWaiting = false
    /// The bitrate of everything sent, as last measured.
    var media = Bitrate.zero
    /// The bitrate of the audio sent, as last measured.
    var audio = Bitrate.zero
    var measuredAt: MediaTime?
    var allocatedAt: MediaTime?
    /// Whether audio is sent with its redundancy, if the publisher adds any. On a path that is full but loses nothing,
    /// redundancy would only take bitrate from the videos.
    var takesRedundantAudio = true
    /// The loss ratios above which redundancy is worth its bitrate, and below which it is not. Between the two, the
    /// choice does not change.
    private static let losses = (many: 0.01, few: 0.005)
    private static let longQueue = MediaInterval.milliseconds(60)
    /// The bitrate that the subscriber would receive without a bandwidth limit, including the audio.
    var wanted = Bitrate.zero
    /// The average bitrate of the chosen options, including the audio.
    var chosen = Bitrate.zero
    /// When videos were last raised.
    var raisedAt: MediaTime?
    /// When videos were last lowered.
    var loweredAt: MediaTime?
    /// How long to wait after videos were lowered before they are raised again.
    var raiseDelay = Downlink.shortestRaiseDelay
    /// When a paused video was last resumed.
    private var resumedAt: MediaTime?
    /// The budget at the last reduction.
    private var loweredBudget = Bitrate.zero
    /// How long to wait after a reduction before videos are resumed again.
    private(set) var resumeDelay = Downlink.shortestResumeDelay

    /// The time between two allocations.
    static let interval = MediaInterval.milliseconds(100)
    /// The period over which bitrates are measured.
    static let measurement = MediaInterval.milliseconds(300)
    static let shortestRaiseDelay = MediaInterval.seconds(1)
    static let longestRaiseDelay = MediaInterval.seconds(4)
    /// How much all videos together may grow in one raise, as a share of the budget.
    static let growth = 0.2
    /// The minimum time between raises. Feedback takes that long to show whether the path carries the additional
    /// bitrate.
    static let raiseInterval = MediaInterval.milliseconds(300)
    /// How long paused videos wait after a reduction before they are resumed. One video whose smallest option fits in
    /// the floor waits only the shortest time. For the others, the wait doubles, up to the longest time, whenever a
    /// resume is soon followed by another reduction, because each resume needs a keyframe.
    static let shortestResumeDelay = MediaInterval.milliseconds(500)
    static let longestResumeDelay = MediaInterval.seconds(16)
    /// Videos may grow before `resumeDelay` has passed if the budget is at least this many times the budget at the
    /// last reduction. Within `resumeInterval` after a resume, the budget must also be at least this many times the
    /// current bitrate of the videos.
    static let recovery = 2.0
    /// The minimum time between two allocations that resume videos, unless the budget is large enough (see
    /// `recovery`). Each resume sends a keyframe, and only afterwards does feedback show how much the path carries.
    static let resumeInterval = MediaInterval.seconds(1)
    /// How long after a raise no probe is started: until the raised bitrate has been measured.
    static let trial = MediaInterval.milliseconds(400)

    /// The maximum number of packet statuses that are handled in 100 ms, over all of a subscriber's feedback reports.
    /// A report of a few bytes can claim to cover thousands of packets.
    private static let statuses = 4096
    private var handledStatuses = 0
    private var handledSince: MediaTime?

    /// Counts the packets that a report claims to cover.
    /// - Returns: false if the report must be ignored.
    func mayHandle(_ count: Int, now: MediaTime) -> Bool {
        if handledSince.map({ now - $0 >= Self.interval }) ?? true { (handledStatuses, handledSince) = (0, now) }
        handledStatuses += count
        return handledStatuses <= Self.statuses
    }

    /// Reads the memory that sending needs, to load it into the cache; see `Egress.prefetch`.
    @inline(__always)
    func prefetch() -> UInt64 { control.prefetch() }

    /// Returns whether another packet of video may be sent now; see `Egress.pace`.
    /// - Parameter isLate: whether the packet has waited for a long time, so that it may exceed the budget.
    func maySendVideo(isLate: Bool = false, now: MediaTime) -> Bool {
        control.maySendVideo(media: chosen, isLate: isLate, now: now)
    }

    func updateRedundancy(_ status: CongestionControl.Status) {
        if status.isUnsettled || status.queueDelay > Self.longQueue {
            // A full queue drops packets because the bitrate is too high. Redundancy would only raise the bitrate.
            takesRedundantAudio = false
        } else if status.estimate == nil || status.inherentLossRatio > Self.losses.many {
            takesRedundantAudio = true
        } else if status.inherentLossRatio < Self.losses.few {
            takesRedundantAudio = false
        }
    }

    /// Records that videos were lowered. If they were raised or resumed only recently, the next raise or resume waits
    /// longer.
    func lowered(to budget: Bitrate, now: MediaTime) {
        let wasTooSoon = raisedAt.map { now - $0 < .seconds(5) } ?? false
        raiseDelay = wasTooSoon ? min(raiseDelay * 2, Self.longestRaiseDelay) : Self.shortestRaiseDelay
        if let resumedAt {
            // Forget the resume, so that several reductions after it count as one failure.
            self.resumedAt = nil
            let failed = now - resumedAt < .seconds(5)
            resumeDelay = failed ? min(resumeDelay * 2, Self.longestResumeDelay) : Self.shortestResumeDelay
        }
        (loweredAt, loweredBudget) = (now, budget)
    }

    /// Records that a video was resumed.
    func resumed(now: MediaTime) { resumedAt = now }

    /// Returns whether a video was resumed, or raised to a higher bitrate, so recently that its new bitrate has not
    /// been measured yet. No probe starts during that time, because its padding would be added to a bitrate that is
    /// not known.
    func isTrying(now: MediaTime) -> Bool {
        raisedAt.map { now - $0 < Self.trial } ?? false
    }

    /// Returns how much videos may grow within a budget.
    /// - Parameters:
    ///   - budget: the bitrate for all videos, without the audio.
    ///   - hasVideo: whether any video is sent now. If not, paused videos wait only `shortestResumeDelay` after a
    ///     reduction.
    func growth(of budget: Bitrate, hasVideo: Bool = true, now: MediaTime) -> VideoGrowth {
        let tolerance = control.isCalm ? VideoGrowth.calmTolerance : VideoGrowth.usualTolerance
        let sinceRaise = raisedAt.map { now - $0 } ?? Self.longestRaiseDelay
        let sinceFall = loweredAt.map { now - $0 } ?? Self.longestRaiseDelay
        // A raise would end a probe without a result: it changes the bitrate sent, and no padding is added after a
        // raise.
        guard !control.isDraining(now: now), !control.isProbing, sinceRaise >= Self.raiseInterval,
            sinceFall >= Self.shortestResumeDelay
        else {
            return VideoGrowth(limit: .zero, resumesOne: false, tolerance: tolerance)
        }
        let hasJustResumed = resumedAt.map { now - $0 < Self.resumeInterval } ?? false
        let mustWait =
            hasVideo
            && (sinceFall < resumeDelay && budget < loweredBudget * Self.recovery
                || hasJustResumed && budget < (chosen - audio) * Self.recovery)
        // Do not let videos grow because of a probe's result before it is verified. The bitrate that the path carried
        // before the probe may be used.
        if mustWait || control.isVerifying || hasVideo && control.isFilled(now: now) {
            return VideoGrowth(limit: .zero, tolerance: tolerance)
        }
        return VideoGrowth(limit: budget * Self.growth, resumesOnly: sinceFall < raiseDelay, tolerance: tolerance)
    }
}
