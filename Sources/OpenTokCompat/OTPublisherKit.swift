import Confab
import Foundation

/// A stream of this client, without a view.
@preconcurrency @MainActor open class OTPublisherKit: NSObject {
    /// Receives the events of the stream.
    public weak var delegate: (any OTPublisherKitDelegate)?
    /// Receives the level of the local audio, about once a second, if the media engine measures it.
    public weak var audioLevelDelegate: (any OTPublisherKitAudioLevelDelegate)? { didSet { meter() } }
    /// Receives counters of the sent media, about once a second.
    public weak var networkStatsDelegate: (any OTPublisherKitNetworkStatsDelegate)? { didSet { meter() } }
    /// Receives the results of ``getRtcStatsReport()``.
    public weak var rtcStatsReportDelegate: (any OTPublisherKitRtcStatsReportDelegate)?
    /// The stream; nil unless it is published.
    public private(set) var stream: OTStream?
    /// The session; nil unless the stream is published or is about to be.
    public private(set) weak var session: OTSession?
    /// The name of the stream; nil if there is none.
    public let name: String?
    /// What the video shows. Set it before publishing. For a screen without a ``videoCapture``, the media engine
    /// captures the screen.
    public var videoType = OTPublisherKitVideoType.camera
    /// The capturer that provides the frames instead of a camera. Set it before publishing; nil for the camera of the
    /// media engine, which has no object of this type. A capturer requires an ``OTFrameEngine``.
    public var videoCapture: (any OTVideoCapture)?
    /// Not supported: it receives no frames. If it is set, the publisher reports error 1610 to its delegate when
    /// video is published, and continues to publish.
    public var videoRender: (any OTVideoRender)?
    /// Has no effect: the server decides whether to stop the video to a subscriber whose network cannot carry it.
    public var audioFallbackEnabled = true
    /// Has no effect: captions are not supported.
    public var publishCaptions: Bool
    /// Always empty: transformers are not supported.
    public var videoTransformers: [OTVideoTransformer] = []
    /// Always empty: transformers are not supported.
    public var audioTransformers: [OTAudioTransformer] = []

    private let request: CaptureRequest
    private let tracks: (audio: Bool, video: Bool)
    private let stopsVideo: Bool
    private var sends = (audio: true, video: true)
    private var live: MediaPublisher? { didSet { meter() } }
    private var life: Task<Void, Never>?
    private let counters = Meter()
    let requests = Requests()
    /// The captured media; nil before capturing has begun and after the stream has ended.
    private(set) var media: (any LocalMedia)?

    /// Creates a publisher. Capturing begins when it is published, and stops when the stream ends.
    public init?(delegate: (any OTPublisherKitDelegate)?, settings: OTPublisherKitSettings) {
        (self.delegate, name) = (delegate, settings.name)
        tracks = (settings.audioTrack, settings.videoTrack)
        stopsVideo = settings.publisherAudioFallbackEnabled
        request =
            settings.videoTrack ? .camera(settings.preset, withMicrophone: settings.audioTrack) : .microphone
        (videoCapture, publishCaptions) = (settings.capturer, settings.publishCaptions)
        super.init()
    }

    deinit { life?.cancel() }

    /// Whether audio is sent. If it is set before publishing, the stream begins with or without audio.
    public var publishAudio: Bool {
        get { sends.audio }
        set {
            sends.audio = newValue
            change { (live) async throws(ConfabError) in try await live.setAudio(newValue) }
        }
    }

    /// Whether video is sent. If it is set before publishing, the stream begins with or without video.
    public var publishVideo: Bool {
        get { sends.video }
        set {
            let wasOn = sends.video
            sends.video = newValue
            change { (live) async throws(ConfabError) in try await live.setVideo(newValue) }
            guard live != nil, newValue != wasOn else { return }
            if newValue {
                delegate?.publisherVideoEnabled(self, reason: .publisherPropertyChanged)
            } else {
                delegate?.publisherVideoDisabled(self, reason: .publisherPropertyChanged)
            }
        }
    }

    private final func change(_ request: @escaping @Sendable (MediaPublisher) async throws(ConfabError) -> Void) {
        guard let live else { return }
        requests.change {
            () async throws(ConfabError) in
            try await request(live)
        } onFailure: { [weak self] error in
            self?.report(error)
        }
    }

    // MARK: Life cycle

