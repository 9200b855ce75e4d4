import RTC

/// Places the RTP timestamps of one publisher's audio and video on our clock, so that both stay in sync for hours.
///
/// A sender report relates a track's timestamps to the publisher's clock (RFC 3550 §6.4.1). Both tracks use the same offset from
/// that clock to ours, so their relation comes from their reports alone. Until a track has a report, the arrival of its packets
/// is used. Later corrections are gradual, because a jump of the audio is audible.
public struct StreamTimeline: Sendable {
    /// The maximum correction of audio: a two-hundredth of the time that has passed, which is inaudible.
    static let audioCorrection: Int64 = 200
    /// The maximum correction of a video frame that is not a keyframe.
    static let videoCorrection = MediaInterval.milliseconds(5)
    /// Audio that is off by more is corrected at once.
    static let maxAudioError = MediaInterval.milliseconds(500)
    /// Audio that is off by more is corrected at the next silent packet.
    static let maxHeardError = MediaInterval.milliseconds(100)
    /// If timestamps and arrivals differ by more, the sender has restarted its timestamps, or a report is wrong.
    static let maxJump = MediaInterval.seconds(10)

    private var clock = PublisherClock()
    private var audio = Track(rate: Int64(OpusPacket.clockRate))
    private var video = Track(rate: 90_000)

    public init() {}

    /// Whether the track has a sender report.
    public func hasReport(isVideo: Bool) -> Bool { (isVideo ? video : audio).report != nil }

    /// The track continues with another source, whose timestamps are unrelated to the previous ones.
    public mutating func restart(isVideo: Bool) { if isVideo { video.restart() } else { audio.restart() } }

    /// Records a sender report.
    ///
    /// - Parameters:
    ///   - ntp: the publisher's clock.
    ///   - timestamp: the track's RTP timestamp at that time.
    ///   - arrival: when the report arrived, on our clock.
    public mutating func report(isVideo: Bool, ntp: NTPTime, timestamp: UInt32, arrival: MediaTime) {
        let sent = clock.note(ntp, arrival: arrival)
        if isVideo { video.note(timestamp, sent) } else { audio.note(timestamp, sent) }
    }

    /// Returns the time of a frame on our clock. Within a track it never goes back, as long as timestamps do not.
    ///
    /// - Parameters:
    ///   - mayJump: whether the frame hides a correction of any size: a keyframe, or a silent audio packet.
    public mutating func place(isVideo: Bool, timestamp: UInt32, arrival: MediaTime, mayJump: Bool) -> MediaTime {
        let offset = clock.offset
        return isVideo
            ? video.place(timestamp, arrival, offset) { error, _ in
                mayJump ? error : min(max(error, Self.videoCorrection * -1), Self.videoCorrection)
            }
            : audio.place(timestamp, arrival, offset) { error, step in
                let size = max(error, error * -1)
                if size > Self.maxAudioError || mayJump && size > Self.maxHeardError { return error }
                let limit = MediaInterval(nanoseconds: max(0, step.nanoseconds / Self.audioCorrection))
                return min(max(error, limit * -1), limit)
            }
    }
}

/// The offset from a publisher's clock to ours: the smallest of the last 30 to 60 seconds, because the report with the least
/// network delay is the most accurate. A minimum that never forgot would be wrong for a clock that is slow.
private struct PublisherClock: Sendable {
    private static let bucket = MediaInterval.seconds(30)

    /// The publisher's clock in the first report, from which its times are counted.
    private var origin: NTPTime?
    private var began = MediaTime(nanoseconds: 0)
    private var current: MediaInterval?
    private var previous: MediaInterval?

    /// The offset; nil before the first report.
    var offset: MediaInterval? { [current, previous].compactMap(\.self).min() }

    /// Records a report, and returns its time on the publisher's clock.
    mutating func note(_ ntp: NTPTime, arrival: MediaTime) -> MediaTime {
        let origin = origin ?? ntp
        self.origin = origin
        let sent = MediaTime(nanoseconds: (ntp - origin).nanoseconds)
        let sample = arrival - sent
        if let current, arrival - began < Self.bucket {
            self.current = min(current, sample)
        } else {
            (previous, current, began) = (current, sample, arrival)
        }
        return sent
    }
}

private struct Track: Sendable {
    private struct Placed: Sendable {
        var ticks: Int64
        var time: MediaTime
        var arrival: MediaTime
    }

    let rate: Int64
    private var timestamps = TimestampUnwrapper()
    /// The newest report: a timestamp, and when it was on the publisher's clock.
    private(set) var report: (ticks: Int64, sent: MediaTime)?
    /// The packet that traveled fastest since the start: a timestamp, and its arrival.
    private var fastest: (ticks: Int64, arrival: MediaTime)?
    private var last: Placed?

    init(rate: Int64) { self.rate = rate }

    mutating func restart() { self = Track(rate: rate) }

    mutating func note(_ timestamp: UInt32, _ sent: MediaTime) { report = (timestamps.unwrap(timestamp), sent) }

    mutating func place(
        _ timestamp: UInt32, _ arrival: MediaTime, _ offset: MediaInterval?,
        correction: (_ error: MediaInterval, _ step: MediaInterval) -> MediaInterval
    ) -> MediaTime {
        let ticks = timestamps.unwrap(timestamp)
        if let last, Self.size((arrival - last.arrival) - interval(ticks, last.ticks)) > StreamTimeline.maxJump {
            (report, fastest, self.last) = (nil, nil, nil)
        }
        let target = target(ticks, arrival, offset)
        var time = target
        if let last {
            let step = interval(ticks, last.ticks)
            let nominal = last.time + step
            time = nominal + correction(target - nominal, step)
            if step >= .zero { time = max(time, last.time) }
        }
        last = Placed(ticks: ticks, time: time, arrival: arrival)
        return time
    }

    /// Returns the time of a timestamp by the newest report, or else by the arrival of packets.
    private mutating func target(_ ticks: Int64, _ arrival: MediaTime, _ offset: MediaInterval?) -> MediaTime {
        if let report, let offset {
            let time = report.sent + interval(ticks, report.ticks) + offset
            if Self.size(arrival - time) <= StreamTimeline.maxJump { return time }
            self.report = nil
        }
        var time = arrival
        if let fastest { time = min(arrival, fastest.arrival + interval(ticks, fastest.ticks)) }
        fastest = (ticks, time)
        return time
    }

    private func interval(_ ticks: Int64, _ earlier: Int64) -> MediaInterval {
        // Divide first, so that the product cannot overflow.
        let difference = ticks &- earlier
        return MediaInterval(
            nanoseconds: difference / rate &* 1_000_000_000 &+ difference % rate * 1_000_000_000 / rate)
    }

    private static func size(_ interval: MediaInterval) -> MediaInterval { max(interval, interval * -1) }
}
