import RTC

/// Makes one continuous RTP stream of pieces of several: sequence numbers without gaps of our making, timestamps that
/// go on with the clock, VP8 picture ids that count on. A receiver's decoder and jitter buffer then never notice that
/// the source changed.
struct Rewriting: Sendable {
    /// Added to each number of the present source.
    private(set) var sequenceOffset: Int64 = 0
    private(set) var timestampOffset: UInt32 = 0
    private(set) var pictureOffset: UInt16 = 0
    private(set) var layerZeroOffset: UInt8 = 0
    /// Packets of the source from before the piece are not ours to send.
    private(set) var firstSequence: Int64 = .max

    private(set) var lastSequence: Int64
    private(set) var lastTimestamp: UInt32
    private(set) var lastPicture: UInt16 = 0
    private(set) var lastLayerZero: UInt8 = 0
    private(set) var lastSentAt: MediaTime?
    /// No two pieces share a timestamp, and 3000 ticks are a frame at 30 per second.
    private static let leastStep: UInt32 = 960
    /// How far the timestamps have run ahead of the clock, because pieces followed each other sooner than that.
    private var ahead: UInt32 = 0
    private var dropped = DroppedPackets()
    private var droppedPicture: UInt16?

    /// - Parameters: where the stream begins; random numbers (RFC 3550 §5.1).
    init(sequence: UInt16, timestamp: UInt32) {
        // Far from zero: packets from before the beginning have numbers too.
        lastSequence = 0x1_0000 + Int64(sequence)
        lastTimestamp = timestamp
    }

    /// See `Router.warm`.
    @inline(__always)
    func warm() -> UInt64 { UInt64(lastTimestamp) &+ UInt64(bitPattern: dropped.last) }

    /// What comes next is from another source, or from this one after a pause.
    /// - Parameters:
    ///   - sequence: the extended sequence number of its first packet.
    ///   - picture: the picture id of that packet, if it has one; the second is TL0PICIDX (RFC 7741 §4.2).
    mutating func begin(
        sequence: Int64, timestamp: UInt32, picture: UInt16?, layerZero: UInt8?, clockRate: UInt32, now: MediaTime
    ) {
        firstSequence = sequence
        sequenceOffset = lastSequence + 1 - sequence
        (dropped, droppedPicture) = (DroppedPackets(), nil)
        var step = Self.leastStep
        if let lastSentAt {
            let elapsed = max(0, (now - lastSentAt).nanoseconds / 1000) &* Int64(clockRate) / 1_000_000
            let due = elapsed - Int64(ahead)
            step = UInt32(truncatingIfNeeded: max(Int64(step), due))
            ahead = due < Int64(step) ? UInt32(clamping: Int64(step) - due) : 0
        }
        timestampOffset = lastTimestamp &+ step &- timestamp
        if let picture { pictureOffset = lastPicture &+ 1 &- picture }
        if let layerZero { layerZeroOffset = lastLayerZero &+ 1 &- layerZero }
    }

    /// The numbers that a packet of the present source is sent with; nil for one from before the piece.
    mutating func numbers(
        sequence: Int64, timestamp: UInt32, picture: UInt16?, layerZero: UInt8?, now: MediaTime
    ) -> Numbers? {
        guard sequence >= firstSequence else { return nil }
        var number = sequence + sequenceOffset
        var picturesBefore = pictureOffset
        if sequence <= dropped.last {
            // Overtaken by a packet that was dropped: its number was kept free, unless it was dropped itself.
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
            lastSentAt = now
            if picture != nil { lastPicture = numbers.picture }
            if layerZero != nil { lastLayerZero = numbers.layerZero }
        }
        return numbers
    }

    /// Drops a packet: those after it are numbered as if it had never existed.
    /// - Returns: false for one that came too late for that, because its number is kept free already.
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

    /// Whether so much of the source is missing before this packet that it cannot be mended, or the source's count has
    /// jumped. A receiver would lose count of rollovers over it (RFC 3711 §3.3.1), and with that of all that is sent
    /// here ever after: a new piece begins instead.
    func isOutOfReach(_ sequence: Int64) -> Bool { sequence + sequenceOffset - lastSequence > NACKGenerator.mostGap }

    /// The source's number of the packet that was sent, or would have been, under this 16-bit number; nil for one from
    /// before the piece.
    func source(of number: UInt16) -> Int64? {
        let sequence = lastSequence - Int64(UInt16(truncatingIfNeeded: lastSequence) &- number)
        var source = sequence - sequenceOffset
        if source <= dropped.last {
            guard let kept = dropped.kept(dropped.last - source) else { return nil }
            source = kept
        }
        return source >= firstSequence ? source : nil
    }

    /// A timestamp of the present source as the subscriber knows it.
    func timestamp(_ source: UInt32) -> UInt32 { source &+ timestampOffset }
    /// A picture id of the present source, in this packet of it, as the subscriber knows it.
    func picture(_ source: UInt16, in sequence: Int64) -> UInt16 {
        source &+ pictureOffset &+ UInt16(truncatingIfNeeded: dropped.counts(after: sequence).pictures)
    }
    func layerZero(_ source: UInt8) -> UInt8 { source &+ layerZeroOffset }

    struct Numbers: Equatable, Sendable {
        var sequence: Int64
        var timestamp: UInt32
        /// Unmasked: the descriptor has 7 or 15 bits for it.
        var picture: UInt16
        var layerZero: UInt8
    }
}
