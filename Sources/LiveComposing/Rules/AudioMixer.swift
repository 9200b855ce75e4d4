/// Mixes the audio of all streams: 48 kHz, mono, with a limit at -1 dBFS.
public struct AudioMixer: Sendable {
    /// Samples per second.
    public static let sampleRate = 48_000
    /// The samples in the interval of one frame, two steps of 20 ms.
    public static let samplesPerFrame = 1_920
    /// The loudest sample of the output, -1 dBFS: an AAC decoder may exceed what was encoded by about as much.
    static let ceiling: Float = 0.891_250_9
    /// Below this level, the output equals the sum. Above, it approaches the ceiling.
    static let knee: Float = 0.7

    /// The time of the output's first sample on the server's timeline.
    private let start: Duration
    /// The samples that a line holds in advance.
    private let capacity: Int
    private var lines: [UInt32: AudioLine] = [:]
    /// The next sample of the output.
    public private(set) var position = 0

    /// - Parameter delay: how far in advance audio arrives.
    public init(start: Duration, delay: Duration) {
        self.start = start
        // Ten seconds more (2 MB for each stream), because audio is decoded when it arrives, also while the compositor is behind.
        capacity = Self.samples(delay + .seconds(10))
    }

    /// Adds decoded audio of a stream.
    ///
    /// - Parameter time: of its first sample, on the server's timeline.
    public mutating func place(_ samples: [Float], of stream: UInt32, at time: Duration) {
        lines[stream, default: AudioLine(capacity: capacity, position: position)].place(
            samples, at: Self.samples(time - start))
    }

    /// Forgets a stream, with audio of it that was not mixed yet.
    public mutating func remove(_ stream: UInt32) { lines[stream] = nil }

    /// Returns the next samples, those of one frame.
    public mutating func mixFrame() -> [Float] {
        var sum = [Float](repeating: 0, count: Self.samplesPerFrame)
        // In a fixed order, because the sum of floating-point numbers depends on it.
        for stream in lines.keys.sorted() { lines[stream]?.take(into: &sum) }
        for index in sum.indices { sum[index] = Self.limit(sum[index]) }
        position += Self.samplesPerFrame
        return sum
    }

    /// Limits a sample softly. What is no number becomes silence.
    static func limit(_ sample: Float) -> Float {
        let size = abs(sample)
        guard size.isFinite else { return 0 }
        guard size > knee else { return sample }
        let excess = (size - knee) / (ceiling - knee)
        // A curve that begins with the slope 1 and never reaches the ceiling.
        let limited = knee + (ceiling - knee) * excess / (1 + excess)
        return sample < 0 ? -limited : limited
    }

    /// Converts a duration to samples, rounded.
    static func samples(_ time: Duration) -> Int {
        let microseconds = time.wholeMicroseconds
        return Int((microseconds * 6 + (microseconds < 0 ? -62 : 62)) / 125)
    }
}

/// The decoded audio of one stream that was not mixed yet.
struct AudioLine: Sendable {
    /// A packet that begins less than this many samples (10 ms) from the end of the previous one continues it. Less than a packet
    /// of 20 ms, because one that is missing is a gap.
    static let tolerance = 480
    /// A packet is stretched or shortened by at most this share to follow its times, as the recorder follows the clocks of sound cards.
    /// A change of pitch of half a percent is inaudible.
    static let stretch = 200

    private var samples: [Float]
    /// The sample of the output at `samples[first]`.
    private var position: Int
    private var first = 0
    /// Where the last packet ended.
    private var end: Int?

    init(capacity: Int, position: Int) {
        samples = [Float](repeating: 0, count: max(capacity, AudioMixer.samplesPerFrame))
        self.position = position
    }

    /// Adds a packet. What is before the present position or too far in the future is discarded.
    mutating func place(_ packet: [Float], at start: Int) {
        guard !packet.isEmpty, packet.count <= samples.count, abs(start) < 1 << 50 else { return }
        var (begin, count) = (start, packet.count)
        if let end, abs(start - end) < Self.tolerance {
            let most = packet.count / Self.stretch
            begin = end
            count += min(max(start - end, -most), most)
        }
        end = begin + count
        for index in max(0, position - begin)..<max(count, max(0, position - begin)) {
            let offset = begin + index - position
            guard offset < samples.count else { break }
            samples[(first + offset) % samples.count] = Self.sample(packet, index, of: count)
        }
    }

    /// Returns a sample of the packet stretched to `count` samples.
    private static func sample(_ packet: [Float], _ index: Int, of count: Int) -> Float {
        guard count != packet.count, count > 1 else { return packet[min(index, packet.count - 1)] }
        let place = Float(index) * Float(packet.count - 1) / Float(count - 1)
        let before = min(Int(place), packet.count - 1)
        let after = min(before + 1, packet.count - 1)
        return packet[before] + (packet[after] - packet[before]) * (place - Float(before))
    }

    /// Adds the next samples to a sum, and removes them.
    mutating func take(into sum: inout [Float]) {
        for index in sum.indices {
            let place = (first + index) % samples.count
            sum[index] += samples[place]
            samples[place] = 0
        }
        first = (first + sum.count) % samples.count
        position += sum.count
    }
}
