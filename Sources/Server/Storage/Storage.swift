public import Signaling
public import Wire

/// Persistent storage for blocks, bans and reports; for people with their devices, contacts and push endpoints; for ongoing
/// and past calls; for persistent rooms; for archives and broadcasts; and for events that wait for webhooks.
///
/// It stores data durably and limits its size. It makes no decisions: `Signaling` decides who may block or ban whom. Its
/// invariant: when `commit` returns, all of its changes survive a power failure; when it throws, none of them is stored.
///
/// ``SQLiteStorage`` and ``PostgresStorage`` implement it. All methods throw ``StorageError``. Those that only read or serve an operator also throw
/// `CancellationError` if their task is canceled.
///
/// ```swift
/// let storage: any Storage = try SQLiteStorage(directory: "confab-data")
/// try await storage.commit([.block(owner: alice, blocked: bob, at: now)])
/// let alicesRecord = try await storage.person(alice, at: now)  // blocked == [bob]
/// ```
public protocol Storage: WebhookOutbox {
    /// Returns the record of an identity. The record of an unknown identity is empty.
    ///
    /// - Returns: the person's blocks (oldest first), the ban of this identity that is active at `now`, the person's profile,
    ///   devices and contacts, and the newest ``StorageLimits/unseenCalls`` of the calls whose outcome the person has not seen.
    ///   Bans of addresses are not included; see `bans(at:)`.
    func person(_ id: IdentityID, at now: Timestamp) async throws -> PersonRecord

    /// Makes all of `changes` durable, in order, or none of them.
    ///
    /// Blocking a person again changes nothing, and keeps the position of the first block. A block beyond the owner's
    /// limit drops the owner's oldest block. The same applies to contacts and logged calls. Canceling the calling task
    /// does not undo the commit, because other calls may share its transaction.
    ///
    /// `.deleted` keeps all reports, other people's blocks of this person, the person's ban, and the calls in other
    /// people's logs, but removes the person's name from those.
    func commit(_ changes: [Change]) async throws

    /// Commits each list of changes as ``commit(_:)`` does, in order. If a list cannot be stored, only that list fails.
    ///
    /// - Returns: for each list, its error, or nil if the list was committed. After an error that affects all changes,
    ///   such as a locked database or a full disk, no further list is committed, and each has the same error. Commit
    ///   these lists again.
    func commitEach(_ lists: [[Change]]) async -> [StorageError?]

    // MARK: People

    /// Returns the owner of a device.
    func resolve(_ device: IdentityID) async throws -> DeviceOwner

    /// Returns the owner of a connecting device with their record, both read in the same transaction.
    ///
    /// - Returns: `nil` if the secret is no longer valid.
    func visitor(_ device: IdentityID, at now: Timestamp) async throws -> FoundRecord?

    /// Returns the person with this ID; `nil` if there is none. A device that is linked to another person is not found by its
    /// own ID.
    func person(_ id: PersonID, at now: Timestamp) async throws -> FoundRecord?

    /// Returns all stored data of a person. It is empty for an unknown person.
    func everything(of id: IdentityID, at now: Timestamp) async throws -> PersonData

    // MARK: Calls

    /// Returns one page of a person's call log, newest first.
    ///
    /// - Parameters:
    ///   - before: the cursor at the end of the previous page; `nil` starts with the newest call.
    ///   - limit: the page size, capped at ``Limits/callLogRows``.
    func callLog(of owner: IdentityID, before: CallLogCursor?, limit: Int) async throws -> CallPage

    /// Returns the calls that were ongoing when the server stopped, oldest first.
    func openCalls() async throws -> [StoredCall]

    /// Returns the ongoing calls of one life of a node of a cluster, oldest first.
    ///
    /// - Parameter life: the number of the life; 0 for calls from before the cluster.
    func openCalls(of life: UInt32) async throws -> [StoredCall]

    /// Returns which node of a cluster has this ongoing call of a person; nil if there is no such call.
    func home(of call: CallID, of person: IdentityID) async throws -> CallHome?

    /// Makes the ongoing calls of a life that has ended those of this node's life. Its heir restores them.
    ///
    /// - Returns: all calls of this node's life, oldest first.
    func takeOverCalls(of life: UInt32) async throws -> [StoredCall]

    // MARK: Rooms

    /// Returns the persistent rooms. A room that cannot be read does not hide the others.
    func rooms() async throws -> StoredRooms

