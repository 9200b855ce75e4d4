/// Numbers the packets of a channel. Gaps in a feed's sequence numbers stay, because the other node requests what is missing. Where the
/// feed was not sent for a while, or another one begins, the numbers continue without a gap.
///
/// SRTP requires this: it derives the upper bits of a packet's index from the steps between sequence numbers, and uses no index twice
/// (RFC 3711 §3.3.1).
struct RelayNumbers: Equatable {
    /// The largest step to the next packet. After a larger one, the feed has lost so much that a keyframe is on its way, and the
    /// numbers continue without a gap. SRTP allows steps of up to 32,768.
    static let maxStep: Int64 = 8192

    /// The highest number that was used on the SSRC.
    private var highest: Int64 = 0
    /// The first number of the present segment.
    private var first: Int64 = 1
    /// The number to add to a feed's sequence numbers; nil until the segment's first packet.
    private var offset: Int64?

    init() {}

    /// The number of the newest packet; 0 before the first one.
    var latest: UInt16 { UInt16(truncatingIfNeeded: highest) }

    /// The next packet begins a new segment.
    mutating func begin() { offset = nil }

    /// Returns the number of a packet to be sent; nil if it is older than the segment.
    mutating func number(_ sequence: Int64) -> UInt16? {
        if let offset, sequence &+ offset <= highest &+ Self.maxStep {
            let number = sequence &+ offset
            guard number >= first else { return nil }
            highest = max(highest, number)
            return UInt16(truncatingIfNeeded: number)
        }
        highest &+= 1
        (first, offset) = (highest, highest &- sequence)
        return UInt16(truncatingIfNeeded: highest)
    }

    /// Returns the number of a packet that belongs to the present segment and is not newer than the newest; otherwise nil.
    func known(_ sequence: Int64) -> UInt16? {
        guard let offset, (first...highest).contains(sequence &+ offset) else { return nil }
        return UInt16(truncatingIfNeeded: sequence &+ offset)
    }

    /// Returns the feed's sequence number of a packet of the present segment; nil if the number belongs to none.
    func sequence(of number: UInt16) -> Int64? {
        guard let offset else { return nil }
        let extended = highest &- Int64(UInt16(truncatingIfNeeded: highest) &- number)
        return extended >= first ? extended &- offset : nil
    }
}
