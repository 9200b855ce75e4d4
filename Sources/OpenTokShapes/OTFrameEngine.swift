import Confab
import Foundation

// What OpenTok's SDK does itself and a media engine does here. An engine that cannot do it does not conform.

/// A media engine that sends the frames of an ``OTVideoCapture``.
///
/// ```swift
/// OTConfab.frameEngine = engine
/// ```
public protocol OTFrameEngine: MediaEngine {
    /// Makes media that sends the frames that it is given.
    ///
    /// - Parameters:
    ///   - isScreen: whether the frames show a screen.
    ///   - withMicrophone: whether the media has the audio of the microphone.
    func makeFrameMedia(isScreen: Bool, withMicrophone: Bool) async throws(ConfabError) -> any OTFrameMedia
}

/// Media whose video is the frames that it is given, on any thread. It copies what it keeps of them.
public protocol OTFrameMedia: LocalMedia {
    /// Sends a frame.
    func send(_ frame: OTVideoFrame)
    /// Sends a picture.
    ///
    /// - Returns: false if it cannot be sent.
    func send(_ image: OTImageBuffer, orientation: OTVideoOrientation, at time: OTFrameTime) -> Bool
}

/// Media with a camera that can be changed while it is published.
public protocol OTSwitchableCamera: LocalMedia {
    /// Captures with the camera at this position from now on. It begins with the front camera.
    func use(_ position: OTCameraPosition) async throws(ConfabError)
}

extension ConfabError {
    static let noFrameEngine = ConfabError(
        .mediaFailed, "Nothing sends the frames of this capturer. Set OTConfab.frameEngine, or remove videoCapture.")
    static let capturerFailed = ConfabError(
        .mediaFailed, "The capturer did not start. Return 0 from its start method when it has started.")
    static let noCamera = ConfabError(
        .mediaFailed, "This media has no camera that can be changed. Make it an OTSwitchableCamera.")
    static let noLight = ConfabError(
        .mediaFailed, "The torch and the zoom belong to the media engine. Change them there.")
    static let noRender = ConfabError(
        .mediaFailed, "A videoRender gets no frames. Remove it and show the view, or draw in the media engine.")
}

/// An application's capturer, while its frames are published.
@MainActor final class CustomCapture {
    private let capturer: any OTVideoCapture
    private let isScreen: Bool
    private let withMicrophone: Bool
    /// Capturers may hold it weakly.
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
