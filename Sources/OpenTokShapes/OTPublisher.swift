import Confab
import Foundation

#if canImport(UIKit)
import UIKit
#endif

/// How to publish. Media is captured by the media engine of the session's client.
@preconcurrency @MainActor public class OTPublisherSettings: NSObject {
    /// The name of the stream, at most 256 bytes; nil for none.
    public var name: String?
    /// Whether the stream has audio.
    public var audioTrack = true
    /// Whether the stream has video.
    public var videoTrack = true
    /// The size to capture.
    public var cameraResolution = OTCameraCaptureResolution.medium
    /// The frames per second to capture.
    public var cameraFrameRate = OTCameraCaptureFrameRate.rate30FPS
}

/// The size of a camera's video.
public enum OTCameraCaptureResolution: Int, Sendable {
    /// 352 × 288.
    case low
    /// 640 × 480.
    case medium
    /// 1280 × 720.
    case high
    /// 1920 × 1080.
    case high1080p

    fileprivate var size: VideoSize {
        switch self {
        case .low: CapturePreset.small.size
        case .medium: CapturePreset.standard.size
        case .high: CapturePreset.high.size
        case .high1080p: VideoSize(width: 1920, height: 1080)
        }
    }
}

/// The frame rate of a camera's video.
public enum OTCameraCaptureFrameRate: Int, Sendable {
    /// 30 frames per second.
    case rate30FPS = 30
    /// 15 frames per second.
    case rate15FPS = 15
    /// 7 frames per second.
    case rate7FPS = 7
    /// 1 frame per second.
    case rate1FPS = 1
}

/// What a publisher's video shows.
public enum OTPublisherKitVideoType: Int, Sendable {
    /// What a camera sees.
    case camera = 1
    /// What a screen shows; the media engine decides which.
    case screen = 2
}

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
}

extension OTPublisherKitDelegate {
    /// Does nothing.
    public func publisher(_ publisher: OTPublisherKit, streamCreated stream: OTStream) {}
    /// Does nothing.
    public func publisher(_ publisher: OTPublisherKit, streamDestroyed stream: OTStream) {}
    /// Does nothing.
    public func muteForced(_ publisher: OTPublisherKit) {}
}

/// Hears what happens to an ``OTPublisher``.
@preconcurrency @MainActor public protocol OTPublisherDelegate: OTPublisherKitDelegate {}

/// A stream of this client, without a view.
@preconcurrency @MainActor public class OTPublisherKit: NSObject {
    /// Hears what happens to the stream.
    public weak var delegate: (any OTPublisherKitDelegate)?
    /// The stream; nil unless it is published.
    public private(set) var stream: OTStream?
    /// The session; nil unless the stream is published or is about to be.
    public private(set) weak var session: OTSession?
    /// The name of the stream; nil if there is none.
    public let name: String?
    /// What the video shows. Set it before publishing. For a screen, the media engine captures it.
    public var videoType = OTPublisherKitVideoType.camera

    private let request: CaptureRequest
    private let tracks: (audio: Bool, video: Bool)
    private var sends = (audio: true, video: true)
    private var live: MediaPublisher?
    private var life: Task<Void, Never>?
    private let requests = Requests()

    /// Creates a publisher. Capturing begins when it is published, and stops at the end of the stream.
    public init?(delegate: (any OTPublisherKitDelegate)?, settings: OTPublisherSettings) {
        (self.delegate, name) = (delegate, settings.name)
        tracks = (settings.audioTrack, settings.videoTrack)
        let preset = CapturePreset(
            size: settings.cameraResolution.size, frameRate: settings.cameraFrameRate.rawValue)
        request = settings.videoTrack ? .camera(preset, withMicrophone: settings.audioTrack) : .microphone
        super.init()
    }

    deinit { life?.cancel() }

    /// Whether audio is sent.
    public var publishAudio: Bool {
        get { sends.audio }
        set {
            sends.audio = newValue
            change { (live) async throws(ConfabError) in try await live.setAudio(newValue) }
        }
    }

