import Confab
import Foundation

/// Settings of an ``OTPublisherKit``. If a setting is documented to have no effect, the media engine or the server
/// chooses its value.
@preconcurrency @MainActor open class OTPublisherKitSettings: NSObject {
    /// The name of the stream, at most 256 bytes; nil for none.
    public var name: String?
    /// Whether the stream has audio.
    public var audioTrack = true
    /// Whether the stream has video.
    public var videoTrack = true
    /// The bitrate of the audio in bits per second. Has no effect.
    public var audioBitrate: Int32 = 40_000
    /// Whether sending stops during silence. Has no effect.
    public var enableOpusDtx = false
    /// Whether a screen is sent in several sizes. Has no effect: one size is sent.
    public var scalableScreenshare = false
    /// Whether the video stops while this device's network cannot carry it, so that the audio continues. Only in routed
    /// sessions.
    public var publisherAudioFallbackEnabled = false
    /// Whether the video to a subscriber stops while the subscriber's network cannot carry it. Has no effect: the
    /// server decides.
    public var subscriberAudioFallbackEnabled = true
    /// Whether captions are published. Has no effect: captions are not supported.
    public var publishCaptions = false
    /// The capturer that provides the frames instead of a camera; nil for the camera of the media engine.
    fileprivate(set) var capturer: (any OTVideoCapture)?
    /// The size and frame rate to capture.
    fileprivate(set) var preset = CapturePreset.standard
}

/// Settings of an ``OTPublisher``. The media engine of the session's client captures the media.
@preconcurrency @MainActor open class OTPublisherSettings: OTPublisherKitSettings {
    /// The capturer that provides the frames instead of a camera; nil for the camera of the media engine.
    public var videoCapture: (any OTVideoCapture)? {
        get { capturer }
        set { capturer = newValue }
    }
    /// The size to capture.
    public var cameraResolution = OTCameraCaptureResolution.medium {
        didSet { preset.size = cameraResolution.size }
    }
    /// The frames per second to capture.
    public var cameraFrameRate = OTCameraCaptureFrameRate.rate30FPS {
        didSet { preset.frameRate = cameraFrameRate.rawValue }
    }
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
    /// The video of a camera.
    case camera = 1
    /// A screen; the media engine decides which.
    case screen = 2
}
