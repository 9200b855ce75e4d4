import RTC

/// Puts packets into order, and waits for those missing, but not for ever.
///
/// ```swift
/// order.insert(packet, at: now)
/// while let step = order.next(now: now) { … }
/// ```
public struct PacketOrder {
    public struct Packet: Equatable, Sendable {
        /// In a count that does not wrap.
        public var number: Int64
        public var timestamp: UInt32
        public var marker: Bool
        public var payload: [UInt8]

        public init(number: Int64, timestamp: UInt32, marker: Bool, payload: [UInt8]) {
            (self.number, self.timestamp, self.marker, self.payload) = (number, timestamp, marker, payload)
        }
    }

    public enum Step: Equatable, Sendable {
        case packet(Packet)
        /// What stood here will not come any more.
        case gap
    }

    /// Packets that wait for one before them: two seconds of 2.5 Mbit/s. A power of two.
    public static let mostHeld = 512

    /// How long a missing packet is waited for while later ones are there.
    private let patience: MediaInterval
    private var slots: [Packet?]
    private var held = 0
    /// The number that comes next, nil before the first packet.
    private var expected: Int64?
    private var highest: Int64 = 0
    private var isGapDue = false
    /// Since when the expected one is missing.
    private var missingSince: MediaTime?

    public init(patience: MediaInterval) {
        self.patience = patience
        slots = Array(repeating: nil, count: Self.mostHeld)
    }

    /// One that is late, or was here already, is dropped.
    public mutating func insert(_ packet: Packet, at now: MediaTime) {
        let expected = expected ?? packet.number
        self.expected = expected
        let ahead = packet.number &- expected
        // So far ahead there is no slot for it, and so far behind the sender counts from somewhere else now.
        if ahead >= Int64(Self.mostHeld) || ahead < -Int64(SequenceUnwrapper.mostMisorder) {
            startAnew(at: packet.number)
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

    /// What comes next, nil while that is missing and may still come. Ask until it is nil.
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
        guard now - since >= patience else { return nil }
        skip(from: expected)
        return .gap
    }

    /// Gives up what is missing, because nothing comes any more: `next` then goes on to the end.
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

    private mutating func startAnew(at number: Int64) {
        for index in slots.indices { slots[index] = nil }
        held = 0
        expected = number
        highest = number
        missingSince = nil
        isGapDue = true
    }

    private static func index(_ number: Int64) -> Int { Int(truncatingIfNeeded: number) & (mostHeld - 1) }
}
