/// Receives the events of a published stream, on the main thread.
@preconcurrency @MainActor public protocol OTPublisherKitDelegate: AnyObject {
    /// Media could not be captured or published, or the media engine reported an error.
    func publisher(_ publisher: OTPublisherKit, didFailWithError error: OTError)
    /// The stream is published. Optional.
    func publisher(_ publisher: OTPublisherKit, streamCreated stream: OTStream)
    /// The stream ended. Optional.
    func publisher(_ publisher: OTPublisherKit, streamDestroyed stream: OTStream)
    /// A moderator muted the stream. `publishAudio` unmutes it. Optional.
    func muteForced(_ publisher: OTPublisherKit)
    /// The video is no longer sent. Optional.
    func publisherVideoDisabled(_ publisher: OTPublisherKit, reason: OTPublisherVideoEventReason)
    /// Video is sent again. Optional.
    func publisherVideoEnabled(_ publisher: OTPublisherKit, reason: OTPublisherVideoEventReason)
    /// The video will stop unless the network improves. Only with
    /// ``OTPublisherKitSettings/publisherAudioFallbackEnabled``. Optional.
    func publisherVideoDisableWarning(_ publisher: OTPublisherKit)
    /// The network has improved. Optional.
    func publisherVideoDisableWarningLifted(_ publisher: OTPublisherKit)
}

extension OTPublisherKitDelegate {
    /// Does nothing.
    public func publisher(_ publisher: OTPublisherKit, streamCreated stream: OTStream) {}
    /// Does nothing.
    public func publisher(_ publisher: OTPublisherKit, streamDestroyed stream: OTStream) {}
    /// Does nothing.
    public func muteForced(_ publisher: OTPublisherKit) {}
    /// Does nothing.
    public func publisherVideoDisabled(_ publisher: OTPublisherKit, reason: OTPublisherVideoEventReason) {}
    /// Does nothing.
    public func publisherVideoEnabled(_ publisher: OTPublisherKit, reason: OTPublisherVideoEventReason) {}
    /// Does nothing.
    public func publisherVideoDisableWarning(_ publisher: OTPublisherKit) {}
    /// Does nothing.
    public func publisherVideoDisableWarningLifted(_ publisher: OTPublisherKit) {}
}

/// Why a publisher's video is disabled or enabled.
public enum OTPublisherVideoEventReason: Int, Sendable {
    /// The application set `publishVideo`.
    case publisherPropertyChanged = 1
    /// The quality of this device's network changed. Only with
    /// ``OTPublisherKitSettings/publisherAudioFallbackEnabled``.
    case qualityChanged = 3
}

/// Receives the events of an ``OTPublisher``.
@preconcurrency @MainActor public protocol OTPublisherDelegate: OTPublisherKitDelegate {
    /// Another camera is in use. Optional.
    func publisher(_ publisher: OTPublisher, didChangeCameraPosition position: OTCameraPosition)
}

extension OTPublisherDelegate {
    /// Does nothing.
    public func publisher(_ publisher: OTPublisher, didChangeCameraPosition position: OTCameraPosition) {}
}
