import RTC

/// Turns what a router receives of one stream into the blocks of WebM and Matroska files.
///
/// Packets are put into order, assembled to frames, placed on our clock (`StreamTimeline`), and put in order of time. Audio has
/// no gaps: silence is added where nothing was received. Video is not filled, because players keep showing the last frame. After
/// a loss, video continues at the next keyframe, which `Output.requestKeyframe` requests.
///
/// ```
///  packets → ReceivedTrack → (held until both tracks have reports) → StreamTimeline → BlockOrder → RecordedFile → outputs
/// ```
///
/// A stream becomes several files if its codec changes, or parameters in the file's header, but only so many
/// (``fileBurst``). `now` and all arrivals are on the same clock. Call `tick` about every 100 ms, or more often.
public struct MediaRecorder: Sendable {
    /// What the owner must do, in order.
    public enum Output: Equatable, Sendable {
        /// Start a file, whose times count from `at`. Its header must name this codec.
        case begin(RecordedVideo, at: MediaTime)
        /// Write a block to the file.
        case block(WebMWriter.Block)
        /// Finish the file.
        case end(at: MediaTime)
        /// Request a keyframe from the publisher.
        case requestKeyframe
        /// The new size of the video. At most once a second, as `lost`: these are for people who read the event log.
        case size(PictureSize, at: MediaTime)
        /// The video stood still for this long before `at`, because packets were lost.
        case lost(MediaInterval, at: MediaTime)
    }

    /// How long the first frames are held until both tracks have a sender report. The size in bytes limits it too.
    static let maxHold = MediaInterval.seconds(3)
    static let maxHeldBytes = 2 << 20
    /// How long the first audio is held until there is a keyframe. Without one, the file begins with audio alone.
    static let maxKeyframeWait = MediaInterval.seconds(5)
    /// The maximum time between two keyframes. Players seek to keyframes, and composing starts at them.
    static let keyframeInterval = MediaInterval.seconds(10)
    /// The minimum time between requests for keyframes because of two losses, and the time after which a request is repeated.
    static let minRequestInterval = MediaInterval.milliseconds(300)
    static let requestRepetition = MediaInterval.seconds(1)
    /// How many files a stream may begin at once, and one more for each second. Each costs two syncs of the disk, which a publisher that
    /// changes the parameters with every frame could make the recorder's thread wait for.
    static let fileBurst: Int64 = 10
    /// The minimum time between two sizes, and between two losses, that are reported. A publisher that sends keyframes of another size
    /// all the time must not fill the event log.
    static let minNoteInterval = MediaInterval.seconds(1)

    private let hasAudio: Bool
    private let hasVideo: Bool
    private var isAudioForwarded = true
    private var isVideoForwarded = true
    private var audio: ReceivedTrack?
    private var video: ReceivedTrack?
    private var timeline = StreamTimeline()
    /// The first frames, until they are placed.
    private var held: [ReceivedFrame] = []
    private var heldBytes = 0
    private var heldSince: MediaTime?
    private var hasBegun = false
    private var blocks = BlockOrder()
    private var file: FileInProgress?
    private var fileCount: Int64 = 0
    /// The start of the first file.
    private var firstStart: MediaTime?
    /// Whether video is dropped until a keyframe that fits into the file, or for which another file may begin.
    private var isSkippingVideo = false
    private var keyframeAt: MediaTime?
    private var requestedAt: MediaTime?
    /// The last size that was reported, and when.
    private var size: (value: PictureSize, at: MediaTime)?
    private var lossNotedAt: MediaTime?
    private var outputs: [Output] = []

    /// - Parameters:
    ///   - hasAudio: whether the stream's audio is recorded. If so, every file has audio from its beginning to its end.
    ///   - hasVideo: whether the stream's video is recorded.
    public init(hasAudio: Bool, hasVideo: Bool) { (self.hasAudio, self.hasVideo) = (hasAudio, hasVideo) }

    /// Returns what has to be done since the last call.
    public mutating func takeOutputs() -> [Output] {
        guard !outputs.isEmpty else { return [] }
        defer { outputs = [] }
        return outputs
    }

    // MARK: Input

