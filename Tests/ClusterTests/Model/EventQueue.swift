/// What happens later, ordered by time. Events of the same time keep their order.
struct EventQueue<Event> {
    private struct Entry {
        let time: Int64
        let order: UInt64
        let event: Event
    }

    private var heap: [Entry] = []
    private var order: UInt64 = 0

    var count: Int { heap.count }

    /// - Parameter time: microseconds.
    mutating func add(_ event: Event, at time: Int64) {
        order += 1
        heap.append(Entry(time: time, order: order, event: event))
        var index = heap.count - 1
        while index > 0, isBefore(index, (index - 1) / 2) {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    mutating func next() -> (time: Int64, event: Event)? {
        guard let first = heap.first else { return nil }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count && isBefore(child, least) {
                least = child
            }
            if least == index { break }
            heap.swapAt(index, least)
            index = least
        }
        return (first.time, first.event)
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        (heap[left].time, heap[left].order) < (heap[right].time, heap[right].order)
    }
}

/// A clock that is wrong. All times are microseconds.
struct ModelClock {
    /// Its reading at time zero.
    var offset: Int64 = 0
    /// How much faster it is than time, in millionths.
    var rate: Int64 = 0

    func reading(at time: Int64) -> Int64 { offset + time + time * rate / 1_000_000 }

    /// Returns the first time at which the reading is not less.
    func time(of reading: Int64) -> Int64 {
        var time = (reading - offset) * 1_000_000 / (1_000_000 + rate)
        while self.reading(at: time) < reading { time += 1 }
        return time
    }
}
