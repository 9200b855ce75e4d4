import RTC

/// One way to send a subscriber a video: a layer, and up to which of its temporal layers.
struct VideoStep: Equatable, Sendable {
    /// The layer's index in the track's `layers`.
    var layer: Int
    /// `PendingPacket.noLayer` if all temporal layers are sent.
    var temporalLayer: UInt8
    var bitrate: Bitrate
}

/// One video that a subscriber wants to show.
struct VideoDemand: Equatable, Sendable {
    /// The place of the transceiver in the peer's `outgoing`.
    var slot = 0
    /// The steps from the smallest to the one that the subscriber would get on an unlimited line, as a range of the list that
    /// is passed to `Allocation.distribute`. Each takes more than the one before.
    var steps: Range<Int>
    /// The step that is sent now; nil if none is.
    var current: Int?
    /// Who comes first.
    var rank = Rank()
    /// The step to send; nil to pause the video.
    var choice: Int?

    struct Rank: Comparable, Sendable {
        var priority = 0
        var isSpeaking = false
        /// The area of the box in which the picture is shown, in pixels.
        var area = 0

        /// Whether the video is in focus, so that it becomes sharp before the others.
        var isInFocus: Bool { priority > 0 || isSpeaking }

        /// Whether the video moves rather than another one if not both can: the pinned one, then the clearly larger picture,
        /// then the active speaker's. If the large picture stands still, everyone sees it; the speaker is at least heard.
        func isKept(before other: Rank) -> Bool {
            (priority, magnitude, isSpeaking ? 1 : 0, area)
                > (other.priority, other.magnitude, other.isSpeaking ? 1 : 0, other.area)
        }

        /// Grows by one when the area doubles: boxes of a gallery differ by a pixel.
        private var magnitude: Int { Int.bitWidth - area.leadingZeroBitCount }

        /// Whether the video becomes sharp after another one: the pinned one comes first, then the active speaker, then the
        /// larger picture.
        static func < (left: Rank, right: Rank) -> Bool {
            (left.priority, left.isSpeaking ? 1 : 0, left.area) < (right.priority, right.isSpeaking ? 1 : 0, right.area)
        }
    }
}

/// How much more videos may take than what is sent now, and than the budget. The path then shows whether it carries that.
struct VideoGrowth: Equatable, Sendable {
    /// The limit for all videos together; nil if nothing limits them. One step of one video is allowed even if it takes more,
    /// unless the limit is zero.
    var limit: Bitrate?
    /// Whether only paused videos may grow, to their smallest step.
    var resumesOnly = false
    /// Whether one paused video may be resumed within the floor, even if nothing may grow.
    var resumesOne = true
    /// How much more than the budget what is sent now may take, so that choices do not flap.
    var tolerance = VideoGrowth.usualTolerance

    static let usualTolerance = 1.05
    /// While the path shows no trouble, one small fall of the estimate lowers nothing. A real bottleneck soon causes another.
    static let calmTolerance = 1.2

    fileprivate func allows(_ step: Int, _ demand: VideoDemand, more: Double, after grown: Double) -> Bool {
        if resumesOnly, demand.current != nil || step != demand.steps.lowerBound { return false }
        guard let limit else { return true }
        let isNext = step == demand.current.map { $0 + 1 } ?? demand.steps.lowerBound
        return limit > .zero && (grown + more <= Double(limit.bitsPerSecond) || grown == 0 && isNext)
    }
}

/// Divides a subscriber's bitrate among the videos it wants. It is a pure function of its arguments.
enum Allocation {
    /// How much more than a step takes must be free before a subscriber gets it, so that choices do not flap.
    private static let headroom = 1.1
    /// How much more than the budget a video without layers may take: it could only be paused, for which one fall of the
    /// estimate is too little.
    private static let toleranceWithoutLayers = 1.33

    /// Chooses a step for each demand.
    ///
    /// A moving picture of everyone is worth more than a sharp one of somebody. So every demand first gets its smallest step,
    /// the large pictures first, and what does not fit is paused. Then the videos in focus get the best step that fits, and the
    /// rest is given to the others, step by step in turn.
    ///
    /// - Parameters:
    ///   - budget: the bitrate for all videos; audio has been deducted already.
    ///   - floor: the bitrate that one video's smallest step may take if it does not fit into the budget.
    ///   - growth: which videos may get more than they have now.
    static func distribute(
        _ budget: Bitrate, among demands: inout [VideoDemand], _ steps: [VideoStep], floor: Bitrate = .zero,
        growth: VideoGrowth = VideoGrowth()
    ) {
        demands.sort { $0.rank.isKept(before: $1.rank) }
        let budget = Double(budget.bitsPerSecond)
        var (spent, grown) = (0.0, 0.0)
        /// Moves a demand to a step if the difference fits.
        func take(_ step: Int, _ demand: inout VideoDemand) -> Bool {
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
        /// Gives the first video that fits into the floor its smallest step, if no other has got any.
        func keep(_ step: Int, _ demand: inout VideoDemand) {
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
