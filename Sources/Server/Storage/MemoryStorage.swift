public import Signaling
public import Wire

/// Storage that a restart empties: for tests, and for trying the server out without a data directory.
public actor MemoryStorage: Storage {
    private let blocksPerOwner: Int
    /// Oldest first.
    private var blocks: [IdentityID: [IdentityID]] = [:]
    /// Oldest first, one for a subject.
    private var bans: [Ban] = []
    /// By ascending id.
    private var reports: [StoredReport] = []
    private var lastReportID: Int64 = 0
    private var banChanges: Int64 = 0
    private var isClosed = false

    public init(blocksPerOwner: Int = StorageLimits.blocksPerOwner) {
        self.blocksPerOwner = max(0, blocksPerOwner)
    }

    public func person(_ id: IdentityID, at now: Timestamp) throws -> PersonRecord {
        try checkOpen()
        let ban = bans.first { $0.subject == .identity(id) && $0.isActive(at: now) }
        return PersonRecord(blocked: blocks[id] ?? [], ban: ban)
    }

    public func commit(_ changes: [Change]) throws {
        try checkOpen()
        for change in changes { apply(change) }
    }

    private func apply(_ change: Change) {
        switch change {
        case .block(let owner, let blocked, _):
            var list = blocks[owner] ?? []
            guard !list.contains(blocked) else { return }
            list.append(blocked)
            blocks[owner] = list.suffix(blocksPerOwner)
        case .unblock(let owner, let blocked):
            blocks[owner]?.removeAll { $0 == blocked }
            if blocks[owner]?.isEmpty == true { blocks[owner] = nil }
        case .report(let report):
            lastReportID += 1
            reports.append(StoredReport(id: lastReportID, report: report.withoutNUL))
        }
    }

    public func bans(at now: Timestamp) throws -> [Ban] {
        try checkOpen()
        return bans.filter { $0.isActive(at: now) }
    }

    public func addBan(_ ban: Ban) throws {
        try checkOpen()
        var ban = ban
        ban.reason = ban.reason.withoutNUL
        bans.removeAll { $0.subject == ban.subject || !$0.isActive(at: ban.createdAt) }
        bans.append(ban)
        banChanges += 1
    }

    @discardableResult
    public func removeBan(_ subject: BanSubject) throws -> Bool {
        try checkOpen()
        guard let index = bans.firstIndex(where: { $0.subject == subject }) else { return false }
        bans.remove(at: index)
        banChanges += 1
        return true
    }

    public func reports(includingClosed: Bool, limit: Int) throws -> [StoredReport] {
        try checkOpen()
        return Array(
            reports
                .filter { includingClosed || $0.closedAt == nil }
                .sorted { ($0.report.createdAt, $0.id) > ($1.report.createdAt, $1.id) }
                .prefix(max(0, limit)))
    }

    public func report(id: Int64) throws -> StoredReport? {
        try checkOpen()
        return reports.first { $0.id == id }
    }

    @discardableResult
    public func closeReport(id: Int64, at now: Timestamp) throws -> Bool {
        try checkOpen()
        guard let index = reports.firstIndex(where: { $0.id == id && $0.closedAt == nil }) else { return false }
        reports[index].closedAt = now
        return true
    }

    @discardableResult
    public func deleteReports(olderThan limit: Timestamp) throws -> Int {
        try checkOpen()
        let before = reports.count
        reports.removeAll { $0.report.createdAt < limit }
        return before - reports.count
    }

    /// There is no other process here, so this counts the changes of this one's bans.
    public func changeCounter() throws -> Int64 {
        try checkOpen()
        return banChanges
    }

    /// Always throws `.unsupported`: what is in memory only was not meant to be kept.
    public func backup(to path: String) throws {
        try checkOpen()
        throw StorageError(.unsupported, "Storage in memory cannot be backed up; use a data directory.")
    }

    public func close() { isClosed = true }

    private func checkOpen() throws {
        if isClosed { throw StorageError.closed }
    }
}
