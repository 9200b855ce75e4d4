/// Joins commits that arrive while a transaction is running into the next one.
///
/// A durable transaction waits for the disk, some milliseconds, whatever it holds; one for each commit would bound a
/// server to a few hundred blocks and reports a second. There is one writer, so commits also keep the order they
/// arrived in.
actor GroupCommitWriter<Change: Sendable> {
    /// Commits in one transaction. Past this the wait for the disk is long paid for, and a larger one would only keep
    /// the first of the group waiting for the last.
    static var maximumGroup: Int { 256 }
    /// Commits that wait. At a slow disk's 100 transactions a second these are done in under a second; when there are
    /// more, the disk has stopped, and memory must not fill up behind it.
    static var maximumWaiting: Int { 16_384 }

    private struct Waiting {
        var changes: [Change]
        var done: CheckedContinuation<Void, any Error>
    }

    private let transaction: @Sendable ([Change]) async throws -> Void
    private var waiting: [Waiting] = []
    /// Not `nil` exactly while a group is being written or one waits.
    private var runner: Task<Void, Never>?
    private var isClosed = false

    /// How many calls wait for the next transaction: those of the running one are not among them.
    var waitingCount: Int { waiting.count }

    /// - Parameter transaction: makes its argument durable, all or nothing. It is never called while it runs.
    init(transaction: @escaping @Sendable ([Change]) async throws -> Void) {
        self.transaction = transaction
    }

    func commit(_ changes: [Change]) async throws {
        guard !isClosed else { throw StorageError.closed }
        guard !changes.isEmpty else { return }
        guard waiting.count < Self.maximumWaiting else {
            throw StorageError(.overloaded, "The disk does not keep up with what is to be stored; check its load.")
        }
        try await withCheckedThrowingContinuation { done in
            waiting.append(Waiting(changes: changes, done: done))
            // A task of its own: if it were a caller's, cancelling that caller would fail the others of its group.
            if runner == nil { runner = Task { await self.run() } }
        }
    }

    /// Refuses new commits and returns when the earlier ones are done.
    func close() async {
        isClosed = true
        await runner?.value
    }

    private func run() async {
        while !waiting.isEmpty {
            let group = Array(waiting.prefix(Self.maximumGroup))
            waiting.removeFirst(group.count)
            await write(group)
        }
        // Nothing suspends between the check above and here, so no commit can slip in unseen.
        runner = nil
    }

    private func write(_ group: [Waiting]) async {
        do {
            try await transaction(group.flatMap(\.changes))
            for member in group { member.done.resume() }
        } catch  where group.count > 1 && Self.mayBeOneMembersFault(error) {
            for member in group { await write([member]) }
        } catch {
            for member in group { member.done.resume(throwing: error) }
        }
    }

    /// Retrying each member alone is for a change the database does not take. A locked file or a full disk would fail
    /// all of them again, after a busy timeout for each.
    private static func mayBeOneMembersFault(_ error: any Error) -> Bool {
        guard let code = (error as? StorageError)?.code else { return true }
        return code == .rejected || code == .other
    }
}
