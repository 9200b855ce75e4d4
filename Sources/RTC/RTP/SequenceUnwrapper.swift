/// Extends 16-bit sequence numbers to numbers that do not wrap.
///
/// It accepts any step forward: the gap may be half a minute long. A number far behind is treated as a late packet. If the
/// packet after it comes next, the sender has restarted (RFC 3550 A.1), and the extended numbers continue forward from
/// where they were.
public struct SequenceUnwrapper: Equatable, Sendable {
    /// Packets at most this far behind the highest are always treated as late. RFC 3550 A.1 proposes 100, but a
    /// retransmission can arrive a second later, which is 1000 packets at 8 Mbit/s.
    public static let maxMisorder = 1_000
    /// The start of the extended numbers, so that late packets do not get negative numbers.
    private static let origin: Int64 = 0x1_0000

    /// The highest extended number so far; nil before the first. Its low 16 bits are the sequence number.
    public private(set) var highest: Int64?
    /// Whether the last number revealed a restart of the sender. The number of lost packets is unknown then.
    public private(set) var restarted = false
    /// The number after the last packet from far behind (`bad_seq` in RFC 3550 A.1).
    private var expectedRestart: UInt16?

    public init() {}

    /// - Returns: the extended number, which is never negative and is congruent to `sequenceNumber` modulo 2^16.
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

    /// Returns the extended number nearest to the highest, without recording it; for sequence numbers in NACKs and
    /// retransmissions.
    ///
    /// - Returns: a number that is never negative and is congruent to `sequenceNumber` modulo 2^16.
    public func nearest(_ sequenceNumber: UInt16) -> Int64 {
        guard let highest else { return Self.origin &+ Int64(sequenceNumber) }
        let step = Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: highest))
        return highest &+ Int64(step)
    }
}
