/// Hands values from one thread to another, one at a time. Of the values that arrive before the other thread takes
/// one, only the newest is kept.
public struct NewestValue<Value> {
    private var newest: Value?
    private var isTaken = true

    public init() {}

    /// Stores a value. Returns whether the other thread has to be notified to take it.
    public mutating func put(_ value: Value) -> Bool {
        newest = value
        defer { isTaken = false }
        return isTaken
    }

    public mutating func take() -> Value? {
        defer { (newest, isTaken) = (nil, true) }
        return newest
    }
}

extension NewestValue: Sendable where Value: Sendable {}
