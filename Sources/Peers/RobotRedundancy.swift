import RTC

/// Adds the previous payload to each audio packet that a robot sends (RFC 2198), so that single lost packets are not
/// audible.
package struct RobotRedundancy {
    /// The limits that the header of a redundant block sets for the block (RFC 2198 §3). The block's age, in timestamp
    /// units, and its length, in bytes, must be below them.
    private static let (ages, lengths): (UInt32, Int) = (1 << 14, 1 << 10)

    private var former: (payload: [UInt8], timestamp: UInt32)?

    /// Returns the bytes before the payload in its packet: the headers and the previous payload, or only the last
    /// header if there is no previous payload that fits. Stores the payload for the next packet.
    /// - Parameter codec: the negotiated codec for redundant audio.
    mutating func prefix(of payload: UnsafeRawBufferPointer, timestamp: UInt32, in codec: Codec) -> [UInt8] {
        guard let type = codec.redundantPayloadTypes.first else { return [] }
        defer { former = (Array(payload), timestamp) }
        guard let former, timestamp &- former.timestamp < Self.ages, former.payload.count < Self.lengths,
            former.payload.count + payload.count < RobotTrack.maxPayload
        else {
            return [type]
        }
        let block = (timestamp &- former.timestamp) << 10 | UInt32(former.payload.count)
        let header = [0x80 | type, UInt8(block >> 16 & 0xff), UInt8(block >> 8 & 0xff), UInt8(block & 0xff), type]
        return header + former.payload
    }

    /// The maximum number of redundant blocks. No known sender uses more.
    private static let maxBlocks = 8

    /// Returns the newest payload in a packet of redundant audio, which is the last one. Returns nil if the headers do
    /// not match the packet.
    package static func primary(_ payload: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        var reader = ByteReader(payload)
        var redundant = 0
        for _ in 0...maxBlocks {
            guard let first = reader.u8() else { return nil }
            if first & 0x80 == 0 { return reader.skip(redundant) ? reader.take(reader.remaining) : nil }
            guard let rest = reader.u24() else { return nil }
            redundant += Int(rest & 0x3ff)
        }
        return nil
    }
}
