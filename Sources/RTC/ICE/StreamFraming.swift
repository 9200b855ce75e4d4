/// Datagrams on a TCP connection: each has its length before it, in two bytes (RFC 4571 §2, RFC 6544 §3).
public enum StreamFraming {
    /// No browser sends a longer one, and whoever announces it means something else.
    public static let longestFrame = 2048
    public static let prefixLength = 2

    public enum Step: Equatable, Sendable {
        /// Where the next frame's bytes are; whatever follows begins at its end.
        case frame(Range<Int>)
        /// More has to come first.
        case incomplete
        /// This is no such stream.
        case tooLong
    }

    /// What stands at `offset` in what was read so far.
    public static func next(in bytes: UnsafeRawBufferPointer, at offset: Int) -> Step {
        guard offset >= 0, bytes.count - offset >= prefixLength else { return .incomplete }
        let length = Int(bytes.bigEndian16(at: offset))
        guard length <= longestFrame else { return .tooLong }
        let start = offset + prefixLength
        guard bytes.count - start >= length else { return .incomplete }
        return .frame(start..<start + length)
    }
}
