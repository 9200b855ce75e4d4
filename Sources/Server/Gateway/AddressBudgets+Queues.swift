/// Counts the bytes queued for clients: those that wait to be sent, and those that are held until a change is stored.
///
/// Each count is from the last write of its connection. The connection may have sent some bytes since, so a sum is only
/// an upper bound. If a sum is too large, the gateway counts again before it drops the largest queue.
extension AddressBudgets {
    /// The queues of one block.
    struct Queues {
        fileprivate(set) var bytes = 0
        /// For each connection with a queue, the size of its queue in bytes.
        fileprivate var byConnection: [ObjectIdentifier: Int] = [:]
        /// The sum in bytes above which the queues are counted again.
        fileprivate var check = 0

        init(limit: Int = 0) { check = limit }
    }

    /// Sets the size of a connection's queue.
    ///
    /// - Returns: true if the queues may be too large, so that `queuesToCount` should be called.
    mutating func setQueue(of id: ObjectIdentifier, to bytes: Int, in slot: Slot) -> Bool {
        let index = slot.index
        // Skip the bookkeeping for this common case: most connections never have a queue.
        if bytes == 0, accounts[index].queues.byConnection.isEmpty { return false }
        let change = bytes - (accounts[index].queues.byConnection[id] ?? 0)
        accounts[index].queues.byConnection[id] = bytes > 0 ? bytes : nil
        accounts[index].queues.bytes += change
        queuedBytes += change
        return accounts[index].queues.bytes > accounts[index].queues.check || queuedBytes > queueCheck
    }

    /// Returns the blocks whose queues must be counted again, with the connections that have queues: this block, or all
    /// blocks if the total is too large.
    func queuesToCount(_ slot: Slot) -> [(slot: Slot, connections: [ObjectIdentifier])] {
        let indices = queuedBytes > queueCheck ? Array(accounts.indices) : [slot.index]
        return indices.compactMap { index in
            let queues = accounts[index].queues.byConnection
            return queues.isEmpty ? nil : (Slot(index), Array(queues.keys))
        }
    }

    /// Returns the connection to drop: the one with the largest queue in this block if the block exceeds its limit.
    /// Otherwise, if all blocks together exceed theirs, the one with the largest queue in the largest block. Nil if no
    /// limit is exceeded.
    func queueToDrop(_ slot: Slot) -> (connection: ObjectIdentifier, slot: Slot)? {
        var index = slot.index
        if accounts[index].queues.bytes <= limits.queuedBytes {
            guard queuedBytes > limits.queuedBytesOfAll else { return nil }
            index = accounts.indices.max { accounts[$0].queues.bytes < accounts[$1].queues.bytes } ?? index
        }
        return accounts[index].queues.byConnection.max { $0.value < $1.value }.map { ($0.key, Slot(index)) }
    }

    /// Makes the queues be counted again as soon as they exceed a limit. Call this after the limits have changed.
    mutating func checkQueuesAgain() {
        for index in accounts.indices { accounts[index].queues.check = limits.queuedBytes }
        queueCheck = limits.queuedBytesOfAll
    }

    /// Records that the queues were counted. They are counted again when they exceed the limit and have grown by a
    /// sixteenth of it, so that a sum near the limit does not cause a count for each message.
    mutating func queuesCounted(_ slots: [Slot]) {
        for slot in slots {
            let sum = accounts[slot.index].queues.bytes
            accounts[slot.index].queues.check = max(limits.queuedBytes, sum + limits.queuedBytes / 16)
        }
        queueCheck = max(limits.queuedBytesOfAll, queuedBytes + limits.queuedBytesOfAll / 16)
    }
}
