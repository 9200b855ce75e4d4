import Confab
import MediaFiles
import Peers
import RTC
import Synchronization

/// Media that a program encodes itself, frame by frame.
///
/// ```swift
/// let media = EncodedMedia(audio: false, video: VideoSize(width: 640, height: 480))
/// let publisher = try await session.publish(media)
/// media.send(EncodedFrame(.vp8, bytes, at: .milliseconds(33), isKeyframe: false))
/// ```
public final class EncodedMedia: PeerMedia {
    /// The maximum number of frames that wait for the engine's thread. Further frames are rejected.
    public static let maxWaiting = 256
    /// The maximum size of a video frame in bytes. A larger one would overload any connection.
    public static let maxFrame = MediaClip.maxFrame

    /// The state that the lock protects.
    private struct State {
        var outputs: [ObjectIdentifier: @Sendable (EncodedFrame) -> Void] = [:]
        var isAudioOn = true
        var isVideoOn = true
        var isStopped = false
        /// Whether the next frame of video must be a keyframe, because previous frames were dropped.
        var needsKeyframe = false
        var waiting = 0
    }

    /// Whether there is audio.
    public let hasAudio: Bool
    /// The size of the video in pixels; nil without video.
    public let size: VideoSize?
    /// Yields an element whenever a receiver needs a keyframe, including when a connection is established. Encode the
    /// next frame as a keyframe. Only one task may read the stream.
    public let keyframeRequests: AsyncStream<Void>
    private let keyframeRequest: AsyncStream<Void>.Continuation
    private let preview: EncodedSource?
    private let state = Mutex(State())

    /// Creates media without frames.
    ///
    /// - Parameters:
    ///   - audio: whether there is audio.
    ///   - video: the size of the video; nil for none.
    public init(audio: Bool, video size: VideoSize?) {
        (hasAudio, self.size) = (audio, size)
        let (requests, request) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        (keyframeRequests, keyframeRequest) = (requests, request)
        preview = size == nil ? nil : EncodedSource { request.yield() }
    }

    deinit { keyframeRequest.finish() }

    /// The video, an ``EncodedSource`` with the frames of ``send(_:)``; nil without video.
    public var video: (any VideoSource)? { preview }

    /// Sends a frame over all connections that publish this media. Returns immediately. Connections that are not
    /// established yet drop the frame. All connections drop it while its kind is turned off. When video is turned on
    /// again, they drop frames until the next keyframe.
    ///
    /// - Returns: false if the frame is rejected: it is empty or too large, this media does not have its kind, the
    ///   media has stopped, or too many frames are waiting.
    @discardableResult
    public func send(_ frame: EncodedFrame) -> Bool {
        let isVideo = frame.codec == .vp8
        let longest = isVideo ? Self.maxFrame : VP8Packetizer.maxPayload
        guard isVideo ? hasVideo : hasAudio, (1...longest).contains(frame.bytes.count) else { return false }
        let outputs = state.withLock { state -> [@Sendable (EncodedFrame) -> Void]? in
            guard !state.isStopped, state.waiting + state.outputs.count <= Self.maxWaiting else { return nil }
            guard isVideo ? state.isVideoOn : state.isAudioOn else {
                if isVideo { state.needsKeyframe = true }
                return []
            }
            if isVideo, state.needsKeyframe {
                guard frame.isKeyframe else { return [] }
                state.needsKeyframe = false
            }
            state.waiting += state.outputs.count
            return Array(state.outputs.values)
        }
        guard let outputs else { return false }
        if isVideo { preview?.yield(frame) }
        for output in outputs { output(frame) }
        return true
    }

    /// Sets whether frames of audio and video are sent or dropped; nil leaves a kind unchanged. Video that is turned
    /// on again continues with a keyframe.
    public func setEnabled(audio: Bool?, video: Bool?) async {
        let isResumed = state.withLock { state in
            let wasVideoOn = state.isVideoOn
            if let audio { state.isAudioOn = audio }
            if let video { state.isVideoOn = video }
            return state.isVideoOn && !wasVideoOn
        }
        if isResumed { keyframeRequest.yield() }
    }

    /// Ends the media permanently.
    public func stop() async {
        state.withLock { $0.isStopped = true }
        keyframeRequest.finish()
        preview?.finish()
    }

    // MARK: Sending

    var rids: [String] { [] }
    var hasVideo: Bool { size != nil }

