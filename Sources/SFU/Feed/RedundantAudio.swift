import RTC

/// Reads redundant audio (RFC 2198): unwraps it for subscribers that did not negotiate it, and finds the copies of lost packets.
enum RedundantAudio {
    /// The maximum number of redundant blocks. No known sender uses more.
    static let maxBlocks = 8

    /// A copy of an earlier packet's payload.
    struct Block: Equatable {
        var payloadType: UInt8
        /// The age of the block relative to the packet, in units of the timestamp.
        var age: UInt32
        /// The block's range in the payload.
        var range: Range<Int>
    }

    /// Returns the primary (newest) block, which is the last one. Returns nil if the headers do not match the payload,
    /// or if there are more than `maxBlocks` redundant blocks.
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

    /// Returns the copy of an earlier packet: the one sent `distance` packets before the packet with this payload. The
    /// copies are in sending order. Returns nil if there is none, or if the headers do not match the payload.
    static func block(_ distance: Int, in payload: UnsafeRawBufferPointer) -> Block? {
        var reader = ByteReader(payload)
        var count = 0
        while let first = reader.u8(), first & 0x80 != 0, count <= maxBlocks, reader.u24() != nil { count += 1 }
        guard (1...maxBlocks).contains(count), (1...count).contains(distance) else { return nil }
        var start = count * 4 + 1
        for index in 0...(count - distance) {
            let header = payload.bigEndian32(at: index * 4)
            let end = start + Int(header & 0x3ff)
            guard end <= payload.count else { return nil }
            if index == count - distance {
                // Ignore an empty block, which represents a packet that was not encoded.
                guard end > start else { return nil }
                return Block(
                    payloadType: UInt8(header >> 24 & 0x7f), age: header >> 10 & 0x3fff, range: start..<end)
            }
            start = end
        }
        return nil
    }
}
