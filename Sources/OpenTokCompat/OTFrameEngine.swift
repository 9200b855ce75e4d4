import Confab
import Foundation

// Features that are built into OpenTok's SDK. Here, a media engine may provide them. An engine without such a feature
// does not conform to the feature's protocol.

/// A media engine that sends the frames of an ``OTVideoCapture``.
///
/// ```swift
/// OTConfab.frameEngine = engine
/// ```
public protocol OTFrameEngine: MediaEngine {
    /// Creates media that sends the frames passed to it.
    ///
    /// - Parameters:
    ///   - isScreen: whether the frames show a screen.
    ///   - withMicrophone: whether the media includes the microphone's audio.
    func makeFrameMedia(isScreen: Bool, withMicrophone: Bool) async throws(ConfabError) -> any OTFrameMedia
}

/// Media whose video consists of the frames that are passed to it. Its methods may be called on any thread. An
/// implementation must copy the data that it keeps after a method returns.
public protocol OTFrameMedia: LocalMedia {
    /// Sends a frame.
    func send(_ frame: OTVideoFrame)
    /// Sends an image buffer.
    ///
    /// - Returns: false if it cannot be sent.
    func send(_ image: OTImageBuffer, orientation: OTVideoOrientation, at time: OTFrameTime) -> Bool
}

/// Media that can switch cameras while it is published.
public protocol OTSwitchableCamera: LocalMedia {
    /// Switches to the camera at this position. Capturing begins with the front camera.
    func use(_ position: OTCameraPosition) async throws(ConfabError)
}

extension ConfabError {
    static let noFrameEngine = ConfabError(
        .mediaFailed, "No engine sends this capturer's frames. Set OTConfab.frameEngine, or remove videoCapture.")
    static let capturerFailed = ConfabError(
        .mediaFailed, "The capturer did not start. Return 0 from its start method when it has started.")
    static let noCamera = ConfabError(
        .mediaFailed, "This media cannot switch cameras. Make it conform to OTSwitchableCamera.")
    static let noLight = ConfabError(
        .mediaFailed, "The media engine controls the torch and the zoom. Change them there.")
    static let noRender = ConfabError(
        .mediaFailed, "videoRender is not supported. Remove it and show the view, or draw in the media engine.")
}

/// An application's capturer, while its frames are published.
@MainActor final class CustomCapture {
    private let capturer: any OTVideoCapture
    private let isScreen: Bool
    private let withMicrophone: Bool
    /// Receives the capturer's frames; nil while nothing is captured. Held here, because the capturer may hold it
    /// weakly.
    private var consumer: FrameConsumer?

    init(_ capturer: any OTVideoCapture, isScreen: Bool, withMicrophone: Bool) {
        (self.capturer, self.isScreen, self.withMicrophone) = (capturer, isScreen, withMicrophone)
    }

    func start(_ engine: (any OTFrameEngine)?) async throws(ConfabError) -> any LocalMedia {
        guard let engine else { throw .noFrameEngine }
        let media = try await engine.makeFrameMedia(isScreen: isScreen, withMicrophone: withMicrophone)
        let consumer = FrameConsumer(media)
        self.consumer = consumer
        capturer.videoCaptureConsumer = consumer
        capturer.initCapture()
        _ = capturer.captureSettings(OTVideoFormat())
        guard capturer.start() == 0 else {
            stop()
            await media.stop()
            throw .capturerFailed
        }
        return media
    }

    func stop() {
        guard consumer != nil else { return }
        _ = capturer.stop()
        capturer.releaseCapture()
        (capturer.videoCaptureConsumer, consumer) = (nil, nil)
    }
}

/// Sends the frames of a capturer.
private final class FrameConsumer: OTVideoCaptureConsumer, Sendable {
    private let media: any OTFrameMedia

    init(_ media: any OTFrameMedia) { self.media = media }

    func consumeFrame(_ frame: OTVideoFrame) { media.send(frame) }

    func consumeImageBuffer(
        _ frame: OTImageBuffer, orientation: OTVideoOrientation, timestamp ts: OTFrameTime, metadata: Data?
    ) -> Bool {
        metadata == nil && media.send(frame, orientation: orientation, at: ts)
    }
}
