import DequeModule
import HeapModule

/// Counts entries per block of addresses, and finds the block with the most entries and its oldest entry.
///
/// Used for places that all addresses share. If there are too many entries, the block with the most loses its oldest,
/// so that a few addresses cannot displace the entries of others.
struct AddressShares<Entry: Hashable> {
    /// The number of entries of a block, as an element of the heap `shares`. Outdated shares stay in the heap until
    /// they are its largest element.
    private struct Share: Comparable {
        let count: Int
        /// The share's place in the order of creation. Of several equal shares, the oldest counts as the largest, so
        /// that a new client is not removed immediately.
        let order: UInt64
        let block: CIDRBlock

        static func < (left: Share, right: Share) -> Bool { (left.count, right.order) < (right.count, left.order) }
        static func == (left: Share, right: Share) -> Bool { left.order == right.order }
    }

    /// The entries of one block, oldest first. `order` may contain entries that were removed.
    private struct Queue {
        var order: Deque<Entry> = []
        var entries: Set<Entry> = []
        /// The `order` of the block's newest share. Its older shares in the heap are outdated.
        var shareOrder: UInt64 = 0
    }

    /// The number of entries of all blocks.
    private(set) var count = 0
    private var queues: [CIDRBlock: Queue] = [:]
    private var shares = Heap<Share>()
    private var lastOrder: UInt64 = 0

    func count(of block: CIDRBlock) -> Int { queues[block]?.entries.count ?? 0 }

    mutating func insert(_ entry: Entry, of block: CIDRBlock) {
        queues[block, default: Queue()].order.append(entry)
        queues[block]?.entries.insert(entry)
        count += 1
        noteShare(of: block)
    }

    /// Removes an entry. Returns false if it was removed before.
    @discardableResult
    mutating func remove(_ entry: Entry, of block: CIDRBlock) -> Bool {
        guard queues[block]?.entries.remove(entry) != nil else { return false }
        count -= 1
        if queues[block]?.entries.isEmpty ?? true {
            queues[block] = nil
        } else {
            while let oldest = queues[block]?.order.first, queues[block]?.entries.contains(oldest) == false {
                queues[block]?.order.removeFirst()
            }
            compact(block)
            noteShare(of: block)
        }
        return true
    }

    /// Compacts `order` if many entries in its middle were removed.
    private mutating func compact(_ block: CIDRBlock) {
        guard let queue = queues[block], queue.order.count > 2 * queue.entries.count + 16 else { return }
        queues[block]?.order.removeAll { !queue.entries.contains($0) }
    }

    /// Removes and returns the oldest entry of the block; nil if it has none.
    mutating func removeOldest(of block: CIDRBlock) -> Entry? {
        while let entry = queues[block]?.order.popFirst() {
            guard queues[block]?.entries.remove(entry) != nil else { continue }
            count -= 1
            if queues[block]?.entries.isEmpty ?? true { queues[block] = nil } else { noteShare(of: block) }
            return entry
        }
        return nil
    }

    /// Returns the block with the most entries; nil if there are no entries. Mutates only to drop outdated shares.
    mutating func largest() -> CIDRBlock? {
        while let share = shares.max {
            if queues[share.block]?.entries.count == share.count { return share.block }
            shares.removeMax()
        }
        return nil
    }

    private mutating func noteShare(of block: CIDRBlock) {
        lastOrder += 1
        queues[block]?.shareOrder = lastOrder
        shares.insert(Share(count: queues[block]?.entries.count ?? 0, order: lastOrder, block: block))
        guard shares.count > 2 * count + 64 else { return }
        shares = Heap(
            queues.map { Share(count: $0.value.entries.count, order: $0.value.shareOrder, block: $0.key) })
    }
}
