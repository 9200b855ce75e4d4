import Confab
import Foundation

#if canImport(UIKit)
import UIKit
#endif

/// Hears what happens to a stream that is received, on the main thread.
@preconcurrency @MainActor public protocol OTSubscriberKitDelegate: AnyObject {
    /// Media arrives.
    func subscriberDidConnect(toStream subscriber: OTSubscriberKit)
    /// The stream could not be received, or the media engine reported an error.
    func subscriber(_ subscriber: OTSubscriberKit, didFailWithError error: OTError)
    /// Media no longer arrives. The SDK restores it by itself. Optional.
    func subscriberDidDisconnect(fromStream subscriber: OTSubscriberKit)
    /// Media arrives again. Optional.
    func subscriberDidReconnect(toStream subscriber: OTSubscriberKit)
    /// No video arrives for now. Optional.
    func subscriberVideoDisabled(_ subscriber: OTSubscriberKit, reason: OTSubscriberVideoEventReason)
    /// Video arrives again. Optional.
    func subscriberVideoEnabled(_ subscriber: OTSubscriberKit, reason: OTSubscriberVideoEventReason)
    /// The video will be disabled if the network gets worse. Optional.
    func subscriberVideoDisableWarning(_ subscriber: OTSubscriberKit)
    /// The network is better. Optional.
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

/// Hears what happens to an ``OTSubscriber``.
@preconcurrency @MainActor public protocol OTSubscriberDelegate: OTSubscriberKitDelegate {
    /// The first picture arrived. Optional.
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
    /// The network of this device.
    case qualityChanged = 3
    /// This device cannot decode the codec.
    case codecNotSupported = 4
}

/// A stream of another client, without a view.
@preconcurrency @MainActor public class OTSubscriberKit: NSObject {
    /// Hears what happens to the stream.
    public weak var delegate: (any OTSubscriberKitDelegate)?
    /// What is received.
    public let stream: OTStream?
    /// The session; nil unless the stream is received or is about to be.
    public private(set) weak var session: OTSession?

    private var options = Session.SubscribeOptions()
    private var volume = 100.0
    private var resolution = CGSize.zero
    private var frameRate: Float = 0
    private var pause = OTSubscriberVideoEventReason.qualityChanged
    private var isReceiving = false
    private var hasPicture = false
    private var live: MediaSubscriber?
    private var life: Task<Void, Never>?
    private let requests = Requests()

    /// Creates a subscriber.
    public init?(stream: OTStream, delegate: (any OTSubscriberKitDelegate)?) {
        (self.stream, self.delegate) = (stream, delegate)
        super.init()
    }

    deinit { life?.cancel() }

    /// Whether audio is received.
    public var subscribeToAudio: Bool {
        get { options.audio }
        set {
            options.audio = newValue
            change { (live) async throws(ConfabError) in try await live.setAudio(newValue) }
        }
    }

    /// Whether video is received.
    public var subscribeToVideo: Bool {
        get { options.video }
        set {
            guard newValue != options.video else { return }
            options.video = newValue
            change { (live) async throws(ConfabError) in try await live.setVideo(newValue) }
            if live != nil { tellVideo(newValue, .subscriberPropertyChanged) }
        }
    }

    /// The volume from 0, silent, to 100, unchanged.
    public var audioVolume: Double {
        get { volume }
        set {
            guard newValue.isFinite else { return }
            volume = min(max(newValue, 0), 100)
            if let live { requests.add { [volume] in await live.setVolume(volume / 100) } }
        }
    }

    /// The size in which the video is shown, in pixels; zero for the largest. Only in routed sessions.
    public var preferredResolution: CGSize {
        get { resolution }
        set {
            resolution = newValue
            prefer()
        }
    }

    /// The maximum frames per second; zero for no maximum. Only in routed sessions.
    public var preferredFrameRate: Float {
        get { frameRate }
        set {
            frameRate = newValue
            prefer()
        }
    }

    private func prefer() {
        /// The protocol has the exact limits; these keep the conversion from trapping.
        func whole(_ value: Double) -> Int? { value >= 1 ? Int(min(value, 1_000_000).rounded()) : nil }
        options.frameRate = whole(Double(frameRate))
        options.size = whole(Double(resolution.width)).flatMap { width in
            whole(Double(resolution.height)).map { VideoSize(width: width, height: $0) }
        }
        // The SDK has no way back to no size, but no video is larger than this.
        let (size, rate) = (options.size ?? VideoSize(width: 16384, height: 16384), options.frameRate)
        change { (live) async throws(ConfabError) in
            try await live.prefer(width: size.width, height: size.height, frameRate: rate)
        }
    }

