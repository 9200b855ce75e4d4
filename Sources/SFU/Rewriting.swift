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

    /// - Parameters: where the stream begins; random numbers (RFC 3550 §5.1).
    init(sequence: UInt16, timestamp: UInt32) {
        // Far from zero: packets from before the beginning have numbers too.
        lastSequence = 0x1_0000 + Int64(sequence)
        lastTimestamp = timestamp
    }

    /// What comes next is from another source, or from this one after a pause.
    /// - Parameters:
    ///   - sequence: the extended sequence number of its first packet.
    ///   - picture: the picture id of that packet, if it has one; the second is TL0PICIDX (RFC 7741 §4.2).
    mutating func begin(
        sequence: Int64, timestamp: UInt32, picture: UInt16?, layerZero: UInt8?, clockRate: UInt32, now: MediaTime
    ) {
        firstSequence = sequence
        sequenceOffset = lastSequence + 1 - sequence
        var step = Self.leastStep
        if let lastSentAt {
            let elapsed = max(0, (now - lastSentAt).nanoseconds / 1000) &* Int64(clockRate) / 1_000_000
            step = max(step, UInt32(truncatingIfNeeded: elapsed))
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
        let numbers = Numbers(
            sequence: sequence + sequenceOffset, timestamp: timestamp &+ timestampOffset,
            picture: picture.map { $0 &+ pictureOffset } ?? 0, layerZero: layerZero.map { $0 &+ layerZeroOffset } ?? 0
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

    /// Whether so much of the source is missing before this packet that it cannot be mended, or the source's count has
    /// jumped. A receiver would lose count of rollovers over it (RFC 3711 §3.3.1), and with that of all that is sent
    /// here ever after: a new piece begins instead.
    func isOutOfReach(_ sequence: Int64) -> Bool { sequence + sequenceOffset - lastSequence > NACKGenerator.mostGap }

    /// The source's number of the packet that was sent, or would have been, under this 16-bit number; nil for one from
    /// before the piece.
    func source(of number: UInt16) -> Int64? {
        let sequence = lastSequence - Int64(UInt16(truncatingIfNeeded: lastSequence) &- number)
        let source = sequence - sequenceOffset
        return source >= firstSequence ? source : nil
    }

    /// A timestamp of the present source as the subscriber knows it.
    func timestamp(_ source: UInt32) -> UInt32 { source &+ timestampOffset }
    func picture(_ source: UInt16) -> UInt16 { source &+ pictureOffset }
    func layerZero(_ source: UInt8) -> UInt8 { source &+ layerZeroOffset }

    struct Numbers: Equatable, Sendable {
        var sequence: Int64
        var timestamp: UInt32
        /// Unmasked: the descriptor has 7 or 15 bits for it.
        var picture: UInt16
        var layerZero: UInt8
    }
}
