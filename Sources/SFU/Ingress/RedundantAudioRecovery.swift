import RTC

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

extension Ingress {
    /// Records a packet of redundant audio, and forwards the copies of the packets that were lost before it.
    ///
    /// The recovered packets go to all subscribers as plain Opus, which every subscriber has negotiated.
    /// - Returns: false if the packet was already received or recovered, or is too old to check, so it must not be
    ///   forwarded.
    func recoverAudio(before pending: FeedPacket, of encoding: IncomingEncoding, at arrivedAt: MediaTime) -> Bool {
        let (track, feed) = (encoding.feed.track, encoding.feed)
        let former = encoding.arrivedAudio.timestamp
        guard let missing = encoding.arrivedAudio.receive(pending.sequence, timestamp: pending.packet.timestamp) else {
            output.counters.packetsDropped &+= 1
            return false
        }
        guard missing > 0, feed.isWatched, track.voice.isForwarded else { return true }
        for distance in stride(from: missing, through: 1, by: -1) {
            guard let block = RedundantAudio.block(distance, in: pending.payload),
                let codec = track.codecIndex(block.payloadType),
                track.codecs[codec].kind == .opus
            else { continue }
            let timestamp = pending.packet.timestamp &- block.age
            let sequence = pending.sequence - Int64(distance)
            // A sender may omit copies, so this copy may be of an earlier packet, which has already arrived. It must
            // not replace the lost one.
            guard block.age > 0, Int32(bitPattern: timestamp &- former) > 0,
                encoding.arrivedAudio.insert(sequence)
            else { continue }
            let start = pending.packet.payloadRange.lowerBound
            let range = start + block.range.lowerBound..<start + block.range.upperBound
            let packet = pending.packet.carried(in: range, timestamp: timestamp)
            feed.pass(
                FeedPacket(
                    bytes: pending.bytes, packet: packet, sequence: sequence, codec: codec, startsKeyframe: false),
                arrivedAt: arrivedAt)
            output.counters.packetsRecovered &+= 1
        }
        return true
    }
}
