/// Suspects from a few packets that a path has just become much slower.
///
/// A link that has become slow delivers its growing queue: each packet waited longer than the one before, and together
/// they arrive much slower than usual. One report about such a link contains few packets, because the link is slow. The
/// criteria of `CongestionControl` that tell a slow link from jitter with certainty need several reports, and meanwhile
/// the queue grows by hundreds of milliseconds. A suspicion only makes video wait until the next reports.
struct SlowdownDetector: Sendable {
    /// The queueing delays that the newest packet and the fastest of the latest packets must exceed.
    private static let newest = MediaInterval.milliseconds(15)
    private static let fastest = MediaInterval.milliseconds(3)
    /// The queueing delay that three packets must exceed if the oldest one has not waited.
    private static let clear = MediaInterval.milliseconds(10)
    /// The fraction of the mean bitrate below which the path counts as slower.
    private static let slowed = 0.8

    // The latest four packets. `next` is the position of the oldest one, which the next packet replaces.
    private var delays = SIMD4<Int64>()
    private var arrivals = SIMD4<Int64>()
    private var sizes = SIMD4<Int64>()
    private var next = 0
    private var isFull = false

    /// Adds a packet, in the order of sending.
    /// - Parameters:
    ///   - oneWay: the one-way delay; see `QueueDelay.oneWay`.
    ///   - arrival: when the packet arrived, by the receiver's clock.
    @inline(__always)
    mutating func add(bytes: Int, oneWay: MediaInterval, arrival: MediaInterval) {
        delays[next] = oneWay.nanoseconds
        arrivals[next] = arrival.nanoseconds
        sizes[next] = Int64(bytes)
        next = (next + 1) & 3
        if next == 0 { isFull = true }
    }

    /// The minimum one-way delay of the latest four packets; nil before there are four.
    var delay: MediaInterval? { isFull ? MediaInterval(nanoseconds: delays.min()) : nil }

    /// Returns whether the path may have become much slower.
    /// - Parameters:
    ///   - base: the one-way delay without a queue.
    ///   - mean: the bitrate that arrives on average.
    func suspects(base: MediaInterval, mean: Bitrate) -> Bool {
        let (oldest, last) = (next, (next + 3) & 3)
        guard isFull, delays[last] &- base.nanoseconds > Self.newest.nanoseconds, delays[last] > delays[oldest],
            haveWaited(base), let bitrate
        else { return false }
        return bitrate < mean * Self.slowed
    }

    /// Returns whether each packet has waited. The oldest one may have arrived just before the queue began, if the others
    /// waited so long that it cannot have been jitter.
    private func haveWaited(_ base: MediaInterval) -> Bool {
        if delays.min() &- base.nanoseconds > Self.fastest.nanoseconds { return true }
        var others = delays
        others[next] = .max
        return others.min() &- base.nanoseconds > Self.clear.nanoseconds
    }

    /// The bitrate at which the latest packets arrived. The longest pause between two of them is left out, because a
    /// receiver or a radio link that was busy leaves one. Nil if they did not arrive in order, or all at once.
    private var bitrate: Bitrate? {
        var (span, bytes, longest) = (Int64(0), Int64(0), (pause: Int64(-1), bytes: Int64(0)))
        for step in 1...3 {
            let place = (next + step) & 3
            let pause = arrivals[place] &- arrivals[(place + 3) & 3]
            guard pause >= 0 else { return nil }
            span &+= pause
            bytes &+= sizes[place]
            if pause > longest.pause { longest = (pause, sizes[place]) }
        }
        span &-= longest.pause
        guard span > 0 else { return nil }
        return Bitrate(bytes: Int(bytes - longest.bytes), in: MediaInterval(nanoseconds: span))
    }
}
