public import Signaling
public import Wire

/// What outlives a restart: blocks, bans and reports.
///
/// Owns: keeping them, keeping them bounded, and saying when they are safe. Does not own: deciding anything; who may
/// block or ban whom is settled in `Signaling`. Its one invariant: when `commit` returns, its changes survive a power
/// cut, all of them or (when it throws) none of them.
///
/// There are two implementations under one test suite: ``SQLiteStorage`` for servers and ``MemoryStorage`` for tests
/// and trials. Every method throws ``StorageError``; those that only read or that serve an operator throw
/// `CancellationError` too, when their task is cancelled.
///
/// ```swift
/// let storage: any Storage = try SQLiteStorage(directory: "confab-data")
/// try await storage.commit([.block(owner: alice, blocked: bob, at: now)])
/// let alicesRecord = try await storage.person(alice, at: now)  // blocked == [bob]
/// ```
public protocol Storage: Sendable {
    /// Everything known about an identity. Somebody unknown has an empty record.
    ///
    /// - Returns: the blocks they made, oldest first, and the ban on this identity that is active at `now`. Bans of
    ///   addresses do not show here: see `bans(at:)`.
    func person(_ id: IdentityID, at now: Timestamp) async throws -> PersonRecord

    /// Makes all of `changes` durable, in order, or none of them.
    ///
    /// Blocking somebody twice changes nothing, and keeps the first block's place. A block past the limit of an owner
    /// drops that owner's oldest. Cancelling the calling task does not undo the commit: another call may share its
    /// transaction.
    func commit(_ changes: [Change]) async throws

    /// The bans that are active at `now`, of identities and of addresses, oldest first.
    func bans(at now: Timestamp) async throws -> [Ban]

    /// Adds a ban, in place of an earlier one of the same subject. Bans that ended before `ban.createdAt` are
    /// forgotten, so that a server which bans by itself does not grow a list for ever.
    func addBan(_ ban: Ban) async throws

    /// - Returns: whether there was a ban to remove.
    @discardableResult
    func removeBan(_ subject: BanSubject) async throws -> Bool

    /// Reports, newest first, at most `limit` (nothing when it is zero or less).
    func reports(includingClosed: Bool, limit: Int) async throws -> [StoredReport]

    /// One report; `nil` when there is none of that number, or no more.
    func report(id: Int64) async throws -> StoredReport?

    /// Marks a report as dealt with.
    ///
    /// - Returns: whether this call closed it. A report closed earlier keeps its time.
    @discardableResult
    func closeReport(id: Int64, at now: Timestamp) async throws -> Bool

    /// Deletes the reports made before `limit`, closed or not, with their chat lines. The server calls it with
    /// `now - StorageLimits.reportRetention`.
    ///
    /// - Returns: how many there were.
    @discardableResult
    func deleteReports(olderThan limit: Timestamp) async throws -> Int

    /// A number that differs from the one before when *somebody else* changed the bans: `confab ban add` opens the file
    /// of a running server. It may also differ for another reason (someone else closed a report), and says nothing
    /// about which way it moved, so: compare for equality, and read `bans(at:)` again when it differs. It is cheap
    /// enough to ask every second.
    func changeCounter() async throws -> Int64

    /// Writes a consistent copy to a new file of mode 0600, while commits go on. The copy is a whole database in one
    /// file. To restore it: stop the server, remove `confab.sqlite`, `confab.sqlite-wal` and `confab.sqlite-shm` from
    /// the data directory (an old -wal would be played into the copy), and put the copy there as `confab.sqlite`.
    ///
    /// - Throws: ``StorageError`` with `.targetExists`, and leaves the file alone, when there is one at `path`.
    func backup(to path: String) async throws

    /// Waits for the commits under way, then lets go of the file. Later calls throw `.closed`; closing again does
    /// nothing.
    func close() async throws
}

/// A report with what storage added to it.
public struct StoredReport: Hashable, Sendable {
    /// Never used again for another report, also after this one was deleted.
    public var id: Int64
    public var report: Report
    /// `nil` while nobody has dealt with it.
    public var closedAt: Timestamp?

    public init(id: Int64, report: Report, closedAt: Timestamp? = nil) {
        self.id = id
        self.report = report
        self.closedAt = closedAt
    }
}

/// How much is kept, and for how long.
public enum StorageLimits {
    /// Blocks kept for one identity. Matching reads the whole list, and nobody meets more people than this by choice.
    public static let blocksPerOwner = 1000
    /// Long enough for an operator's holiday; a chat between strangers should not lie around for longer.
    public static let reportRetention: Duration = .seconds(30 * 24 * 60 * 60)
}

extension Report {
    /// U+0000 shown as U+FFFD: SQLite ends a text at the first NUL, and whoever is reported must not be able to hide
    /// the rest of a line behind one. Both implementations keep reports in this form.
    var withoutNUL: Report {
        var report = self
        report.reason = reason.withoutNUL
        for index in report.lines.indices { report.lines[index].text = report.lines[index].text.withoutNUL }
        return report
    }
}

extension String {
    var withoutNUL: String {
        guard utf8.contains(0) else { return self }
        return String(String.UnicodeScalarView(unicodeScalars.map { $0 == "\0" ? "\u{FFFD}" : $0 }))
    }
}
