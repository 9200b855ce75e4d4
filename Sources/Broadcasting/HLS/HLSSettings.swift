import Wire

/// How a broadcast is offered over HLS: segment durations, and what stays in the playlist.
public struct HLSSettings: Hashable, Sendable {
    /// What stays in the playlist.
    public enum Window: Hashable, Sendable {
        /// The last segments, this many.
        case segments(Int)
        /// The last segments, this long together. Viewers can go back this far.
        case duration(Duration)
        /// Everything: a playlist of the type EVENT. The stream ends after ``HLSStream/maxListed`` segments.
        case everything
    }

    /// `EXT-X-TARGETDURATION` in whole seconds: no segment is longer. It never changes.
    public var targetDuration: Int
    /// A keyframe starts another segment from here on.
    public var minSegment: Duration
    /// `PART-TARGET`: no part is longer. nil without low latency.
    public var partTarget: Duration?
    public var window: Window
    /// The frames per second, as promised by the multivariant playlist.
    public var frameRate: Int
    /// The maximum bit rate that the encoder was asked for, in bits per second. Segments that need more are counted too.
    public var bitrate: Int
    /// The maximum size in bytes of what is fetchable, if `window` is a number of segments. Older segments are removed early.
    public var maxBytes: Int

    public init(
        targetDuration: Int, minSegment: Duration, partTarget: Duration? = nil, window: Window, frameRate: Int = 25,
        bitrate: Int = 2_300_000, maxBytes: Int = 64 << 20
    ) {
        (self.targetDuration, self.minSegment) = (targetDuration, minSegment)
        (self.partTarget, self.window, self.frameRate) = (partTarget, window, frameRate)
        (self.bitrate, self.maxBytes) = (bitrate, maxBytes)
    }

    /// Segments of 3.84 s, which are two groups of 48 frames at 25 per second. Viewers are 15 to 20 s behind.
    ///
    /// The minimum is between one and two groups.
    public static let standard = HLSSettings(targetDuration: 4, minSegment: .seconds(3), window: .segments(8))

    /// Segments of 1.92 s with four parts each. Viewers are about 3 s behind.
    public static let lowLatency = HLSSettings(
        targetDuration: 2, minSegment: .seconds(1), partTarget: .milliseconds(480), window: .segments(8))

    /// Segments as ``standard``, of which viewers can go back to each.
    ///
    /// - Parameters:
    ///   - maxDuration: the maximum duration of the broadcast.
    ///   - window: how far viewers can go back at most. A shorter broadcast keeps everything, so that it is also complete at its end.
    public static func recordable(maxDuration: Duration, window: Duration) -> HLSSettings {
        var settings = standard
        settings.window = maxDuration <= window ? .everything : .duration(window)
        return settings
    }

    /// How the encoder's output is divided.
    public var segmenting: Segmenter.Rules {
        .init(minSegment: minSegment, maxSegment: .seconds(targetDuration), maxPart: partTarget)
    }

    /// How long viewers need to load the segments that they lack at the end of a stream: those of three target durations at most.
    private static let lastDownload: Duration = .seconds(2)

    /// When those who watch a stream to its end have loaded all of it: players load the playlist again within a target duration, and
    /// see there that it has ended.
    ///
    /// - Parameter lastRequest: when a playlist was last requested; nil if none was.
    /// - Returns: the time of the end if nobody watches.
    public func loaded(endedAt end: Timestamp, lastRequest: Timestamp?) -> Timestamp {
        guard let lastRequest, end - lastRequest < HLSStatus.watchedFor else { return end }
        return end + .seconds(targetDuration) + Self.lastDownload
    }

    /// How long a request may wait for the playlist or for a part: three target durations.
    public var longestHold: Duration { .seconds(3 * targetDuration) }
}
