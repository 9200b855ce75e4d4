import CoreMetrics
import DequeModule
import Logging
import NIOCore
import Signaling
import Wire

/// Enforces the budgets of address blocks: `AddressBudgets` counts, and this part of the gateway acts.
///
/// If a block exceeds its budget for messages, its sockets are not read. The messages wait at the sender, and the loop
/// spends no time on them. Refusing each message would cost as much as answering it. HTTP requests are refused, because
/// the client sends each one deliberately. A connection that nevertheless keeps its socket full is closed with 4429.
extension Gateway {
    // MARK: Messages

    /// Counts a message or another frame of a WebSocket.
    ///
    /// - Returns: false if the connection must be closed, because the client keeps sending while its address exceeds
    ///   its budget.
    func countMessage(of connection: some GatewayConnection, bytes: Int) -> Bool {
        guard let slot = connection.slot else { return true }
        let now = runner.now
        let wasOver = budgets.messages(in: slot, now: now) < 0
        budgets.spendMessage(bytes: bytes, in: slot, now: now)
        return !wasOver || connection.excess.take(configuration.rules.refusals, now: now) == nil
    }

    /// Counts the packets after the first of a Socket.IO payload. The first was counted with the message itself.
    func countPackets(_ count: Int, of connection: some GatewayConnection) {
        if let slot = connection.slot { budgets.spendMessages(count, in: slot, now: runner.now) }
    }

    /// Charges an HTTP request to the message budget of its address. Throws if the budget is used up.
    func admitRequest(from address: IPAddress, bytes: Int) throws(WireError) {
        guard let wait = budgets.takeRequest(of: address, bytes: bytes, now: runner.now) else { return }
        metrics.overBudget(.messages)
        throw .addressOverBudget(retryAfter: wait)
    }

    /// Returns whether the connection's address exceeds its budget for messages. While it does, the connection is not
    /// read.
    func isOverBudget(_ connection: some GatewayConnection) -> Bool {
        connection.slot.map { budgets.messages(in: $0, now: runner.now) < 0 } ?? false
    }

    /// Pauses a reader until its address is within its budget again. If the connection has no slot, the reader resumes
    /// immediately.
    func pause(_ reader: any PausedReader, of connection: some GatewayConnection) {
        guard let slot = connection.slot else { return reader.resumeReading() }
        metrics.overBudget(.messages)
        let isFirst = pausedReaders.isEmpty
        pausedReaders[slot, default: []].append(reader)
        if isFirst { scheduleResuming() }
    }

    private func scheduleResuming() {
        let gateway = NIOLoopBound(self, eventLoop: eventLoop)
        eventLoop.scheduleTask(in: .milliseconds(10)) { gateway.value.resumeReaders() }
    }

    /// Resumes the readers that have waited longest, in each block that is within its budget.
    ///
    /// The amount that a reader will read is not known in advance, so only a few are resumed at a time: one for each 32
    /// messages in the budget. Readers that still have more data pause again behind the others.
    private func resumeReaders() {
        for slot in Array(pausedReaders.keys) {
            let messages = budgets.messages(in: slot, now: runner.now)
            guard messages >= 0, var readers = pausedReaders.removeValue(forKey: slot) else { continue }
            var resumed: [any PausedReader] = []
            for _ in 0..<max(1, Int(messages) / 32) { if let reader = readers.popFirst() { resumed.append(reader) } }
            if !readers.isEmpty { pausedReaders[slot] = readers }
            for reader in resumed { reader.resumeReading() }
        }
        if !pausedReaders.isEmpty { scheduleResuming() }
    }

    // MARK: Queues

    /// Updates the number of bytes queued for this connection, and drops the largest queues if the limit of its address
    /// or of all addresses is exceeded.
    func queueChanged(_ connection: some GatewayConnection) {
        guard let slot = connection.slot else { return }
        let id = ObjectIdentifier(connection)
        if budgets.setQueue(of: id, to: connection.queuedBytes, in: slot) { relieveQueues(of: slot) }
    }

    private func relieveQueues(of slot: AddressBudgets.Slot) {
        let blocks = budgets.queuesToCount(slot)
        for (slot, ids) in blocks {
            for id in ids { _ = budgets.setQueue(of: id, to: connection(id)?.queuedBytes ?? 0, in: slot) }
        }
        while let victim = budgets.queueToDrop(slot) {
            _ = budgets.setQueue(of: victim.connection, to: 0, in: victim.slot)
            guard let connection = connection(victim.connection) else { continue }
            metrics.overBudget(.queues)
            metrics.droppedForBackpressure.increment()
            logger.info(
                "Connection dropped: too much data queued for its address",
                metadata: ["bytes": "\(connection.queuedBytes)"])
            connection.drop()
        }
        budgets.queuesCounted(blocks.map(\.slot))
    }

    // MARK: Stored bytes

    /// Returns what this client may currently store.
    func storagePermit(_ slot: AddressBudgets.Slot?) -> StoragePermit {
        switch slot.map({ budgets.stored(in: $0, now: runner.now) }) {
        case .exhausted(let wait):
            metrics.overBudget(.storage)
            return .none(.storageQuota(retryAfter: wait))
        case .over(let wait):
            metrics.overBudget(.storage)
            return .essential(.storageQuota(retryAfter: wait))
        case .within, nil: return isDiskLow ? .essential(.storageFull) : .all
        }
    }
}

extension Gateway: ClientBudgets {
    func charge(storedBytes: Int, to slot: AddressBudgets.Slot) {
        budgets.spendStored(bytes: storedBytes, in: slot, now: runner.now)
    }

    func beginQuery(in slot: AddressBudgets.Slot) -> Bool { budgets.beginQuery(in: slot) }

    func endQuery(in slot: AddressBudgets.Slot) { budgets.endQuery(in: slot, now: runner.now) }
}

extension AddressBudgets.Limits {
    init(_ limits: ConfabConfiguration.Limits) {
        self.init(
            sockets: limits.socketsPerAddress, hellos: limits.hellos, files: limits.files, views: limits.views,
            messages: limits.addressMessages,
            storedBytes: Budget.Rate(
                perSecond: Double(limits.storedPerAddressAndDay) / 86_400, burst: Double(limits.storedPerAddressAndDay)),
            queries: QueryCounts.maxOfAddress, queuedBytes: limits.sendQueuesPerAddress,
            queuedBytesOfAll: limits.sendQueuesOfAll)
    }
}

extension WireError {
    static func addressOverBudget(retryAfter wait: Duration) -> WireError {
        WireError(
            .rateLimited, "Too many messages from your network. Try again in \(wait.roundedText).", retryable: true,
            retryAfter: wait)
    }

    static let storageFull = WireError(
        .storageFull, "The server is low on disk space and stores only essential data. Try again later.",
        retryable: true, retryAfter: .seconds(60))

    static func storageQuota(retryAfter wait: Duration) -> WireError {
        WireError(
            .storageQuota,
            "Your network has reached the daily limit for stored data. Try again in \(wait.roundedText).",
            retryable: true, retryAfter: wait)
    }
}
