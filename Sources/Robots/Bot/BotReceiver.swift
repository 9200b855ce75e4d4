import Confab
import ConfabHeadless

/// Reads the media of a subscriber until the stream ends, and then prints how much was received.
final class BotReceiver: Sendable {
    /// The stream being received.
    let stream: StreamID
    private let task: Task<Void, Never>

    /// - Parameter directory: the directory for recordings; nil to only count frames.
    init(_ subscriber: MediaSubscriber, directory: String?, tell: @escaping @Sendable (String) -> Void) {
        stream = subscriber.stream.id
        let recorder = StreamRecorder("\(stream)", directory: directory, tell: tell)
        task = Task { await Self.read(subscriber, into: recorder, tell: tell) }
    }

    deinit { task.cancel() }

    /// Stops reading, and completes the files.
    func end() async {
        task.cancel()
        await task.value
    }

    private static func read(
        _ subscriber: MediaSubscriber, into recorder: StreamRecorder, tell: @Sendable (String) -> Void
    ) async {
        let events = subscriber.events.makeAsyncIterator()
        var (video, audio) = (TrackReader(), TrackReader())
        while let event = await events.next() {
            if case .videoPaused(let reason) = event, recorder.isRecording {
                let why = reason == .codec ? "its codec is not VP8" : "the connection is too slow"
                tell("Video is not recorded: \(why)")
            }
            // Follow the current sources, because any event may mean that media now arrives from another source.
            await video.follow(subscriber.video as? EncodedSource, into: recorder, .vp8)
            await audio.follow((subscriber.audio as? EncodedTrack)?.source, into: recorder, .opus)
        }
        await video.end()
        await audio.end()
        await recorder.finish()
        tell(await recorder.summary)
    }
}

/// Reads the frames of one source after another.
private struct TrackReader {
    private var source: EncodedSource?
    private var task: Task<Void, Never>?

    mutating func follow(
        _ next: EncodedSource?, into recorder: StreamRecorder, _ codec: EncodedFrame.Codec
    ) async {
        guard let next, next !== source else { return }
        await end()
        await recorder.begin(codec)
        source = next
        let frames = next.frames
        task = Task { for await frame in frames { await recorder.take(frame) } }
    }

    /// Stops reading once the frames that are already buffered have been read. Canceling the task does not drop them.
    mutating func end() async {
        task?.cancel()
        await task?.value
        (source, task) = (nil, nil)
    }
}
