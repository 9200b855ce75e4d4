/// Waiting people in the order of their entry, who share one property (an interest, or being open to anybody).
///
/// Who leaves is skipped, and swept out when half are gone.
struct Line: Equatable, Sendable {
    struct Place: Equatable, Sendable {
        /// Numbers only grow, so the line stays sorted by appending.
        var number: UInt64
        var slot: Int32
    }

    private var places: [Place] = []
    private var first = 0
    private var live = 0

    var isEmpty: Bool { live == 0 }

    /// At the end, but for somebody who comes back from an attempt that failed.
    mutating func insert(_ place: Place) {
        live += 1
        if let last = places.last, last.number > place.number {
            places.insert(place, at: index(after: place.number))
        } else {
            places.append(place)
        }
    }

    /// Somebody in this line left it; `isAlive` tells who is still here.
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

    /// The index of the first place with a number above `number`, to be used with `place(at:)`.
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

/// Several lines as one, in the order of entry, each place once.
struct Walk {
    private enum Cursor {
        case one(Line.Place)
        case line(Int32, index: Int)
    }

    private var cursors: [Cursor] = []
    private var last: UInt64

    /// - Parameter count: how many lines will be added.
    init(after number: UInt64, count: Int) {
        last = number
        cursors.reserveCapacity(count)
    }

    /// A line of one.
    mutating func add(_ place: Line.Place) { cursors.append(.one(place)) }

    mutating func add(_ line: Int32, in lines: Numbered<Line>) {
        cursors.append(.line(line, index: lines[line].index(after: last)))
    }

    mutating func next(in lines: Numbered<Line>) -> Line.Place? {
        var best: Line.Place?
        for position in cursors.indices {
            guard let place = place(at: position, in: lines) else { continue }
            if best.map({ place.number < $0.number }) ?? true { best = place }
        }
        if let best { last = best.number }
        return best
    }

    /// The first place there after the last one given out.
    private mutating func place(at position: Int, in lines: Numbered<Line>) -> Line.Place? {
        switch cursors[position] {
        case .one(let place): return place.number > last ? place : nil
        case .line(let line, var index):
            while let place = lines[line].place(at: index), place.number <= last { index += 1 }
            cursors[position] = .line(line, index: index)
            return lines[line].place(at: index)
        }
    }
}