    /// Audio or video follows from this source. What was received from the previous one is complete.
    ///
    /// - Parameters:
    ///   - format: the codec of the video; nil for audio.
    ///   - isNew: whether the timestamps are unrelated to those of the previous source.
    /// - Returns: false if recordings do not support the codec. The track is then recorded without content.
    public mutating func begin(_ format: VideoPayloadFormat?, isNew: Bool, now: MediaTime) -> Bool {
        guard let format else {
            drain(now: now, endingAudio: true)
            audio = ReceivedTrack()
            if isNew { timeline.restart(isVideo: false) }
            return true
        }
        drain(now: now, endingVideo: true)
        video = ReceivedTrack(format)
        if isNew { timeline.restart(isVideo: true) }
        return video != nil
    }

    /// Takes a packet. Dropped if `begin` was not called for its track.
    public mutating func take(isVideo: Bool, _ packet: PacketOrder.Packet, now: MediaTime) {
        if isVideo { video?.insert(packet, now: now) } else { audio?.insert(packet, now: now) }
        drain(now: now)
    }

    /// Takes a sender report of the current source (RFC 3550 §6.4.1).
    public mutating func report(isVideo: Bool, ntp: NTPTime, timestamp: UInt32, arrival: MediaTime) {
        timeline.report(isVideo: isVideo, ntp: ntp, timestamp: timestamp, arrival: arrival)
    }

    /// The publisher or a moderator has muted the track, or it is sent again.
    public mutating func setForwarded(isVideo: Bool, _ isForwarded: Bool, now: MediaTime) {
        drain(now: now)
        if isVideo { isVideoForwarded = isForwarded } else { isAudioForwarded = isForwarded }
        // Frames that are still in order do not arrive any more.
        if !isForwarded { drain(now: now, endingAudio: !isVideo, endingVideo: isVideo) }
    }

    /// Performs what is due.
    public mutating func tick(now: MediaTime) {
        drain(now: now)
        requestKeyframe(now: now)
        guard file != nil, hasAudio, blocks.hasNoAudio else { return }
        file?.fill(to: now - BlockOrder.maxWait, isMuted: !isAudioForwarded, &outputs)
    }

    /// Completes the stream. Nothing may follow.
    public mutating func finish(now: MediaTime) {
        drain(now: now, endingAudio: true, endingVideo: true)
        if !held.isEmpty { placeHeld() }
        emit(now: now, isEnding: true)
        if hasAudio { file?.fill(to: now, isMuted: !isAudioForwarded, &outputs) }
        file?.end(&outputs)
        file = nil
    }

    // MARK: Frames

    private mutating func drain(now: MediaTime, endingAudio: Bool = false, endingVideo: Bool = false) {
        drain(isVideo: false, isEnding: endingAudio, now: now)
        drain(isVideo: true, isEnding: endingVideo, now: now)
        if !hasBegun, mayBegin(now: now) { placeHeld() }
        if hasBegun { emit(now: now, isEnding: false) }
    }

    private mutating func drain(isVideo: Bool, isEnding: Bool, now: MediaTime) {
        // Each gap ends the waiting for the packets before it, and others may be missing later.
        repeat {
            if isEnding { if isVideo { video?.giveUp() } else { audio?.giveUp() } }
            var isEmpty = true
            while let step = isVideo ? video?.next(now: now) : audio?.next(now: now) {
                isEmpty = false
                switch step {
                case .frame(let frame): accept(frame, now: now)
                case .gap: if isVideo { noteLoss(now: now) }
                }
            }
            if isEmpty { break }
        } while isEnding
    }

    private mutating func accept(_ frame: ReceivedFrame, now: MediaTime) {
        guard frame.isVideo ? hasVideo : hasAudio else { return }
        if frame.isVideo, frame.isKeyframe { (keyframeAt, requestedAt) = (now, nil) }
        guard !hasBegun else { return place(frame) }
        held.append(frame)
        heldBytes += frame.bytes.count
        if heldSince == nil { heldSince = now }
    }

    /// Whether the held frames can be placed.
    private func mayBegin(now: MediaTime) -> Bool {
        guard let heldSince else { return false }
        if heldBytes >= Self.maxHeldBytes { return true }
        let age = now - heldSince
        let awaitsVideo = hasVideo && isVideoForwarded
        if awaitsVideo, !held.contains(where: \.isVideo) { return age >= Self.maxKeyframeWait }
        if age >= Self.maxHold { return true }
        return (!awaitsVideo || timeline.hasReport(isVideo: true))
            && (!hasAudio || !isAudioForwarded || timeline.hasReport(isVideo: false))
    }

