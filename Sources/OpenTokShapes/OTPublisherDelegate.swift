/// Hears what happens to a published stream, on the main thread.
@preconcurrency @MainActor public protocol OTPublisherKitDelegate: AnyObject {
    /// Media could not be captured or published, or the media engine reported an error.
    func publisher(_ publisher: OTPublisherKit, didFailWithError error: OTError)
    /// The stream is published. Optional.
    func publisher(_ publisher: OTPublisherKit, streamCreated stream: OTStream)
    /// The stream ended. Optional.
    func publisher(_ publisher: OTPublisherKit, streamDestroyed stream: OTStream)
    /// A moderator muted the stream. `publishAudio` unmutes it. Optional.
    func muteForced(_ publisher: OTPublisherKit)
    /// No video is sent for now. Optional.
    func publisherVideoDisabled(_ publisher: OTPublisherKit, reason: OTPublisherVideoEventReason)
    /// Video is sent again. Optional.
    func publisherVideoEnabled(_ publisher: OTPublisherKit, reason: OTPublisherVideoEventReason)
    /// The video will stop if the network gets worse. It is never called: the video does not stop. Optional.
    func publisherVideoDisableWarning(_ publisher: OTPublisherKit)
    /// The network is better. It is never called. Optional.
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
    /// The network of this device. It does not occur.
    case qualityChanged = 3
}

/// Hears what happens to an ``OTPublisher``.
@preconcurrency @MainActor public protocol OTPublisherDelegate: OTPublisherKitDelegate {
    /// Another camera is used. Optional.
    func publisher(_ publisher: OTPublisher, didChangeCameraPosition position: OTCameraPosition)
}

extension OTPublisherDelegate {
    /// Does nothing.
    public func publisher(_ publisher: OTPublisher, didChangeCameraPosition position: OTCameraPosition) {}
}
