/// Everybody in the order of a keyed hash, with where they are: for finding people where many are.
///
/// An extendible hash (Fagin and others, 1979): leaves of some dozens of people, found by the first bits of the order. A
/// leaf that overflows is cut in two, two that run empty become one; nothing ever has to be sorted anew.
///
/// A day's order is the table's under exclusive or with a key of the day: that turns the tree of leaves about at some of
/// its forks, so that each day begins elsewhere and goes on otherwise, while every leaf stays as it is.
struct OrderTable: Sendable {
    struct Entry: Sendable {
        var order: UInt64
        var point: GlobePoint
        var number: Int32
    }

    struct Leaf: Sendable {
        /// How many first bits its people have in common.
        var depth: Int
        var entries: ContiguousArray<Entry> = []
    }

    /// More than this many in a leaf, and it is cut in two.
    private static let mostEntries = 128
    /// As few as this in two leaves, and they become one: far from where they would be cut again.
    private static let fewestEntries = 48
    /// Of the tree: 16 million leaves. A leaf so deep may hold any number, which hashes do not come to.
    private static let mostDepth = 24

    private(set) var depth = 0
    /// The leaf for each first `depth` bits.
    private(set) var directory: ContiguousArray<Int32>
    private(set) var leaves = Numbered<Leaf>()
    private(set) var count = 0

    init() { directory = [leaves.insert(Leaf(depth: 0))] }

    private func index(_ order: UInt64) -> Int { Int(truncatingIfNeeded: order >> UInt64(64 - depth)) }

    // MARK: Coming, moving and going

    mutating func insert(_ entry: Entry) {
        count += 1
        var leaf = directory[index(entry.order)]
        while leaves[leaf].entries.count >= Self.mostEntries, leaves[leaf].depth < Self.mostDepth {
            split(leaf, at: entry.order)
            leaf = directory[index(entry.order)]
        }
        leaves[leaf].entries.append(entry)
    }

    mutating func move(_ number: Int32, _ order: UInt64, to point: GlobePoint) {
        let leaf = directory[index(order)]
        guard let place = leaves[leaf].entries.firstIndex(where: { $0.number == number }) else { return }
        leaves[leaf].entries[place].point = point
    }

    mutating func remove(_ number: Int32, _ order: UInt64) {
        let leaf = directory[index(order)]
        guard let place = leaves[leaf].entries.firstIndex(where: { $0.number == number }) else { return }
        count -= 1
        let last = leaves[leaf].entries.removeLast()
        if place < leaves[leaf].entries.count { leaves[leaf].entries[place] = last }
        merge(at: order)
    }

    /// The run of the directory that leads to the leaf of these first bits.
    private func run(_ order: UInt64, depth leafDepth: Int) -> Range<Int> {
        let width = 1 << (depth - leafDepth)
        let start = Int(truncatingIfNeeded: order >> UInt64(64 - leafDepth)) << (depth - leafDepth)
        return start..<start + width
    }

    private mutating func split(_ leaf: Int32, at order: UInt64) {
        let leafDepth = leaves[leaf].depth
        if leafDepth == depth {
            directory = ContiguousArray(directory.lazy.flatMap { [$0, $0] })
            depth += 1
        }
        let bit = UInt64(1) << UInt64(63 - leafDepth)
        let all = leaves[leaf].entries
        leaves[leaf].depth += 1
        leaves[leaf].entries = all.filter { $0.order & bit == 0 }
        let new = leaves.insert(Leaf(depth: leafDepth + 1, entries: all.filter { $0.order & bit != 0 }))
        let run = run(order, depth: leafDepth)
        for index in run.suffix(run.count / 2) { directory[index] = new }
    }

    private mutating func merge(at order: UInt64) {
        while true {
            let leaf = directory[index(order)]
            let leafDepth = leaves[leaf].depth
            guard leafDepth > 0, leaves[leaf].entries.count < Self.fewestEntries else { return }
            let sibling = directory[index(order ^ UInt64(1) << UInt64(64 - leafDepth))]
            guard leaves[sibling].depth == leafDepth,
                leaves[leaf].entries.count + leaves[sibling].entries.count <= Self.fewestEntries
            else { return }
            leaves[leaf].entries += leaves[sibling].entries
            leaves[leaf].depth = leafDepth - 1
            leaves[sibling].entries = []
            leaves.free(sibling)
            for index in run(order, depth: leafDepth - 1) { directory[index] = leaf }
        }
    }

    // MARK: Looking through

    /// Visits leaf after leaf in the day's order, from the one that holds this place. The visitor returns whether to go on.
    ///
    /// - Returns: the last place of what was visited; `nil` when that was all.
    func visit(from place: UInt64, key: UInt64, _ visit: (UnsafeBufferPointer<Entry>) -> Bool) -> UInt64? {
        let (turned, end) = (UInt64(index(key)), UInt64(1) << UInt64(depth))
        var position = UInt64(index(place))
        while position < end {
            let leaf = directory[Int(position ^ turned)]
            let width = UInt64(1) << UInt64(depth - leaves[leaf].depth)
            let next = (position | (width - 1)) + 1
            let goesOn = leaves[leaf].entries.withUnsafeBufferPointer(visit)
            if next < end, !goesOn { return next << UInt64(64 - depth) - 1 }
            position = next
        }
        return nil
    }
}
