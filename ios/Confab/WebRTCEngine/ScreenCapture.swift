import AppModel
import Confab
import CoreMedia
import CoreVideo
import Foundation
import ReplayKit
import WebRTC

/// The screen of this app. The system asks the person once per run.
actor ScreenCapture: VideoCapture {
    nonisolated private let frames: ScreenFrames
    private var isEnabled = true

    init(source: RTCVideoSource) { frames = ScreenFrames(source) }

    /// The frames have the size of the screen, which can turn.
    nonisolated var size: VideoSize? { nil }

    func start() async throws(ConfabError) {
        let failure = await Self.record(into: frames)
        if let failure {
            throw ConfabError(
                .mediaFailed, "The screen is not shared. Press Share screen again to allow it.", cause: failure)
        }
    }

    func setEnabled(_ enabled: Bool) async { frames.isPaused.value = !enabled }

    func stop() async { await Self.stopRecording() }

    @MainActor private static func record(into frames: ScreenFrames) async -> (any Error)? {
        let recorder = RPScreenRecorder.shared()
        // The microphone is a track of its own.
        recorder.isMicrophoneEnabled = false
        return await withCheckedContinuation { continuation in
            recorder.startCapture { @Sendable sample, kind, _ in
                if kind == .video { frames.send(sample) }
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
