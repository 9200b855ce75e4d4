import RTC

/// The state of congestion control and allocation for one subscriber. Created only if the client's description has feedback
/// from which a bitrate can be estimated.
final class Downlink {
    // First, because every packet needs it.
    var control = CongestionControl()
    /// Whether bursts of video are spread over time, and whether any packets wait for that.
    var isPacing = false
    var hasWaiting = false
    /// The bitrates of what is sent to the subscriber now.
    var sentBytes = 0
    var audioBytes = 0
    var media = Bitrate.zero
    var audio = Bitrate.zero
    var measuredAt: MediaTime?
    var allocatedAt: MediaTime?
    /// Whether the allocation limits anything.
    var isLimited = false
    /// Whether audio is sent with its redundancy, if the publisher adds any. On a full line that loses nothing, it would only take
    /// the place of the videos.
    var takesRedundantAudio = true
    /// The part of the packets whose loss makes redundancy worth its bitrate, and below which it is not.
    private static let losses = (many: 0.01, few: 0.005)
    private static let longQueue = MediaInterval.milliseconds(60)
    /// What would be sent on an unlimited line, and the mean bitrate of what was chosen.
    var wanted = Bitrate.zero
    var chosen = Bitrate.zero
    /// When videos were raised and lowered, and how long to wait before they are raised again.
    var raisedAt: MediaTime?
    var loweredAt: MediaTime?
    var raiseDelay = Downlink.shortestRaiseDelay
    /// When a paused video was resumed, the budget at the last fall, and how long to wait before videos are resumed again.
    private var resumedAt: MediaTime?
    private var loweredBudget = Bitrate.zero
    private(set) var resumeDelay = Downlink.shortestResumeDelay

    /// The time between two allocations, and over how much time bitrates are measured.
    static let interval = MediaInterval.milliseconds(100)
    static let measurement = MediaInterval.milliseconds(300)
    static let shortestRaiseDelay = MediaInterval.seconds(1)
    static let longestRaiseDelay = MediaInterval.seconds(4)
    /// How much of the budget videos may grow by at once, and the time after that in which feedback shows whether the path
    /// carries it.
    static let growth = 0.2
    static let raiseInterval = MediaInterval.milliseconds(300)
    /// How long paused videos wait after a fall before they are resumed. The first of them, which the floor carries, waits for the
    /// shortest time. The others wait longer each time they were paused again soon, because each comes with a keyframe.
    static let shortestResumeDelay = MediaInterval.milliseconds(500)
    static let longestResumeDelay = MediaInterval.seconds(16)
    /// How many times the budget of the last fall, or what is sent, the budget must be for the others not to wait.
    static let recovery = 2.0
    /// The time between two allocations that resume videos. Each resume comes with a keyframe, and only after it the path shows
    /// what it carries.
    static let resumeInterval = MediaInterval.seconds(1)
    /// How long after a raise no probe starts: until the raised bitrate has been measured.
    static let trial = MediaInterval.milliseconds(400)
    /// Bytes of each packet that the link carries in addition to the RTP packet: the SRTP tag and the headers of UDP and IP.
    static let overhead = 44

    /// How many packet statuses of a subscriber's reports are handled in 100 ms. A report of a few bytes can claim thousands.
    private static let statuses = 4096
    private var handledStatuses = 0
    private var handledSince: MediaTime?

    /// Counts the packets that a report claims to tell about.
    /// - Returns: false if the report must be ignored.
    func mayHandle(_ count: Int, now: MediaTime) -> Bool {
        if handledSince.map({ now - $0 >= Self.interval }) ?? true { (handledStatuses, handledSince) = (0, now) }
        handledStatuses += count
        return handledStatuses <= Self.statuses
    }

    /// Touches the memory that sending uses, to load it into the cache; see `Router.warm`.
    @inline(__always)
    func warm() -> UInt64 { control.warm() }

    /// Whether another packet of video may be sent now; see `Router.pace`.
    func maySendVideo(isLate: Bool = false, now: MediaTime) -> Bool {
        control.maySendVideo(media: chosen, isLate: isLate, now: now)
    }

    func updateRedundancy(_ status: CongestionControl.Status) {
        if status.isUnsettled || status.queueDelay > Self.longQueue {
            // What a full queue drops, it drops because too much is sent.
            takesRedundantAudio = false
        } else if status.estimate == nil || status.inherentLossRatio > Self.losses.many {
            takesRedundantAudio = true
        } else if status.inherentLossRatio < Self.losses.few {
            takesRedundantAudio = false
        }
    }

    /// Records that videos were lowered. If they were raised or resumed only recently, that was too soon.
    func lowered(to budget: Bitrate, now: MediaTime) {
        let wasTooSoon = raisedAt.map { now - $0 < .seconds(5) } ?? false
        raiseDelay = wasTooSoon ? min(raiseDelay * 2, Self.longestRaiseDelay) : Self.shortestRaiseDelay
        if let resumedAt {
            // Several falls after a resume are one failure.
            self.resumedAt = nil
            let failed = now - resumedAt < .seconds(5)
            resumeDelay = failed ? min(resumeDelay * 2, Self.longestResumeDelay) : Self.shortestResumeDelay
        }
        (loweredAt, loweredBudget) = (now, budget)
    }

    /// Records that a video was resumed.
    func resumed(now: MediaTime) { resumedAt = now }

    /// Whether a video was raised so recently that its bitrate is not measured yet. A probe would come on top of it.
    func isTrying(now: MediaTime) -> Bool {
        raisedAt.map { now - $0 < Self.trial } ?? false
    }

    /// How videos may grow within a budget.
    /// - Parameter hasVideo: whether any video is sent now. If not, one that could be resumed does not wait.
    func growth(of budget: Bitrate, hasVideo: Bool = true, now: MediaTime) -> VideoGrowth {
        let tolerance = control.isCalm ? VideoGrowth.calmTolerance : VideoGrowth.usualTolerance
        let sinceRaise = raisedAt.map { now - $0 } ?? Self.longestRaiseDelay
        let sinceFall = loweredAt.map { now - $0 } ?? Self.longestRaiseDelay
        // A raise would end a probe without a result: what is sent would change, and no padding is added after a raise.
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
        // What a probe has found is not used before it is verified. What was carried before may be.
        if mustWait || control.isVerifying || hasVideo && control.isFilled(now: now) {
            return VideoGrowth(limit: .zero, tolerance: tolerance)
        }
        return VideoGrowth(limit: budget * Self.growth, resumesOnly: sinceFall < raiseDelay, tolerance: tolerance)
    }
}
