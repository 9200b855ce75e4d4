/// Clients in the order in which they were added. Adding and removing one takes constant time.
struct ClientOrder: Equatable {
    /// The number of each client. Clients that were added later have higher numbers.
    private var numbers: [Key: UInt64] = [:]
    private var last: UInt64 = 0

    init() {}

    var isEmpty: Bool { numbers.isEmpty }

    /// Adds a client after all others. Returns false if it is there already.
    mutating func insert(_ client: Key) -> Bool {
        guard numbers[client] == nil else { return false }
        last += 1
        numbers[client] = last
        return true
    }

    mutating func remove(_ client: Key) { numbers[client] = nil }

    /// The clients in order. Sorts them on each call.
    var all: [Key] { numbers.sorted { $0.value < $1.value }.map(\.key) }

    /// Removes the first clients and returns them.
    /// - Parameter count: the maximum number of clients.
    mutating func takeFirst(_ count: Int) -> [Key] {
        guard count > 0, !isEmpty else { return [] }
        let first = Array(all.prefix(count))
        for client in first { remove(client) }
        return first
    }
}
