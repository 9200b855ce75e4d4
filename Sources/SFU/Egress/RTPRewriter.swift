import RTC

/// Joins segments of several RTP streams into one continuous stream. Sequence numbers have no gaps, timestamps follow the
/// clock, and VP8 picture ids are consecutive. The receiver's decoder and jitter buffer do not notice when the source changes.
struct RTPRewriter: Sendable {
    /// The number to add to each sequence number of the current source.
    private(set) var sequenceOffset: Int64 = 0
    private(set) var timestampOffset: UInt32 = 0
    private(set) var pictureOffset: UInt16 = 0
    private(set) var layerZeroOffset: UInt8 = 0
    /// The sequence number of the current segment's first packet. Earlier packets of the source are not forwarded.
    private(set) var firstSequence: Int64 = .max

    private(set) var lastSequence: Int64
    private(set) var lastTimestamp: UInt32
    private(set) var lastPicture: UInt16 = 0
    private(set) var lastLayerZero: UInt8 = 0
    /// When the packet with the number `lastSequence` arrived from the publisher. If the packet had to wait, it was
    /// sent to the subscriber later. Nil before the first packet.
    private(set) var lastArrivedAt: MediaTime?
    /// The minimum timestamp step between two segments, so that no two segments share a timestamp. A frame at 30 fps is 3000
    /// ticks.
    private static let minStep: UInt32 = 960
    /// How far the timestamps are ahead of the clock, in timestamp units, because a segment began sooner than
    /// `minStep` after the previous one.
    private var ahead: UInt32 = 0
    private var dropped = DroppedPackets()
    private var droppedPicture: UInt16?

    /// Creates a stream that continues from these numbers, which should be random (RFC 3550 §5.1).
    init(sequence: UInt16, timestamp: UInt32) {
        // Start above 65,535, so that 16-bit numbers from before the beginning also map to positive extended numbers.
        lastSequence = 0x1_0000 + Int64(sequence)
        lastTimestamp = timestamp
    }

    /// Reads the fields that forwarding needs; see `Egress.prefetch`.
    @inline(__always)
    func prefetch() -> UInt64 { UInt64(lastTimestamp) &+ UInt64(bitPattern: dropped.last) }

    /// Starts a segment with another source, or with the same source after a pause.
    /// - Parameters:
    ///   - sequence: the extended sequence number of the segment's first packet.
    ///   - picture: the picture id of the segment's first packet, if it contains one.
    ///   - layerZero: the TL0PICIDX of that packet (RFC 7741 §4.2), if it contains one.
    ///   - clockRate: the clock rate of the timestamps in hertz.
    ///   - arrivedAt: when that packet arrived from the publisher.
    mutating func begin(
        sequence: Int64, timestamp: UInt32, picture: UInt16?, layerZero: UInt8?, clockRate: UInt32, arrivedAt: MediaTime
    ) {
        firstSequence = sequence
        sequenceOffset = lastSequence + 1 - sequence
        (dropped, droppedPicture) = (DroppedPackets(), nil)
        var step = Self.minStep
        if let lastArrivedAt {
            let elapsed = max(0, (arrivedAt - lastArrivedAt).nanoseconds / 1000) &* Int64(clockRate) / 1_000_000
            let due = elapsed - Int64(ahead)
            step = UInt32(truncatingIfNeeded: max(Int64(step), due))
            ahead = due < Int64(step) ? UInt32(clamping: Int64(step) - due) : 0
        }
        timestampOffset = lastTimestamp &+ step &- timestamp
        if let picture { pictureOffset = lastPicture &+ 1 &- picture }
        if let layerZero { layerZeroOffset = lastLayerZero &+ 1 &- layerZero }
    }

