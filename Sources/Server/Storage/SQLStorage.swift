public import Signaling
import Synchronization
public import Wire

/// Storage in a database that is used through SQL. The databases differ only in how they are opened and how transactions run.
protocol SQLStorage: Storage {
    associatedtype Transaction: SQLTransaction

    /// What the operator should know about how the database was opened, as sentences.
    var notes: [String] { get }

    /// Combines the changes of clients into transactions.
    var writer: GroupCommitWriter<StorageWrite> { get }

    /// Runs `body` in a transaction that sees one state of the database. Throws ``StorageError``, or `CancellationError`.
    func read<T: Sendable>(_ body: @escaping @Sendable (Transaction) throws -> T) async throws -> T

    /// Runs `body` in a transaction, which is durable when this returns. If `body` throws, nothing is changed. Transactions
    /// that write to a database never overlap, in whatever process.
    func write<T: Sendable>(_ body: @escaping @Sendable (Transaction) throws -> T) async throws -> T

    /// Executes SQL, for tests that need states this program never creates.
    func execute(_ sql: String) async throws
}

/// A write that a client or an operator's request can cause. Writes that wait at the same time share a transaction, because
/// each durable transaction waits some milliseconds for the disk.
enum StorageWrite: Sendable {
    case change(Change)
    case keep(PersonData.KeptEndpoint, of: IdentityID)
    case remove(endpoint: String, of: IdentityID)
    case removeWebhook(Int64)
    case audit(AuditEntry)

    /// The project of the event that this write adds to the outbox; nil if it adds none.
    var webhookProject: String? {
        if case .change(.webhook(let event)) = self { event.project } else { nil }
    }
}

extension SQLTransaction {
    func apply(_ write: StorageWrite, _ bounds: StorageBounds) throws {
        switch write {
        case .change(let change): try apply(change, bounds)
        case .keep(let endpoint, let id): try keep(endpoint, of: id, limit: bounds.pushEndpoints)
        case .remove(let endpoint, let id): try removeEndpoint(endpoint, of: id)
        case .audit(let entry): try audit(entry)
        case .removeWebhook(let id): try run("DELETE FROM webhookEvent WHERE id = ?", [id])
        }
    }
}

extension StorageBounds {
    /// The bounds at this time: without room for the beginnings of webhooks while the disk is nearly full.
    func current(_ signal: WebhookSignal) -> StorageBounds {
        var bounds = self
        if signal.isDiskLow.load(ordering: .relaxed) { bounds.webhooks = 0 }
        return bounds
    }
}

extension SQLStorage {
    /// The maximum number of rows to delete in one transaction.
    static var deletedAtOnce: Int { 500 }

    public func commitEach(_ lists: [[Change]]) async -> [StorageError?] {
        await writer.commitEach(lists.map { $0.map { .change($0) } })
    }

    public func commit(_ changes: [Change]) async throws { try await writer.commit(changes.map { .change($0) }) }

    public func person(_ id: IdentityID, at now: Timestamp) async throws -> PersonRecord {
        try await read { try $0.person(id, at: now) }
    }

    public func bans(at now: Timestamp) async throws -> [Ban] {
        try await read { try $0.bans(at: now) }
    }

    public func addBan(_ ban: Ban, recording entry: AuditEntry?) async throws {
        try await write { database in
            try database.addBan(ban)
            if let entry { try database.audit(entry) }
        }
    }

    @discardableResult
    public func removeBan(_ subject: BanSubject, recording entry: AuditEntry?) async throws -> Bool {
        try await write { database in
            guard try database.removeBan(subject) else { return false }
            if let entry { try database.audit(entry) }
            return true
        }
    }

    public func reports(includingClosed: Bool, limit: Int) async throws -> [StoredReport] {
        try await read { try $0.reports(includingClosed: includingClosed, limit: limit) }
    }

    public func moderationMark() async throws -> ModerationMark { try await read { try $0.moderationMark() } }

    public func openReportCount() async throws -> Int { try await read { try $0.openReportCount() } }

    public func report(id: Int64) async throws -> StoredReport? {
        try await read { try $0.report(id: id) }
    }

    @discardableResult
    public func closeReport(id: Int64, at now: Timestamp, recording entry: AuditEntry?) async throws -> Bool {
        try await write { database in
            guard try database.closeReport(id: id, at: now) else { return false }
            if let entry { try database.audit(entry) }
            return true
        }
    }

    public func moderation(at now: Timestamp) async throws -> [SessionModeration] {
        try await read { try $0.moderation(at: now) }
    }

    public func moderation(of session: SessionID) async throws -> SessionModeration? {
        try await read { try $0.moderation(of: session) }
    }

    public func record(_ entry: AuditEntry) async throws {
        try await writer.commit([.audit(entry)])
    }

    public func audit(since start: Timestamp, limit: Int) async throws -> [AuditEntry] {
        try await read { try $0.audit(since: start, limit: limit) }
    }

    public func projects() async throws -> StoredProjects { try await read { try $0.projects() } }

    public func addProject(_ project: StoredProject, recording entry: AuditEntry) async throws -> Bool {
        try await write { database in
            guard try database.isUnusedKey(project.apiKey) else { return false }
            guard try database.projectCount() < StoredProject.maxCount else {
                throw StorageError(
                    .tooMany, "There are already \(StoredProject.maxCount) projects. Delete one that is not used.")
            }
            try database.requireOwnApplication(project)
            try database.store(project)
            try database.audit(entry)
            return true
        }
    }

    public func changeProject(
        _ apiKey: String, or initial: StoredProject?, recording entry: AuditEntry,
        _ change: @escaping @Sendable (inout StoredProject) -> Void
    ) async throws -> StoredProject? {
        try await write { database in
            guard var project = try database.project(apiKey) ?? initial else { return nil }
            let application = project.applicationID
            change(&project)
            // Two projects of an older version may have the same ID. Their other properties can still be changed.
            if project.applicationID != application { try database.requireOwnApplication(project) }
            try database.store(project)
            try database.audit(entry)
            return project
        }
    }

    public func removeProject(_ apiKey: String, recording entry: AuditEntry) async throws -> Bool {
        try await write { database in
            guard try database.deleteProject(apiKey) else { return false }
            try database.removeModeration(of: apiKey)
            try database.audit(entry)
            return true
        }
    }
}