    /// Returns the newest persistent room of a name; `nil` if there is none.
    func room(named name: RoomName) async throws -> StoredRoom?

    // MARK: Archives

    /// Returns an archive; `nil` if there is none.
    func archive(_ id: ArchiveID) async throws -> ArchiveRecord?

    /// Returns one page of a project's archives, newest first, and how many there are in all.
    ///
    /// - Parameter session: the session whose archives are returned; `nil` for all.
    func archives(
        of project: String, session: SessionID?, offset: Int, limit: Int
    ) async throws -> StoredPage<ArchiveRecord>

    /// Returns the archives that are recorded, completed or composed on a node of a cluster, oldest first.
    ///
    /// - Parameter node: the node's name; empty without a cluster.
    func unfinishedArchives(of node: String) async throws -> [ArchiveRecord]

    /// Returns up to `limit` archives to delete: those that became available before `moment`, and those of deleted projects.
    ///
    /// - Parameters:
    ///   - moment: `nil` for only those of deleted projects.
    ///   - node: the name of the node of a cluster that has the files; empty without a cluster.
    func archivesToExpire(
        availableBefore moment: Timestamp?, node: String, limit: Int
    ) async throws -> [ArchiveRecord]

    /// Returns up to `limit` archives that stopped before `moment`, or whose project was deleted, and wait for something that may never
    /// come (`ArchiveRecord.canBeGivenUp`), oldest first.
    ///
    /// - Parameters:
    ///   - moment: `nil` for only those of deleted projects.
    ///   - node: the name of the node of a cluster that has the files; empty without a cluster.
    func waitingArchives(
        stoppedBefore moment: Timestamp?, node: String, limit: Int
    ) async throws -> [ArchiveRecord]

    /// Returns up to `limit` archives that failed before `moment` on a node of a cluster, or whose project was deleted, oldest first.
    ///
    /// - Parameter node: the node's name; empty without a cluster.
    func failedArchives(before moment: Timestamp, node: String, limit: Int) async throws -> [ArchiveRecord]

    // MARK: Broadcasts

    /// Returns a broadcast; `nil` if there is none.
    func broadcast(_ id: BroadcastID) async throws -> BroadcastRecord?

    /// Returns one page of a project's broadcasts, newest first, and how many there are in all.
    ///
    /// - Parameter session: the session whose broadcasts are returned; `nil` for all.
    func broadcasts(
        of project: String, session: SessionID?, offset: Int, limit: Int
    ) async throws -> StoredPage<BroadcastRecord>

    /// Returns the broadcasts that run on a node of a cluster, oldest first.
    ///
    /// - Parameter node: the node's name; empty without a cluster.
    func runningBroadcasts(of node: String) async throws -> [BroadcastRecord]

    // MARK: Push endpoints

    /// Returns a person's push endpoints, oldest first.
    func pushEndpoints(of id: IdentityID) async throws -> [PushRegistration]

    /// Stores a push endpoint of `device`, replacing one with the same address. Beyond the limit per person, drops the
    /// oldest. Stores nothing if `device` does not belong to the person.
    func addPushEndpoint(
        _ endpoint: PushRegistration, of id: IdentityID, device: IdentityID, at now: Timestamp
    ) async throws

    /// Removes a push endpoint.
    ///
    /// - Returns: whether the person has any push endpoints left.
    @discardableResult
    func removePushEndpoint(_ endpoint: String, of id: IdentityID) async throws -> Bool

    // MARK: Moderation

    /// Returns the bans of identities and addresses that are active at `now`, oldest first.
    func bans(at now: Timestamp) async throws -> [Ban]

    /// Adds a ban, replacing an earlier one of the same subject.
    ///
    /// - Parameter entry: the entry to add to the audit log, in the same transaction.
    func addBan(_ ban: Ban, recording entry: AuditEntry?) async throws

    /// Removes a ban.
    ///
    /// - Parameter entry: the entry to add to the audit log, in the same transaction, if there was a ban.
    /// - Returns: whether there was a ban.
    @discardableResult
    func removeBan(_ subject: BanSubject, recording entry: AuditEntry?) async throws -> Bool

    /// Returns up to `limit` reports, newest first; none if the limit is zero or less. Omits closed reports unless
    /// `includingClosed` is true. The reports are without the images of their samples: `jpeg` is empty. Images are large, and few
    /// are looked at; ``report(id:)`` returns them.
    func reports(includingClosed: Bool, limit: Int) async throws -> [StoredReport]