    /// Returns the numbers under which to send a packet of the current source; nil if the packet is from before the
    /// segment, was dropped, or is so old that it may have been dropped.
    mutating func numbers(
        sequence: Int64, timestamp: UInt32, picture: UInt16?, layerZero: UInt8?, arrivedAt: MediaTime
    ) -> Numbers? {
        guard sequence >= firstSequence else { return nil }
        var number = sequence + sequenceOffset
        var picturesBefore = pictureOffset
        if sequence <= dropped.last {
            // This packet arrived after a later one that was dropped. Its sequence number is still free unless this packet was
            // dropped too.
            guard dropped.remembers(sequence), !dropped.contains(sequence) else { return nil }
            let after = dropped.counts(after: sequence)
            number += after.packets
            picturesBefore &+= UInt16(truncatingIfNeeded: after.pictures)
        }
        let numbers = Numbers(
            sequence: number, timestamp: timestamp &+ timestampOffset,
            picture: picture.map { $0 &+ picturesBefore } ?? 0, layerZero: layerZero.map { $0 &+ layerZeroOffset } ?? 0
        )
        if numbers.sequence > lastSequence {
            lastSequence = numbers.sequence
            lastTimestamp = numbers.timestamp
            lastArrivedAt = arrivedAt
            if picture != nil { lastPicture = numbers.picture }
            if layerZero != nil { lastLayerZero = numbers.layerZero }
        }
        return numbers
    }

    /// Drops a packet. Later packets are numbered as if it had never existed.
    /// - Returns: false if it is too late, because a later packet was sent and a sequence number is already reserved for this
    ///   one.
    mutating func drop(sequence: Int64, picture: UInt16?) -> Bool {
        guard sequence >= firstSequence else { return true }
        guard sequence > dropped.last, sequence + sequenceOffset > lastSequence else {
            return dropped.contains(sequence)
        }
        let startsPicture = picture != nil && picture != droppedPicture
        dropped.insert(sequence, startsPicture: startsPicture)
        droppedPicture = picture
        sequenceOffset -= 1
        if startsPicture { pictureOffset &-= 1 }
        return true
    }

    /// Returns whether the gap before this packet is too large to fill, or the source's sequence numbers have jumped.
    /// A receiver could then lose count of the rollovers (RFC 3711 §3.3.1) and no longer decrypt anything, so the
    /// caller begins a new segment instead.
    func exceedsMaxGap(_ sequence: Int64) -> Bool { sequence + sequenceOffset - lastSequence > NACKGenerator.maxGap }

    /// Returns whether this packet of the current source is later than all that were sent.
    func isNewest(_ sequence: Int64) -> Bool { sequence + sequenceOffset > lastSequence }

    /// Maps a 16-bit sequence number of this stream to the source's extended sequence number. Works for packets that
    /// were sent and for those that are still missing. Returns nil if the packet is from before the segment, or older
    /// than the record of dropped packets.
    func source(of number: UInt16) -> Int64? {
        let sequence = lastSequence - Int64(UInt16(truncatingIfNeeded: lastSequence) &- number)
        var source = sequence - sequenceOffset
        if source <= dropped.last {
            guard let kept = dropped.kept(dropped.last - source) else { return nil }
            source = kept
        }
        return source >= firstSequence ? source : nil
    }

    /// Converts a timestamp of the current source to one of this stream.
    func timestamp(_ source: UInt32) -> UInt32 { source &+ timestampOffset }
    /// Converts a picture id of the current source to one of this stream.
    /// - Parameter sequence: the source's extended sequence number of the packet that contains the picture id.
    func picture(_ source: UInt16, in sequence: Int64) -> UInt16 {
        source &+ pictureOffset &+ UInt16(truncatingIfNeeded: dropped.counts(after: sequence).pictures)
    }
    func layerZero(_ source: UInt8) -> UInt8 { source &+ layerZeroOffset }

    /// The numbers of one packet in this stream.
    struct Numbers: Equatable, Sendable {
        var sequence: Int64
        var timestamp: UInt32
        /// The picture id in 16 bits. It must be truncated to the 7 or 15 bits of the descriptor's field.
        var picture: UInt16
        var layerZero: UInt8
    }
}
