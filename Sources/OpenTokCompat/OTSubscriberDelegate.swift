/// Receives the events of a received stream, on the main thread.
@preconcurrency @MainActor public protocol OTSubscriberKitDelegate: AnyObject {
    /// Media has started to arrive.
    func subscriberDidConnect(toStream subscriber: OTSubscriberKit)
    /// The stream could not be received, or the media engine reported an error.
    func subscriber(_ subscriber: OTSubscriberKit, didFailWithError error: OTError)
    /// Media no longer arrives. The SDK restores the connection automatically. Optional.
    func subscriberDidDisconnect(fromStream subscriber: OTSubscriberKit)
    /// Media arrives again. Optional.
    func subscriberDidReconnect(toStream subscriber: OTSubscriberKit)
    /// Video no longer arrives. Optional.
    func subscriberVideoDisabled(_ subscriber: OTSubscriberKit, reason: OTSubscriberVideoEventReason)
    /// Video arrives again. Optional.
    func subscriberVideoEnabled(_ subscriber: OTSubscriberKit, reason: OTSubscriberVideoEventReason)
    /// The video will be disabled if the network gets worse. Optional.
    func subscriberVideoDisableWarning(_ subscriber: OTSubscriberKit)
    /// The network has improved. Optional.
    func subscriberVideoDisableWarningLifted(_ subscriber: OTSubscriberKit)
}

extension OTSubscriberKitDelegate {
    /// Does nothing.
    public func subscriberDidDisconnect(fromStream subscriber: OTSubscriberKit) {}
    /// Does nothing.
    public func subscriberDidReconnect(toStream subscriber: OTSubscriberKit) {}
    /// Does nothing.
    public func subscriberVideoDisabled(_ subscriber: OTSubscriberKit, reason: OTSubscriberVideoEventReason) {}
    /// Does nothing.
    public func subscriberVideoEnabled(_ subscriber: OTSubscriberKit, reason: OTSubscriberVideoEventReason) {}
    /// Does nothing.
    public func subscriberVideoDisableWarning(_ subscriber: OTSubscriberKit) {}
    /// Does nothing.
    public func subscriberVideoDisableWarningLifted(_ subscriber: OTSubscriberKit) {}
}

/// Receives the events of an ``OTSubscriber``.
@preconcurrency @MainActor public protocol OTSubscriberDelegate: OTSubscriberKitDelegate {
    /// The first frame arrived. Optional.
    func subscriberVideoDataReceived(_ subscriber: OTSubscriber)
}

extension OTSubscriberDelegate {
    /// Does nothing.
    public func subscriberVideoDataReceived(_ subscriber: OTSubscriber) {}
}

/// Why video is disabled or enabled.
public enum OTSubscriberVideoEventReason: Int, Sendable {
    /// The publisher turned its video off or on.
    case publisherPropertyChanged = 1
    /// The application set `subscribeToVideo`.
    case subscriberPropertyChanged = 2
    /// The quality of this device's network changed.
    case qualityChanged = 3
    /// This device cannot decode the codec.
    case codecNotSupported = 4
}
