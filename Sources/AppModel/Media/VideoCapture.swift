import Confab

/// What feeds a video track of this device: a camera, the screen, or frames of an application.
public protocol VideoCapture: Actor {
    /// The size in pixels that is captured; nil if it is not known.
    nonisolated var size: VideoSize? { get }
    /// What the system does to it. There is one reader.
    nonisolated var changes: AsyncStream<CaptureChange> { get }
    /// Captures again or pauses, so that a camera that is off shows no light.
    func setEnabled(_ enabled: Bool) async
    func stop() async
    /// Uses the next camera, and returns the one that is used then.
    func flip() async throws(ConfabError) -> CameraFacing
    /// Captures another size or rate from now on.
    func change(to request: CameraRequest) async throws(ConfabError)
}

/// Without cameras there is nothing to switch, and the source says what the size is.
extension VideoCapture {
    public func flip() async throws(ConfabError) -> CameraFacing { .usual }
    public func change(to request: CameraRequest) async throws(ConfabError) {}
}

/// A track that an engine sends. A track that is not enabled sends silence or black.
public protocol SentTrack: AnyObject, Sendable {
    var isEnabled: Bool { get set }
}

/// The tracks that this device sends, and what captures the video. A microphone alone has no capture.
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
    /// What the system does to it. A microphone alone is not taken away, so its stream is over at once.
    public var changes: AsyncStream<CaptureChange> { capture?.changes ?? AsyncStream { $0.finish() } }

    /// Turns the tracks on or off; nil leaves one as it is. A microphone that is off stays open, so that it is on again at once. A
    /// camera that is off shows no light.
    public func setEnabled(audio isAudioOn: Bool?, video isVideoOn: Bool?) async {
        if let isAudioOn { audio?.isEnabled = isAudioOn }
        guard let isVideoOn else { return }
        video?.isEnabled = isVideoOn
        await capture?.setEnabled(isVideoOn)
    }

    /// Sends nothing more, and gives the device back.
    public func stop() async {
        audio?.isEnabled = false
        video?.isEnabled = false
        await capture?.stop()
    }

    /// Uses the next camera, and returns the one that is used then: the front for media without a camera.
    public func flip() async throws(ConfabError) -> CameraFacing { try await capture?.flip() ?? .usual }
    public func change(to request: CameraRequest) async throws(ConfabError) { try await capture?.change(to: request) }
}

extension CameraFacing {
    /// The camera that is used if no other one is asked for.
    public static let usual = CameraFacing.front
}

extension SwitchableCamera {
    /// Uses this camera, and no other one if the device does not have it.
    ///
    /// - Throws: `media_failed` if the device has no such camera. The other one goes on.
    public func use(_ wanted: CameraFacing) async throws(ConfabError) {
        // It changes sides, or stays if the device has one camera.
        guard try await switchCamera() != wanted else { return }
        guard try await switchCamera() == wanted else {
            throw ConfabError(.mediaFailed, "This device cannot use that camera. The other one goes on.")
        }
    }
}
