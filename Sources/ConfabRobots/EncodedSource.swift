import Confab
import Synchronization

/// Encoded video or audio, to be read frame by frame.
///
/// ```swift
/// guard let source = subscriber.video as? EncodedSource else { return }
/// for await frame in source.frames { try file.write(frame.bytes) }
/// ```
public final class EncodedSource: VideoSource {
    /// The number of frames that wait for a slow reader, eight seconds of video. Later frames are dropped up to a keyframe.
    public static let maxWaiting = 256
    /// How many frames, and bytes of frames, are kept for the first reader: two seconds of video.
    private static let (maxKept, maxKeptBytes) = (64, 1 << 20)

    private struct Reader {
        let frames: AsyncStream<EncodedFrame>.Continuation
        /// Whether frames are dropped until the next keyframe, because the reader lacks a frame before them.
        var needsKeyframe = true
        /// The time of the frames at which to ask for a keyframe again, because there was no space for the last one.
        var asksAt: Duration?
    }

    /// How long to wait for space before another keyframe is requested, in the time of the frames. A reader that has stopped
    /// would otherwise make each frame a keyframe, for everyone.
    private static let pause = Duration.seconds(1)

    private struct State {
        var readers: [Int: Reader] = [:]
        var count = 0
        var isOver = false
        /// The video since the newest keyframe. The first reader gets it, because a program hears of a source when its frames
        /// already arrive, and another keyframe takes its time. Nil after the first reader has come.
        var kept: [EncodedFrame]? = []
        var keptBytes = 0

        mutating func keep(_ frame: EncodedFrame) {
            guard var frames = kept, frame.codec == .vp8, frame.isKeyframe || !frames.isEmpty else { return }
            // Not copied by the change below.
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

    /// The frames from now on, beginning with a keyframe; the first subscription begins with the newest keyframe that is here
    /// already. Each reading of this property is a subscription of its own. It ends when the source ends, or when its task is
    /// cancelled.
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
            // Under the lock, so that no newer frame comes before these. The stream has no termination handler yet.
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

    /// Whether anybody reads the next frame, or whether it is kept for the first reader. Otherwise it need not be copied.
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
        // Outside of the lock, because a stream calls its termination handler in `yield`'s thread.
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

    /// The pictures, an ``EncodedSource``; nil for audio.
    public var video: (any VideoSource)? { kind == .video ? source : nil }

    /// Delivers frames, or drops them.
    public func setEnabled(_ enabled: Bool) async { isEnabled.withLock { $0 = enabled } }

    /// Does nothing, because the engine does not decode. The program that plays the frames sets the volume.
    public func setVolume(_ volume: Double) async {}

    func yield(_ frame: EncodedFrame) {
        if isEnabled.withLock(\.self) { source.yield(frame) }
    }
}
