import RTC

/// A model of a receiver's jitter buffer, which tells how much audio it has to conceal.
///
/// The audio is played with a delay. While the next packet has not arrived, the buffer conceals, and the audio after that is
/// played later by as much. The delay shrinks to a target as libwebrtc's NetEq does it: the target covers 95 % of the longest
/// delays of each half second, which are forgotten with a factor of 0.983 (`DelayManager`, `UnderrunOptimizer`).
struct SimulatedPlayout {
    /// The length of a packet, and the width of a bin of the histogram.
    private static let frame: Int64 = 20
    private static let shortestTarget: Int64 = 40
    private static let sampleInterval: Int64 = 500
    private static let forgetting = 0.983
    private static let quantile = 0.95

    /// The time from capturing a packet until it is played, in milliseconds; nil before the first packet.
    private var delay: Double?
    private var target = SimulatedPlayout.shortestTarget
    /// The time from capture to arrival of the fastest packet.
    private var fastest = Int64.max
    private var histogram = [Double](repeating: 0, count: 100)
    private var (samples, longest) = (0, Int64(0))
    private var sampledAt: MediaTime?
    private var lastNumber: Int64?
    /// The length of the concealed audio, in milliseconds.
    private(set) var concealed = 0.0

    /// Plays packets, in the order of their sequence numbers.
    mutating func play(_ packets: some Sequence<Arrival>) {
        for packet in packets {
            concealed += Double((packet.number - (lastNumber ?? packet.number - 1) - 1) * Self.frame)
            lastNumber = packet.number
            let transit = (packet.at - packet.tag.captured).milliseconds
            fastest = min(fastest, transit)
            sample(transit - fastest, at: packet.at)
            play(after: Double(transit))
        }
    }

    private mutating func play(after transit: Double) {
        guard let delay else { return self.delay = transit + Double(target) }
        if transit > delay {
            concealed += transit - delay
            self.delay = transit
        } else {
            // Accelerated audio is a tenth shorter.
            self.delay = max(min(delay, Double(fastest + target)), delay - Double(Self.frame) / 10)
        }
    }

    private mutating func sample(_ wait: Int64, at time: MediaTime) {
        longest = max(longest, wait)
        guard time - (sampledAt ?? time) >= .milliseconds(Self.sampleInterval) else {
            sampledAt = sampledAt ?? time
            return
        }
        samples += 1
        let kept = min(Self.forgetting, 1 - 2 / Double(samples + 1))
        for bin in histogram.indices { histogram[bin] *= kept }
        histogram[min(Int(longest / Self.frame), histogram.count - 1)] += 1 - kept
        (sampledAt, longest) = (time, 0)
        var sum = 0.0
        let bin = histogram.firstIndex {
            sum += $0
            return sum >= Self.quantile
        }
        target = max(Self.shortestTarget, Int64((bin ?? histogram.count - 1) + 1) * Self.frame)
    }
}
