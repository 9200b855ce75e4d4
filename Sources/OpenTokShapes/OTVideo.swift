import Foundation

#if canImport(CoreMedia)
import CoreMedia
#endif

// Nothing here is on the main actor: capturers have threads of their own.

/// How the pixels of a frame are stored, with OpenTok's numbers.
public enum OTPixelFormat: Int32, Sendable {
    // swift-format-ignore: AlwaysUseLowerCamelCase
    /// Three planes: brightness, and two of color in half the width and height.
    case I420 = 0x4934_3230
    // swift-format-ignore: AlwaysUseLowerCamelCase
    /// One plane with four bytes for each pixel: blue, green, red, alpha.
    case ARGB = 0x4152_4742
    // swift-format-ignore: AlwaysUseLowerCamelCase
    /// Two planes: brightness, and color in half the width and height.
    case NV12 = 0x4e56_3132
}

/// Which side of a picture is up.
public enum OTVideoOrientation: Int32, Sendable {
    /// The first row is at the top.
    case up = 1
    /// The first row is at the bottom.
    case down = 2
    /// Turned to the left.
    case left = 3
    /// Turned to the right.
    case right = 4
}

/// What matters in a video when the network is slow.
public enum OTVideoContentHint: Int, Sendable {
    /// Nothing in particular.
    case none
    /// Smooth motion.
    case motion
    /// Fine structure, at the cost of motion.
    case detail
    /// Sharp text.
    case text
}

/// The format of frames.
open class OTVideoFormat: NSObject {
    /// A name of your own.
    public var name = ""
    /// How the pixels are stored.
    public var pixelFormat = OTPixelFormat.I420
    /// The bytes of a row, for each plane.
    public var bytesPerRow = NSMutableArray()
    /// The width in pixels.
    public var imageWidth: UInt32 = 0
    /// The height in pixels.
    public var imageHeight: UInt32 = 0
    /// How often frames come; 0 if it is not known.
    public var estimatedFramesPerSecond = 0.0
    /// The time between capturing and consuming a frame in milliseconds.
    public var estimatedCaptureDelay = 0.0

    /// The format of ``OTPixelFormat/I420`` frames without padding.
    public convenience init(i420WithWidth width: UInt32, height: UInt32) {
        let half = (Int(width) + 1) / 2
        self.init(.I420, width, height, rows: [Int(width), half, half])
    }

    /// The format of ``OTPixelFormat/NV12`` frames without padding.
    public convenience init(nv12WithWidth width: UInt32, height: UInt32) {
        self.init(.NV12, width, height, rows: [Int(width), (Int(width) + 1) / 2 * 2])
    }

    /// The format of ``OTPixelFormat/ARGB`` frames without padding.
    public convenience init(argbWithWidth width: UInt32, height: UInt32) {
        self.init(.ARGB, width, height, rows: [Int(width) * 4])
    }

    private convenience init(_ format: OTPixelFormat, _ width: UInt32, _ height: UInt32, rows: [Int]) {
        self.init()
        (pixelFormat, imageWidth, imageHeight) = (format, width, height)
        bytesPerRow = NSMutableArray(array: rows.map { NSNumber(value: $0) })
    }
}

/// A picture of a capturer. It owns neither its planes nor their memory, which must be valid while it is consumed.
open class OTVideoFrame: NSObject {
    /// The addresses of the planes.
    public var planes: OTPointerArray? = .empty
    /// When the frame was captured.
    public var timestamp = OTFrameTime.zero
    /// Which side is up.
    public var orientation = OTVideoOrientation.up
    /// How the planes are laid out; nil if it is not known.
    public var format: OTVideoFormat?
    /// Always nil: frames travel without metadata.
    public var metadata: Data? { nil }

    /// Creates a frame without planes.
    public init(format: OTVideoFormat) { self.format = format }

    /// Removes the addresses of the planes.
    public func clearPlanes() { planes = .empty }

    /// The bytes of a plane, which may be changed: 0 for brightness in I420 and NV12.
    ///
    /// - Precondition: the frame has this plane. As in OpenTok the result is not optional; ``planes`` has the number of planes.
    public func getPlaneBinaryData(_ planeIndex: Int32) -> UnsafeMutablePointer<UInt8> {
        let index = Int(planeIndex)
        guard let planes, index >= 0, index < planes.count, let plane = planes.pointer(at: index) else {
            preconditionFailure("The frame has no plane \(planeIndex). Use an index below planes.count.")
        }
        return plane.assumingMemoryBound(to: UInt8.self)
    }

    /// The bytes of a row of a plane; 0 if the format does not tell it.
    public func getPlaneStride(_ planeIndex: Int32) -> Int32 {
        guard let rows = format?.bytesPerRow, planeIndex >= 0, planeIndex < rows.count else { return 0 }
        return (rows[Int(planeIndex)] as? NSNumber).map { Int32(clamping: $0.intValue) } ?? 0
    }

    /// Always reports 1011: frames travel without metadata.
    public func setMetadata(_ data: Data, error: UnsafeMutablePointer<OTError?>?) {
        error?.pointee = OTError(
            .nullOrInvalidParameter, "Frames travel without metadata. Send a signal or put it into the picture.")
    }
}

/// Takes the frames of an ``OTVideoCapture``, on any thread.
public protocol OTVideoCaptureConsumer: AnyObject {
    /// Sends a frame.
    func consumeFrame(_ frame: OTVideoFrame)
    /// Sends a picture.
    ///
    /// - Returns: false if the picture is not sent, for example because there is metadata, which cannot travel.
    func consumeImageBuffer(
        _ frame: OTImageBuffer, orientation: OTVideoOrientation, timestamp ts: OTFrameTime, metadata: Data?
    ) -> Bool
}

/// A source of frames that the application writes. A publisher calls it on the main thread. It needs an ``OTFrameEngine``.
public protocol OTVideoCapture: AnyObject {
    /// Takes the frames; nil while nothing is published.
    var videoCaptureConsumer: (any OTVideoCaptureConsumer)? { get set }
    /// What matters in the video. The media engine may use it.
    var videoContentHint: OTVideoContentHint { get set }
    /// Prepares capturing.
    func initCapture()
    /// Gives up what `initCapture` prepared.
    func releaseCapture()
    /// Starts to capture. Another result than 0 fails the publisher.
    func start() -> Int32
    /// Stops to capture. The result does not matter.
    func stop() -> Int32
    /// Whether frames are captured.
    func isCaptureStarted() -> Bool
    /// Fills in the format of the frames. The result does not matter.
    func captureSettings(_ videoFormat: OTVideoFormat) -> Int32
}

/// Draws frames. It gets none: the media engine draws the pictures, in the `view` of a publisher or subscriber.
public protocol OTVideoRender: AnyObject {
    /// Draws a frame.
    func renderVideoFrame(_ frame: OTVideoFrame)
}

/// Changes frames before they are sent. It is never called, because there is no ``OTVideoTransformer``.
public protocol OTCustomVideoTransformer: AnyObject {
    /// Changes a frame.
    func transform(_ videoFrame: OTVideoFrame)
}

/// A change of video before it is sent. There are none: creating one gives nil.
public final class OTVideoTransformer: NSObject {
    /// Gives nil: there are no transformers.
    public init?(name: String, properties: String) { return nil }
    /// Gives nil: there are no transformers.
    public init?(name: String, transformer: any OTCustomVideoTransformer) { return nil }
}
