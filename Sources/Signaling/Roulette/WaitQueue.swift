/// A queue of waiting people who share an interest, or who may all be matched with anyone.
///
/// When a person leaves, their place stays in the queue. Such places are skipped, and later removed together.
struct WaitQueue: Equatable, Sendable {
    /// A person's place in a queue.
    struct Place: Equatable, Sendable {
        /// The person's number in the order of entry. Numbers only increase, so appending keeps the queue sorted.
        var number: UInt64
        var slot: Int32
    }

    private var places: [Place] = []
    private var first = 0
    private var live = 0

    var isEmpty: Bool { live == 0 }

    /// Inserts a place so that the queue stays sorted by time of entry. The place is appended, unless the person returns from a
    /// failed match.
    mutating func insert(_ place: Place) {
        live += 1
        if let last = places.last, last.number > place.number {
            places.insert(place, at: index(after: place.number))
        } else {
            places.append(place)
        }
    }

    /// Records that a person left the queue, and removes unused places if there are many. `isAlive` returns whether a
    /// place is still in use.
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

    /// Returns the index of the first place whose number is greater than `number`. If there is no such place,
    /// `place(at:)` returns nil for this index.
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

/// Walks over several queues as if they were one. `next` returns each place once, in the order of entry, even if the
/// person is in several of the queues.
struct Walk {
    /// The position of the walk in one queue. An interest that only one person has needs no queue: `one` is that
    /// person's place.
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

    /// Returns the next place in one of the queues, after the place that the walk returned most recently; nil if there
    /// is none.
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
