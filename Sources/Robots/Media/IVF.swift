import RTC

/// What an IVF file begins with: the codec, the size of the picture and the unit of time. The format has no standard;
/// this is how libvpx and ffmpeg write it, 32 bytes with the lowest byte of a number first.
public struct IVFHeader: Equatable, Sendable {
    public static let length = 32
    static let signature = Array("DKIF".utf8)

    /// Four characters, `VP80` for VP8.
    public var codec: String
    /// In pixels.
    public var width: UInt16
    /// In pixels.
    public var height: UInt16
    /// A frame's time counts units of `unitNumerator / unitDenominator` seconds.
    public var unitNumerator: UInt32
    public var unitDenominator: UInt32
    /// As the file says it: 0 where its writer could not know, such as in one that is still being written.
    public var frameCount: UInt32

    public init(
        codec: String = "VP80", width: UInt16, height: UInt16, unitNumerator: UInt32, unitDenominator: UInt32,
        frameCount: UInt32 = 0
    ) {
        (self.codec, self.width, self.height) = (codec, width, height)
        (self.unitNumerator, self.unitDenominator, self.frameCount) = (unitNumerator, unitDenominator, frameCount)
    }

    /// Reads the header, and skips what a longer one has beyond these 32 bytes.
    init(_ reader: inout ByteReader) throws(MediaFileError) {
        guard let signature = reader.take(4), signature.elementsEqual(Self.signature) else {
            throw MediaFileError(.notThisFormat, "is not an IVF file")
        }
        guard reader.littleEndian16() == 0, let length = reader.littleEndian16(), length >= Self.length,
            let codec = reader.take(4), let width = reader.littleEndian16(), let height = reader.littleEndian16(),
            let denominator = reader.littleEndian32(), let numerator = reader.littleEndian32(),
            let count = reader.littleEndian32(), reader.skip(Int(length) - reader.position)
        else {
            throw MediaFileError(.damaged, "is an IVF file that ends in its header, or of a version not known here")
        }
        // More than a minute for one unit, or less than a nanosecond, is a slip of whoever wrote it.
        guard numerator > 0, denominator > 0, UInt64(numerator) <= UInt64(denominator) * 60,
            denominator <= 1_000_000_000
        else {
            throw MediaFileError(
                .damaged, "is an IVF file whose unit of time, \(numerator)/\(denominator) s, makes no sense")
        }
        self.init(
            codec: String(decoding: codec, as: UTF8.self), width: width, height: height, unitNumerator: numerator,
            unitDenominator: denominator, frameCount: count)
    }

    /// The 32 bytes.
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

/// Where a frame lies in an IVF file.
public struct IVFFrame: Equatable, Sendable {
    /// What stands before each frame: its size and its time.
    public static let headerLength = 12

    /// In the header's units. A file may count from anywhere and say anything.
    public var time: UInt64
    /// Of the file's bytes. Never empty.
    public var range: Range<Int>

    public init(time: UInt64, range: Range<Int>) {
        (self.time, self.range) = (time, range)
    }

    /// What stands before a frame of that many bytes.
    public static func header(time: UInt64, size: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(littleEndian: UInt32(truncatingIfNeeded: size))
        bytes.append(littleEndian: time)
        return bytes
    }
}

/// An IVF file taken apart: ranges of its bytes, none copied.
///
/// ```swift
/// let file = try bytes.withUnsafeBytes { bytes throws(MediaFileError) in try IVFFile(bytes) }
/// for frame in file.frames { decode(bytes[frame.range]) }
/// ```
public struct IVFFile: Equatable, Sendable {
    /// Nine hours at 30 frames a second, which take 24 MB to list.
    public static let mostFrames = 1_000_000

    public let header: IVFHeader
    public let frames: [IVFFrame]
    /// It ends within a frame, as one does whose writer was killed; what stands before that is there.
    public let isTruncated: Bool

    /// - Parameter bytes: the whole file.
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
            // An encoder that drops a frame leaves an empty one.
            if frame.isEmpty { continue }
            guard frames.count < Self.mostFrames else {
                throw MediaFileError(.tooLarge, "has more than \(Self.mostFrames) frames; cut it")
            }
            frames.append(IVFFrame(time: time, range: reader.position - frame.count..<reader.position))
        }
        self.frames = frames
        self.isTruncated = isTruncated
    }
}
