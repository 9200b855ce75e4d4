import Wire

/// A hash table that maps 64-bit keys to numbers, used to look up people in the roulette's queue and in the directory
/// of people nearby.
///
/// It is used instead of a dictionary, because it needs fewer memory accesses: with a million people waiting, every
/// access misses the processor's cache. A dictionary reads the key and the value from two places, and for a removal
/// also neighboring keys. This table stores the key and the value together. `make bench` measures this.
///
/// Keys must be evenly distributed: hashes or random values.
struct NumberIndex: Sendable {
    /// The position of an entry in the table. Valid until the table changes.
    struct Position {
        fileprivate var bucket: Int
    }

    /// A place in the table for one entry.
    private struct Bucket {
        var key: UInt64
        var number: Int32
    }

    /// Marks an empty bucket; never a valid number.
    private static let none = Int32.min

    /// The buckets of the table, which uses open addressing with linear probing. Their number is a power of two, and
    /// at most three quarters of them are in use.
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

    /// Reads the memory that a lookup of this key will need, so that it is in the cache. The result has no meaning, but must be
    /// used so that the compiler keeps the read.
    func touch(_ key: UInt64) -> UInt64 { buckets[home(key)].key }

    subscript(position: Position) -> Int32 {
        get { buckets[position.bucket].number }
        set { buckets[position.bucket].number = newValue }
    }

    subscript(key: UInt64) -> Int32? { position(of: key).map { self[$0] } }

    /// Adds a key that is not in the index.
    mutating func insert(_ key: UInt64, _ number: Int32) {
        if (count + 1) * 4 > buckets.count * 3 { grow() }
        count += 1
        place(Bucket(key: key, number: number))
    }

    mutating func remove(at position: Position) {
        count -= 1
        // Backward-shift deletion: move later entries of the probe sequence into the gap, so that no lookup stops at
        // the gap before it reaches its entry.
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

/// The keys that the pool and the directory use.
extension NumberIndex {
    /// Returns the key of an identity. Real identities are random 128-bit values. The multiplications only spread the
    /// artificial identities of tests.
    static func key(_ identity: IdentityID) -> UInt64 {
        let mixed = (identity.low ^ identity.high &* 0x9E37_79B9_7F4A_7C15) &* 0xBF58_476D_1CE4_E5B9
        return mixed ^ mixed >> 32
    }

    /// Returns a 64-bit hash of the text. The hash is seeded per process, so that no one can construct collisions from outside.
    static func key(_ text: String) -> UInt64 { UInt64(truncatingIfNeeded: text.hashValue) }

    /// Returns the keys for the interests of a pool entry.
    static func topics(of entry: PoolEntry) -> [UInt64] { entry.interests.map { topic($0, entry.mode) } }

    /// Returns the key for an interest. Video and text chats have different keys, because people in different modes are never
    /// matched.
    static func topic(_ interest: String, _ mode: ChatMode) -> UInt64 {
        mode == .video ? key(interest) : ~key(interest)
    }
}

/// An array of records, each with a number. Freed numbers are reused.
struct Numbered<Record> {
    private var records: ContiguousArray<Record> = []
    private var unused: ContiguousArray<Int32> = []

    var count: Int { records.count - unused.count }

    /// All records, including outdated records at numbers that are not in use.
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

    /// Frees a number. The record stays in memory until the number is reused, so the caller must release the record's contents.
    mutating func free(_ number: Int32) { unused.append(number) }
}

extension Numbered: Sendable where Record: Sendable {}
