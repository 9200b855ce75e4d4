import CoreMetrics
import Logging
import NIOCore
import Signaling
import Wire

/// Writes one batch of changes at a time to storage, and retries as long as that can help. Used only on the event loop
/// of the runner.
final class BatchWriter {
    /// Transactions that are written together.
    private struct Batch {
        let transactions: [[Change]]
        let started: ContinuousClock.Instant
        let settle: ([StorageError?]) -> Void
    }

    private let storage: any Storage
    private let logger: Logger
    private let metrics: GatewayMetrics
    private let eventLoop: any EventLoop
    private var trouble: StorageTrouble
    /// The batch that is being written; nil if there is none.
    private var batch: Batch?
    /// Called once, when storage has failed for so long that the server must stop.
    var onStorageLost: ((StorageError) -> Void)?

    init(
        storage: any Storage, trouble: StorageTrouble, logger: Logger, metrics: GatewayMetrics,
        eventLoop: any EventLoop
    ) {
        (self.storage, self.trouble, self.logger) = (storage, trouble, logger)
        (self.metrics, self.eventLoop) = (metrics, eventLoop)
    }

    /// True if storage currently accepts no changes, for example because the disk is full. False while it is only
    /// busy.
    var isUnavailable: Bool { trouble.isUnavailable }

    /// Writes a batch, and then calls `settle` with the result of each transaction: nil if it was committed, otherwise
    /// the error.
    func write(_ transactions: [[Change]], settle: @escaping ([StorageError?]) -> Void) {
        precondition(batch == nil, "one batch at a time")
        batch = Batch(transactions: transactions, started: .now, settle: settle)
        attempt(settled: [])
    }

    /// Writes the transactions of the batch that have no result yet.
    ///
    /// - Parameter settled: the results of the batch's first transactions, from an earlier attempt.
    private func attempt(settled: [StorageError?]) {
        guard let batch else { return }
        let writer = NIOLoopBound(self, eventLoop: eventLoop)
        let (storage, eventLoop) = (storage, eventLoop)
        let rest = Array(batch.transactions.dropFirst(settled.count))
        Task {
            let results = await storage.commitEach(rest)
            eventLoop.execute { writer.value.attempted(settled + results) }
        }
    }

    private func attempted(_ results: [StorageError?]) {
        guard let batch else { return }
        // Find the first error that affects all changes. Storage stops there, so it has not tried the transactions
        // after it.
        guard let index = results.firstIndex(where: { $0?.concernsEverything ?? false }), let error = results[index]
        else {
            trouble.succeeded()
            metrics.commitSeconds.recordMilliseconds((ContinuousClock.now - batch.started).wholeMilliseconds)
            return end(results)
        }
        metrics.commitFailures.increment()
        switch trouble.failed(error, at: .now) {
        case .retry(let pause):
            logger.warning("Storing changes failed and will be retried", metadata: ["error": "\(error)"])
            let writer = NIOLoopBound(self, eventLoop: eventLoop)
            let settled = Array(results.prefix(index))
            eventLoop.scheduleTask(in: .nanoseconds(pause)) { writer.value.attempt(settled: settled) }
        case .giveUp: end(results)
        case .stop:
            stop(because: error)
            end(results)
        }
    }

    /// Asks for the server to stop, the first time.
    func stop(because error: StorageError) {
        guard let stop = onStorageLost else { return }
        onStorageLost = nil
        logger.critical("Storage failed, so the server stops.", metadata: ["error": "\(error)"])
        stop(error)
    }

    private func end(_ results: [StorageError?]) {
        let settle = batch?.settle
        batch = nil
        settle?(results)
    }
}