    private mutating func placeHeld() {
        hasBegun = true
        let frames = held
        held = []
        for frame in frames { place(frame) }
    }

    private mutating func place(_ frame: ReceivedFrame) {
        // A packet this small is silence, so a jump in time is not audible.
        let mayJump = frame.isVideo ? frame.isKeyframe : frame.bytes.count <= 3
        let time = timeline.place(
            isVideo: frame.isVideo, timestamp: frame.timestamp, arrival: frame.arrival, mayJump: mayJump)
        blocks.push(
            TimedBlock(
                isVideo: frame.isVideo, time: time, isKeyframe: frame.isKeyframe, bytes: frame.bytes,
                video: frame.video, followsLoss: frame.followsLoss))
    }

    // MARK: Blocks

    private mutating func emit(now: MediaTime, isEnding: Bool) {
        blocks.expectsAudio = hasAudio && isAudioForwarded
        blocks.expectsVideo = hasVideo && isVideoForwarded && !(video?.needsKeyframe ?? true)
        while let block = blocks.next(now: now, isEnding: isEnding) {
            guard admits(block) else { continue }
            open(for: block)
            if block.isVideo { noteVideo(block) }
            if hasAudio {
                file?.fill(to: block.time, isMuted: !isAudioForwarded, beforeAudio: !block.isVideo, &outputs)
            }
            file?.write(block, &outputs)
        }
    }

    /// Whether a block can be written. Video is dropped if it needs another file and the stream has too many.
    private mutating func admits(_ block: TimedBlock) -> Bool {
        guard block.isVideo, let video = block.video, let file else { return true }
        if isSkippingVideo, !block.isKeyframe { return false }
        let seconds = firstStart.map { (block.time - $0).milliseconds / 1_000 } ?? 0
        isSkippingVideo = !file.accepts(video) && fileCount >= Self.fileBurst + seconds
        return !isSkippingVideo
    }

    /// Starts a file, if there is none or if the block does not fit into it.
    private mutating func open(for block: TimedBlock) {
        if let video = block.video, let file, !file.accepts(video) {
            if hasAudio { self.file?.fill(to: block.time, isMuted: !isAudioForwarded, &outputs) }
            self.file?.end(&outputs)
            self.file = nil
        }
        guard file == nil else {
            if let video = block.video { file?.video = video }
            return
        }
        let video = block.video ?? blocks.firstVideo
        file = FileInProgress(video: video, start: block.time)
        fileCount += 1
        firstStart = firstStart ?? block.time
        outputs.append(.begin(video ?? FileInProgress.assumedVideo, at: block.time))
    }

    private mutating func noteVideo(_ block: TimedBlock) {
        if block.followsLoss, let last = file?.lastVideo, isNoteDue(after: lossNotedAt, at: block.time) {
            outputs.append(.lost(block.time - last, at: block.time))
            lossNotedAt = block.time
        }
        guard block.isKeyframe, let video = block.video, let size = PictureSize(of: block.bytes, video),
            size != self.size?.value, isNoteDue(after: self.size?.at, at: block.time)
        else { return }
        outputs.append(.size(size, at: block.time))
        self.size = (size, block.time)
    }

    private func isNoteDue(after last: MediaTime?, at time: MediaTime) -> Bool {
        last.map { time - $0 >= Self.minNoteInterval } ?? true
    }

    // MARK: Keyframes

    private mutating func noteLoss(now: MediaTime) {
        // A loss is a new reason, so do not wait for the repetition of an earlier request.
        if let requestedAt, now - requestedAt < Self.minRequestInterval { return }
        requestedAt = nil
        requestKeyframe(now: now)
    }

    private mutating func requestKeyframe(now: MediaTime) {
        guard hasVideo, isVideoForwarded, let video else { return }
        let isOverdue = keyframeAt.map { now - $0 >= Self.keyframeInterval } ?? true
        // A publisher whose keyframes are dropped sends enough of them.
        let isMissing = isSkippingVideo && (keyframeAt.map { now - $0 >= Self.requestRepetition } ?? true)
        guard video.needsKeyframe || isOverdue || isMissing else { return }
        if let requestedAt, now - requestedAt < Self.requestRepetition { return }
        requestedAt = now
        outputs.append(.requestKeyframe)
    }
}
