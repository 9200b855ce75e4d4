import RTC

/// A priority queue of timeouts. It is a binary heap that tracks the position of each entry, so changing a time moves the entry
/// instead of adding a second one.
struct DueQueue {
    private var heap: [(at: MediaTime, number: Int)] = []
    /// The position of each number in the heap; -1 if the number is not in the heap.
    private var places: [Int] = []

    var first: (at: MediaTime, number: Int)? { heap.first }

    /// Sets the time of a number.
    ///
    /// - Parameter number: a small index, counted from 0. Memory grows with the largest number.
    /// - Parameter at: the time, or nil to remove the entry.
    mutating func set(_ number: Int, _ at: MediaTime?) {
        while places.count <= number { places.append(-1) }
        let place = places[number]
        guard let at else { return remove(number, place) }
        if place < 0 {
            heap.append((at, number))
            places[number] = heap.count - 1
            rise(heap.count - 1)
        } else if heap[place].at != at {
            let before = heap[place].at
            heap[place].at = at
            if at < before { rise(place) } else { sink(place) }
        }
    }

    private mutating func remove(_ number: Int, _ place: Int) {
        guard place >= 0 else { return }
        let last = heap.count - 1
        if place != last { exchange(place, last) }
        heap.removeLast()
        places[number] = -1
        guard place < heap.count else { return }
        rise(place)
        sink(place)
    }

    private mutating func rise(_ from: Int) {
        var place = from
        while place > 0, heap[place].at < heap[(place - 1) / 2].at {
            exchange(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    private mutating func sink(_ from: Int) {
        var place = from
        while true {
            var least = place
            let (left, right) = (2 * place + 1, 2 * place + 2)
            if left < heap.count, heap[left].at < heap[least].at { least = left }
            if right < heap.count, heap[right].at < heap[least].at { least = right }
            guard least != place else { return }
            exchange(place, least)
            place = least
        }
    }

    private mutating func exchange(_ one: Int, _ other: Int) {
        heap.swapAt(one, other)
        places[heap[one].number] = one
        places[heap[other].number] = other
    }
}
