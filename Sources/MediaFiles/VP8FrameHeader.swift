import RTC

/// The header of a VP8 frame (RFC 6386 §9.1), parsed without decoding the frame.
public struct VP8FrameHeader: Equatable, Sendable {
    /// Whether the frame can be decoded without earlier frames.
    public let isKeyframe: Bool
    /// The width of a keyframe in pixels; 0 for other frames.
    public let width: UInt16
    public let height: UInt16

    /// Parses the header. Returns nil if the frame is invalid, because it is too short or is a keyframe without its
    /// start code.
    public init?(_ frame: UnsafeRawBufferPointer) {
        var reader = ByteReader(frame)
        guard let tag = reader.u24() else { return nil }
        // The lowest bit of the frame's first byte is 0 for keyframes.
        isKeyframe = tag & 0x01_0000 == 0
        guard isKeyframe else {
            (width, height) = (0, 0)
            return
        }
        guard reader.u24() == 0x9d012a, let width = reader.littleEndian16(), let height = reader.littleEndian16() else {
            return nil
        }
        // Ignore the upper two bits. They request scaling, which is not used in practice.
        (self.width, self.height) = (width & 0x3fff, height & 0x3fff)
    }
}
