/// A queue of waiting people with something in common: an interest, or being open to anyone.
///
/// People who leave are skipped and later removed in bulk.
struct WaitQueue: Equatable, Sendable {
    struct Place: Equatable, Sendable {
        /// Numbers only grow, so appending keeps the queue sorted.
        var number: UInt64
        var slot: Int32
    }

    private var places: [Place] = []
    private var first = 0
    private var live = 0

    var isEmpty: Bool { live == 0 }

    /// Inserts a place. Appends it, except for a person who returns from a failed attempt.
    mutating func insert(_ place: Place) {
        live += 1
        if let last = places.last, last.number > place.number {
            places.insert(place, at: index(after: place.number))
        } else {
            places.append(place)
        }
    }

    /// Removes a person from the queue. `isAlive` tells which places are still in use.
    mutating func leave(_ isAlive: (Place) -> Bool) {
        live -= 1
        while first < places.count, !isAlive(places[first]) { first += 1 }
        if live == 0 {
            places.removeAll(keepingCapacity: false)
            first = 0
        } else if places.count - first > 2 * live + 16 || first > live + 64 {
            places = places[first...].filter(isAlive)
            first = 0
        }
    }

    /// Returns the index of the first place with a number above `number`, for `place(at:)`.
    func index(after number: UInt64) -> Int {
        guard number > 0 else { return first }
        var low = first
        var high = places.count
        while low < high {
            let middle = (low + high) / 2
            if places[middle].number > number { high = middle } else { low = middle + 1 }
        }
        return low
    }

    func place(at index: Int) -> Place? {
        index < places.count ? places[index] : nil
    }
}

/// Merges several queues in the order of entry, returning each place once.
struct Walk {
    private enum Cursor {
        case one(WaitQueue.Place)
        case queue(Int32, index: Int)
    }

    private var cursors: [Cursor] = []
    private var last: UInt64

    /// - Parameter count: the number of queues that will be added.
    init(after number: UInt64, count: Int) {
        last = number
        cursors.reserveCapacity(count)
    }

    /// Adds a queue with a single place.
    mutating func add(_ place: WaitQueue.Place) { cursors.append(.one(place)) }

    mutating func add(_ queue: Int32, in queues: Numbered<WaitQueue>) {
        cursors.append(.queue(queue, index: queues[queue].index(after: last)))
    }

    mutating func next(in queues: Numbered<WaitQueue>) -> WaitQueue.Place? {
        var best: WaitQueue.Place?
        for position in cursors.indices {
            guard let place = place(at: position, in: queues) else { continue }
            if best.map({ place.number < $0.number }) ?? true { best = place }
        }
        if let best { last = best.number }
        return best
    }

    /// Returns the next place in this queue after the last one returned.
    private mutating func place(at position: Int, in queues: Numbered<WaitQueue>) -> WaitQueue.Place? {
        switch cursors[position] {
        case .one(let place): return place.number > last ? place : nil
        case .queue(let queue, var index):
            while let place = queues[queue].place(at: index), place.number <= last { index += 1 }
            cursors[position] = .queue(queue, index: index)
            return queues[queue].place(at: index)
        }
    }
}
