import Confab

/// The source of a local video track: a camera, the screen, or frames of an application.
public protocol VideoCapture: Actor {
    /// The size being captured, in pixels; nil if it is not known.
    nonisolated var size: VideoSize? { get }
    /// Changes caused by the system. Only one task may read them.
    nonisolated var changes: AsyncStream<CaptureChange> { get }
    /// Resumes or pauses capturing. The light of a paused camera is off.
    func setEnabled(_ enabled: Bool) async
    func stop() async
    /// Switches to the next camera, and returns the one in use afterwards.
    func flip() async throws(ConfabError) -> CameraFacing
    /// Changes the size or the frame rate.
    func change(to request: CameraRequest) async throws(ConfabError)
}

/// The defaults for sources without a camera: there is nothing to switch, and the source determines the size.
extension VideoCapture {
    public func flip() async throws(ConfabError) -> CameraFacing { .usual }
    public func change(to request: CameraRequest) async throws(ConfabError) {}
}

/// A track that an engine sends. While disabled, it sends silence or black.
public protocol SentTrack: AnyObject, Sendable {
    var isEnabled: Bool { get set }
}

/// The local tracks and the capture of the video. A microphone alone has no capture.
public struct CapturedMedia<Track: SentTrack>: Sendable {
    public let audio: Track?
    public let video: Track?
    public let capture: (any VideoCapture)?

    public init(audio: Track?, video: Track?, capture: (any VideoCapture)?) {
        (self.audio, self.video, self.capture) = (audio, video, capture)
    }

    public func track(_ kind: TrackKind) -> Track? {
        switch kind {
        case .audio: audio
        case .video: video
        }
    }

    public var size: VideoSize? { capture?.size }
    /// Changes caused by the system. A microphone alone is not interrupted, so its stream ends immediately.
    public var changes: AsyncStream<CaptureChange> { capture?.changes ?? AsyncStream { $0.finish() } }

    /// Turns the tracks on or off; nil leaves a track unchanged. A muted microphone stays open, so that unmuting is
    /// instant. Turning the video off also turns off the camera's light.
    public func setEnabled(audio isAudioOn: Bool?, video isVideoOn: Bool?) async {
        if let isAudioOn { audio?.isEnabled = isAudioOn }
        guard let isVideoOn else { return }
        video?.isEnabled = isVideoOn
        await capture?.setEnabled(isVideoOn)
    }

    /// Stops sending, and releases the devices.
    public func stop() async {
        audio?.isEnabled = false
        video?.isEnabled = false
        await capture?.stop()
    }

    /// Switches to the next camera, and returns the one in use afterwards. For media without a camera, returns the
    /// front camera.
    public func flip() async throws(ConfabError) -> CameraFacing { try await capture?.flip() ?? .usual }
    public func change(to request: CameraRequest) async throws(ConfabError) { try await capture?.change(to: request) }
}

extension CameraFacing {
    /// The default camera.
    public static let usual = CameraFacing.front
}

extension SwitchableCamera {
    /// Switches to this camera, or keeps it if it is already in use.
    ///
    /// - Throws: `media_failed` if the device has no such camera. The camera in use does not change then.
    public func use(_ wanted: CameraFacing) async throws(ConfabError) {
        // `switchCamera` selects the camera on the other side, or keeps the only one. If the wanted camera was already
        // in use, it selects another one, so switch back.
        guard try await switchCamera() != wanted else { return }
        guard try await switchCamera() == wanted else {
            throw ConfabError(.mediaFailed, "This device does not have that camera. The other one stays on.")
        }
    }
}
