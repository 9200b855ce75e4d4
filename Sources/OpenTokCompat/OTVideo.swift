import Foundation

#if canImport(CoreMedia)
import CoreMedia
import CoreVideo
#endif

// These types are not on the main actor, because capturers have their own threads.

/// How the pixels of a frame are stored, with OpenTok's numbers.
public enum OTPixelFormat: Int32, Sendable {
    // swift-format-ignore: AlwaysUseLowerCamelCase
    /// Three planes: luma, and two chroma planes with half the width and height.
    case I420 = 0x4934_3230
    // swift-format-ignore: AlwaysUseLowerCamelCase
    /// One plane with four bytes per pixel: blue, green, red, alpha.
    case ARGB = 0x4152_4742
    // swift-format-ignore: AlwaysUseLowerCamelCase
    /// Two planes: luma, and chroma with half the width and height.
    case NV12 = 0x4e56_3132
}

/// The orientation of a frame.
public enum OTVideoOrientation: Int32, Sendable {
    /// The frame is upright.
    case up = 1
    /// The frame is upside down: it is rotated by 180°.
    case down = 2
    /// The frame is turned to the left.
    case left = 3
    /// The frame is turned to the right.
    case right = 4
}

/// What to preserve in a video when the network is slow.
public enum OTVideoContentHint: Int, Sendable {
    /// Nothing in particular.
    case none
    /// Smooth motion.
    case motion
    /// Fine detail, at the cost of motion.
    case detail
    /// Sharp text.
    case text
}

/// The format of frames.
open class OTVideoFormat: NSObject {
    /// A name that the application chooses.
    public var name = ""
    /// How the pixels are stored.
    public var pixelFormat = OTPixelFormat.I420
    /// The bytes per row of each plane.
    public var bytesPerRow = NSMutableArray()
    /// The width in pixels.
    public var imageWidth: UInt32 = 0
    /// The height in pixels.
    public var imageHeight: UInt32 = 0
    /// The expected frames per second; 0 if unknown.
    public var estimatedFramesPerSecond = 0.0
    /// The time between capturing and consuming a frame, in milliseconds.
    public var estimatedCaptureDelay = 0.0

    /// Creates the format of ``OTPixelFormat/I420`` frames without padding.
    public convenience init(i420WithWidth width: UInt32, height: UInt32) {
        let half = (Int(width) + 1) / 2
        self.init(.I420, width, height, rows: [Int(width), half, half])
    }

    /// Creates the format of ``OTPixelFormat/NV12`` frames without padding.
    public convenience init(nv12WithWidth width: UInt32, height: UInt32) {
        self.init(.NV12, width, height, rows: [Int(width), (Int(width) + 1) / 2 * 2])
    }

    /// Creates the format of ``OTPixelFormat/ARGB`` frames without padding.
    public convenience init(argbWithWidth width: UInt32, height: UInt32) {
        self.init(.ARGB, width, height, rows: [Int(width) * 4])
    }

    private convenience init(_ format: OTPixelFormat, _ width: UInt32, _ height: UInt32, rows: [Int]) {
        self.init()
        (pixelFormat, imageWidth, imageHeight) = (format, width, height)
        bytesPerRow = NSMutableArray(array: rows.map { NSNumber(value: $0) })
    }
}

/// A captured frame. It owns neither its planes nor their memory, which must be valid while the frame is consumed.
open class OTVideoFrame: NSObject {
    /// The addresses of the planes.
    public var planes: OTPointerArray? = .empty
    /// When the frame was captured.
    public var timestamp = OTFrameTime.zero
    /// The orientation of the frame.
    public var orientation = OTVideoOrientation.up
    /// The layout of the planes; nil if unknown.
    public var format: OTVideoFormat?
    /// Always nil: metadata is not supported.
    public var metadata: Data? { nil }

    /// Creates a frame without planes.
    public init(format: OTVideoFormat) { self.format = format }

    /// Removes the addresses of the planes.
    public func clearPlanes() { planes = .empty }

    /// Returns the bytes of a plane, which may be changed. Plane 0 is the luma in I420 and NV12.
    ///
    /// - Precondition: the frame has this plane. As in OpenTok, the result is not optional; the count of ``planes`` is
    ///   the number of planes.
    public func getPlaneBinaryData(_ planeIndex: Int32) -> UnsafeMutablePointer<UInt8> {
        let index = Int(planeIndex)
        guard let planes, index >= 0, index < planes.count, let plane = planes.pointer(at: index) else {
            preconditionFailure("The frame has no plane \(planeIndex). Use an index below planes.count.")
        }
        return plane.assumingMemoryBound(to: UInt8.self)
    }

    /// Returns the number of bytes in a row of a plane; 0 if the format does not specify it.
    public func getPlaneStride(_ planeIndex: Int32) -> Int32 {
        guard let rows = format?.bytesPerRow, planeIndex >= 0, planeIndex < rows.count else { return 0 }
        return (rows[Int(planeIndex)] as? NSNumber).map { Int32(clamping: $0.intValue) } ?? 0
    }

    /// Always reports error 1011, because frame metadata is not supported.
    public func setMetadata(_ data: Data, error: UnsafeMutablePointer<OTError?>?) {
        error?.pointee = OTError(
            .nullOrInvalidParameter, "Frame metadata is not supported. Send a signal, or put the data into the image.")
    }
}

/// Receives the frames of an ``OTVideoCapture``, on any thread.
public protocol OTVideoCaptureConsumer: AnyObject {
    /// Sends a frame.
    func consumeFrame(_ frame: OTVideoFrame)
    /// Sends an image buffer.
    ///
    /// - Returns: false if it is not sent, for example because it has metadata, which is not supported.
    func consumeImageBuffer(
        _ frame: OTImageBuffer, orientation: OTVideoOrientation, timestamp ts: OTFrameTime, metadata: Data?
    ) -> Bool
}

/// A frame source implemented by the application. A publisher calls its methods on the main thread. A source requires
/// an ``OTFrameEngine``.
public protocol OTVideoCapture: AnyObject {
    /// Receives the frames; nil while nothing is published.
    var videoCaptureConsumer: (any OTVideoCaptureConsumer)? { get set }
    /// What to preserve in the video. The SDK does not use it.
    var videoContentHint: OTVideoContentHint { get set }
    /// Prepares capturing.
    func initCapture()
    /// Releases what `initCapture` prepared.
    func releaseCapture()
    /// Starts capturing. With a result other than 0, publishing fails.
    func start() -> Int32
    /// Stops capturing. The result is ignored.
    func stop() -> Int32
    /// Returns whether frames are being captured.
    func isCaptureStarted() -> Bool
    /// Fills in the format of the frames. The result is ignored.
    func captureSettings(_ videoFormat: OTVideoFormat) -> Int32
}

/// Draws frames. It receives none: the media engine draws the video, in the `view` of a publisher or subscriber.
public protocol OTVideoRender: AnyObject {
    /// Draws a frame.
    func renderVideoFrame(_ frame: OTVideoFrame)
}

/// Transforms frames before they are sent. It is never called, because there is no ``OTVideoTransformer``.
public protocol OTCustomVideoTransformer: AnyObject {
    /// Transforms a frame.
    func transform(_ videoFrame: OTVideoFrame)
}

/// Transforms video before it is sent. Video transformers are not supported: the initializers return nil.
public final class OTVideoTransformer: NSObject {
    /// Returns nil, because transformers are not supported.
    public init?(name: String, properties: String) { return nil }
    /// Returns nil, because transformers are not supported.
    public init?(name: String, transformer: any OTCustomVideoTransformer) { return nil }
}
