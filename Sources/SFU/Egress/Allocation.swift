import RTC

/// One option for sending a video to a subscriber: a layer, with its temporal layers up to a limit.
struct LayerOption: Equatable, Sendable {
    /// The layer's index in the track's `layers`.
    var layer: Int
    /// The highest temporal layer to send; `FeedPacket.noLayer` for all.
    var temporalLayer: UInt8
    var bitrate: Bitrate
}

/// A subscriber's request for one video, and the allocation's choice for it.
struct VideoRequest: Equatable, Sendable {
    /// The index of the video's track in the subscriber's `tracks`.
    var slot = 0
    /// The options for this video, as a range of indices into the list passed to `Allocation.distribute`. The first is
    /// the smallest, the last is what the subscriber would get without a bandwidth limit, and each has a higher bitrate
    /// than the one before.
    var steps: Range<Int>
    /// The index, in the same list, of the option that the previous allocation chose; nil if the video is paused.
    var current: Int?
    /// The video's rank among the subscriber's videos.
    var rank = Rank()
    /// The index, in the same list, of the option to send; nil to pause the video.
    var choice: Int?

    /// A video's rank among the subscriber's videos. It determines which videos keep running if not all fit, and whose
    /// quality is raised first.
    struct Rank: Comparable, Sendable {
        var priority = 0
        var isSpeaking = false
        /// The area of the box in which the video is shown, in pixels.
        var area = 0

        /// Whether the video is pinned or shows the active speaker, so that its quality is raised before that of the
        /// others.
        var isInFocus: Bool { priority > 0 || isSpeaking }

        /// Returns whether this video rather than the other one keeps running if not both fit. The pinned video is
        /// kept first, then a clearly larger one, then the active speaker's. A large video that freezes is noticed by
        /// everyone, while a speaker without video can still be heard.
        func isKept(before other: Rank) -> Bool {
            (priority, magnitude, isSpeaking ? 1 : 0, area)
                > (other.priority, other.magnitude, other.isSpeaking ? 1 : 0, other.area)
        }

        /// The number of binary digits of the area. It grows by one when the area doubles, so that gallery boxes that
        /// differ by a pixel usually count as equal.
        private var magnitude: Int { Int.bitWidth - area.leadingZeroBitCount }

        /// Returns whether the quality of the left video is raised after that of the right one. The pinned video is
        /// raised first, then the active speaker's, then the larger one.
        static func < (left: Rank, right: Rank) -> Bool {
            (left.priority, left.isSpeaking ? 1 : 0, left.area) < (right.priority, right.isSpeaking ? 1 : 0, right.area)
        }
    }
}

/// Limits how far the bitrates of the videos may rise before feedback shows whether the path carries the higher
/// bitrate.
struct VideoGrowth: Equatable, Sendable {
    /// The limit for the growth of all videos together; nil for none. One video may always grow by one option even if
    /// that exceeds the limit, unless the limit is zero.
    var limit: Bitrate?
    /// Whether only paused videos may grow, to their smallest option.
    var resumesOnly = false
    /// Whether one paused video may be resumed if its smallest option fits in the floor (see
    /// `Allocation.distribute`), even if no other growth is allowed.
    var resumesOne = true
    /// The factor by which the current videos may exceed the budget before they are lowered, so that choices do not
    /// flap.
    var tolerance = VideoGrowth.usualTolerance

    static let usualTolerance = 1.05
    /// The tolerance while the path shows no congestion, so that one small drop of the estimate lowers no video. If
    /// there is a real bottleneck, another drop soon follows.
    static let calmTolerance = 1.2

    fileprivate func allows(_ step: Int, _ demand: VideoRequest, more: Double, after grown: Double) -> Bool {
        if resumesOnly, demand.current != nil || step != demand.steps.lowerBound { return false }
        guard let limit else { return true }
        let isNext = step == demand.current.map { $0 + 1 } ?? demand.steps.lowerBound
        return limit > .zero && (grown + more <= Double(limit.bitsPerSecond) || grown == 0 && isNext)
    }
}

