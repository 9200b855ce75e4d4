/// Extends 16-bit sequence numbers to numbers that do not wrap.
///
/// Any step forward is accepted, because a gap can be half a minute long. A packet far behind is treated as late. If its
/// successor arrives next, the sender has restarted (RFC 3550 A.1), and the extended numbers continue upward from the highest
/// so far.
public struct SequenceUnwrapper: Equatable, Sendable {
    /// The maximum distance behind the highest number at which a packet is always treated as late. RFC 3550 A.1 proposes 100,
    /// but a retransmission can arrive a second late, which is 1000 packets at 8 Mbit/s.
    public static let maxMisorder = 1_000
    /// The start of the extended numbers. It is above 0 so that late packets do not get negative numbers.
    private static let origin: Int64 = 0x1_0000

    /// The highest extended number so far; nil before the first packet. Its low 16 bits are the sequence number.
    public private(set) var highest: Int64?
    /// Whether the most recent packet revealed that the sender has restarted. The number of lost packets is then unknown.
    public private(set) var restarted = false
    /// The sequence number after that of the most recent packet, if that was far behind (`bad_seq` in RFC 3550 A.1);
    /// otherwise nil.
    private var expectedRestart: UInt16?

    public init() {}

    /// Extends the sequence number of a received packet.
    ///
    /// - Returns: the extended number. It is never negative, and its low 16 bits are `sequenceNumber`.
    public mutating func unwrap(_ sequenceNumber: UInt16) -> Int64 {
        restarted = false
        guard let highest else {
            let first = Self.origin &+ Int64(sequenceNumber)
            self.highest = first
            return first
        }
        let number = nearest(sequenceNumber)
        if number >= highest &- Int64(Self.maxMisorder) {
            expectedRestart = nil
            self.highest = max(highest, number)
            return number
        }
        guard expectedRestart == sequenceNumber else {
            expectedRestart = sequenceNumber &+ 1
            return number
        }
        expectedRestart = nil
        restarted = true
        let forward = number &+ 0x1_0000
        self.highest = forward
        return forward
    }

    /// Returns the extended number that is closest to the highest so far, without recording it. Used for sequence numbers in
    /// NACKs and retransmissions.
    ///
    /// - Returns: a number that is never negative and whose low 16 bits are `sequenceNumber`.
    public func nearest(_ sequenceNumber: UInt16) -> Int64 {
        guard let highest else { return Self.origin &+ Int64(sequenceNumber) }
        let step = Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: highest))
        return highest &+ Int64(step)
    }
}
