import AVFoundation
import AppModel
import Confab
import CoreMedia
import CoreVideo
import Foundation
import WebRTC

/// The camera. `AppModel` chooses the format.
actor CameraCapture: VideoCapture {
    nonisolated let changes: AsyncStream<CaptureChange>
    private let change: AsyncStream<CaptureChange>.Continuation
    nonisolated private let current = Locked<VideoSize?>(nil)
    private let capturer: RTCCameraVideoCapturer
    private let interruptions: Interruptions
    private var watching: Task<Void, Never>?
    private var isInterrupted = false
    private let limiter: LimitedSource
    private var request: CameraRequest?
    private var position = AVCaptureDevice.Position.front
    /// What the person wants. The camera follows as fast as it can.
    private var isOn = false

    init(source: RTCVideoSource) {
        limiter = LimitedSource(source)
        capturer = RTCCameraVideoCapturer(delegate: limiter)
        (changes, change) = AsyncStream.makeStream()
        interruptions = Interruptions(of: capturer.captureSession)
        // Has to be set before the session starts.
        let session = capturer.captureSession
        if session.isMultitaskingCameraAccessSupported { session.isMultitaskingCameraAccessEnabled = true }
    }

    nonisolated var size: VideoSize? { current.value }

    func start(_ request: CameraRequest) async throws(ConfabError) {
        (self.request, isOn) = (request, true)
        watching = Task { [weak self, changes = interruptions.changes] in
            for await isInterrupted in changes { await self?.interrupted(isInterrupted) }
        }
        try await run(request)
    }

    private func interrupted(_ isInterrupted: Bool) async {
        self.isInterrupted = isInterrupted
        change.yield(.interrupted(isInterrupted))
        if !isInterrupted, !isOn { await pause() }
    }

    /// Captures another size or rate, now or when the camera is turned on.
    func change(to request: CameraRequest) async throws(ConfabError) {
        self.request = request
        if isOn { try await run(request) }
    }

    private func run(_ request: CameraRequest) async throws(ConfabError) {
        let devices = RTCCameraVideoCapturer.captureDevices()
        guard let device = devices.first(where: { $0.position == position }) ?? devices.first else {
            throw ConfabError(.mediaFailed, "This device has no camera. You can join with sound only.")
        }
        let formats = RTCCameraVideoCapturer.supportedFormats(for: device)
        guard let choice = request.choose(from: formats.map(\.described)) else {
            throw ConfabError(.mediaFailed, "The camera offers no format. You can join with sound only.")
        }
        let format = formats[choice.index]
        let failure = await withCheckedContinuation { continuation in
            capturer.startCapture(with: device, format: format, fps: choice.frameRate) { @Sendable error in
                continuation.resume(returning: error)
            }
        }
        if let failure {
            throw ConfabError(
                .mediaFailed, "The camera could not be started. Another app may be using it.", isRetryable: true,
                cause: failure)
        }
        // The camera was turned off while it started.
        if !isOn { await pause() }
        let described = format.described
        current.value = VideoSize(width: described.width, height: described.height)
    }

    /// Continues with the other camera. The old one goes on if the other cannot be started. A camera that is off stays off.
    func flip() async throws(ConfabError) -> CameraFacing {
        let old = position
        position = old == .front ? .back : .front
        guard let request, isOn else { return position.facing }
        do {
            try await run(request)
        } catch {
            position = old
            throw error
        }
        return position.facing
    }

    func setEnabled(_ enabled: Bool) async {
        guard enabled != isOn, let request else { return }
        isOn = enabled
        // Failing to start leaves the video black. The person sees it in the own picture. A session that is interrupted
        // has no picture, and would not tell the end of the interruption if it were stopped.
        if enabled { try? await run(request) } else if !isInterrupted { await pause() }
    }

    /// The capturer must be stopped before it is released.
    func stop() async {
        (request, isOn) = (nil, false)
        watching?.cancel()
        change.finish()
        await pause()
    }

    private func pause() async {
        await withCheckedContinuation { continuation in
            capturer.stopCapture { @Sendable in continuation.resume() }
        }
    }
}

extension AVCaptureDevice.Position {
    fileprivate var facing: CameraFacing { self == .back ? .back : .front }
}

/// When the system takes the camera away and gives it back. The notifications come on any thread.
private final class Interruptions: @unchecked Sendable {
    let changes: AsyncStream<Bool>
    private let observers: [any NSObjectProtocol]

    init(of session: AVCaptureSession) {
        let (changes, change) = AsyncStream.makeStream(of: Bool.self, bufferingPolicy: .bufferingNewest(1))
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
    /// The format without the system's types.
    fileprivate var described: CameraFormat {
        let size = CMVideoFormatDescriptionGetDimensions(formatDescription)
        return CameraFormat(
            width: Int(size.width), height: Int(size.height),
            frameRates: videoSupportedFrameRateRanges.map { $0.minFrameRate...$0.maxFrameRate },
            isNV12: CMFormatDescriptionGetMediaSubType(formatDescription)
                == kCVPixelFormatType_420YpCbCr8BiPlanarVideoRange)
    }
}

/// Passes on the frames that ``FrameLimiter`` accepts. WebRTC calls it on the queue of the camera.
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
