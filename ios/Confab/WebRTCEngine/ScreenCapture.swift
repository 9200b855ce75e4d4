import AppModel
import Confab
import CoreMedia
import CoreVideo
import Foundation
import ReplayKit
import WebRTC

/// The screen of this app. The system asks the person once per run.
actor ScreenCapture: VideoCapture {
    nonisolated let changes: AsyncStream<CaptureChange>
    nonisolated private let frames: ScreenFrames
    /// The recorder holds its delegate weakly.
    private let watcher: RecorderWatcher

    init(source: RTCVideoSource) {
        frames = ScreenFrames(source)
        let (changes, change) = AsyncStream.makeStream(of: CaptureChange.self, bufferingPolicy: .bufferingNewest(1))
        self.changes = changes
        watcher = RecorderWatcher(change)
    }

    /// The frames have the size of the screen, which can turn.
    nonisolated var size: VideoSize? { nil }

    func start() async throws(ConfabError) {
        let failure = await Self.record(into: frames, watcher)
        if let failure {
            throw ConfabError(
                .mediaFailed, "The screen is not shared. Press Share screen again to allow it.", cause: failure)
        }
    }

    func setEnabled(_ enabled: Bool) async { frames.isPaused.value = !enabled }

    func stop() async { await Self.stopRecording() }

    @MainActor private static func record(
        into frames: ScreenFrames, _ watcher: RecorderWatcher
    ) async -> (any Error)? {
        let recorder = RPScreenRecorder.shared()
        recorder.delegate = watcher
        // The microphone is a track of its own.
        recorder.isMicrophoneEnabled = false
        return await withCheckedContinuation { continuation in
            recorder.startCapture { @Sendable sample, kind, failure in
                if failure != nil { watcher.ended() } else if kind == .video { frames.send(sample) }
            } completionHandler: { @Sendable error in
                continuation.resume(returning: error)
            }
        }
    }

    @MainActor private static func stopRecording() async {
        await withCheckedContinuation { continuation in
            RPScreenRecorder.shared().stopCapture { @Sendable _ in continuation.resume() }
        }
    }
}

/// Hears that the system has stopped the recording: for a call, another recording, or because the person did it elsewhere.
private final class RecorderWatcher: NSObject, Sendable {
    private let change: AsyncStream<CaptureChange>.Continuation

    init(_ change: AsyncStream<CaptureChange>.Continuation) {
        self.change = change
        super.init()
    }

    func ended() { change.yield(.ended) }
}

extension RecorderWatcher: RPScreenRecorderDelegate {
    func screenRecorder(
        _ screenRecorder: RPScreenRecorder, didStopRecordingWith previewViewController: RPPreviewViewController?,
        error: (any Error)?
    ) {
        ended()
    }
}

/// Hands the frames of the screen to WebRTC, on the thread of the recorder.
private final class ScreenFrames: Sendable {
    let isPaused = Locked(false)
    private let pacer = Locked(FramePacer(framesPerSecond: FramePacer.screenRate))
    private let source: RTCVideoSource
    private let capturer: Locked<Capturer>

    private struct Capturer: @unchecked Sendable { let native: RTCVideoCapturer }

    init(_ source: RTCVideoSource) {
        self.source = source
        capturer = Locked(Capturer(native: RTCVideoCapturer(delegate: source)))
    }

    func send(_ sample: CMSampleBuffer) {
        guard !isPaused.value, let image = CMSampleBufferGetImageBuffer(sample) else { return }
        let seconds = CMTimeGetSeconds(CMSampleBufferGetPresentationTimeStamp(sample))
        guard let time = FramePacer.nanoseconds(seconds), pacer.withValue({ $0.accepts(time) }) else { return }
        let frame = RTCVideoFrame(buffer: RTCCVPixelBuffer(pixelBuffer: image), rotation: ._0, timeStampNs: time)
        source.capturer(capturer.value.native, didCapture: frame)
    }
}
