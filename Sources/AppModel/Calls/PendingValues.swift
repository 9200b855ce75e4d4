/// Values from the operating system that wait for an answer, such as actions and push completions, keyed by a number.
/// Each can be taken only once.
public struct PendingValues<Value> {
    /// The maximum number of stored values. The operating system keeps fewer requests open at a time, so if there are
    /// more, it no longer waits for the oldest.
    static var maxKept: Int { 64 }

    private var kept: [(id: UInt64, value: Value)] = []
    private var lastID: UInt64 = 0

    public init() {}

    var count: Int { kept.count }

    /// Stores a value.
    ///
    /// - Returns: the number of the stored value. If the limit was exceeded, also the oldest value, which has been
    /// removed; the caller must answer its request now.
    public mutating func keep(_ value: Value) -> (id: UInt64, expired: Value?) {
        lastID += 1
        kept.append((lastID, value))
        return (lastID, kept.count > Self.maxKept ? kept.removeFirst().value : nil)
    }

    /// Removes and returns a value; nil if it was already taken.
    public mutating func take(_ id: UInt64) -> Value? {
        kept.firstIndex { $0.id == id }.map { kept.remove(at: $0).value }
    }

    /// Drops the first value for which the operating system no longer waits, and returns the value's number; nil if
    /// there is none.
    public mutating func drop(where isGivenUp: (Value) -> Bool) -> UInt64? {
        kept.firstIndex { isGivenUp($0.value) }.map { kept.remove(at: $0).id }
    }

    /// Drops all values. Called when the operating system has dropped them, too.
    public mutating func reset() { kept = [] }
}
