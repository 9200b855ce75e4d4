/// All listed people and their locations, in the order of a keyed hash. Used to search areas with many people.
///
/// An extendible hash table (Fagin et al., 1979) whose leaves contain dozens of people each. The leading bits of a person's
/// hash select the leaf. A full leaf is split in two, and two nearly empty leaves are merged, so the table never has to be
/// sorted again.
///
/// The daily order is the hash XOR a key that changes every day. The XOR swaps the two branches at some forks of the tree.
/// The people are thus in another order each day, while the leaves stay the same.
struct OrderTable: Sendable {
    /// A person in the table.
    struct Entry: Sendable {
        var order: UInt64
        var point: GlobePoint
        var number: Int32
    }

    /// People whose hashes begin with the same bits.
    struct Leaf: Sendable {
        /// The number of leading bits that the leaf's entries share.
        var depth: Int
        var entries: ContiguousArray<Entry> = []
    }

    /// A leaf with this many entries is split before the next insert.
    private static let maxEntries = 128
    /// Two sibling leaves with at most this many entries together are merged. The number is far below the split threshold, so
    /// that a merged leaf is not split again soon.
    private static let maxMergedEntries = 48
    /// Maximum depth of the tree, enough for 16 million leaves. Leaves at this depth may exceed `maxEntries`, which does not
    /// happen in practice because hashes are evenly distributed.
    private static let maxDepth = 24

    private(set) var depth = 0
    /// The number of the leaf for each prefix of `depth` bits.
    private(set) var directory: ContiguousArray<Int32>
    private(set) var leaves = Numbered<Leaf>()
    private(set) var count = 0

    init() { directory = [leaves.insert(Leaf(depth: 0))] }

    private func index(_ order: UInt64) -> Int { Int(truncatingIfNeeded: order >> UInt64(64 - depth)) }

    // MARK: Adding, moving and removing

    mutating func insert(_ entry: Entry) {
        count += 1
        var leaf = directory[index(entry.order)]
        while leaves[leaf].entries.count >= Self.maxEntries, leaves[leaf].depth < Self.maxDepth {
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

    /// Returns the range of directory entries that refer to the leaf of this depth to which the hash `order` belongs.
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
            guard leafDepth > 0, leaves[leaf].entries.count < Self.maxMergedEntries else { return }
            let sibling = directory[index(order ^ UInt64(1) << UInt64(64 - leafDepth))]
            guard leaves[sibling].depth == leafDepth,
                leaves[leaf].entries.count + leaves[sibling].entries.count <= Self.maxMergedEntries
            else { return }
            leaves[leaf].entries += leaves[sibling].entries
            leaves[leaf].depth = leafDepth - 1
            leaves[sibling].entries = []
            leaves.free(sibling)
            for index in run(order, depth: leafDepth - 1) { directory[index] = leaf }
        }
    }

    // MARK: Walking

    /// Visits the leaves in the daily order, starting with the one that contains `place`. Continues while the visitor
    /// returns true. The entries within a leaf are not sorted.
    ///
    /// - Returns: the last place visited, or `nil` if the walk reached the end.
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
