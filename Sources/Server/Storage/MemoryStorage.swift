public import Signaling
public import Wire

/// In-memory storage, for tests and for trials without a data directory.
public actor MemoryStorage: Storage {
    private let bounds: StorageBounds
    /// Each person's blocks, oldest first.
    private var blocks: [IdentityID: [PersonData.Block]] = [:]
    private var people: MemoryPeople
    /// Bans, oldest first, with at most one per subject.
    private var bans: [Ban] = []
    /// Reports in ascending order of IDs.
    private var reports: [StoredReport] = []
    private var lastReportID: Int64 = 0
    private var banChanges: Int64 = 0
    private var keptRooms: [RoomID: StoredRoom] = [:]
    private var moderated: [SessionID: SessionModeration] = [:]
    /// The audit log, oldest entry first.
    private var entries: [AuditEntry] = []
    private var isClosed = false

    public init(bounds: StorageBounds = StorageBounds()) {
        self.bounds = bounds
        people = MemoryPeople(bounds)
    }

    public func person(_ id: IdentityID, at now: Timestamp) throws -> PersonRecord {
        try checkOpen()
        return record(id, at: now)
    }

    private func record(_ id: IdentityID, at now: Timestamp) -> PersonRecord {
        var record = PersonRecord(blocked: (blocks[id] ?? []).map(\.person), ban: ban(of: id, at: now))
        record.isRetired = people.resolve(id) == .retired
        people.fill(&record, of: id)
        return record
    }

    private func ban(of id: IdentityID, at now: Timestamp) -> Ban? {
        bans.first { $0.subject == .identity(id) && $0.isActive(at: now) }
    }

    public func commit(_ changes: [Change]) throws {
        try checkOpen()
        for change in changes { apply(change) }
    }

    public func commitEach(_ lists: [[Change]]) -> [StorageError?] {
        lists.map { changes in
            do {
                try commit(changes)
                return nil
            } catch {
                return error as? StorageError ?? .closed
            }
        }
    }

    private func apply(_ change: Change) {
        if let entry = change.facts.auditEntry { entries.append(entry) }
        switch change {
        case .revoked(let revocation):
            moderated[revocation.session, default: SessionModeration(session: revocation.session)]
                .revoked[revocation.fingerprint] = revocation.expiresAt
        case .muted(let session, let isMuted, by: _, at: _):
            moderated[session, default: SessionModeration(session: session)].isMuted = isMuted
        case .block(let owner, let blocked, let at): block(PersonData.Block(person: blocked, at: at), by: owner)
        case .unblock(let owner, let blocked):
            blocks[owner]?.removeAll { $0.person == blocked }
            if blocks[owner]?.isEmpty == true { blocks[owner] = nil }
        case .report(let report):
            lastReportID += 1
            reports.append(StoredReport(id: lastReportID, report: report.withoutNUL))
        case .profile(let id, let person, let profile, let at):
            people.setProfile(profile, of: id, knownAs: person, at: at)
        case .linked(let device, let person):
            people.link(device, to: person)
            for row in blocks[device.identity] ?? [] where row.person != person { block(row, by: person) }
        case .unlinked(let device): people.unlink(device)
        case .retired(let device): people.retire(device)
        case .deleted(let person, _):
            for id in people.delete(person) {
                blocks[id] = nil
                for room in keptRooms.values where room.creator == id { keptRooms[room.id]?.creator = nil }
            }
        case .keptInTouch(let first, let second, let names, let at): people.join(first, second, names: names, at: at)
        case .lostTouch(let first, let second): people.separate(first, second)
        case .roomStored(let room): keptRooms[room.id] = room
        case .roomForgotten(let room): keptRooms[room] = nil
        case .callPlaced(let call): people.place(call)
        case .callAccepted(let call, let at, people: _): people.accept(call, at: at)
        case .callOver(let call, people: _): people.end(call)
        case .callLogged(let record, let owner): people.logCall(record, of: owner)
        case .callSeen(let call, let owner): people.seeCall(call, by: owner)
        case .callsForgotten(let call, let owner): people.forgetCalls(call, by: owner)
        }
    }

    private func block(_ block: PersonData.Block, by owner: IdentityID) {
        var list = blocks[owner] ?? []
        guard !list.contains(where: { $0.person == block.person }) else { return }
        list.append(block)
        blocks[owner] = list.suffix(bounds.blocks)
    }

    public func bans(at now: Timestamp) throws -> [Ban] {
        try checkOpen()
        return bans.filter { $0.isActive(at: now) }
    }

    public func addBan(_ ban: Ban, recording entry: AuditEntry?) throws {
        try checkOpen()
        var ban = ban
        ban.reason = ban.reason.withoutNUL
        bans.removeAll { $0.subject == ban.subject }
        bans.append(ban)
        banChanges += 1
        if let entry { entries.append(entry) }
    }

    @discardableResult
    public func removeBan(_ subject: BanSubject, recording entry: AuditEntry?) throws -> Bool {
        try checkOpen()
        guard let index = bans.firstIndex(where: { $0.subject == subject }) else { return false }
        bans.remove(at: index)
        banChanges += 1
        if let entry { entries.append(entry) }
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
    public func closeReport(id: Int64, at now: Timestamp, recording entry: AuditEntry?) throws -> Bool {
        try checkOpen()
        guard let index = reports.firstIndex(where: { $0.id == id && $0.closedAt == nil }) else { return false }
        reports[index].closedAt = now
        if let entry { entries.append(entry) }
        return true
    }

    @discardableResult
    public func deleteOld(_ records: OldRecords, olderThan moment: Timestamp) throws -> Int {
        try checkOpen()
        switch records {
        case .reports:
            let before = reports.count
            reports.removeAll { $0.report.createdAt < moment }
            return before - reports.count
        case .calls: return people.deleteCalls(olderThan: moment)
        case .audit:
            let before = entries.count
            entries.removeAll { $0.at < moment }
            return before - entries.count
        case .pushEndpoints: return people.deleteEndpoints(olderThan: moment)
        case .profiles: return people.deleteUnusedProfiles(since: moment)
        case .bans:
            let before = bans.count
            bans.removeAll { ban in ban.expiresAt.map { $0 < moment } ?? false }
            return before - bans.count
        case .revokedTokens:
            func count() -> Int { moderated.values.reduce(0) { $0 + $1.revoked.count } }
            let before = count()
            moderated = moderated.mapValues { moderation in
                var moderation = moderation
                moderation.revoked = moderation.revoked.filter { $0.value >= moment }
                return moderation
            }
            return before - count()
        }
    }

    public func moderation(at now: Timestamp) throws -> [SessionModeration] {
        try checkOpen()
        return moderated.values.sorted { $0.session.text < $1.session.text }.compactMap { moderation in
            var moderation = moderation
            moderation.revoked = moderation.revoked.filter { $0.value > now }
            return moderation.revoked.isEmpty && !moderation.isMuted ? nil : moderation
        }
    }

    public func record(_ entry: AuditEntry) throws {
        try checkOpen()
        entries.append(entry)
    }

    public func audit(since start: Timestamp, limit: Int) throws -> [AuditEntry] {
        try checkOpen()
        return Array(entries.reversed().filter { $0.at >= start }.prefix(max(0, limit)))
    }

    /// Returns the number of ban changes in this process; no other process can change them.
    public func changeCounter() throws -> Int64 {
        try checkOpen()
        return banChanges
    }

    /// Always throws `.unsupported`, because in-memory data is not meant to be kept.
    public func backup(to path: String) throws {
        try checkOpen()
        throw StorageError(.unsupported, "In-memory storage cannot be backed up. Use a data directory.")
    }

    public func close() { isClosed = true }

    private func checkOpen() throws {
        if isClosed { throw StorageError.closed }
    }
}

// MARK: - People

extension MemoryStorage {
    public func resolve(_ device: IdentityID) throws -> DeviceOwner {
        try checkOpen()
        return people.resolve(device)
    }

    public func visitor(_ device: IdentityID, at now: Timestamp) throws -> FoundRecord? {
        try checkOpen()
        guard let id = people.resolve(device).identity(of: device) else { return nil }
        return FoundRecord(identity: id, record: record(id, at: now))
    }

    public func person(_ id: PersonID, at now: Timestamp) throws -> FoundRecord? {
        try checkOpen()
        return people.identity(of: id).map { FoundRecord(identity: $0, record: record($0, at: now)) }
    }

    public func everything(of id: IdentityID, at now: Timestamp) throws -> PersonData {
        try checkOpen()
        var held = PersonData()
        people.fill(&held, of: id)
        held.blocks = blocks[id] ?? []
        held.rooms = try rooms().rooms.filter { $0.creator == id }.map {
            PersonData.CreatedRoom(name: $0.name, at: $0.createdAt)
        }
        held.ban = ban(of: id, at: now)
        held.reports = reports.filter { $0.report.by == id }.map {
            PersonData.KeptReport(match: $0.report.match, reason: $0.report.reason, at: $0.report.createdAt)
        }
        return held
    }

    public func callLog(of owner: IdentityID, before: CallLogCursor?, limit: Int) throws -> CallPage {
        try checkOpen()
        return people.page(of: owner, before: before, limit: limit)
    }

    public func openCalls() throws -> [StoredCall] {
        try checkOpen()
        return people.openCalls
    }

    public func rooms() throws -> StoredRooms {
        try checkOpen()
        return StoredRooms(keptRooms.values.sorted { ($0.createdAt, $0.id) < ($1.createdAt, $1.id) })
    }

    public func pushEndpoints(of id: IdentityID) throws -> [PushRegistration] {
        try checkOpen()
        return people.pushEndpoints(of: id)
    }

    public func addPushEndpoint(
        _ endpoint: PushRegistration, of id: IdentityID, device: IdentityID, at now: Timestamp
    ) throws {
        try checkOpen()
        people.keep(PersonData.KeptEndpoint(device: device, registration: endpoint, at: now), of: id)
    }

    @discardableResult
    public func removePushEndpoint(_ endpoint: String, of id: IdentityID) throws -> Bool {
        try checkOpen()
        return people.removeEndpoint(endpoint, of: id)
    }
}