/// Divides a subscriber's bitrate among the videos it requests. It is a pure function of its arguments.
enum Allocation {
    /// The factor by which the free bitrate must exceed the additional bitrate of a raise, so that choices do not
    /// flap.
    private static let headroom = 1.1
    /// The tolerance for a video with only one option. Such a video can only be paused, not lowered, and one drop of
    /// the estimate is not reason enough to pause it.
    private static let toleranceWithoutLayers = 1.33

    /// Chooses an option for each requested video.
    ///
    /// It matters more that every video keeps moving than that one of them is sharp. So every video first gets its
    /// smallest option, in the order of `Rank.isKept`, and those that do not fit are paused. Then the videos in focus
    /// get the best option that fits. The remaining bitrate is divided among all videos, one option at a time.
    ///
    /// - Parameters:
    ///   - budget: the bitrate for all videos, after audio has been deducted.
    ///   - demands: the requests. Sets the `choice` of each, and changes their order.
    ///   - steps: the options to which the ranges and choices of the requests refer.
    ///   - floor: the bitrate that one video's smallest option may use if it does not fit into the budget.
    ///   - growth: the limits for raising videos above their current options.
    static func distribute(
        _ budget: Bitrate, among demands: inout [VideoRequest], _ steps: [LayerOption], floor: Bitrate = .zero,
        growth: VideoGrowth = VideoGrowth()
    ) {
        demands.sort { $0.rank.isKept(before: $1.rank) }
        let budget = Double(budget.bitsPerSecond)
        var (spent, grown) = (0.0, 0.0)
        /// Chooses this option for a video if the additional bitrate fits in the budget and a raise is within the
        /// limits of `growth`. Returns whether the option was chosen.
        func take(_ step: Int, _ demand: inout VideoRequest) -> Bool {
            let isRaise = demand.current.map { step > $0 } ?? true
            let former = demand.choice.map { Double(steps[$0].bitrate.bitsPerSecond) } ?? 0
            let more = Double(steps[step].bitrate.bitsPerSecond) - former
            let tolerated = budget * (demand.steps.count == 1 ? toleranceWithoutLayers : growth.tolerance)
            guard isRaise ? spent + more * headroom <= budget : spent + more <= tolerated else { return false }
            if isRaise {
                guard growth.allows(step, demand, more: more, after: grown) else { return false }
                grown += more
            }
            spent += more
            demand.choice = step
            return true
        }
        /// Chooses this option, the video's smallest, if it fits in the floor and no bitrate has been allocated yet.
        /// Resumes a paused video only if `growth.resumesOne` is true.
        func keep(_ step: Int, _ demand: inout VideoRequest) {
            let more = Double(steps[step].bitrate.bitsPerSecond)
            let isPaused = demand.current == nil
            let most = Double(floor.bitsPerSecond) * (isPaused ? 1 / headroom : growth.tolerance)
            guard spent == 0, more <= most, growth.resumesOne || !isPaused else { return }
            spent = more
            if isPaused { grown = more }
            demand.choice = step
        }
        for index in demands.indices {
            demands[index].choice = nil
            guard let smallest = demands[index].steps.first else { continue }
            if !take(smallest, &demands[index]) { keep(smallest, &demands[index]) }
        }
        demands.sort { $0.rank > $1.rank }
        for index in demands.indices where demands[index].rank.isInFocus {
            guard let choice = demands[index].choice else { continue }
            for step in demands[index].steps.reversed() where step > choice {
                if take(step, &demands[index]) { break }
            }
        }
        var isChanging = true
        while isChanging {
            isChanging = false
            for index in demands.indices {
                guard let choice = demands[index].choice, choice + 1 < demands[index].steps.upperBound else { continue }
                if take(choice + 1, &demands[index]) { isChanging = true }
            }
        }
    }
}
