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

/// Records which of the latest packets of a redundant stream have arrived or been recovered, so that each is forwarded
/// once.
struct ArrivedAudio: Sendable {
    private var highest = Int64.min
    /// The timestamp of the newest packet.
    private(set) var timestamp: UInt32 = 0
    /// Bit n is set if the packet whose sequence number is n below the highest has arrived or been recovered.
    private var known: UInt64 = 0

    /// Records a packet.
    /// - Returns: the number of packets that are missing just before it, at most `RedundantAudio.maxBlocks`; nil if
    ///   the packet was recorded before, or is too old to check.
    mutating func receive(_ sequence: Int64, timestamp: UInt32) -> Int? {
        guard highest != .min, sequence > highest else {
            guard highest != .min else {
                (highest, self.timestamp, known) = (sequence, timestamp, 1)
                return 0
            }
            return insert(sequence) ? 0 : nil
        }
        let missing = sequence - highest - 1
        known = missing < 63 ? known << UInt64(missing + 1) | 1 : 1
        (highest, self.timestamp) = (sequence, timestamp)
        return Int(min(missing, Int64(RedundantAudio.maxBlocks)))
    }

    /// Records a recovered packet, which is older than the newest.
    /// - Returns: false if it was recorded before, or is too old to check.
    mutating func insert(_ sequence: Int64) -> Bool {
        let age = highest - sequence
        guard (0..<64).contains(age), known >> UInt64(age) & 1 == 0 else { return false }
        known |= 1 << UInt64(age)
        return true
    }
}

extension Router {
    /// Records a packet of redundant audio, and forwards the copies of the packets that were lost before it.
    ///
    /// The recovered packets go to all subscribers as plain Opus, which every subscriber has negotiated.
    /// - Returns: false if the packet was already received or recovered, or is too old to check, so it must not be
    ///   forwarded.
    func recoverAudio(before pending: PendingPacket, of encoding: IncomingEncoding) -> Bool {
        let former = encoding.arrivedAudio.timestamp
        guard let missing = encoding.arrivedAudio.receive(pending.sequence, timestamp: pending.packet.timestamp) else {
            counters.packetsDropped &+= 1
            return false
        }
        guard missing > 0, encoding.isWatched, encoding.track.voice.isForwarded else { return true }
        for distance in stride(from: missing, through: 1, by: -1) {
            guard let block = RedundantAudio.block(distance, in: pending.payload),
                let codec = encoding.track.codecIndex(block.payloadType),
                encoding.track.codecs[codec].kind == .opus
            else { continue }
            let timestamp = pending.packet.timestamp &- block.age
            let sequence = pending.sequence - Int64(distance)
            // A sender may omit copies, so this copy may be of an earlier packet, which has already arrived. It must
            // not replace the lost one.
            guard block.age > 0, Int32(bitPattern: timestamp &- former) > 0,
                encoding.pending.count < IncomingEncoding.maxPending, encoding.arrivedAudio.insert(sequence)
            else { continue }
            let start = pending.packet.payloadRange.lowerBound
            let range = start + block.range.lowerBound..<start + block.range.upperBound
            let packet = pending.packet.carried(in: range, timestamp: timestamp)
            append(
                PendingPacket(
                    bytes: pending.bytes, packet: packet, sequence: sequence, codec: codec, startsKeyframe: false),
                to: encoding)
            counters.packetsRecovered &+= 1
        }
        return true
    }
}
