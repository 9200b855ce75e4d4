import RTC

/// Puts packets into order, and waits for missing packets for a limited time.
///
/// ```swift
/// order.insert(packet, at: now)
/// while let step = order.next(now: now) { … }
/// ```
public struct PacketOrder: Sendable {
    /// A packet to put into order.
    public struct Packet: Equatable, Sendable {
        /// The packet's sequence number, extended so that it does not wrap.
        public var number: Int64
        public var timestamp: UInt32
        public var marker: Bool
        public var payload: [UInt8]
        /// When the packet arrived. The order does not depend on it; recordings need it to place frames in time.
        public var arrival: MediaTime

        public init(
            number: Int64, timestamp: UInt32, marker: Bool, payload: [UInt8],
            arrival: MediaTime = MediaTime(nanoseconds: 0)
        ) {
            (self.number, self.timestamp, self.marker, self.payload) = (number, timestamp, marker, payload)
            self.arrival = arrival
        }
    }

    /// The next packet in order, or a gap.
    public enum Step: Equatable, Sendable {
        case packet(Packet)
        /// Packets are missing at this position and are no longer expected.
        case gap
    }

    /// The maximum number of packets stored while one is missing, about two seconds at 2.5 Mbit/s. A power of two.
    public static let maxHeld = 512

    /// How long to wait for a missing packet once later ones have arrived.
    private let reorderDelay: MediaInterval
    private var slots: [Packet?]
    private var held = 0
    /// The number of the next packet to return; nil before the first packet.
    private var expected: Int64?
    private var highest: Int64 = 0
    private var isGapDue = false
    /// When the expected packet was noticed to be missing; nil if it is not missing.
    private var missingSince: MediaTime?

    public init(reorderDelay: MediaInterval) {
        self.reorderDelay = reorderDelay
        slots = Array(repeating: nil, count: Self.maxHeld)
    }

    /// Adds a packet, or drops it if it is late or a duplicate.
    public mutating func insert(_ packet: Packet, at now: MediaTime) {
        let expected = expected ?? packet.number
        self.expected = expected
        let ahead = packet.number &- expected
        // Start over at this packet. There is no slot for a packet this far ahead, and a packet this far behind means
        // that the sender restarted its sequence numbers.
        if ahead >= Int64(Self.maxHeld) || ahead < -Int64(SequenceUnwrapper.maxMisorder) {
            restart(at: packet.number)
        } else if ahead < 0 {
            return
        }
        let index = Self.index(packet.number)
        guard slots[index] == nil else { return }
        slots[index] = packet
        held += 1
        highest = max(highest, packet.number)
        if missingSince == nil, packet.number != self.expected { missingSince = now }
    }

    /// Returns the next step in order. Returns nil if no packet is stored, or while the next packet may still arrive.
    /// Callers repeat the call until it returns nil.
    public mutating func next(now: MediaTime) -> Step? {
        guard let expected, held > 0 || isGapDue else { return nil }
        if isGapDue {
            isGapDue = false
            return .gap
        }
        let index = Self.index(expected)
        if let packet = slots[index] {
            slots[index] = nil
            held -= 1
            self.expected = expected &+ 1
            missingSince = nil
            return .packet(packet)
        }
        guard let since = missingSince else {
            missingSince = now
            return nil
        }
        guard now - since >= reorderDelay else { return nil }
        skip(from: expected)
        return .gap
    }

    /// Stops waiting for the packets that are missing next, because the stream has ended. `next` then returns a gap
    /// and the packets after it, up to the next missing one.
    public mutating func giveUp() {
        guard let expected, held > 0, slots[Self.index(expected)] == nil else { return }
        skip(from: expected)
        isGapDue = true
    }

    private mutating func skip(from expected: Int64) {
        var number = expected
        while number < highest, slots[Self.index(number)] == nil { number &+= 1 }
        self.expected = number
        missingSince = nil
    }

    private mutating func restart(at number: Int64) {
        for index in slots.indices { slots[index] = nil }
        held = 0
        expected = number
        highest = number
        missingSince = nil
        isGapDue = true
    }

    private static func index(_ number: Int64) -> Int { Int(truncatingIfNeeded: number) & (maxHeld - 1) }
}
