import RTC

/// How a VP8 frame begins (RFC 6386 §9.1): all one has to know of it without decoding.
public struct VP8FrameHeader: Equatable, Sendable {
    /// It needs no frame before it.
    public let isKeyframe: Bool
    /// Of a keyframe, in pixels; 0 otherwise.
    public let width: UInt16
    public let height: UInt16

    /// Nil for what is no VP8 frame: too short, or a keyframe without its start code.
    public init?(_ frame: UnsafeRawBufferPointer) {
        var reader = ByteReader(frame)
        guard let tag = reader.u24() else { return nil }
        // The lowest bit of the first byte: 0 is a keyframe.
        isKeyframe = tag & 0x01_0000 == 0
        guard isKeyframe else {
            (width, height) = (0, 0)
            return
        }
        guard reader.u24() == 0x9d012a, let width = reader.littleEndian16(), let height = reader.littleEndian16() else {
            return nil
        }
        // The upper two bits ask for scaling, which nobody does.
        (self.width, self.height) = (width & 0x3fff, height & 0x3fff)
    }
}
