/// Values of the system that wait for an answer, by number: actions, and the completions of pushes. Each is taken once.
public struct PendingValues<Value> {
    /// More than the system asks at a time. The oldest has timed out there.
    static var maxKept: Int { 64 }

    private var kept: [(id: UInt64, value: Value)] = []
    private var lastID: UInt64 = 0

    public init() {}

    var count: Int { kept.count }

    /// Keeps a value.
    ///
    /// - Returns: its number, and the value that was kept for too long, which has to be answered now.
    public mutating func keep(_ value: Value) -> (id: UInt64, expired: Value?) {
        lastID += 1
        kept.append((lastID, value))
        return (lastID, kept.count > Self.maxKept ? kept.removeFirst().value : nil)
    }

    /// Returns a value for its answer; nil if it was taken before.
    public mutating func take(_ id: UInt64) -> Value? {
        kept.firstIndex { $0.id == id }.map { kept.remove(at: $0).value }
    }

    /// Drops the value that the system has given up, and returns its number; nil if it was taken before.
    public mutating func drop(where isGivenUp: (Value) -> Bool) -> UInt64? {
        kept.firstIndex { isGivenUp($0.value) }.map { kept.remove(at: $0).id }
    }

    /// Drops everything: the system has forgotten it.
    public mutating func reset() { kept = [] }
}
