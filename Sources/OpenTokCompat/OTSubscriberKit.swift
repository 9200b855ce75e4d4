import Confab
import Foundation

/// A stream of another client, without a view.
@preconcurrency @MainActor open class OTSubscriberKit: NSObject {
    /// Receives the events of the stream.
    public weak var delegate: (any OTSubscriberKitDelegate)?
    /// Receives the level of the audio, about once a second, if the media engine measures it.
    public weak var audioLevelDelegate: (any OTSubscriberKitAudioLevelDelegate)? { didSet { meter() } }
    /// Receives counters of the received media, about once a second.
    public weak var networkStatsDelegate: (any OTSubscriberKitNetworkStatsDelegate)? { didSet { meter() } }
    /// Receives the results of ``getRtcStatsReport()``.
    public weak var rtcStatsReportDelegate: (any OTSubscriberKitRtcStatsReportDelegate)?
    /// Receives captions. Never called: captions are not supported.
    public weak var captionsDelegate: (any OTSubscriberKitCaptionsDelegate)?
    /// Has no effect: captions are not supported.
    public var subscribeToCaptions = false
    /// Not supported: it receives no frames. If it is set, the subscriber reports error 1600 to its delegate when
    /// video arrives, and continues to receive.
    public var videoRender: (any OTVideoRender)?
    /// The received stream.
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
    private let counters = Meter()
    private var live: MediaSubscriber? { didSet { meter() } }
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

    /// The volume, from 0 (silent) to 100 (unchanged). Other values are limited to this range.
    public var audioVolume: Double {
        get { volume }
        set {
            guard newValue.isFinite else { return }
            volume = min(max(newValue, 0), 100)
            if let live { requests.add { [volume] in await live.setVolume(volume / 100) } }
        }
    }

    /// The size at which the video is shown, in pixels; zero for the largest. Only in routed sessions.
    public var preferredResolution: CGSize {
        get { resolution }
        set {
            resolution = newValue
            prefer()
        }
    }

    /// The maximum number of frames per second; zero for no maximum. Only in routed sessions.
    public var preferredFrameRate: Float {
        get { frameRate }
        set {
            frameRate = newValue
            prefer()
        }
    }

    private final func prefer() {
        /// Converts a value to a whole number; nil if it is below 1. The upper limit only keeps the conversion from
        /// trapping, because the protocol enforces the exact limits.
        func whole(_ value: Double) -> Int? { value >= 1 ? Int(min(value, 1_000_000).rounded()) : nil }
        options.frameRate = whole(Double(frameRate))
        options.size = whole(Double(resolution.width)).flatMap { width in
            whole(Double(resolution.height)).map { VideoSize(width: width, height: $0) }
        }
        // The SDK cannot reset the size to none, so set the maximum size, which no video exceeds.
        let (size, rate) = (options.size ?? VideoSize(width: 16384, height: 16384), options.frameRate)
        change { (live) async throws(ConfabError) in
            try await live.prefer(width: size.width, height: size.height, frameRate: rate)
        }
    }

    private final func change(_ request: @escaping @Sendable (MediaSubscriber) async throws(ConfabError) -> Void) {
        guard let live else { return }
        requests.change {
            () async throws(ConfabError) in
            try await request(live)
        } onFailure: { [weak self] error in
            self?.report(error)
        }
    }

    // MARK: Life cycle

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

    /// Handles the server's answer to the request to subscribe.
    ///
    /// - Parameter sent: the options of the request. The application may have changed some of them since.
    private final func subscribed(_ live: MediaSubscriber, with sent: Session.SubscribeOptions) async {
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

    private final func hear(_ event: MediaSubscriber.Event) {
        switch event {
        case .connected:
            show(live?.video)
            if videoRender != nil, live?.video != nil { report(.noRender) }
            delegate?.subscriberDidConnect(toStream: self)
            isReceiving = true
            if hasPicture { arrived() }
        case .firstFrame:
            // The first frame may arrive before the audio, and so before `connected`. OpenTok reports the frame only
            // after `subscriberDidConnect`, so in this case it is reported at `connected`.
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
        // `ended` needs no handling here, because the end of the events follows.
        case .ended, .layer, .quality, .limited, .audioLevel: break
        }
    }

    /// Reports that the publisher turned the stream's video on or off.
    func publisherChangedVideo() { tellVideo(stream?.hasVideo ?? false, .publisherPropertyChanged) }

    private final func tellVideo(_ isOn: Bool, _ reason: OTSubscriberVideoEventReason) {
        if isOn {
            delegate?.subscriberVideoEnabled(self, reason: reason)
        } else {
            delegate?.subscriberVideoDisabled(self, reason: reason)
        }
    }

    private final func report(_ error: ConfabError) {
        if error.code == .cancelled { return }
        delegate?.subscriber(self, didFailWithError: OTError(subscriber: error))
    }

    /// Ends the subscription, or the attempt to subscribe.
    func finish() {
        guard let live else { return life?.cancel() ?? () }
        Task { await live.unsubscribe() }
    }

    private final func ended() {
        session?.subscribers.removeAll { $0 === self }
        (session, live, life, isReceiving, hasPicture) = (nil, nil, nil, false, false)
        show(nil)
    }

    /// Called when the first frame has arrived. ``OTSubscriber`` overrides it to notify the delegate.
    func arrived() {}
    /// Shows the video; nil for none. ``OTSubscriber``, which has a view, overrides it.
    func show(_ source: (any VideoSource)?) {}

    // MARK: Counters

    private final func meter() {
        let isWanted = live != nil && (audioLevelDelegate != nil || networkStatsDelegate != nil)
        counters.run(isWanted) { [weak self] in await self?.measure() }
    }

    private final func measure() async {
        guard let live else { return }
        let counters = await live.statistics()
        if let level = counters.audioLevel { audioLevelDelegate?.subscriber(self, audioLevelUpdated: level) }
        guard let delegate = networkStatsDelegate else { return }
        if let received = counters.sum(.audio) {
            delegate.subscriber(self, audioNetworkStatsUpdated: OTSubscriberKitAudioNetworkStats(received))
        }
        if let received = counters.sum(.video) {
            delegate.subscriber(self, videoNetworkStatsUpdated: OTSubscriberKitVideoNetworkStats(received))
        }
    }

    /// Requests all counters for ``rtcStatsReportDelegate``. Does nothing while the stream is not received.
    public func getRtcStatsReport() {
        guard let live else { return }
        Task { [weak self] in
            let report = await live.statistics().json
            if let self { rtcStatsReportDelegate?.subscriber(self, rtcStatsReport: report) }
        }
    }
}
