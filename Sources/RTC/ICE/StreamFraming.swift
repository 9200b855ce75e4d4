/// Framing of datagrams on a TCP connection: each datagram is preceded by its length in two bytes (RFC 4571 §2, RFC
/// 6544 §3).
public enum StreamFraming {
    /// The maximum length of a frame in bytes. Browsers never send longer ones, so a longer frame means that the
    /// stream is not framed media.
    public static let longestFrame = 2048
    public static let prefixLength = 2

    /// The result of reading the next frame.
    public enum Step: Equatable, Sendable {
        /// The range of the next frame's bytes, without its length. The following frame begins at the end of the
        /// range.
        case frame(Range<Int>)
        /// The frame is incomplete; more bytes are needed.
        case incomplete
        /// The frame is too long, so the stream is not framed media.
        case tooLong
    }

    /// Returns the frame that begins at `offset` in the bytes read so far.
    public static func next(in bytes: UnsafeRawBufferPointer, at offset: Int) -> Step {
        guard offset >= 0, bytes.count - offset >= prefixLength else { return .incomplete }
        let length = Int(bytes.bigEndian16(at: offset))
        guard length <= longestFrame else { return .tooLong }
        let start = offset + prefixLength
        guard bytes.count - start >= length else { return .incomplete }
        return .frame(start..<start + length)
    }
}
