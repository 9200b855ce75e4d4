/// Limits how fast a subscriber's packets are sent once its path is known to be limited.
///
/// Audio is never delayed. Video waits while more was sent than the path carries: a keyframe that is sent at once would fill the
/// path's queue for as long as it takes, and the audio would wait behind it. Retransmissions wait longer, because they come in
/// addition to the media. Padding is not limited here: probes decide how much is sent.
struct Pacer: Sendable {
    /// How much faster than the estimate a burst of retransmissions may be (libwebrtc's pacing factor).
    static let factor = 2.5
    /// The largest such burst, in time at the paced bitrate.
    private static let burst = MediaInterval.milliseconds(40)

    /// The largest burst above the budget, in time at the budget's bitrate.
    private static let excess = MediaInterval.milliseconds(150)
    /// The longest time for which nothing is added after a burst of media, such as a keyframe: 100 ms after this.
    private static let longestDebt = MediaInterval.milliseconds(250)

    /// How much faster than the budget video is sent, so that small errors of the budget cannot make it wait longer and longer.
    private static let videoFactor = 1.1
    /// The largest burst of video, in time at its paced bitrate. Longer than a tick of the router, because what waits is sent only
    /// by ticks, every 20 to 30 ms.
    private static let videoBurst = MediaInterval.milliseconds(40)
    /// The longest time for which no video is sent after other packets have used its share.
    private static let longestVideoDebt = MediaInterval.milliseconds(400)

    /// Bytes that were sent and are not in the debts yet.
    private var unpaid = 0
    /// Bytes that were sent and not yet paid for by time: at the paced bitrate, at the budget's, and at that of video. Bounded, so
    /// that one long burst does not block repairs and video for seconds.
    private var (debt, budgetDebt, videoDebt) = (0, 0, 0)
    private static let maxDebt = 50_000
    private var (updatedAt, videoUpdatedAt): (MediaTime?, MediaTime?)

    /// Counts bytes that are sent.
    @inline(__always)
    mutating func sent(_ bytes: Int) { unpaid &+= bytes }

    /// Returns how many bytes may be added to the media now.
    /// - Parameter budget: the bitrate for all that is sent, averaged over a longer time than a burst.
    mutating func room(at estimate: Bitrate, in budget: Bitrate, now: MediaTime) -> Int {
        charge()
        let paced = estimate * Self.factor
        if let updatedAt {
            debt = max(0, debt - paced.bytes(in: now - updatedAt))
            budgetDebt = max(0, budgetDebt - budget.bytes(in: now - updatedAt))
        }
        budgetDebt = min(budgetDebt, budget.bytes(in: Self.longestDebt))
        updatedAt = now
        return max(0, min(paced.bytes(in: Self.burst) - debt, budget.bytes(in: Self.excess) - budgetDebt))
    }

    /// Returns whether another packet of video may be sent now. It may be longer than what is left.
    /// - Parameters:
    ///   - bitrate: the bitrate for all that is sent.
    ///   - floor: a bitrate that is used as it is, without the factor.
    mutating func hasRoomForVideo(at bitrate: Bitrate, orAt floor: Bitrate = .zero, now: MediaTime) -> Bool {
        charge()
        let paced = max(bitrate * Self.videoFactor, floor)
        // The first call forgets what was sent while nothing was limited.
        videoDebt = max(0, videoDebt - (videoUpdatedAt.map { paced.bytes(in: now - $0) } ?? videoDebt))
        videoDebt = min(videoDebt, paced.bytes(in: Self.longestVideoDebt))
        videoUpdatedAt = now
        return videoDebt < paced.bytes(in: Self.videoBurst)
    }

    private mutating func charge() {
        debt = min(debt + unpaid, Self.maxDebt)
        budgetDebt = min(budgetDebt + unpaid, Self.maxDebt)
        videoDebt += unpaid
        unpaid = 0
    }
}
