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
    public func flip() async throws(ConfabError) -> CameraFacing { .front }
    public func change(to request: CameraRequest) async throws(ConfabError) {}
}

/// What media does with its capture. A microphone alone has none.
public struct MediaCapture: Sendable {
    public let video: (any VideoCapture)?

    public init(_ video: (any VideoCapture)?) { self.video = video }

    public var size: VideoSize? { video?.size }
    /// What the system does to it. A microphone alone is not taken away, so its stream is over at once.
    public var changes: AsyncStream<CaptureChange> { video?.changes ?? AsyncStream { $0.finish() } }

    public func setEnabled(_ enabled: Bool) async { await video?.setEnabled(enabled) }
    public func stop() async { await video?.stop() }

    /// Uses the next camera, and returns the one that is used then: the front for media without a camera.
    public func flip() async throws(ConfabError) -> CameraFacing { try await video?.flip() ?? .front }
    public func change(to request: CameraRequest) async throws(ConfabError) { try await video?.change(to: request) }
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
