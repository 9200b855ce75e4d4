/// Framing of datagrams on a TCP connection: a two-byte length before each (RFC 4571 §2, RFC 6544 §3).
public enum StreamFraming {
    /// Browsers send no longer frames; a longer one means that the stream is not framed media.
    public static let longestFrame = 2048
    public static let prefixLength = 2

    public enum Step: Equatable, Sendable {
        /// The range of the next frame's bytes. The next length starts at its end.
        case frame(Range<Int>)
        /// More bytes are needed.
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
