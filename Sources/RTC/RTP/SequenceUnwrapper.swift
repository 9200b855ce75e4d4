/// Gives 16-bit sequence numbers their place in a count that does not wrap.
///
/// It believes every number forward: what lies between may be a hole of half a minute. A number far behind is taken for
/// a late packet, until the one after it comes next: then the sender has begun anew, as RFC 3550 A.1 has it, and the
/// count goes on forward from where it was.
public struct SequenceUnwrapper: Equatable, Sendable {
    /// How far behind the highest a packet is late and nothing else. RFC 3550 A.1 proposes 100; a retransmission may
    /// come a second later, which at 8 Mbit/s is 1000 packets.
    public static let mostMisorder = 1_000
    /// Where counting begins, so that nothing late falls below zero.
    private static let origin: Int64 = 0x1_0000

    /// The highest number so far, nil before the first. Its low 16 bits are the sequence number.
    public private(set) var highest: Int64?
    /// The number unwrapped last began the count anew: there is no telling how many were lost.
    public private(set) var restarted = false
    /// The next one after a packet from far behind, if there was one (`bad_seq` of RFC 3550 A.1).
    private var expectedRestart: UInt16?

    public init() {}

    /// - Returns: never negative, and the same modulo 2^16 as `sequenceNumber`.
    public mutating func unwrap(_ sequenceNumber: UInt16) -> Int64 {
        restarted = false
        guard let highest else {
            let first = Self.origin &+ Int64(sequenceNumber)
            self.highest = first
            return first
        }
        let number = nearest(sequenceNumber)
        if number >= highest &- Int64(Self.mostMisorder) {
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

    /// The number nearest to the highest, without taking note of it: for sequence numbers that others tell, in a NACK
    /// or in a retransmission.
    ///
    /// - Returns: never negative, and the same modulo 2^16 as `sequenceNumber`.
    public func nearest(_ sequenceNumber: UInt16) -> Int64 {
        guard let highest else { return Self.origin &+ Int64(sequenceNumber) }
        let step = Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: highest))
        return highest &+ Int64(step)
    }
}