    func begin(in owner: OTSession, _ session: Session, _ client: ConfabClient) {
        self.session = owner
        let request = videoType == .screen ? .screen : request
        let capture = tracks.video ? videoCapture : nil
        let custom = capture.map {
            CustomCapture($0, isScreen: videoType == .screen, withMicrophone: tracks.audio)
        }
        let engine = owner.settings.frameEngine ?? OTConfab.frameEngine
        life = Task { [weak self] in
            var media: (any LocalMedia)?
            do throws(ConfabError) {
                let captured =
                    if let custom { try await custom.start(engine) } else { try await client.capture(request) }
                media = captured
                if let options = self?.start(captured), !Task.isCancelled {
                    let live = try await session.publish(captured, as: options)
                    // The application may have ended the stream or the session after the server's answer.
                    if Task.isCancelled || self?.session?.connection == nil {
                        Task { await live.unpublish() }
                    } else {
                        let events = live.events.makeAsyncIterator()
                        self?.published(live, with: options)
                        if options.audio, captured.hasAudio, !live.hasAudio { self?.muted() }
                        while let event = await events.next() { self?.hear(event) }
                    }
                }
            } catch {
                self?.report(error)
            }
            custom?.stop()
            await media?.stop()
            self?.ended()
        }
    }

    /// Prepares publishing after capturing has begun, and returns the options.
    private final func start(_ media: any LocalMedia) -> Session.PublishOptions {
        self.media = media
        captured(media)
        show(media.video)
        if videoRender != nil, media.video != nil { report(.noRender) }
        return options
    }

    /// The options for publishing.
    var options: Session.PublishOptions {
        Session.PublishOptions(
            name: name ?? "", videoKind: videoType == .screen ? .screen : .camera,
            audio: tracks.audio && sends.audio, video: tracks.video && sends.video, audioFallback: stopsVideo)
    }

    /// Handles the server's answer to the request to publish.
    ///
    /// - Parameter sent: the options of the request. The application may have changed some of them since.
    private final func published(_ live: MediaPublisher, with sent: Session.PublishOptions) {
        guard let session, let connection = session.connection else { return }
        self.live = live
        let stream = OTStream(live.stream, of: connection, in: session)
        self.stream = stream
        if sent.audio != (tracks.audio && sends.audio) { publishAudio = sends.audio }
        if sent.video != (tracks.video && sends.video) { publishVideo = sends.video }
        delegate?.publisher(self, streamCreated: stream)
    }

    func hear(_ event: MediaPublisher.Event) {
        switch event {
        case .muted: muted()
        case .failed(let error): report(error)
        case .videoWarning(true): delegate?.publisherVideoDisableWarning(self)
        case .videoWarning(false): delegate?.publisherVideoDisableWarningLifted(self)
        case .videoStopped: delegate?.publisherVideoDisabled(self, reason: .qualityChanged)
        case .videoResumed: delegate?.publisherVideoEnabled(self, reason: .qualityChanged)
        // `ended` needs no handling here, because the end of the events follows.
        case .ended, .quality, .layersWanted: break
        }
    }

    /// Handles a muted stream: a moderator muted it, or had muted everyone before it was published.
    private final func muted() {
        sends.audio = false
        delegate?.muteForced(self)
    }

    func report(_ error: ConfabError) {
        if error.code == .cancelled { return }
        delegate?.publisher(self, didFailWithError: OTError(publisher: error))
    }

    /// Ends the stream, or the attempt to publish it.
    func finish() {
        guard let live else { return life?.cancel() ?? () }
        Task { await live.unpublish() }
    }

    private final func ended() {
        session?.publishers.removeAll { $0 === self }
        let ended = stream
        (session, stream, live, life, media) = (nil, nil, nil, nil, nil)
        show(nil)
        if let ended { delegate?.publisher(self, streamDestroyed: ended) }
    }

    /// Called when capturing has begun. ``OTPublisher`` overrides it to select the camera.
    func captured(_ media: any LocalMedia) {}
    /// Shows the local video; nil for none. ``OTPublisher``, which has a view, overrides it.
    func show(_ source: (any VideoSource)?) {}

    // MARK: Counters

    private final func meter() {
        let isWanted = live != nil && (audioLevelDelegate != nil || networkStatsDelegate != nil)
        counters.run(isWanted) { [weak self] in await self?.measure() }
    }

    private final func measure() async {
        guard let live, let stream else { return }
        let counters = await live.statistics()
        if let level = counters.audioLevel { audioLevelDelegate?.publisher(self, audioLevelUpdated: level) }
        guard let delegate = networkStatsDelegate else { return }
        let since = stream.creationTime.milliseconds
        if let sent = counters.sum(.audio) {
            delegate.publisher(
                self, audioNetworkStatsUpdated: [OTPublisherKitAudioNetworkStats(sent, since: since)])
        }
        if let sent = counters.sum(.video) {
            delegate.publisher(
                self, videoNetworkStatsUpdated: [OTPublisherKitVideoNetworkStats(sent, since: since)])
        }
    }

    /// Requests all counters for ``rtcStatsReportDelegate``. Does nothing while the stream is not published.
    public func getRtcStatsReport() {
        guard let live, let connection = stream?.connection.connectionId else { return }
        Task { [weak self] in
            let report = OTPublisherRtcStats(connection, await live.statistics().json)
            if let self { rtcStatsReportDelegate?.publisher(self, rtcStatsReport: [report]) }
        }
    }
}
