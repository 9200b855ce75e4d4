#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Captures media and creates peer connections. The SDK contains no WebRTC: an application passes an engine to
/// ``ConfabClient``, such as one based on WebRTC's framework on Apple platforms, or `FileEngine` of `ConfabHeadless` on
/// Linux.
///
/// An engine does only what `RTCPeerConnection` and `getUserMedia` do. The SDK itself handles negotiation.
///
/// ```swift
/// let client = ConfabClient(server: url, media: FileEngine(publishing: film))
/// ```
public protocol MediaEngine: Sendable {
    /// Creates a peer connection.
    ///
    /// - Throws: an error with the code `media_failed` if no more connections can be created.
    func makePeer(_ configuration: PeerConfiguration) async throws(ConfabError) -> any MediaPeer

    /// Starts capturing or reading media for publishing.
    ///
    /// - Throws: an error with the code `media_failed` if the device or file is missing, in use or not permitted.
    func capture(_ request: CaptureRequest) async throws(ConfabError) -> any LocalMedia
}

/// The media that a ``MediaEngine`` captures.
public enum CaptureRequest: Hashable, Sendable {
    /// A camera and, by default, a microphone.
    case camera(CapturePreset = .standard, withMicrophone: Bool = true)
    /// A microphone without video.
    case microphone
    /// The screen, or the part of it that the person chooses.
    case screen
    /// A file, in a format that the engine supports.
    case file(URL)
}

/// The size and frame rate to capture. An engine picks the nearest format that is not smaller.
public struct CapturePreset: Hashable, Sendable {
    /// The size in pixels.
    public var size: VideoSize
    /// Frames per second, 1 to 240.
    public var frameRate: Int
    /// Creates a preset of `size` pixels and `frameRate` frames per second.
    public init(size: VideoSize, frameRate: Int = 30) { (self.size, self.frameRate) = (size, frameRate) }

    /// 352 × 288 at 30 frames per second, for groups.
    public static let small = CapturePreset(size: VideoSize(width: 352, height: 288))
    /// 640 × 480 at 30 frames per second.
    public static let standard = CapturePreset(size: VideoSize(width: 640, height: 480))
    /// 1280 × 720 at 30 frames per second.
    public static let high = CapturePreset(size: VideoSize(width: 1280, height: 720))
}

/// The size of a video in pixels.
public struct VideoSize: Hashable, Sendable {
    /// The width in pixels.
    public var width: Int
    /// The height in pixels.
    public var height: Int
    /// Creates a size in pixels.
    public init(width: Int, height: Int) { (self.width, self.height) = (width, height) }
}

/// Video frames, local or remote. The protocol has no members: a view or a program gets frames from the engine's own
/// type, such as `EncodedSource` of `ConfabHeadless`.
public protocol VideoSource: AnyObject, Sendable {}

/// Media of this device: a camera, a file, or anything else that an engine can send. For a custom source, define a type
/// that conforms to this protocol and that your engine supports.
public protocol LocalMedia: AnyObject, Sendable {
    /// Whether there is audio.
    var hasAudio: Bool { get }
    /// The video, for the local preview; nil if there is none.
    var video: (any VideoSource)? { get }
    /// The size of the video in pixels; nil if unknown or without video.
    var size: VideoSize? { get }
    /// The layers in which the video is already encoded, largest first; empty for a single encoding. Nil if the engine
    /// encodes the video.
    var layers: [Layer]? { get }
    /// What the video shows. Calls, rooms and the roulette report it to the others.
    var videoKind: MediaStream.VideoKind { get }
    /// Enables (true) or disables (false) audio and video; nil changes nothing. Disabled audio is silent; disabled
    /// video is black or stops.
    func setEnabled(audio: Bool?, video: Bool?) async
    /// Stops the media permanently, and releases the device or file.
    func stop() async
}

extension LocalMedia {
    /// Nil by default: the engine encodes the video.
    public var layers: [Layer]? { nil }
    /// A camera by default.
    public var videoKind: MediaStream.VideoKind { .camera }
}

/// Media that a peer connection receives over one transceiver.
public protocol RemoteMedia: AnyObject, Sendable {
    /// Whether this is audio or video.
    var kind: TrackKind { get }
    /// The video; nil for audio.
    var video: (any VideoSource)? { get }
    /// Sets whether to play or show the media. The media arrives in either case.
    func setEnabled(_ enabled: Bool) async
    /// Sets the volume of audio: 0 is silent, 1 plays it unchanged. Has no effect on video.
    func setVolume(_ volume: Double) async
}

/// The kind of media in a track.
public enum TrackKind: String, Hashable, Sendable, CaseIterable {
    /// Sound.
    case audio
    /// Video frames.
    case video
}

/// One simulcast encoding of a video (RFC 8853).
public struct Layer: Hashable, Sendable {
    /// The restriction identifier, such as `f`, `h` or `q` (RFC 8851).
    public var rid: String
    /// The factor by which the video's width and height are divided, at least 1.
    public var scale: Double
    /// The maximum bitrate in bits per second; nil for no maximum.
    public var maxBitrate: Int?
    /// The maximum frames per second; nil for no maximum.
    public var maxFrameRate: Double?

    /// Creates a layer.
    public init(rid: String, scale: Double, maxBitrate: Int? = nil, maxFrameRate: Double? = nil) {
        (self.rid, self.scale, self.maxBitrate, self.maxFrameRate) = (rid, scale, maxBitrate, maxFrameRate)
    }
}