    /// Returns a value that changes when a report is added or closed, and when an entry is added to the audit log. Takes one statement,
    /// so it is cheap enough to call every second.
    func moderationMark() async throws -> ModerationMark

    /// Returns the number of all reports that are not closed.
    func openReportCount() async throws -> Int

    /// Returns a report, with the image of its sample; `nil` if it does not exist or was deleted.
    func report(id: Int64) async throws -> StoredReport?

    /// Closes a report.
    ///
    /// - Parameter entry: the entry to add to the audit log, in the same transaction, if this call closed the report.
    /// - Returns: whether this call closed it. A report that is already closed keeps its original closing time.
    @discardableResult
    func closeReport(id: Int64, at now: Timestamp, recording entry: AuditEntry?) async throws -> Bool

    // MARK: Moderation in sessions, audit, retention

    /// Returns, by session, the revoked tokens that have not expired at `now`, and whether the session is muted.
    func moderation(at now: Timestamp) async throws -> [SessionModeration]

    /// Returns the revoked tokens, expired ones included, and the mute of one session; `nil` if there are none.
    func moderation(of session: SessionID) async throws -> SessionModeration?

    /// Adds an entry to the audit log, for an action that changes nothing else in storage. Do not call this for
    /// changes by moderators and applications, because `commit` adds their entries.
    func record(_ entry: AuditEntry) async throws

    /// Returns up to `limit` entries of the audit log since `start`, newest first.
    func audit(since start: Timestamp, limit: Int) async throws -> [AuditEntry]

    /// Deletes records of one kind that are older than `moment`. ``OldRecords`` defines which time counts for each
    /// kind. Uses small transactions, so that other writes need not wait long.
    ///
    /// - Returns: the number of deleted records.
    @discardableResult
    func deleteOld(_ records: OldRecords, olderThan moment: Timestamp) async throws -> Int

    // MARK: Projects

    /// Returns the projects other than the main one, oldest first, and the additional properties of the main project if
    /// it has any.
    func projects() async throws -> StoredProjects

    /// Stores a new project.
    ///
    /// - Parameter entry: the entry to add to the audit log, in the same transaction.
    /// - Returns: false if a project has or had this API key. Nothing is changed then.
    /// - Throws: `StorageError.Code.tooMany` if there are as many projects as are allowed, `.taken` if another one has the
    ///   application ID.
    func addProject(_ project: StoredProject, recording entry: AuditEntry) async throws -> Bool

    /// Changes a project in one transaction.
    ///
    /// - Parameters:
    ///   - initial: what to change if no project with this API key is stored; nil to change nothing then.
    ///   - entry: the entry to add to the audit log.
    ///   - change: changes the project's properties.
    /// - Returns: the changed project; nil if nothing was changed.
    /// - Throws: `StorageError.Code.taken` if another project has the application ID.
    func changeProject(
        _ apiKey: String, or initial: StoredProject?, recording entry: AuditEntry,
        _ change: @escaping @Sendable (inout StoredProject) -> Void
    ) async throws -> StoredProject?

    /// Deletes a project, even one that cannot be read, with the revoked tokens and mutes of its sessions. Its API key is
    /// never used again. The server drops the events that wait for its webhook.
    ///
    /// - Returns: whether there was such a project.
    func removeProject(_ apiKey: String, recording entry: AuditEntry) async throws -> Bool

    /// Returns a number that changes whenever *another process* changes the bans, for example `confab ban add` while the server
    /// runs. It may also change for other reasons, such as a closed report, and its direction has no meaning. Compare it for
    /// equality, and read `bans(at:)` again if it differs. It is cheap enough to call every second.
    func changeCounter() async throws -> Int64

    /// Whether the storage could be reached the last time. A server that polls ``changeCounter()`` keeps it current. Always true
    /// for storage in a file.
    var isReachable: Bool { get }

    /// Writes a consistent copy of the database to a new file with mode 0600. Commits can continue during the backup.
    ///
    /// To restore the copy, stop the server, remove `confab.sqlite`, `confab.sqlite-wal` and `confab.sqlite-shm` from the data
    /// directory (an old -wal file would be applied to the copy), and put the copy into that directory as
    /// `confab.sqlite`.
    ///
    /// - Throws: ``StorageError`` with `.targetExists` if `path` exists. The existing file is not changed. `.unsupported` for
    ///   PostgreSQL, which has its own tools.
    func backup(to path: String) async throws

