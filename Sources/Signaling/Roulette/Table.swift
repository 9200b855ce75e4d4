/// What a `Table` finds its records by.
protocol Keyed {
    associatedtype Key: Hashable
    var key: Key { get }
    /// What stands at a number nobody has: holds nothing. (An optional would do, but is copied whole to read one member.)
    static var vacant: Self { get }
}

/// Records found by a key they hold, or by the number they got, which stays theirs while they are in the table.
///
/// Not a dictionary, because of what that costs when a million people wait and nothing of them is in the processor's
/// cache: a dictionary reads the key and the value from two places, and to remove one it reads its neighbours' keys as
/// well. Here a look-up reads eight bytes, which rule out nearly every other record, and then the record; a removal
/// reads no record at all. Measured by `make bench`.
struct Table<Record: Keyed> {
    /// Part of the hash, so that neighbours need not be read; and the record's number.
    private struct Bucket {
        var hash: UInt32
        var number: Int32
        static var empty: Bucket { Bucket(hash: 0, number: -1) }
    }

    private var records: ContiguousArray<Record> = []
    private var unused: ContiguousArray<Int32> = []
    /// Open addressing with linear probing; a power of two of them, at most three quarters full.
    private var buckets: ContiguousArray<Bucket>

    init() { buckets = ContiguousArray(repeating: .empty, count: 16) }

    var count: Int { records.count - unused.count }

    /// All records and the vacant ones between them.
    var all: some Sequence<Record> { records }

    /// The record with this number.
    subscript(number: Int32) -> Record {
        _read { yield records[Int(number)] }
        _modify { yield &records[Int(number)] }
    }

    /// Where a record is found; good until the table changes.
    struct Position {
        fileprivate var bucket: Int
        let number: Int32
    }

    func position(of key: Record.Key) -> Position? { position(of: key, Self.hash(key)) }

    func number(of key: Record.Key) -> Int32? { position(of: key)?.number }

    private func position(of key: Record.Key, _ hash: UInt32) -> Position? {
        var index = home(hash)
        while true {
            let bucket = buckets[index]
            if bucket.number < 0 { return nil }
            if bucket.hash == hash, records[Int(bucket.number)].key == key {
                return Position(bucket: index, number: bucket.number)
            }
            index = after(index)
        }
    }

    /// The number of the record with this key; makes one where there is none.
    mutating func number(of key: Record.Key, orInsert make: @autoclosure () -> Record) -> Int32 {
        let hash = Self.hash(key)
        return position(of: key, hash)?.number ?? insert(make(), hash)
    }

    /// The new record's number, or nil when its key is here already.
    mutating func insert(_ record: Record) -> Int32? {
        let hash = Self.hash(record.key)
        return position(of: record.key, hash) == nil ? insert(record, hash) : nil
    }

    private mutating func insert(_ record: Record, _ hash: UInt32) -> Int32 {
        let number: Int32
        if let last = unused.popLast() {
            number = last
            records[Int(number)] = record
        } else {
            number = Int32(records.count)
            records.append(record)
        }
        if count * 4 > buckets.count * 3 { grow() }
        place(Bucket(hash: hash, number: number))
        return number
    }

    /// Takes the record out.
    @discardableResult
    mutating func remove(at position: Position) -> Record {
        var removed = Record.vacant
        swap(&removed, &records[Int(position.number)])
        unused.append(position.number)
        close(gap: position.bucket)
        return removed
    }

    /// Whatever probing had pushed past the gap moves back, so that no look-up ends at it too early.
    private mutating func close(gap: Int) {
        var gap = gap
        var index = after(gap)
        while buckets[index].number >= 0 {
            if distance(from: home(buckets[index].hash), to: index) >= distance(from: gap, to: index) {
                buckets[gap] = buckets[index]
                gap = index
            }
            index = after(index)
        }
        buckets[gap] = .empty
    }

    private mutating func grow() {
        let old = buckets
        buckets = ContiguousArray(repeating: .empty, count: old.count * 2)
        for bucket in old where bucket.number >= 0 { place(bucket) }
    }

    private mutating func place(_ bucket: Bucket) {
        var index = home(bucket.hash)
        while buckets[index].number >= 0 { index = after(index) }
        buckets[index] = bucket
    }

    /// Seeded anew in each process, as all hashing is: nobody outside can choose keys that collide.
    private static func hash(_ key: Record.Key) -> UInt32 { UInt32(truncatingIfNeeded: key.hashValue) }

    private func home(_ hash: UInt32) -> Int { Int(hash) & (buckets.count - 1) }
    private func after(_ index: Int) -> Int { (index + 1) & (buckets.count - 1) }
    private func distance(from: Int, to: Int) -> Int { (to - from) & (buckets.count - 1) }
}

extension Table: Sendable where Record: Sendable {}