    private func change(_ request: @escaping @Sendable (MediaSubscriber) async throws(ConfabError) -> Void) {
        guard let live else { return }
        requests.change {
            () async throws(ConfabError) in
            try await request(live)
        } onFailure: { [weak self] error in
            self?.report(error)
        }
    }

    // MARK: Life

    func begin(in owner: OTSession, _ session: Session) {
        guard let media = stream?.media else { return }
        self.session = owner
        let options = options
        life = Task { [weak self] in
            do throws(ConfabError) {
                let live = try await session.subscribe(to: media, options)
                if Task.isCancelled {
                    Task { await live.unsubscribe() }
                } else {
                    let events = live.events.makeAsyncIterator()
                    await self?.subscribed(live, with: options)
                    while let event = await events.next() { self?.hear(event) }
                }
            } catch {
                self?.report(error)
            }
            self?.ended()
        }
    }

    /// - Parameter sent: the options of the request. Some may have been changed meanwhile.
    private func subscribed(_ live: MediaSubscriber, with sent: Session.SubscribeOptions) async {
        self.live = live
        if volume != 100 { await live.setVolume(volume / 100) }
        let now = options
        if now.audio != sent.audio {
            change { (live) async throws(ConfabError) in try await live.setAudio(now.audio) }
        }
        if now.video != sent.video {
            change { (live) async throws(ConfabError) in try await live.setVideo(now.video) }
        }
        if now.size != sent.size || now.frameRate != sent.frameRate { prefer() }
    }

    private func hear(_ event: MediaSubscriber.Event) {
        switch event {
        case .connected:
            show(live?.video)
            delegate?.subscriberDidConnect(toStream: self)
            isReceiving = true
            if hasPicture { arrived() }
        case .firstFrame:
            // It may come before audio, and so before `connected`. OpenTok tells it afterwards.
            if isReceiving { arrived() }
            hasPicture = true
        case .dropped: delegate?.subscriberDidDisconnect(fromStream: self)
        case .resumed:
            show(live?.video)
            delegate?.subscriberDidReconnect(toStream: self)
        case .tracksChanged: show(live?.video)
        case .videoPaused(let reason):
            pause = reason == .codec ? .codecNotSupported : .qualityChanged
            tellVideo(false, pause)
        case .videoResumed: tellVideo(true, pause)
        case .warning(true): delegate?.subscriberVideoDisableWarning(self)
        case .warning(false): delegate?.subscriberVideoDisableWarningLifted(self)
        case .failed(let error): report(error)
        // The end of the events follows.
        case .ended, .layer, .quality, .limited, .audioLevel: break
        }
    }

    /// The stream's video was turned on or off by its publisher.
    func publisherChangedVideo() { tellVideo(stream?.hasVideo ?? false, .publisherPropertyChanged) }

    private func tellVideo(_ isOn: Bool, _ reason: OTSubscriberVideoEventReason) {
        if isOn {
            delegate?.subscriberVideoEnabled(self, reason: reason)
        } else {
            delegate?.subscriberVideoDisabled(self, reason: reason)
        }
    }

    private func report(_ error: ConfabError) {
        if error.code == .cancelled { return }
        delegate?.subscriber(self, didFailWithError: OTError(subscriber: error))
    }

    /// Ends the subscription, or the attempt to subscribe.
    func finish() {
        guard let live else { return life?.cancel() ?? () }
        Task { await live.unsubscribe() }
    }

    private func ended() {
        session?.subscribers.removeAll { $0 === self }
        (session, live, life, isReceiving, hasPicture) = (nil, nil, nil, false, false)
        show(nil)
    }

    /// The first picture arrived.
    func arrived() {}
    /// Shows the pictures.
    func show(_ source: (any VideoSource)?) {}
}

/// A stream of another client, with a view of its pictures.
@preconcurrency @MainActor public class OTSubscriber: OTSubscriberKit {
    override func arrived() { (delegate as? any OTSubscriberDelegate)?.subscriberVideoDataReceived(self) }

    #if canImport(UIKit)
    private let picture = VideoPicture()

    /// The pictures, black while there are none.
    public var view: UIView? { picture.view }
    /// How the pictures fill the view.
    public var viewScaleBehavior: OTVideoViewScaleBehavior {
        get { picture.behavior }
        set { picture.behavior = newValue }
    }

    override func show(_ source: (any VideoSource)?) {
        picture.show(source, isMirrored: false)
    }
    #endif
}
