import RTC

/// A frame with its time, on its way into a file.
struct TimedBlock: Equatable, Sendable {
    var isVideo: Bool
    var time: MediaTime
    var isKeyframe: Bool
    var bytes: [UInt8]
    /// The codec; nil for audio.
    var video: RecordedVideo?
    /// Whether frames before this one were lost.
    var followsLoss = false
}

/// Puts the blocks of audio and video in order of time. A block waits for the other track, because players expect the blocks of
/// a file in this order, but not for longer than `maxWait`.
struct BlockOrder: Sendable {
    /// How long a block waits for the other track.
    static let maxWait = MediaInterval.seconds(1)
    /// The maximum number of bytes that wait. With more, blocks leave without waiting.
    static let maxHeld = 8 << 20

    /// Whether blocks of the track are expected. If false, for example while it is muted, the other track does not wait.
    var expectsAudio = true
    var expectsVideo = true
    private var audio: [TimedBlock] = []
    private var video: [TimedBlock] = []
    private var heldBytes = 0

    /// Whether no audio waits.
    var hasNoAudio: Bool { audio.isEmpty }
    /// The codec of the first video that waits.
    var firstVideo: RecordedVideo? { video.first?.video }

    mutating func push(_ block: TimedBlock) {
        heldBytes += block.bytes.count
        var block = block
        if block.isVideo {
            block.time = max(block.time, video.last?.time ?? block.time)
            video.append(block)
        } else {
            block.time = max(block.time, audio.last?.time ?? block.time)
            audio.append(block)
        }
    }

    /// Returns the next block; nil if there is none, or if it has to wait.
    mutating func next(now: MediaTime, isEnding: Bool) -> TimedBlock? {
        let isVideo: Bool
        switch (audio.first, video.first) {
        case (nil, nil): return nil
        case (let audio?, let video?): isVideo = video.time <= audio.time
        case (let audio?, nil):
            guard isEnding || mayLeave(audio, isAwaited: expectsVideo, now) else { return nil }
            isVideo = false
        case (nil, let video?):
            guard isEnding || mayLeave(video, isAwaited: expectsAudio, now) else { return nil }
            isVideo = true
        }
        let block = isVideo ? video.removeFirst() : audio.removeFirst()
        heldBytes -= block.bytes.count
        return block
    }

    private func mayLeave(_ block: TimedBlock, isAwaited: Bool, _ now: MediaTime) -> Bool {
        !isAwaited || now - block.time >= Self.maxWait || heldBytes > Self.maxHeld
    }
}
