import RTC

/// Unwraps redundant audio (RFC 2198) for subscribers that did not negotiate it.
enum RedundantAudio {
    /// The maximum number of redundant blocks. No known sender uses more.
    private static let maxBlocks = 8

    /// Returns the primary (newest) block, which comes last. Returns nil if the headers do not match the payload.
    static func primary(_ payload: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var reader = ByteReader(payload)
        var redundant = 0
        for _ in 0...maxBlocks {
            guard let first = reader.u8() else { return nil }
            if first & 0x80 == 0 {
                // The last header is this one byte. Skip the redundant blocks, which come before the primary block.
                guard reader.skip(redundant) else { return nil }
                return reader.take(reader.remaining)
            }
            guard let rest = reader.u24() else { return nil }
            redundant += Int(rest & 0x3ff)
        }
        return nil
    }
}
