import RTC

/// The header of an IVF file: codec, video size and time unit. No standard defines the format. Confab reads and writes
/// the 32 little-endian bytes that libvpx and ffmpeg write.
public struct IVFHeader: Equatable, Sendable {
    public static let length = 32
    package static let signature = Array("DKIF".utf8)

    /// The FourCC of the codec, `VP80` for VP8.
    public var codec: String
    /// The width of the video in pixels.
    public var width: UInt16
    /// The height of the video in pixels.
    public var height: UInt16
    /// The numerator of the time unit. Frame times count units of `unitNumerator / unitDenominator` seconds.
    public var unitNumerator: UInt32
    public var unitDenominator: UInt32
    /// The number of frames. 0 if the writer did not know it, for example while recording.
    public var frameCount: UInt32

    public init(
        codec: String = "VP80", width: UInt16, height: UInt16, unitNumerator: UInt32, unitDenominator: UInt32,
        frameCount: UInt32 = 0
    ) {
        (self.codec, self.width, self.height) = (codec, width, height)
        (self.unitNumerator, self.unitDenominator, self.frameCount) = (unitNumerator, unitDenominator, frameCount)
    }

    /// Reads the header, and skips any bytes of it beyond 32.
    init(_ reader: inout ByteReader) throws(MediaFileError) {
        guard let signature = reader.take(4), signature.elementsEqual(Self.signature) else {
            throw MediaFileError(.notThisFormat, "is not an IVF file")
        }
        guard reader.littleEndian16() == 0, let length = reader.littleEndian16(), length >= Self.length,
            let codec = reader.take(4), let width = reader.littleEndian16(), let height = reader.littleEndian16(),
            let denominator = reader.littleEndian32(), let numerator = reader.littleEndian32(),
            let count = reader.littleEndian32(), reader.skip(Int(length) - reader.position)
        else {
            throw MediaFileError(.damaged, "is an IVF file that ends in its header, or has an unsupported version")
        }
        // Reject units longer than a minute or shorter than a nanosecond, because only a faulty writer produces them.
        guard numerator > 0, denominator > 0, UInt64(numerator) <= UInt64(denominator) * 60,
            denominator <= 1_000_000_000
        else {
            throw MediaFileError(
                .damaged, "is an IVF file whose time unit, \(numerator)/\(denominator) s, is out of range")
        }
        self.init(
            codec: String(decoding: codec, as: UTF8.self), width: width, height: height, unitNumerator: numerator,
            unitDenominator: denominator, frameCount: count)
    }

    /// The header as 32 bytes.
    public var bytes: [UInt8] {
        var bytes = Self.signature
        bytes.append(littleEndian: UInt16(0))
        bytes.append(littleEndian: UInt16(Self.length))
        let codec = Array(codec.utf8.prefix(4))
        bytes += codec + [UInt8](repeating: 0x20, count: 4 - codec.count)
        bytes.append(littleEndian: width)
        bytes.append(littleEndian: height)
        bytes.append(littleEndian: unitDenominator)
        bytes.append(littleEndian: unitNumerator)
        bytes.append(littleEndian: frameCount)
        bytes.append(littleEndian: UInt32(0))
        return bytes
    }
}

/// The location of a frame in an IVF file.
public struct IVFFrame: Equatable, Sendable {
    /// The length in bytes of the header of each frame, which contains the frame's size and time.
    public static let headerLength = 12

    /// The frame's time in the unit of the file header. Times can start at any value and are not validated.
    public var time: UInt64
    /// The range of the frame in the file's bytes; never empty.
    public var range: Range<Int>

    public init(time: UInt64, range: Range<Int>) {
        (self.time, self.range) = (time, range)
    }

    /// Returns the header of a frame of `size` bytes.
    public static func header(time: UInt64, size: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(littleEndian: UInt32(truncatingIfNeeded: size))
        bytes.append(littleEndian: time)
        return bytes
    }
}

/// A parsed IVF file. It contains ranges of the file's bytes, not copies.
///
/// ```swift
/// let file = try bytes.withUnsafeBytes { bytes throws(MediaFileError) in try IVFFile(bytes) }
/// for frame in file.frames { decode(bytes[frame.range]) }
/// ```
public struct IVFFile: Equatable, Sendable {
    /// The maximum number of frames, nine hours at 30 frames per second. The list of frames then takes 24 MB.
    public static let maxFrames = 1_000_000

    public let header: IVFHeader
    public let frames: [IVFFrame]
    /// Whether the file ends within a frame, for example because its writer was killed. The complete frames are available.
    public let isTruncated: Bool

    /// Parses a file.
    ///
    /// - Parameter bytes: the contents of the file.
    public init(_ bytes: UnsafeRawBufferPointer) throws(MediaFileError) {
        var reader = ByteReader(bytes)
        header = try IVFHeader(&reader)
        var frames: [IVFFrame] = []
        var isTruncated = false
        while !reader.isAtEnd {
            guard let size = reader.littleEndian32(), let time = reader.littleEndian64(),
                let frame = reader.take(Int(size))
            else {
                isTruncated = true
                break
            }
            // Skip empty frames, which encoders write where they dropped a frame.
            if frame.isEmpty { continue }
            guard frames.count < Self.maxFrames else {
                throw MediaFileError(.tooLarge, "has more than \(Self.maxFrames) frames; cut it")
            }
            frames.append(IVFFrame(time: time, range: reader.position - frame.count..<reader.position))
        }
        self.frames = frames
        self.isTruncated = isTruncated
    }
}
