/// A writer that combines commits that arrive during a transaction into the next one.
///
/// A durable transaction waits some milliseconds for the disk, regardless of its size. One transaction per commit would
/// limit a server to a few hundred commits per second. There is a single writer, so commits also stay in order.
actor GroupCommitWriter<Change: Sendable> {
    /// The maximum number of commits in a transaction. A larger group would not be more efficient and would only delay
    /// its first commits.
    static var maxGroup: Int { 256 }
    /// The maximum number of waiting commits. A slow disk with 100 transactions per second handles these in under a
    /// second. If there are more, the disk has stalled, and the queue must not fill the memory.
    static var maxWaiting: Int { 16_384 }

    /// A commit that waits for a transaction.
    private struct Waiting {
        var changes: [Change]
        var batch: Batch
        /// The commit's position in its batch.
        var index: Int
    }

    /// Commits that one caller submitted together. Used only on the actor.
    private final class Batch {
        var results: [StorageError?]
        var left: Int
        /// The first error that affects all commits, such as a full disk; nil if there was none. The rest of the batch
        /// is then not tried, so that it cannot overtake the failed commits.
        var fault: StorageError?
        let done: CheckedContinuation<[StorageError?], Never>

        init(count: Int, done: CheckedContinuation<[StorageError?], Never>) {
            (results, left, self.done) = (Array(repeating: nil, count: count), count, done)
        }

        func finish(_ index: Int, _ error: StorageError?) {
            results[index] = error
            if let error, error.concernsEverything { fault = error }
            left -= 1
            if left == 0 { done.resume(returning: results) }
        }
    }

    private let transaction: @Sendable ([Change]) async throws -> Void
    private var waiting: [Waiting] = []
    /// The task that writes groups of commits; nil while no commit is being written or waits.
    private var runner: Task<Void, Never>?
    private var isClosed = false

    /// The number of commits waiting for the next transaction. Does not count the running transaction.
    var waitingCount: Int { waiting.count }

    /// - Parameter transaction: makes all changes durable, or none. Calls never overlap.
    init(transaction: @escaping @Sendable ([Change]) async throws -> Void) {
        self.transaction = transaction
    }

    func commit(_ changes: [Change]) async throws {
        if !isClosed, changes.isEmpty { return }
        if let error = await commitEach([changes])[0] { throw error }
    }

    /// Commits the lists in order. Each list is committed completely or not at all.
    ///
    /// - Returns: for each list, its error, or nil if the list was committed. After an error that affects all commits,
    ///   such as a full disk, no further list is committed, and each of them has the same error.
    func commitEach(_ lists: [[Change]]) async -> [StorageError?] {
        guard !lists.isEmpty else { return [] }
        guard !isClosed else { return Array(repeating: .closed, count: lists.count) }
        guard waiting.count < Self.maxWaiting else {
            let error = StorageError(
                .overloaded, "The disk is too slow for the data to be written. Check the load on the disk.")
            return Array(repeating: error, count: lists.count)
        }
        return await withCheckedContinuation { done in
            let batch = Batch(count: lists.count, done: done)
            for (index, changes) in lists.enumerated() {
                waiting.append(Waiting(changes: changes, batch: batch, index: index))
            }
            // Use an unstructured task: in a caller's task, canceling that caller would fail the whole group.
            if runner == nil { runner = Task { await self.run() } }
        }
    }

    /// Rejects new commits, and returns when the earlier ones have finished.
    func close() async {
        isClosed = true
        await runner?.value
    }

    private func run() async {
        while !waiting.isEmpty {
            let group = Array(waiting.prefix(Self.maxGroup))
            waiting.removeFirst(group.count)
            await write(group)
        }
        // Nothing suspends between the check above and this line, so no commit can arrive in between.
        runner = nil
    }

    private func write(_ group: [Waiting]) async {
        for member in group where member.batch.fault != nil { member.batch.finish(member.index, member.batch.fault) }
        let group = group.filter { $0.batch.fault == nil }
        guard !group.isEmpty else { return }
        do {
            try await transaction(group.flatMap(\.changes))
            for member in group { member.batch.finish(member.index, nil) }
        } catch  where group.count > 1 && Self.mayBeCausedByOneWrite(error) {
            // Find the bad commit by bisection. Writing each commit alone would wait for the disk once per commit.
            let middle = group.count / 2
            await write(Array(group[..<middle]))
            await write(Array(group[middle...]))
        } catch {
            let error =
                error as? StorageError
                ?? StorageError(.other, "The change could not be stored. The server log has the reason.", cause: error)
            for member in group { member.batch.finish(member.index, error) }
        }
    }

    /// True if one change may have caused the error, so that retrying parts of the group makes sense. With a locked
    /// file or a full disk, each part would fail again, possibly after another busy timeout.
    private static func mayBeCausedByOneWrite(_ error: any Error) -> Bool {
        guard let code = (error as? StorageError)?.code else { return true }
        return code == .rejected || code == .other
    }
}
