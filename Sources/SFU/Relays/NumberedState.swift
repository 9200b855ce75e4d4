import RTC

/// A state that one end of a relay sends to the other. Only the newest value counts. It is sent at once, and repeated until it is
/// acknowledged.
struct NumberedState<Value: Equatable> {
    /// The time between two repetitions. Longer than the round trip between nodes of a region, so that nothing is repeated without
    /// a loss.
    static var repeatInterval: MediaInterval { .milliseconds(100) }

    private(set) var value: Value
    /// The number of the value.
    private(set) var number: UInt32
    private var acknowledged: UInt32
    /// When the value was last sent; nil if it is new.
    private var sentAt: MediaTime?

    /// - Parameter former: the number of the latest value that was sent before, which may still arrive; 0 if there was none.
    init(_ value: Value, after former: UInt32 = 0) {
        (self.value, number, acknowledged) = (value, former &+ 1, former)
    }

    var isAcknowledged: Bool { acknowledged == number }

    /// Replaces the value. Does nothing if it is the same.
    mutating func set(_ value: Value) {
        guard value != self.value else { return }
        (self.value, sentAt) = (value, nil)
        number &+= 1
    }

    /// The other end has applied the value with this number.
    mutating func acknowledge(_ number: UInt32) {
        if number <= self.number { acknowledged = max(acknowledged, number) }
    }

    /// Returns whether the value must be sent now, and records that it is.
    mutating func takeDue(now: MediaTime) -> Bool {
        guard !isAcknowledged, sentAt.map({ now - $0 >= Self.repeatInterval }) ?? true else { return false }
        sentAt = now
        return true
    }
}