    /// Waits for pending commits, then closes the file. Later calls throw `.closed`. Closing again does nothing.
    func close() async throws
}

extension Storage {
    public var isReachable: Bool { true }

    /// Returns nothing: storage that only one server uses has no calls of other servers.
    public func openCalls(of life: UInt32) async throws -> [StoredCall] { [] }

    /// Returns nothing, as ``openCalls(of:)``.
    public func home(of call: CallID, of person: IdentityID) async throws -> CallHome? { nil }

    /// Returns nothing, as ``openCalls(of:)``.
    public func takeOverCalls(of life: UInt32) async throws -> [StoredCall] { [] }

    /// Adds a ban without an entry in the audit log.
    public func addBan(_ ban: Ban) async throws { try await addBan(ban, recording: nil) }

    /// Removes a ban without an entry in the audit log. Returns whether there was a ban.
    @discardableResult
    public func removeBan(_ subject: BanSubject) async throws -> Bool { try await removeBan(subject, recording: nil) }

    /// Closes a report without an entry in the audit log. Returns whether this call closed it.
    @discardableResult
    public func closeReport(id: Int64, at now: Timestamp) async throws -> Bool {
        try await closeReport(id: id, at: now, recording: nil)
    }
}

/// A page of a list of archives or broadcasts.
public struct StoredPage<Record> {
    /// How many records the list has in all.
    public var count = 0
    /// The records on this page, newest first.
    public var records: [Record] = []

    public init() {}
}

extension StoredPage: Equatable where Record: Equatable {}
extension StoredPage: Sendable where Record: Sendable {}

/// A stored report, with its number and when it was closed.
public struct StoredReport: Hashable, Sendable {
    /// The report's number. Never reused, even after the report is deleted.
    public var id: Int64
    public var report: Report
    /// When the report was closed; `nil` while it is open.
    public var closedAt: Timestamp?

    public init(id: Int64, report: Report, closedAt: Timestamp? = nil) {
        self.id = id
        self.report = report
        self.closedAt = closedAt
    }
}

/// A value that changes with the stored reports and with the audit log, which has every ban.
public struct ModerationMark: Hashable, Sendable {
    /// The number of reports that are not closed.
    public var openReports = 0
    /// The number of the newest report; `nil` if there is none.
    public var newestReport: Int64?
    /// The number of the newest entry of the audit log; `nil` if there is none.
    public var newestEntry: Int64?

    public init() {}
}

/// The maximum number of stored rows of each kind. Beyond it, a person's oldest rows are deleted, and no rows are
/// added for a project.
public struct StorageBounds: Hashable, Sendable {
    public var blocks = StorageLimits.blocksPerOwner
    public var contacts = StorageLimits.contactsPerOwner
    public var calls = StorageLimits.callsPerOwner
    public var pushEndpoints = StorageLimits.pushEndpointsPerPerson
    /// Maximum number of events per project that may be waiting for its webhook when the creation of something is
    /// reported. Above it, only the ends of what was reported are added.
    public var webhooks: Int
    /// Connections of one project for whose ends the outbox of webhooks has room, besides the waiting events.
    public var connections: Int

    public init(
        blocks: Int = StorageLimits.blocksPerOwner, contacts: Int = StorageLimits.contactsPerOwner,
        webhooks: Int = StorageLimits.webhooksPerProject, connections: Int = Rules().connectionsPerProject
    ) {
        (self.blocks, self.contacts) = (max(0, blocks), max(0, contacts))
        (self.webhooks, self.connections) = (max(0, webhooks), max(0, connections))
    }

    /// Bytes that the waiting events of one project may take when another beginning is added.
    var webhookBytes: Int { webhooks * StorageLimits.webhookSize }
    /// Bytes that the waiting events of all projects, and the space reserved for ends, may take when another beginning is
    /// added.
    var webhookBytesOfAll: Int {
        webhookBytes * StorageLimits.webhookShare + connections * StorageLimits.webhookEndsSize
    }
}

extension Report {
    /// The report with U+0000 replaced by U+FFFD. SQLite ends text at the first NUL, and the reported person must not be able
    /// to hide the rest of a message behind one. Reports are stored in this form.
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
