import RTC

/// Redundant audio (RFC 2198), taken apart for whoever did not negotiate it.
enum RedundantAudio {
    /// No sender repeats more.
    private static let mostBlocks = 8

    /// The newest block, which stands last; nil when the headers do not fit the payload.
    static func primary(_ payload: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var reader = ByteReader(payload)
        var redundant = 0
        for _ in 0...mostBlocks {
            guard let first = reader.u8() else { return nil }
            if first & 0x80 == 0 {
                // The last header is this one byte; the redundant blocks come before the primary.
                guard reader.skip(redundant) else { return nil }
                return reader.take(reader.remaining)
            }
            guard let rest = reader.u24() else { return nil }
            redundant += Int(rest & 0x3ff)
        }
        return nil
    }
}
