/// Limits how fast packets are sent to a subscriber whose path is known to be limited.
///
/// Audio is never delayed. Video waits while more was sent than the path carries: a keyframe sent in one burst would
/// fill the path's queue, and the audio would wait behind it. Retransmissions wait longer, because they are sent in
/// addition to the media. The pacer does not limit padding, because probes determine how much is sent.
struct Pacer: Sendable {
    /// The maximum bitrate of a burst of retransmissions, relative to the estimate (libwebrtc's pacing factor).
    static let factor = 2.5
    /// The maximum size of a burst of retransmissions, expressed as the time that it takes at the paced bitrate.
    private static let burst = MediaInterval.milliseconds(40)

    /// How far a burst of retransmissions may exceed the budget, expressed as the time in which the budget's bitrate
    /// makes up for it.
    private static let excess = MediaInterval.milliseconds(150)
    /// The maximum of `budgetDebt`, expressed as the time in which the budget's bitrate pays it off. Retransmissions
    /// wait until the debt is below `excess`. Because this maximum is only 100 ms above `excess`, they wait at most
    /// 100 ms after a burst of media, such as a keyframe.
    private static let longestDebt = MediaInterval.milliseconds(250)

    /// The bitrate of video relative to the budget. It is above 1, so that small errors of the budget cannot delay
    /// video more and more.
    private static let videoFactor = 1.1
    /// The maximum size of a burst of video, expressed as the time that it takes at the paced bitrate of video. It is
    /// longer than a tick of the router, because waiting packets are sent only by ticks, every 20 to 30 ms.
    private static let videoBurst = MediaInterval.milliseconds(40)
    /// The maximum of `videoDebt`, expressed as the time in which the paced bitrate of video pays it off. It bounds
    /// how long video waits after other packets have used its share.
    private static let longestVideoDebt = MediaInterval.milliseconds(400)

    /// The number of bytes sent that are not included in the debts yet.
    private var unpaid = 0
    /// The bytes that were sent and not yet offset by the passing of time, counted at three bitrates: the paced
    /// bitrate of retransmissions, the bitrate of the budget, and the paced bitrate of video. They are bounded, so
    /// that one long burst does not block retransmissions and video for seconds.
    private var (debt, budgetDebt, videoDebt) = (0, 0, 0)
    private static let maxDebt = 50_000
    private var (updatedAt, videoUpdatedAt): (MediaTime?, MediaTime?)

    /// Counts bytes that are being sent.
    @inline(__always)
    mutating func sent(_ bytes: Int) { unpaid &+= bytes }

    /// Returns the number of bytes that may be sent now in addition to the media.
    /// - Parameters:
    ///   - estimate: the bitrate that the path carries, which bounds bursts.
    ///   - budget: the bitrate for everything sent, averaged over more than a burst.
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

    /// Returns whether another packet of video may be sent now. That packet may exceed the remaining budget.
    /// - Parameters:
    ///   - bitrate: the bitrate for everything sent.
    ///   - floor: the minimum of the paced bitrate. The factor for video does not apply to it.
    mutating func hasRoomForVideo(at bitrate: Bitrate, orAt floor: Bitrate = .zero, now: MediaTime) -> Bool {
        charge()
        let paced = max(bitrate * Self.videoFactor, floor)
        // The first call discards what was sent while nothing was limited.
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
