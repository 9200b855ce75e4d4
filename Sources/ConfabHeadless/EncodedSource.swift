import Confab
import Synchronization

/// A source of encoded video or audio, which is read frame by frame.
///
/// ```swift
/// guard let source = subscriber.video as? EncodedSource else { return }
/// for await frame in source.frames { try file.write(frame.bytes) }
/// ```
public final class EncodedSource: VideoSource {
    /// The maximum number of frames that wait for a slow reader: eight seconds of video. Later frames are dropped up to
    /// the next keyframe.
    public static let maxWaiting = 256
    /// The maximum number of frames (two seconds of video) and of their bytes that are kept for the first reader.
    private static let (maxKept, maxKeptBytes) = (64, 1 << 20)

    /// A reader of the source, and whether it needs a keyframe.
    private struct Reader {
        let frames: AsyncStream<EncodedFrame>.Continuation
        /// Whether frames are dropped until the next keyframe, because the reader missed an earlier frame.
        var needsKeyframe = true
        /// The frame time at which to request a keyframe again, because the last one had to be dropped; nil if none
        /// was dropped.
        var asksAt: Duration?
    }

    /// How long to wait, in frame time, before requesting another keyframe for a reader that had no space for the
    /// last one. Otherwise a reader that has stopped would turn each frame into a keyframe, for everyone.
    private static let pause = Duration.seconds(1)

    /// The state that the lock protects.
    private struct State {
        var readers: [Int: Reader] = [:]
        var count = 0
        var isOver = false
        /// The video since the newest keyframe. The first reader gets it, because frames arrive before a program is
        /// notified of the source, and waiting for another keyframe would take time. Nil after the first reader has
        /// started.
        var kept: [EncodedFrame]? = []
        var keptBytes = 0

        mutating func keep(_ frame: EncodedFrame) {
            guard var frames = kept, frame.codec == .vp8, frame.isKeyframe || !frames.isEmpty else { return }
            // Release the stored array, so that the change below does not copy it.
            kept = []
            if frame.isKeyframe { (frames, keptBytes) = ([], 0) }
            keptBytes += frame.bytes.count
            guard frames.count < EncodedSource.maxKept, keptBytes <= EncodedSource.maxKeptBytes else { return }
            frames.append(frame)
            kept = frames
        }
    }

    private let state = Mutex(State())
    private let askForKeyframe: @Sendable () -> Void

    init(askForKeyframe: @escaping @Sendable () -> Void) { self.askForKeyframe = askForKeyframe }

    deinit { finish() }

    /// The frames, beginning with the next keyframe. The first subscription begins with the newest keyframe that has
    /// already arrived. Each access of this property creates its own subscription, which ends when the source ends or
    /// the reading task is canceled.
    public var frames: AsyncStream<EncodedFrame> {
        let (stream, frames) = AsyncStream.makeStream(
            of: EncodedFrame.self, bufferingPolicy: .bufferingOldest(Self.maxWaiting))
        var begins = false
        let number = state.withLock { state -> Int? in
            guard !state.isOver else { return nil }
            state.count += 1
            let kept = state.kept ?? []
            begins = !kept.isEmpty
            state.kept = nil
            // Yield under the lock, so that no newer frame overtakes these. This cannot deadlock, because the stream
            // has no termination handler yet.
            for frame in kept { frames.yield(frame) }
            state.readers[state.count] = Reader(frames: frames, needsKeyframe: !begins)
            return state.count
        }
        guard let number else {
            frames.finish()
            return stream
        }
        frames.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.readers.removeValue(forKey: number) }
        }
        if !begins { askForKeyframe() }
        return stream
    }

    /// Returns whether the next frame is needed, by a reader or to be kept for the first reader. If not, the caller
    /// need not copy the frame.
    func wants(isKeyframe: Bool) -> Bool {
        state.withLock { state in
            if !state.readers.isEmpty { return true }
            return state.kept.map { isKeyframe || !$0.isEmpty } ?? false
        }
    }

    func yield(_ frame: EncodedFrame) {
        let (readers, isDue) = state.withLock { state in
            state.keep(frame)
            var isDue = false
            for (number, reader) in state.readers where reader.needsKeyframe {
                if frame.isKeyframe {
                    state.readers[number]?.needsKeyframe = false
                } else if let asksAt = reader.asksAt, frame.time >= asksAt {
                    state.readers[number]?.asksAt = nil
                    isDue = true
                }
            }
            return (state.readers.filter { !$0.value.needsKeyframe }, isDue)
        }
        var asks = isDue
        // Yield outside the lock, because a stream calls its termination handler on the thread of `yield`.
        for (number, reader) in readers {
            guard case .dropped = reader.frames.yield(frame) else { continue }
            let asksAt = frame.isKeyframe ? frame.time + Self.pause : nil
            state.withLock { state in
                state.readers[number]?.needsKeyframe = true
                state.readers[number]?.asksAt = asksAt
            }
            if !frame.isKeyframe { asks = true }
        }
        if asks { askForKeyframe() }
    }

    func finish() {
        let readers = state.withLock { state in
            defer { (state.readers, state.kept, state.isOver) = ([:], nil, true) }
            return state.readers
        }
        for reader in readers.values { reader.frames.finish() }
    }
}

/// Media that a peer connection of this engine receives over one transceiver.
public final class EncodedTrack: RemoteMedia {
    /// Whether this is audio or video.
    public let kind: TrackKind
    /// The frames.
    public let source: EncodedSource
    private let isEnabled = Mutex(true)

    init(_ kind: TrackKind, askForKeyframe: @escaping @Sendable () -> Void) {
        self.kind = kind
        source = EncodedSource(askForKeyframe: askForKeyframe)
    }

    /// The video, an ``EncodedSource``; nil for audio.
    public var video: (any VideoSource)? { kind == .video ? source : nil }

    /// Sets whether frames are delivered or dropped.
    public func setEnabled(_ enabled: Bool) async { isEnabled.withLock { $0 = enabled } }

    /// Does nothing, because the engine does not decode. The program that plays the frames sets the volume.
    public func setVolume(_ volume: Double) async {}

    func yield(_ frame: EncodedFrame) {
        if isEnabled.withLock(\.self) { source.yield(frame) }
    }
}
