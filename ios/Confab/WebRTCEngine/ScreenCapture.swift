import AppModel
import Confab
import CoreMedia
import CoreVideo
import Foundation
import ReplayKit
import WebRTC

/// Captures the screen of this app. The system asks the user for permission once per launch of the app.
actor ScreenCapture: VideoCapture {
    nonisolated let changes: AsyncStream<CaptureChange>
    nonisolated private let frames: ScreenFrames
    /// The recorder's delegate. Retained here, because the recorder holds it weakly.
    private let watcher: RecorderWatcher

    init(source: RTCVideoSource) {
        frames = ScreenFrames(source)
        let (changes, change) = AsyncStream.makeStream(
            of: CaptureChange.self, bufferingPolicy: .bufferingNewest(EngineRules.maxUnreadChanges))
        self.changes = changes
        watcher = RecorderWatcher(change)
    }

    /// Nil, because the frames have the size of the screen, which can rotate.
    nonisolated var size: VideoSize? { nil }

    func start() async throws(ConfabError) {
        if let failure = await Self.record(into: frames, watcher) { throw .screenNotShared(failure) }
    }

    func setEnabled(_ enabled: Bool) async { frames.setPaused(!enabled) }

    /// Stops the recording. All captures share the system's one recorder, so `OwnMedia` runs their operations one at a
    /// time.
    func stop() async {
        await Self.stopRecording()
        watcher.finish()
    }

    @MainActor private static func record(
        into frames: ScreenFrames, _ watcher: RecorderWatcher
    ) async -> (any Error)? {
        let recorder = RPScreenRecorder.shared()
        recorder.delegate = watcher
        // Do not record the microphone, which has a separate track.
        recorder.isMicrophoneEnabled = false
        return await withCheckedContinuation { continuation in
            recorder.startCapture { @Sendable sample, kind, failure in
                frames.received(sample, ScreenRecording.Sample(sample, kind, failure)) { watcher.ended() }
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

/// Reports when the system ends the recording: because of a call or another recording, or because the user stopped it
/// outside the app.
private final class RecorderWatcher: NSObject, Sendable {
    private let change: AsyncStream<CaptureChange>.Continuation

    init(_ change: AsyncStream<CaptureChange>.Continuation) {
        self.change = change
        super.init()
    }

    func ended() { change.yield(.ended) }
    func finish() { change.finish() }
}

extension RecorderWatcher: RPScreenRecorderDelegate {
    func screenRecorder(
        _ screenRecorder: RPScreenRecorder, didStopRecordingWith previewViewController: RPPreviewViewController?,
        error: (any Error)?
    ) {
        ended()
    }
}

/// Passes the frames of the screen to WebRTC, on the recorder's thread.
private final class ScreenFrames: Sendable {
    private let recording = Locked(ScreenRecording())
    private let source: RTCVideoSource
    private let capturer: Locked<Capturer>

    /// WebRTC's capturer, marked as `Sendable` so that `Locked` can store it.
    private struct Capturer: @unchecked Sendable { let native: RTCVideoCapturer }

    init(_ source: RTCVideoSource) {
        self.source = source
        capturer = Locked(Capturer(native: RTCVideoCapturer(delegate: source)))
    }

    func setPaused(_ isPaused: Bool) { recording.withValue { $0.isPaused = isPaused } }

    func received(_ buffer: CMSampleBuffer, _ sample: ScreenRecording.Sample, ended: () -> Void) {
        switch recording.withValue({ $0.received(sample) }) {
        case .send(let time): send(buffer, time)
        case .drop: break
        case .ended: ended()
        }
    }

    private func send(_ buffer: CMSampleBuffer, _ time: Int64) {
        guard let image = CMSampleBufferGetImageBuffer(buffer) else { return }
        let frame = RTCVideoFrame(buffer: RTCCVPixelBuffer(pixelBuffer: image), rotation: ._0, timeStampNs: time)
        source.capturer(capturer.value.native, didCapture: frame)
    }
}

extension ScreenRecording.Sample {
    fileprivate init(_ buffer: CMSampleBuffer, _ kind: RPSampleBufferType, _ failure: (any Error)?) {
        guard failure == nil else {
            self = .failure
            return
        }
        switch kind {
        case .video: self = .picture(seconds: CMTimeGetSeconds(CMSampleBufferGetPresentationTimeStamp(buffer)))
        case .audioApp, .audioMic: self = .sound
        @unknown default: self = .sound
        }
    }
}
