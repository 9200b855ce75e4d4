import Wire

/// The size of a JPEG image, read from its headers (ITU-T T.81, Annex B). The image itself is not decoded: that is up to the
/// operator's program, which gets only images whose size is bounded.
public struct SampleImage: Equatable, Sendable {
    /// In pixels.
    public var width: Int
    /// In pixels.
    public var height: Int

    /// - Throws: `malformed` if the bytes are no JPEG image, or one that is larger than `Limits.sampleSide` on a side.
    public init(_ jpeg: [UInt8]) throws(WireError) {
        guard let size = Self.size(of: jpeg) else {
            throw WireError(.malformed, "The body is no JPEG image. Send a frame of the camera as image/jpeg.")
        }
        guard (1...Limits.sampleSide).contains(size.width), (1...Limits.sampleSide).contains(size.height) else {
            throw WireError(
                .malformed,
                "The image must be at most \(Limits.sampleSide) pixels wide and high. "
                    + "Scale it to the width in welcome.sampling.")
        }
        (width, height) = (size.width, size.height)
    }

    /// Markers of segments, without the prefix.
    private enum Marker {
        static let prefix: UInt8 = 0xFF
        static let startOfImage: UInt8 = 0xD8
        static let endOfImage: UInt8 = 0xD9
        static let startOfScan: UInt8 = 0xDA

        /// Whether the segment has the size of the image. C4, C8 and CC are other segments.
        static func isFrame(_ marker: UInt8) -> Bool {
            (0xC0...0xCF).contains(marker) && marker != 0xC4 && marker != 0xC8 && marker != 0xCC
        }
    }

    /// Returns the width and height in the frame header; nil if the bytes are no complete JPEG image.
    private static func size(of bytes: [UInt8]) -> (width: Int, height: Int)? {
        guard bytes.starts(with: [Marker.prefix, Marker.startOfImage]),
            bytes.suffix(2) == [Marker.prefix, Marker.endOfImage]
        else { return nil }
        var position = 2
        while position + 4 <= bytes.count {
            guard bytes[position] == Marker.prefix else { return nil }
            let marker = bytes[position + 1]
            // Fill bytes (B.1.1.2).
            if marker == Marker.prefix {
                position += 1
                continue
            }
            guard marker >= 0xC0, marker != Marker.startOfScan, marker != Marker.endOfImage else { return nil }
            let length = Int(bytes[position + 2]) << 8 | Int(bytes[position + 3])
            guard length >= 2, position + 2 + length <= bytes.count else { return nil }
            if Marker.isFrame(marker) {
                guard length >= 8 else { return nil }
                let height = Int(bytes[position + 5]) << 8 | Int(bytes[position + 6])
                let width = Int(bytes[position + 7]) << 8 | Int(bytes[position + 8])
                return (width, height)
            }
            position += 2 + length
        }
        return nil
    }
}
