import Broadcasting
import Datagrams
import LiveComposing
import MediaFiles
import RTC
import SFU
import Signaling
import Wire

/// What the recorder's thread has to do for a broadcast.
enum BroadcastFeedCommand: Sendable {
    /// Starts to feed a broadcast.
    case begin(BroadcastID, BroadcastFeed.Settings, any BroadcastSink)
    case add(BroadcastID, StreamID, RecordedStream)
    case remove(BroadcastID, StreamID)
    case setClasses(BroadcastID, StreamID, [String])
    case setLayout(BroadcastID, MediaFiles.ArchiveLayout)
    /// The compositor needs a keyframe of the stream with this number.
    case requestKeyframe(BroadcastID, UInt32)
    case end(BroadcastID)
}

/// Where the frames of a broadcast go.
protocol BroadcastSink: Sendable {
    /// The present time of the broadcast's timeline.
    var time: Duration { get }
    /// Takes a frame, a layout, or the begin or end of a stream. Never waits.
    func send(_ input: CompositorInput)
}

extension LiveBroadcast: BroadcastSink {}

/// A broadcast that is being composed: its streams, and where they are drawn.
///
/// It numbers streams for the compositor as the recorder numbers them in the rings. It belongs to the recorder's thread.
final class BroadcastFeed {
    /// What does not change while the broadcast runs.
    struct Settings: Sendable {
        var layout = MediaFiles.ArchiveLayout()
        var canvas = ArchiveCanvas()
        /// Whether the broadcast has audio.
        var hasAudio = true
        /// Whether the broadcast has video.
        var hasVideo = true

        /// The largest layer that is worth decoding, by its height in pixels.
        var maxHeight: Int { min(canvas.width, canvas.height) }
    }

    private let settings: Settings
    private let sink: any BroadcastSink
    private let source: any RecordingSource
    /// Our clock when the broadcast's timeline was 0.
    private let start: MediaTime
    private var scene: BroadcastScene
    private(set) var streams: [StreamID: BroadcastStream] = [:]

    init(_ settings: Settings, _ sink: any BroadcastSink, _ source: any RecordingSource, now: MediaTime) {
        (self.settings, self.sink, self.source) = (settings, sink, source)
        start = now - MediaInterval(sink.time)
        scene = BroadcastScene(settings.layout, on: settings.canvas)
    }

    /// Adds a stream, which is requested from the routers.
    ///
    /// - Returns: nil if the stream is there, or if there are too many.
    func add(_ id: StreamID, _ details: RecordedStream, as number: UInt32) -> BroadcastStream? {
        guard streams[id] == nil, streams.count < BroadcastRecord.maxStreams else { return nil }
        let stream = BroadcastStream(id, details, number, self)
        streams[id] = stream
        scene.add(
            number,
            .init(
                connection: "\(details.publisher)", classes: details.classes, isScreen: details.videoType == .screen,
                hasVideo: false))
        // Audio may come before the first keyframe.
        sink.send(.open(stream: number, nil, configuration: []))
        source.record(
            id, as: number,
            RecordingRequest(
                audio: settings.hasAudio && details.hasAudio, video: settings.hasVideo && details.hasVideo,
                maxHeight: settings.maxHeight, formats: Set(VideoPayloadFormat.allCases.filter(\.isRecordable))))
        return stream
    }

    /// Removes a stream. What the routers still send of it is ignored.
    ///
    /// - Returns: nil if it is not there.
    func remove(_ id: StreamID) -> BroadcastStream? {
        guard let stream = streams.removeValue(forKey: id) else { return nil }
        source.stopRecording(id, stream.number)
        scene.remove(stream.number)
        sink.send(.close(stream: stream.number))
        sendLayout()
        return stream
    }

    func setClasses(_ id: StreamID, _ classes: [String]) {
        guard let stream = streams[id] else { return }
        scene.update(stream.number) { $0.classes = classes }
        sendLayout()
    }

    func setLayout(_ layout: MediaFiles.ArchiveLayout) {
        scene.set(layout)
        sendLayout()
    }

    /// The stream has video that can be drawn now, or no longer has.
    func setVideo(_ stream: BroadcastStream, _ hasVideo: Bool) {
        scene.update(stream.number) { $0.hasVideo = hasVideo }
        sendLayout()
    }

    func requestKeyframe(ofNumber number: UInt32) {
        guard let stream = streams.values.first(where: { $0.number == number }) else { return }
        requestKeyframe(stream)
    }

    func requestKeyframe(_ stream: BroadcastStream) { source.requestKeyframe(of: stream.id, for: stream.number) }

    private func sendLayout() {
        if let layout = scene.change() { sink.send(.layout(layout, at: sink.time)) }
    }

    /// Passes on what has become of a stream's packets.
    func send(_ output: LiveFrames.Output, of stream: BroadcastStream) {
        let number = stream.number
        switch output {
        case .begin(let video):
            let (codec, configuration) = video.forCompositor
            sink.send(.open(stream: number, codec, configuration: configuration))
        case .endVideo: sink.send(.open(stream: number, nil, configuration: []))
        case .video(let time, let isKeyframe, let bytes):
            sink.send(.video(stream: number, at: position(time), isKeyframe: isKeyframe, bytes))
        case .audio(let time, let bytes): sink.send(.audio(stream: number, at: position(time), bytes))
        case .requestKeyframe: requestKeyframe(stream)
        }
    }

    /// A moment on the broadcast's timeline.
    private func position(_ time: MediaTime) -> Duration { max(.zero, .nanoseconds((time - start).nanoseconds)) }
}

/// A stream of a broadcast: assembles frames from its packets.
final class BroadcastStream: RingStream {
    let id: StreamID
    let number: UInt32
    private let details: RecordedStream
    private unowned let feed: BroadcastFeed
    private var frames = LiveFrames()
    private var hasVideoTrack = false
    private var isVideoForwarded = true

    init(_ id: StreamID, _ details: RecordedStream, _ number: UInt32, _ feed: BroadcastFeed) {
        (self.id, self.details, self.number, self.feed) = (id, details, number, feed)
    }

    func receive(_ packet: RecordingRingReader.Packet, now: MediaTime) {
        frames.take(isVideo: packet.isVideo, packet.orderly, now: now)
        sendFrames()
    }

    func receive(_ message: RecordingMessage, now: MediaTime) {
        switch message {
        case .tracks(_, let video):
            hasVideoTrack = video
            noteVideo()
        case .source(let format, let isNew): frames.begin(format, isNew: isNew, now: now)
        case .report(let isVideo, let ntp, let timestamp, let arrivedAt):
            frames.report(isVideo: isVideo, ntp: ntp, timestamp: timestamp, arrival: arrivedAt)
        case .forwarded(let isVideo, let isOn, _):
            frames.setForwarded(isVideo: isVideo, isOn, now: now)
            if isVideo {
                isVideoForwarded = isOn
                noteVideo()
            }
        // The hub removes the stream.
        case .ended: break
        }
        sendFrames()
    }

    func tick(now: MediaTime) {
        frames.tick(now: now)
        sendFrames()
    }

    private func noteVideo() { feed.setVideo(self, hasVideoTrack && isVideoForwarded) }

    private func sendFrames() { for output in frames.takeOutputs() { feed.send(output, of: self) } }
}

extension RecordedVideo {
    /// The codec and its parameters, as the compositor gets them.
    fileprivate var forCompositor: (CompositorCodec, [UInt8]) {
        switch self {
        case .vp8: (.vp8, [])
        case .vp9: (.vp9, [])
        case .h264(let configuration): (.h264, configuration)
        case .av1(let configuration): (.av1, configuration)
        }
    }
}
