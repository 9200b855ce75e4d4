import AVFoundation
import AppModel
import Confab
import CoreMedia
import CoreVideo
import Foundation
import WebRTC

/// The camera as a media source. ``CameraDriver`` in `AppModel` decides what the camera does.
actor CameraCapture: VideoCapture {
    nonisolated private let current: Locked<VideoSize?>
    private let interruptions: AsyncStream<Bool>
    private let driver: CameraDriver

    init(source: RTCVideoSource) {
        let current = Locked<VideoSize?>(nil)
        let camera = SystemCamera(source)
        self.current = current
        interruptions = camera.interruptions.changes
        driver = CameraDriver(camera) { current.value = $0 }
    }

    nonisolated var size: VideoSize? { current.value }
    nonisolated var changes: AsyncStream<CaptureChange> { driver.changes }

    func start(_ request: CameraRequest) async throws(ConfabError) {
        try await driver.start(request, following: interruptions)
    }

    func change(to request: CameraRequest) async throws(ConfabError) { try await driver.change(to: request) }
    func flip() async throws(ConfabError) -> CameraFacing { try await driver.flip() }
    func setEnabled(_ enabled: Bool) async { await driver.setEnabled(enabled) }

    func stop() async { await driver.stop() }
}

/// The cameras of the device, captured with WebRTC.
private actor SystemCamera: CameraDevice {
    private let capturer: RTCCameraVideoCapturer
    /// The capturer's delegate. Retained here, because WebRTC holds it weakly.
    private let limiter: LimitedSource
    nonisolated let interruptions: Interruptions

    init(_ source: RTCVideoSource) {
        limiter = LimitedSource(source)
        capturer = RTCCameraVideoCapturer(delegate: limiter)
        interruptions = Interruptions(of: capturer.captureSession)
        let session = capturer.captureSession
        // This must be set before the capture session starts.
        if session.isMultitaskingCameraAccessSupported { session.isMultitaskingCameraAccessEnabled = true }
    }

    func run(
        _ request: CameraRequest, _ facing: CameraFacing
    ) async throws(ConfabError) -> (size: VideoSize, used: CameraFacing) {
        let devices = RTCCameraVideoCapturer.captureDevices()
        let formats = devices.map { RTCCameraVideoCapturer.supportedFormats(for: $0) }
        let cameras = zip(devices, formats).map {
            CameraDescription(facing: $0.position.facing, formats: $1.map(\.described))
        }
        let chosen = try request.select(facing, from: cameras)
        let (device, format) = (devices[chosen.camera], formats[chosen.camera][chosen.format])
        if let failure = await start(device, format, framesPerSecond: chosen.frameRate) {
            throw .cameraNotStarted(failure)
        }
        return (chosen.size, chosen.facing)
    }

    private func start(
        _ device: AVCaptureDevice, _ format: AVCaptureDevice.Format, framesPerSecond: Int
    ) async -> (any Error)? {
        await withCheckedContinuation { continuation in
            capturer.startCapture(with: device, format: format, fps: framesPerSecond) { @Sendable error in
                continuation.resume(returning: error)
            }
        }
    }

    func pause() async {
        await withCheckedContinuation { continuation in
            capturer.stopCapture { @Sendable in continuation.resume() }
        }
    }
}

extension AVCaptureDevice.Position {
    /// The direction the camera faces; nil for a camera that is not built into the device.
    var facing: CameraFacing? {
        switch self {
        case .front: .front
        case .back: .back
        case .unspecified: nil
        @unknown default: nil
        }
    }
}

/// Reports when the system takes the camera away from the app, and when it gives the camera back. The notifications
/// arrive on any thread.
private final class Interruptions: @unchecked Sendable {
    let changes: AsyncStream<Bool>
    private let observers: [any NSObjectProtocol]

    init(of session: AVCaptureSession) {
        let (changes, change) = AsyncStream.makeStream(
            of: Bool.self, bufferingPolicy: .bufferingNewest(EngineRules.maxUnreadInterruptions))
        self.changes = changes
        let names = [
            (AVCaptureSession.wasInterruptedNotification, true),
            (AVCaptureSession.interruptionEndedNotification, false),
        ]
        observers = names.map { name, isInterrupted in
            NotificationCenter.default.addObserver(forName: name, object: session, queue: nil) { @Sendable _ in
                change.yield(isInterrupted)
            }
        }
    }

    deinit { for observer in observers { NotificationCenter.default.removeObserver(observer) } }
}

extension AVCaptureDevice.Format {
    /// The format as a type that is independent of the system.
    fileprivate var described: CameraFormat {
        let size = CMVideoFormatDescriptionGetDimensions(formatDescription)
        return CameraFormat(
            width: Int(size.width), height: Int(size.height),
            frameRates: videoSupportedFrameRateRanges.map { $0.minFrameRate...$0.maxFrameRate },
            isNV12: CMFormatDescriptionGetMediaSubType(formatDescription)
                == kCVPixelFormatType_420YpCbCr8BiPlanarVideoRange)
    }
}

/// Forwards the frames that ``FrameLimiter`` accepts. WebRTC calls it on the camera's queue.
private final class LimitedSource: NSObject, Sendable {
    private let source: RTCVideoSource
    private let limiter = Locked(FrameLimiter())

    init(_ source: RTCVideoSource) {
        self.source = source
        super.init()
    }
}

extension LimitedSource: RTCVideoCapturerDelegate {
    func capturer(_ capturer: RTCVideoCapturer, didCapture frame: RTCVideoFrame) {
        if limiter.withValue({ $0.accepts(frame.timeStampNs) }) { source.capturer(capturer, didCapture: frame) }
    }
}
