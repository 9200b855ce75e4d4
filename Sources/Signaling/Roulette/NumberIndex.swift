import Wire

/// Finds a number by a 64-bit key: what somebody waiting is found by, at any size of the queue.
///
/// Not a dictionary, because with a million waiting nothing is in the processor's cache and a look-up costs what it reads
/// from memory: a dictionary reads the key and the value in two places, and its neighbours' keys to remove one. Here
/// both stand in one, and a removal reads nothing else. See `make bench`.
///
/// Keys must be spread evenly: a hash, or something random.
struct NumberIndex: Sendable {
    /// Where a number stands; good until the index changes.
    struct Position {
        fileprivate var bucket: Int
    }

    private struct Bucket {
        var key: UInt64
        var number: Int32
    }

    /// No number is this one.
    private static let none = Int32.min

    /// Open addressing with linear probing: a power of two of them, at most three quarters in use.
    private var buckets = ContiguousArray(repeating: Bucket(key: 0, number: none), count: 16)
    private var count = 0

    func position(of key: UInt64) -> Position? {
        var index = home(key)
        while buckets[index].number != Self.none {
            if buckets[index].key == key { return Position(bucket: index) }
            index = after(index)
        }
        return nil
    }

    /// Has the processor fetch what a look-up of this key will read. The result means nothing, but has to be used.
    func touch(_ key: UInt64) -> UInt64 { buckets[home(key)].key }

    subscript(position: Position) -> Int32 {
        get { buckets[position.bucket].number }
        set { buckets[position.bucket].number = newValue }
    }

    subscript(key: UInt64) -> Int32? { position(of: key).map { self[$0] } }

    /// Adds a key that is not here.
    mutating func insert(_ key: UInt64, _ number: Int32) {
        if (count + 1) * 4 > buckets.count * 3 { grow() }
        count += 1
        place(Bucket(key: key, number: number))
    }

    mutating func remove(at position: Position) {
        count -= 1
        // Whatever probing had pushed past the gap moves back, so that no look-up ends at it too early.
        var gap = position.bucket
        var index = after(gap)
        while buckets[index].number != Self.none {
            if distance(from: home(buckets[index].key), to: index) >= distance(from: gap, to: index) {
                buckets[gap] = buckets[index]
                gap = index
            }
            index = after(index)
        }
        buckets[gap].number = Self.none
    }

    private mutating func grow() {
        let old = buckets
        buckets = ContiguousArray(repeating: Bucket(key: 0, number: Self.none), count: old.count * 2)
        for bucket in old where bucket.number != Self.none { place(bucket) }
    }

    private mutating func place(_ bucket: Bucket) {
        var index = home(bucket.key)
        while buckets[index].number != Self.none { index = after(index) }
        buckets[index] = bucket
    }

    private func home(_ key: UInt64) -> Int { Int(truncatingIfNeeded: key) & (buckets.count - 1) }
    private func after(_ index: Int) -> Int { (index + 1) & (buckets.count - 1) }
    private func distance(from: Int, to: Int) -> Int { (to - from) & (buckets.count - 1) }
}

/// What the pool looks people up by.
extension NumberIndex {
    /// Identities are random already, all 128 bits of them; the product only spreads what tests make up.
    static func key(_ identity: IdentityID) -> UInt64 {
        let mixed = (identity.low ^ identity.high &* 0x9E37_79B9_7F4A_7C15) &* 0xBF58_476D_1CE4_E5B9
        return mixed ^ mixed >> 32
    }

    /// 64 bits of a hash seeded anew in each process stand for the text: nobody outside can make two of them meet.
    static func key(_ text: String) -> UInt64 { UInt64(truncatingIfNeeded: text.hashValue) }

    /// The keys of somebody's interests.
    static func topics(of entry: PoolEntry) -> [UInt64] { entry.interests.map { topic($0, entry.mode) } }

    /// The two modes do not meet.
    static func topic(_ interest: String, _ mode: ChatMode) -> UInt64 {
        mode == .video ? key(interest) : ~key(interest)
    }
}

/// Records by number; a number given back is given out again.
struct Numbered<Record> {
    private var records: ContiguousArray<Record> = []
    private var unused: ContiguousArray<Int32> = []

    var count: Int { records.count - unused.count }

    /// With what stands at the unused numbers.
    var all: ContiguousArray<Record> { records }

    subscript(number: Int32) -> Record {
        _read { yield records[Int(number)] }
        _modify { yield &records[Int(number)] }
    }

    mutating func insert(_ record: Record) -> Int32 {
        if let number = unused.popLast() {
            records[Int(number)] = record
            return number
        }
        records.append(record)
        return Int32(records.count - 1)
    }

    /// Gives the number back. What the record holds is the caller's to let go: it stays until the number is used again.
    mutating func free(_ number: Int32) { unused.append(number) }
}

extension Numbered: Sendable where Record: Sendable {}
