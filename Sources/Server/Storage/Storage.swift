public import Signaling
public import Wire

/// What outlives a restart: blocks, bans and reports; people with their devices, contacts and ways to be woken; calls
/// that go on and those that were.
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
    /// - Returns: the blocks they made, oldest first, the ban on this identity that is active at `now`, and what is kept
    ///   of them as a person. Of calls whose end they were not told of, the newest ``StorageLimits/unseenCalls``. Bans of
    ///   addresses do not show here: see `bans(at:)`.
    func person(_ id: IdentityID, at now: Timestamp) async throws -> PersonRecord

    /// Makes all of `changes` durable, in order, or none of them.
    ///
    /// Blocking somebody twice changes nothing, and keeps the first block's place. A block past the limit of an owner
    /// drops that owner's oldest, as do a contact and a call of the log. Cancelling the calling task does not undo the
    /// commit: another call may share its transaction.
    ///
    /// What `.deleted` leaves behind: blocks and reports that others made, the ban, and in others' call logs the fact of
    /// a call, without the name.
    func commit(_ changes: [Change]) async throws

    // MARK: People

    /// Whose device the secret of this identity proves.
    func resolve(_ device: IdentityID) async throws -> DeviceOwner

    /// Both at once, and so of one moment: who comes in with the secret of this identity, and what is known of them.
    ///
    /// - Returns: `nil` when the secret proves nobody any more.
    func visitor(_ device: IdentityID, at now: Timestamp) async throws -> FoundRecord?

    /// Who is known by this id; `nil` when nobody is. A device that is somebody else's is not found by its own id.
    func person(_ id: PersonID, at now: Timestamp) async throws -> FoundRecord?

    /// Everything kept of somebody. Somebody unknown has nothing.
    func everything(of id: IdentityID, at now: Timestamp) async throws -> HeldData

    // MARK: Calls

    /// One page of somebody's log, newest first.
    ///
    /// - Parameters:
    ///   - before: where the page before ended; `nil` begins with the newest.
    ///   - limit: at most ``Limits/callLogRows``; more is taken for that.
    func callLog(of owner: IdentityID, before: CallLogCursor?, limit: Int) async throws -> CallPage

    /// The calls that were not over when the server stopped, oldest first.
    func openCalls() async throws -> [StoredCall]

    /// Deletes the log's calls that were placed before `limit`.
    ///
    /// - Returns: how many entries there were.
    @discardableResult
    func deleteCalls(olderThan limit: Timestamp) async throws -> Int

    // MARK: Ways to wake a device

    /// Oldest first.
    func pushEndpoints(of id: IdentityID) async throws -> [PushRegistration]

    /// Keeps a way to wake `device`, in place of an earlier one with the same address; past the limit of a person the
    /// oldest goes.
    func addPushEndpoint(
        _ endpoint: PushRegistration, of id: IdentityID, device: IdentityID, at now: Timestamp
    ) async throws

    /// - Returns: whether any is left.
    @discardableResult
    func removePushEndpoint(_ endpoint: String, of id: IdentityID) async throws -> Bool

    // MARK: Moderation

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
    /// `now` less the configuration's `roulette.reportRetention`.
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

/// How many rows are kept for one person, past which the oldest go.
public struct StorageBounds: Hashable, Sendable {
    public var blocks = StorageLimits.blocksPerOwner
    public var contacts = StorageLimits.contactsPerOwner
    public var calls = StorageLimits.callsPerOwner
    public var pushEndpoints = StorageLimits.pushEndpointsPerPerson

    public init(blocks: Int = StorageLimits.blocksPerOwner, contacts: Int = StorageLimits.contactsPerOwner) {
        (self.blocks, self.contacts) = (max(0, blocks), max(0, contacts))
    }
}

/// How many rows are kept. The configuration can change the first two.
public enum StorageLimits {
    /// Blocks kept for one identity. Matching reads the whole list, and nobody meets more people than this by choice.
    public static let blocksPerOwner = Rules().maxBlocks
    /// Each is told when one of them comes and goes, so the list is in memory while its owner is.
    public static let contactsPerOwner = Rules().maxContacts
    /// A year of three calls a day, which is as long as they are kept.
    public static let callsPerOwner = 1000
    /// Calls told again to whoever did not hear how they ended. All are told at once, and a client that drops meanwhile
    /// is sent at most 256 messages again. The log has the others.
    public static let unseenCalls = 100
    /// Browsers and apps of one person. Each ring goes to all of them.
    public static let pushEndpointsPerPerson = 20
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
