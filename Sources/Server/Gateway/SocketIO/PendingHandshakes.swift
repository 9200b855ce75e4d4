import DequeModule
import HeapModule

/// The Socket.IO handshakes whose clients have not connected a transport yet.
///
/// If there are too many, the oldest handshake of the address with the most is removed, so that a few addresses cannot push out
/// the handshakes of others. Addresses are limiting blocks. One address has at most as many as it may have sockets.
struct PendingHandshakes {
    /// How many handshakes an address has. Old entries stay in the heap until they are found to be outdated.
    private struct Share: Comparable {
        let count: Int
        /// Of several equal shares, the oldest counts as the largest, so that a new client is not removed at once.
        let order: UInt64
        let address: IPAddress

        static func < (left: Share, right: Share) -> Bool { (left.count, right.order) < (right.count, left.order) }
        static func == (left: Share, right: Share) -> Bool { left.order == right.order }
    }

    /// The handshakes of one address, oldest first. Some of `order` may be gone.
    private struct Queue {
        var order: Deque<String> = []
        var ids: Set<String> = []
        /// The order of the newest share.
        var shareOrder: UInt64 = 0
    }

    let maxOfAll: Int
    private(set) var count = 0
    private var queues: [IPAddress: Queue] = [:]
    private var shares = Heap<Share>()
    private var lastOrder: UInt64 = 0

    init(maxOfAll: Int = 10_000) { self.maxOfAll = maxOfAll }

    /// Adds a handshake.
    ///
    /// - Returns: the handshake to remove for it, if there are too many. It no longer counts.
    mutating func add(_ id: String, of address: IPAddress) -> String? {
        let block = address.limitingBlock.network
        queues[block, default: Queue()].order.append(id)
        queues[block]?.ids.insert(id)
        count += 1
        noteShare(of: block)
        return count > maxOfAll ? largestShare().flatMap { removeOldest(of: $0) } : nil
    }

    /// Removes a handshake whose client has connected a transport or is gone. Does nothing if it was removed before.
    mutating func remove(_ id: String, of address: IPAddress) {
        let block = address.limitingBlock.network
        guard queues[block]?.ids.remove(id) != nil else { return }
        count -= 1
        if queues[block]?.ids.isEmpty ?? true {
            queues[block] = nil
        } else {
            while let oldest = queues[block]?.order.first, queues[block]?.ids.contains(oldest) == false {
                queues[block]?.order.removeFirst()
            }
            compact(block)
            noteShare(of: block)
        }
    }

    /// Bounds `order` if many handshakes in its middle are gone.
    private mutating func compact(_ block: IPAddress) {
        guard let queue = queues[block], queue.order.count > 2 * queue.ids.count + 16 else { return }
        queues[block]?.order.removeAll { !queue.ids.contains($0) }
    }

    private mutating func removeOldest(of block: IPAddress) -> String? {
        while let id = queues[block]?.order.popFirst() {
            guard queues[block]?.ids.remove(id) != nil else { continue }
            count -= 1
            if queues[block]?.ids.isEmpty ?? true { queues[block] = nil } else { noteShare(of: block) }
            return id
        }
        return nil
    }

    // MARK: Shares

    private mutating func noteShare(of block: IPAddress) {
        lastOrder += 1
        queues[block]?.shareOrder = lastOrder
        shares.insert(Share(count: queues[block]?.ids.count ?? 0, order: lastOrder, address: block))
        guard shares.count > 2 * count + 64 else { return }
        shares = Heap(
            queues.map { Share(count: $0.value.ids.count, order: $0.value.shareOrder, address: $0.key) })
    }

    /// The address with the most handshakes.
    private mutating func largestShare() -> IPAddress? {
        while let share = shares.max {
            if queues[share.address]?.ids.count == share.count { return share.address }
            shares.removeMax()
        }
        return nil
    }
}
