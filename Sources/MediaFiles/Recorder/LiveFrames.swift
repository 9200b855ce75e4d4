import RTC

/// Turns what a router receives of one stream into frames for a broadcast, with their times on our clock.
///
/// Unlike ``MediaRecorder``, it holds nothing back: a frame leaves as soon as it is complete and in order within its track, because it
/// is composed within a second or two. Gaps of the audio stay gaps, and the compositor conceals them. A frame that comes before the
/// first sender report has the time of its arrival.
///
/// `now` and all arrivals are on the same clock. Call `tick` about every 100 ms, or more often.
public struct LiveFrames: Sendable {
    /// What the owner must do, in order.
    public enum Output: Equatable, Sendable {
        /// The video begins or continues with this codec. A keyframe follows.
        case begin(RecordedVideo)
        /// No video follows before `begin`.
        case endVideo
        case video(at: MediaTime, isKeyframe: Bool, [UInt8])
        /// An Opus packet.
        case audio(at: MediaTime, [UInt8])
        /// Request a keyframe from the publisher.
        case requestKeyframe
    }

    /// How long to wait for a missing packet. Less than the delay of a broadcast with low latency, which is 600 ms.
    public static let maxDelay = MediaInterval.milliseconds(300)

    private var audio: ReceivedTrack?
    private var video: ReceivedTrack?
    private var timeline = StreamTimeline()
    private var isVideoForwarded = true
    /// The codec of the last `begin`; nil while there is no video.
    private var codec: RecordedVideo?
    private var requestedAt: MediaTime?
    private var outputs: [Output] = []

    public init() {}

    /// Returns what has to be done since the last call.
    public mutating func takeOutputs() -> [Output] {
        guard !outputs.isEmpty else { return [] }
        defer { outputs = [] }
        return outputs
    }

    /// Audio or video follows from this source. What was received from the previous one is complete.
    ///
    /// - Parameters:
    ///   - format: the codec of the video; nil for audio.
    ///   - isNew: whether the timestamps are unrelated to those of the previous source.
    public mutating func begin(_ format: VideoPayloadFormat?, isNew: Bool, now: MediaTime) {
        drain(isVideo: format != nil, isEnding: true, now: now)
        if isNew { timeline.restart(isVideo: format != nil) }
        guard let format else { return audio = ReceivedTrack() }
        video = ReceivedTrack(format, delay: Self.maxDelay)
        // The router begins a source with a keyframe, so request one only if that is lost.
        requestedAt = now
    }

    /// Takes a packet. Dropped if `begin` was not called for its track.
    public mutating func take(isVideo: Bool, _ packet: PacketOrder.Packet, now: MediaTime) {
        if isVideo { video?.insert(packet, now: now) } else { audio?.insert(packet, now: now) }
        drain(isVideo: isVideo, now: now)
    }

    /// Takes a sender report of the current source (RFC 3550 §6.4.1).
    public mutating func report(isVideo: Bool, ntp: NTPTime, timestamp: UInt32, arrival: MediaTime) {
        timeline.report(isVideo: isVideo, ntp: ntp, timestamp: timestamp, arrival: arrival)
    }

    /// The publisher or a moderator has muted the track, or it is sent again.
    public mutating func setForwarded(isVideo: Bool, _ isForwarded: Bool, now: MediaTime) {
        if !isForwarded { drain(isVideo: isVideo, isEnding: true, now: now) }
        guard isVideo else { return }
        isVideoForwarded = isForwarded
        guard !isForwarded, codec != nil else { return }
        codec = nil
        outputs.append(.endVideo)
    }

    /// Performs what is due.
    public mutating func tick(now: MediaTime) {
        drain(isVideo: false, now: now)
        drain(isVideo: true, now: now)
        requestKeyframe(now: now)
    }

    private mutating func drain(isVideo: Bool, isEnding: Bool = false, now: MediaTime) {
        // Each gap ends the waiting for the packets before it, and others may be missing later.
        repeat {
            if isEnding { if isVideo { video?.giveUp() } else { audio?.giveUp() } }
            var isEmpty = true
            while let step = isVideo ? video?.next(now: now) : audio?.next(now: now) {
                isEmpty = false
                switch step {
                case .frame(let frame): emit(frame)
                case .gap: if isVideo { noteLoss(now: now) }
                }
            }
            if isEmpty { break }
        } while isEnding
    }

    private mutating func emit(_ frame: ReceivedFrame) {
        guard !frame.isVideo || isVideoForwarded else { return }
        // A packet this small is silence, so a jump in time is not audible.
        let mayJump = frame.isVideo ? frame.isKeyframe : frame.bytes.count <= 3
        let time = timeline.place(
            isVideo: frame.isVideo, timestamp: frame.timestamp, arrival: frame.arrival, mayJump: mayJump)
        guard let codec = frame.video else { return outputs.append(.audio(at: time, frame.bytes)) }
        if frame.isKeyframe { requestedAt = nil }
        if codec != self.codec {
            // A decoder begins with a keyframe.
            guard frame.isKeyframe else { return }
            self.codec = codec
            outputs.append(.begin(codec))
        }
        outputs.append(.video(at: time, isKeyframe: frame.isKeyframe, frame.bytes))
    }

    private mutating func noteLoss(now: MediaTime) {
        // A loss is a new reason, so do not wait for the repetition of an earlier request.
        if let requestedAt, now - requestedAt < MediaRecorder.minRequestInterval { return }
        requestedAt = nil
        requestKeyframe(now: now)
    }

    private mutating func requestKeyframe(now: MediaTime) {
        guard isVideoForwarded, let video, video.needsKeyframe || codec == nil else { return }
        if let requestedAt, now - requestedAt < MediaRecorder.requestRepetition { return }
        requestedAt = now
        outputs.append(.requestKeyframe)
    }
}