    func makeFeed(_ start: FeedStart) -> any PeerFeed {
        let feed = EncodedFeed(self, start)
        let thread = start.thread
        let output: @Sendable (EncodedFrame) -> Void = { [weak self, weak feed] frame in
            let isTaken = thread.loop.perform { [weak self, weak feed] in
                self?.taken()
                feed?.send(frame, now: thread.loop.now)
            }
            if !isTaken { self?.taken() }
        }
        state.withLock { $0.outputs[ObjectIdentifier(feed)] = output }
        return feed
    }

    private func taken() { state.withLock { $0.waiting -= 1 } }

    fileprivate func wantKeyframe() { keyframeRequest.yield() }
    fileprivate func ended(_ feed: EncodedFeed) {
        state.withLock { _ = $0.outputs.removeValue(forKey: ObjectIdentifier(feed)) }
    }
}

/// Sends a program's frames over one connection.
///
/// The class is `@unchecked Sendable` because it is used only on the connection's thread. Other threads only pass on
/// the reference.
private final class EncodedFeed: PeerFeed, @unchecked Sendable {
    /// Converts frame times to the RTP timestamps of one track.
    private struct Clock {
        let rate: Int64
        var base: UInt32
        var origin: Duration?

        mutating func timestamp(of time: Duration) -> UInt32 {
            let began = origin ?? time
            origin = began
            let (seconds, attoseconds) = (time - began).components
            let ticks = seconds &* rate &+ attoseconds / 1_000_000_000_000 * rate / 1_000_000
            return base &+ UInt32(truncatingIfNeeded: ticks)
        }
    }

    private let source: EncodedMedia
    private weak var connection: RobotConnection?
    private var packetizer: VP8Packetizer
    private var (audio, video): (Clock, Clock)
    private var needsKeyframe = true
    private var isFirstAudio = true
    var sections: ClipPlayer.Sections
    var activeRIDs: Set<String>? { didSet { if activeRIDs?.isEmpty == true { needsKeyframe = true } } }

    init(_ source: EncodedMedia, _ start: FeedStart) {
        (self.source, connection, sections) = (source, start.connection, start.sections)
        packetizer = VP8Packetizer(pictureID: UInt16.random(in: 0...0x7fff, using: &start.connection.random))
        audio = Clock(
            rate: Int64(OpusPacket.clockRate), base: start.timestamps.audio ?? start.connection.random.next())
        video = Clock(rate: 90_000, base: start.timestamps.video ?? start.connection.random.next())
    }

    var media: any PeerMedia { source }
    // No frame is ever due, because frames are sent as they arrive.
    var nextDue: MediaTime? { nil }
    func produce(over connection: RobotConnection, now: MediaTime) {}

    func keyframeWanted(of track: RobotTrack) {
        if track.mid == sections.video { source.wantKeyframe() }
    }

    // Requests a keyframe, because earlier frames were dropped and the receiver cannot request one before the first
    // packet has arrived.
    func connected() { if sections.video != nil { source.wantKeyframe() } }

    func send(_ frame: EncodedFrame, now: MediaTime) {
        guard let connection, connection.isConnected else { return }
        switch frame.codec {
        case .vp8: sendVideo(frame, over: connection, now)
        case .opus: sendAudio(frame, over: connection, now)
        }
    }

    private func sendVideo(_ frame: EncodedFrame, over connection: RobotConnection, _ now: MediaTime) {
        guard activeRIDs?.isEmpty != true, let mid = sections.video, let track = connection.track(mid) else { return }
        if needsKeyframe, !frame.isKeyframe { return source.wantKeyframe() }
        needsKeyframe = false
        let timestamp = video.timestamp(of: frame.time)
        frame.bytes.withUnsafeBytes { bytes in
            packetizer.cut(bytes) { payload, marker in
                connection.send(payload, of: track, timestamp: timestamp, marker: marker, now: now)
            }
        }
        track.framesSent += 1
        if frame.isKeyframe { track.keyframesSent += 1 }
    }

    private func sendAudio(_ frame: EncodedFrame, over connection: RobotConnection, _ now: MediaTime) {
        guard let mid = sections.audio, let track = connection.track(mid) else { return }
        let timestamp = audio.timestamp(of: frame.time)
        frame.bytes.withUnsafeBytes { bytes in
            _ = connection.send(bytes, of: track, timestamp: timestamp, marker: isFirstAudio, now: now)
        }
        isFirstAudio = false
    }

    func end() { source.ended(self) }
}
