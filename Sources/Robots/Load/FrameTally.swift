/// Counts the frames of one received video: how many are complete, and how many packets never arrived.
///
/// A server numbers the packets of a subscriber one after the other, and the last packet of a frame has the marker bit (RFC 7741
/// §4.1). A packet can arrive late, as a retransmission.
struct FrameTally: Equatable, Sendable {
    /// A packet counts as lost when more than this number of later packets have arrived.
    static let maxWaiting = 128
    /// A larger jump of the sequence numbers is not a loss but a restart.
    static let maxAhead: Int64 = 10_000

    /// The number of frames whose packets have all arrived.
    private(set) var complete = 0
    /// The number of frames with a lost packet.
    private(set) var incomplete = 0
    /// The number of lost packets.
    private(set) var missing = 0
    /// The number of packets that arrived after a later one, because they were lost and retransmitted.
    private(set) var late = 0

    /// The number of the first packet that was not counted yet; nil before the first packet.
    private var next: Int64?
    /// The packets that wait for an earlier one, by number. The value is true for the last packet of a frame.
    private var waiting: [Int64: Bool] = [:]
    /// Whether all counted packets of the current frame have arrived; nil if its beginning is unknown.
    private var isWhole: Bool?

    /// Counts a packet. Ignores duplicates, and packets that already count as lost.
    ///
    /// - Parameters:
    ///   - number: the extended sequence number.
    ///   - endsFrame: whether the packet has the marker bit.
    mutating func add(_ number: Int64, endsFrame: Bool) {
        var expected = next ?? number
        guard number >= expected else { return }
        if number - expected > Self.maxAhead { (expected, isWhole, waiting) = (number, nil, [:]) }
        if waiting[number] == nil, waiting.keys.contains(where: { $0 > number }) { late += 1 }
        waiting[number] = endsFrame
        while !waiting.isEmpty {
            if let endsFrame = waiting.removeValue(forKey: expected) {
                if endsFrame { endFrame() }
            } else if waiting.count > Self.maxWaiting {
                missing += 1
                if isWhole != nil { isWhole = false }
            } else {
                break
            }
            expected += 1
        }
        next = expected
    }

    private mutating func endFrame() {
        switch isWhole {
        case true?: complete += 1
        case false?: incomplete += 1
        case nil: break
        }
        isWhole = true
    }

    /// Sets the counts to zero, and continues with the current frame.
    mutating func beginCounting() { (complete, incomplete, missing, late) = (0, 0, 0, 0) }
}
