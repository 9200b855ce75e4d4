/// How fast the video is encoded. A compositor that falls behind encodes faster and worse, and in the end fewer frames. Later it
/// tries the better way again.
public struct EncoderPace: Sendable {
    /// A way to encode.
    public struct Step: Hashable, Sendable {
        /// x264's name for its settings.
        public var preset: String
        /// Every how many frames of the clock one is encoded. A divisor of the frames of a fragment, so that all fragments have
        /// the same duration.
        public var stride: Int
    }

    /// From the best to the fastest. The last one, two frames per second, costs next to nothing, so the compositor always
    /// catches up.
    public static let steps = [
        Step(preset: "veryfast", stride: 1), Step(preset: "superfast", stride: 1), Step(preset: "ultrafast", stride: 1),
        Step(preset: "ultrafast", stride: 2), Step(preset: "ultrafast", stride: 12),
    ]
    /// A faster step begins if the compositor is this late. The queues hold several times as much.
    static let tooLate = Duration.seconds(2)
    /// A compositor that gains this much in a group of frames catches up by itself.
    static let recovery = Duration.milliseconds(200)
    /// A slower step begins only after the compositor was never later than this, and at most half busy, for `calm`.
    static let onTime = Duration.milliseconds(200)
    static let calmLoad = 50
    static let firstCalm = Duration.seconds(30)
    static let longestCalm = Duration.seconds(600)

    private var index = 0
    private var lastBehind = Duration.zero
    private var calmSince: Duration?
    /// Doubles each time a slower step turns out to be too slow.
    private var calm = firstCalm
    private var hasRisen = false

    public init() {}

    /// The way to encode the next group of frames.
    public var step: Step { Self.steps[index] }

    /// Decides before each group of frames, because the preset can only change at a keyframe.
    ///
    /// - Parameters:
    ///   - behind: how late the group begins.
    ///   - load: the share of the time since the last group in which the compositor was computing, in percent.
    public mutating func groupBegins(behind: Duration, load: Int, now: Duration) {
        defer { lastBehind = behind }
        if behind >= Self.tooLate, behind > lastBehind - Self.recovery {
            if hasRisen { calm = min(calm * 2, Self.longestCalm) }
            (hasRisen, calmSince) = (false, nil)
            index = min(index + 1, Self.steps.count - 1)
            return
        }
        guard behind < Self.onTime, load <= Self.calmLoad, index > 0 else { return calmSince = nil }
        let since = calmSince ?? now
        calmSince = since
        guard now - since >= calm else { return }
        index -= 1
        (hasRisen, calmSince) = (true, nil)
    }
}
