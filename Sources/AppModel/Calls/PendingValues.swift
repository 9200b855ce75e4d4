/// System values that wait for an answer, such as actions and push completions, keyed by a number. Each can be taken
/// once.
public struct PendingValues<Value> {
    /// The maximum number of stored values. The system keeps fewer open at a time. If there are more, it has already
    /// timed out the oldest.
    static var maxKept: Int { 64 }

    private var kept: [(id: UInt64, value: Value)] = []
    private var lastID: UInt64 = 0

    public init() {}

    var count: Int { kept.count }

    /// Stores a value.
    ///
    /// - Returns: the value's number, and the oldest value if there are too many: it was removed and has to be
    /// answered now.
    public mutating func keep(_ value: Value) -> (id: UInt64, expired: Value?) {
        lastID += 1
        kept.append((lastID, value))
        return (lastID, kept.count > Self.maxKept ? kept.removeFirst().value : nil)
    }

    /// Removes and returns a value; nil if it was already taken.
    public mutating func take(_ id: UInt64) -> Value? {
        kept.firstIndex { $0.id == id }.map { kept.remove(at: $0).value }
    }

    /// Drops the first value that the system has given up on, and returns its number; nil if there is none.
    public mutating func drop(where isGivenUp: (Value) -> Bool) -> UInt64? {
        kept.firstIndex { isGivenUp($0.value) }.map { kept.remove(at: $0).id }
    }

    /// Drops all values. Called when the system has dropped them too.
    public mutating func reset() { kept = [] }
}