    /// Whether video is sent.
    public var publishVideo: Bool {
        get { sends.video }
        set {
            sends.video = newValue
            change { (live) async throws(ConfabError) in try await live.setVideo(newValue) }
        }
    }

    private func change(_ request: @escaping @Sendable (MediaPublisher) async throws(ConfabError) -> Void) {
        guard let live else { return }
        requests.change {
            () async throws(ConfabError) in
            try await request(live)
        } onFailure: { [weak self] error in
            self?.report(error)
        }
    }

    // MARK: Life

    func begin(in owner: OTSession, _ session: Session, _ client: ConfabClient) {
        self.session = owner
        let request = videoType == .screen ? .screen : request
        life = Task { [weak self] in
            var media: (any LocalMedia)?
            do throws(ConfabError) {
                let captured = try await client.capture(request)
                media = captured
                if let options = self?.start(captured), !Task.isCancelled {
                    let live = try await session.publish(captured, as: options)
                    let events = live.events.makeAsyncIterator()
                    self?.published(live, with: options)
                    if options.audio, captured.hasAudio, !live.hasAudio { self?.muted() }
                    while let event = await events.next() { self?.hear(event) }
                }
            } catch {
                self?.report(error)
            }
            await media?.stop()
            self?.ended()
        }
    }

    /// Capturing has begun.
    private func start(_ media: any LocalMedia) -> Session.PublishOptions {
        show(media.video)
        return Session.PublishOptions(
            name: name ?? "", videoKind: videoType == .screen ? .screen : .camera,
            audio: tracks.audio && sends.audio, video: tracks.video && sends.video)
    }

    /// - Parameter sent: the options of the request. Some may have been changed meanwhile.
    private func published(_ live: MediaPublisher, with sent: Session.PublishOptions) {
        guard let session, let connection = session.connection else { return }
        self.live = live
        let stream = OTStream(live.stream, of: connection, in: session)
        self.stream = stream
        if sent.audio != (tracks.audio && sends.audio) { publishAudio = sends.audio }
        if sent.video != (tracks.video && sends.video) { publishVideo = sends.video }
        delegate?.publisher(self, streamCreated: stream)
    }

    private func hear(_ event: MediaPublisher.Event) {
        switch event {
        case .muted: muted()
        case .failed(let error): report(error)
        // The end of the events follows.
        case .ended, .quality, .layersWanted, .videoWarning, .videoStopped, .videoResumed: break
        }
    }

    /// A moderator muted the stream, or had muted everyone before it was published.
    private func muted() {
        sends.audio = false
        delegate?.muteForced(self)
    }

    private func report(_ error: ConfabError) {
        if error.code == .cancelled { return }
        delegate?.publisher(self, didFailWithError: OTError(publisher: error))
    }

    /// Ends the stream, or the attempt to publish it.
    func finish() {
        guard let live else { return life?.cancel() ?? () }
        Task { await live.unpublish() }
    }

    private func ended() {
        session?.publishers.removeAll { $0 === self }
        let ended = stream
        (session, stream, live, life) = (nil, nil, nil, nil)
        show(nil)
        if let ended { delegate?.publisher(self, streamDestroyed: ended) }
    }

    /// Shows the own picture.
    func show(_ source: (any VideoSource)?) {}
}

/// A stream of this client, with a view of the own picture.
@preconcurrency @MainActor public class OTPublisher: OTPublisherKit {
    #if canImport(UIKit)
    private let picture = VideoPicture()

    /// The own picture, black while nothing is captured.
    public var view: UIView? { picture.view }
    /// How the picture fills the view.
    public var viewScaleBehavior: OTVideoViewScaleBehavior {
        get { picture.behavior }
        set { picture.behavior = newValue }
    }

    override func show(_ source: (any VideoSource)?) {
        picture.show(source, isMirrored: videoType == .camera)
    }
    #endif
}
