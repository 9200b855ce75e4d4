/// The replay window of one source: the highest packet index used, and one bit for each recent index below it. The window is a
/// view of memory that `SRTPSources` owns, and is valid until a source is added.
struct ReplayWindow {
    /// The number of packet indices in the window. RFC 3711 §3.3.2 requires at least 64. Retransmissions in the same stream can
    /// arrive a second late, which is a thousand packets at 10 Mbit/s.
    static let size: UInt64 = 1024
    /// The highest index: 2^16 sequence numbers times 2^32 rollovers, minus one. The master key must not be used beyond it (RFC
    /// 3711 §9.2).
    static let maxIndex: UInt64 = 1 << 48 - 1
    static let wordCount = 1 + Int(size / 64)

    /// The memory of the window: the highest index, then the bits.
    private let words: UnsafeMutablePointer<UInt64>

    init(_ words: UnsafeMutablePointer<UInt64>) { self.words = words }

    var highest: UInt64 { words[0] }

    /// The word that usually contains the next index's bit.
    @inline(__always)
    var newestWord: UInt64 { words[Self.place(highest).word] }

    /// Returns the most probable packet index of a sequence number (RFC 3711 §3.3.1). It is negative if it would lie before
    /// rollover 0. Returns nil if it is above `maxIndex`, so that the key must no longer be used.
    func estimate(_ sequence: UInt16) -> Int64? {
        let half: Int64 = 1 << 15
        let last = Int64(UInt16(truncatingIfNeeded: highest))
        var step = Int64(sequence) - last
        if last < half {
            if step > half { step -= 2 * half }
        } else if last - half > Int64(sequence) {
            step += 2 * half
        }
        let index = Int64(highest) + step
        return index <= Int64(Self.maxIndex) ? index : nil
    }

    /// Returns whether the index is unused and not older than the window.
    func isFresh(_ index: UInt64) -> Bool {
        if index > highest { return true }
        guard highest - index < Self.size else { return false }
        let (word, bit) = Self.place(index)
        return words[word] & bit == 0
    }

    /// Marks the index after the highest as used, if `sequence` is its sequence number. For a sender, it almost always
    /// is.
    /// - Returns: the marked index. Nil if `sequence` belongs to another index, or if the next index is above
    ///   `maxIndex`.
    @inline(__always)
    func markNext(_ sequence: UInt16) -> UInt64? {
        let next = highest + 1
        guard UInt16(truncatingIfNeeded: next) == sequence, next <= Self.maxIndex else { return nil }
        words[0] = next
        set(next)
        return next
    }

    func start(_ index: UInt64) {
        words[0] = index
        for word in 1..<Self.wordCount { words[word] = 0 }
        set(index)
    }

    func mark(_ index: UInt64) {
        guard index > highest else { return set(index) }
        guard index - highest < Self.size else { return start(index) }
        // The window is a ring, so clear the bits of the skipped indices, which still belong to old packets.
        var skipped = highest + 1
        while skipped < index {
            let (word, bit) = Self.place(skipped)
            words[word] &= ~bit
            skipped += 1
        }
        words[0] = index
        set(index)
    }

    @inline(__always)
    private func set(_ index: UInt64) {
        let (word, bit) = Self.place(index)
        words[word] |= bit
    }

    @inline(__always)
    private static func place(_ index: UInt64) -> (word: Int, bit: UInt64) {
        (1 + Int(index % size / 64), 1 << (index % 64))
    }
}

/// The replay windows of all sources under one key, keyed by SSRC. This is a hash table with open addressing in one
/// block of memory. Sources are never removed, because their old packets could then be sent or replayed again under
/// the same key.
struct SRTPSources: ~Copyable {
    /// The size of a table entry in words: one word for the SSRC, then the window.
    private static let stride = 1 + ReplayWindow.wordCount
    /// The number of table entries for the first sources: enough for audio, video and retransmissions.
    private static let minCapacity = 4

    private let most: Int
    private var count = 0
    /// The number of table entries: a power of two of which at most three quarters are in use, so every search finds a free
    /// entry. Zero before the first source, because many tables stay empty: a subscriber sends no RTP.
    private var capacity = 0
    private var words: UnsafeMutablePointer<UInt64>

    /// - Parameter most: the maximum number of sources.
    init(most: Int) {
        self.most = most
        words = Self.memory(capacity)
    }

    deinit { words.deallocate() }

    private static func memory(_ capacity: Int) -> UnsafeMutablePointer<UInt64> {
        let words = UnsafeMutablePointer<UInt64>.allocate(capacity: capacity * stride)
        words.initialize(repeating: 0, count: capacity * stride)
        return words
    }

    var isFull: Bool { count >= most }

    /// Returns the first word of the SSRC's entry: the SSRC with bit 32 set, so that it is never 0, which marks a free
    /// entry.
    @inline(__always)
    private static func key(_ ssrc: UInt32) -> UInt64 { 1 << 32 | UInt64(ssrc) }

    /// Returns the entry of this SSRC, or the free entry where it would be added. The table must have entries.
    @inline(__always)
    private func place(_ ssrc: UInt32) -> UnsafeMutablePointer<UInt64> {
        // Knuth's multiplicative hashing also spreads consecutive SSRCs.
        var slot = Int((ssrc &* 0x9E37_79B1) >> 16) & (capacity - 1)
        while true {
            let place = words + slot * Self.stride
            if place[0] == Self.key(ssrc) || place[0] == 0 { return place }
            slot = (slot + 1) & (capacity - 1)
        }
    }

    /// Reads the memory of this source's window; see `PeerTransport.prefetch`.
    @inline(__always)
    func prefetch(_ ssrc: UInt32) -> UInt64 { window(ssrc)?.newestWord ?? 0 }

    @inline(__always)
    func window(_ ssrc: UInt32) -> ReplayWindow? {
        guard count > 0 else { return nil }
        let place = place(ssrc)
        return place[0] == 0 ? nil : ReplayWindow(place + 1)
    }

    /// Adds a new source with the index of its first packet.
    ///
    /// - Returns: false if there are too many sources.
    mutating func add(_ ssrc: UInt32, first index: UInt64) -> Bool {
        guard !isFull else { return false }
        if 4 * (count + 1) > 3 * capacity { grow() }
        let place = place(ssrc)
        place[0] = Self.key(ssrc)
        ReplayWindow(place + 1).start(index)
        count += 1
        return true
    }

    private mutating func grow() {
        let (old, oldCapacity) = (words, capacity)
        capacity = max(Self.minCapacity, 2 * capacity)
        words = Self.memory(capacity)
        for slot in 0..<oldCapacity {
            let source = old + slot * Self.stride
            guard source[0] != 0 else { continue }
            place(UInt32(truncatingIfNeeded: source[0])).update(from: source, count: Self.stride)
        }
        old.deallocate()
    }
}
