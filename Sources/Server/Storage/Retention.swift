import Logging
import NIOCore
import ServiceLifecycle
import Signaling
import Wire

/// Deletes records older than the configured retention, once per hour, while the clock is confirmed (``WallClockJudge``).
///
/// ``ArchiveExpiry`` deletes the files of archives. Two kinds are deleted elsewhere: `Room+Retention` ends a persistent room that
/// was not used for `Rules.roomRetention`, and ``WebhookSchedule`` deletes the events that a webhook does not accept in time.
struct Retention: Service {
    let storage: any Storage
    let clock: ServerClock
    let live: LiveConfiguration
    let logger: Logger

    /// How long an archive that has expired, failed or been uploaded, or a broadcast that has ended, remains in lists.
    static let endedArchives: Duration = .seconds(30 * 86400)
    /// How often to check whether the clock is confirmed, while it is not.
    private static let pause: Duration = .seconds(60)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let pause = await deleteOld() ? .seconds(3600) : Self.pause
                try? await Task.sleep(for: pause)
            }
        }
    }

    /// Deletes the records of each kind that are older than their retention time, and bans and revoked tokens that
    /// have expired.
    ///
    /// - Returns: false if the clock is not confirmed, so that nothing was deleted; otherwise true, even if a deletion
    ///   failed.
    func deleteOld() async -> Bool {
        guard let now = clock.moment.confirmedWall else { return false }
        let retention = live.current.retention
        await delete(.reports, "reports", olderThan: now - retention.reports)
        await delete(.calls, "calls", olderThan: now - retention.calls)
        await delete(.audit, "audit entries", olderThan: now - retention.audit)
        await delete(.pushEndpoints, "push endpoints", olderThan: now - retention.pushEndpoints)
        await delete(.profiles, "profiles", olderThan: now - retention.profiles)
        await delete(.archives, "entries of archives", olderThan: now - Self.endedArchives)
        // The object stays in the bucket. Without a limit of time, its entry stays too.
        let kept = live.current.archives.retention
        let uploadedLimit = kept > .zero ? now - max(kept, Self.endedArchives) : .distantPast
        await delete(.uploadedArchives, "entries of uploaded archives", olderThan: uploadedLimit)
        await delete(.broadcasts, "entries of broadcasts", olderThan: now - Self.endedArchives)
        await delete(.bans, "bans that have ended", olderThan: now)
        await delete(.revokedTokens, "revoked tokens that have expired", olderThan: now)
        return true
    }

    private func delete(_ records: OldRecords, _ what: String, olderThan moment: Timestamp) async {
        do {
            let count = try await storage.deleteOld(records, olderThan: moment)
            if count > 0 { logger.info("Old \(what) deleted", metadata: ["count": "\(count)"]) }
        } catch {
            logger.error("Could not delete old \(what)", metadata: ["error": "\(error)"])
        }
    }
}

/// Deletes archives after `recording.retention`, and those of deleted projects, once per hour, while the clock is confirmed
/// (``WallClockJudge``). The time begins when an archive is available, or when it has stopped if it waits to be composed. Failed archives are kept for ``Retention/endedArchives`` at least, because an operator may compose what
/// was recorded.
struct ArchiveExpiry: Service {
    let gateway: NIOLoopBound<Gateway>
    let parts: ArchiveParts
    let clock: ServerClock
    let live: LiveConfiguration

    /// How often to check whether the clock is confirmed, while it is not.
    private static let pause: Duration = .seconds(60)
    /// Archives that are read at a time.
    private static let page = 100

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                let pause = await expire() ? .seconds(3600) : Self.pause
                try? await Task.sleep(for: pause)
            }
        }
    }

    /// Deletes the files of archives that are too old, and stores and reports that they have expired. Deletes failed archives with
    /// what was recorded of them.
    ///
    /// - Returns: false if the clock is not confirmed, so that nothing was deleted.
    func expire() async -> Bool {
        guard let now = clock.moment.confirmedWall else { return false }
        let (storage, node) = (parts.storage, parts.node)
        let retention = live.current.archives.retention
        let limit = retention > .zero ? now - retention : nil
        await forEach {
            try await storage.archivesToExpire(availableBefore: limit, node: node, limit: Self.page)
        } _: { archive in
            try await expire(archive, at: now)
        }
        await forEach {
            try await storage.waitingArchives(stoppedBefore: limit, node: node, limit: Self.page)
        } _: { archive in
            try await expire(archive, at: now)
        }
        let failedLimit = now - max(retention, Retention.endedArchives)
        await forEach {
            try await storage.failedArchives(before: failedLimit, node: node, limit: Self.page)
        } _: { archive in
            // A newer one is here because its project was deleted.
            try await forget(archive, withFiles: limit != nil || archive.updatedAt >= failedLimit)
        }
        return true
    }

    /// Deletes archives, page by page. One that cannot be deleted does not keep the others of its page.
    ///
    /// - Parameter delete: deletes an archive. Returns false if it cannot be deleted now.
    private func forEach(
        _ page: () async throws -> [ArchiveRecord], _ delete: (ArchiveRecord) async throws -> Bool
    ) async {
        do {
            while !Task.isCancelled {
                let old = try await page()
                var count = 0
                for archive in old {
                    do {
                        if try await delete(archive) { count += 1 }
                    } catch {
                        parts.logger.error(
                            "Could not delete an old archive",
                            metadata: ["archive": "\(archive.id)", "error": "\(error)"])
                    }
                }
                if count > 0 { parts.logger.info("Old archives deleted", metadata: ["count": "\(count)"]) }
                if old.count < Self.page || count == 0 { return }
            }
        } catch {
            parts.logger.error("Could not read old archives", metadata: ["error": "\(error)"])
        }
    }

    private func expire(_ archive: ArchiveRecord, at now: Timestamp) async throws -> Bool {
        // Otherwise an application deletes it now, or it is being moved to the bucket.
        guard parts.files.beginChange(of: archive.id) else { return false }
        defer { parts.files.endChange(of: archive.id) }
        let isGivenUp = archive.canBeGivenUp
        if isGivenUp {
            guard await giveUp(archive.id) else { return false }
        }
        guard var expired = try await parts.storage.archive(archive.id),
            expired.status == (isGivenUp ? .stopped : .available)
        else { return true }
        try await parts.files.delete(archive.id)
        (expired.status, expired.updatedAt, expired.obstacle) = (.expired, now, nil)
        let record = expired
        let reports = try await gateway.eventLoop.submit { gateway.value.report(record) }.get()
        try await parts.storage.commit([.archiveStored(record)] + reports)
        return true
    }

    /// Ends an archive that waits to be composed.
    ///
    /// - Returns: false if it is being composed or tried now.
    private func giveUp(_ archive: ArchiveID) async -> Bool {
        let gateway = gateway
        return await withCheckedContinuation { continuation in
            gateway.eventLoop.execute {
                gateway.value.giveUp(archive) { continuation.resume(returning: $0) }
            }
        }
    }

    /// Deletes the entry of a failed archive.
    ///
    /// - Parameter withFiles: whether what was recorded is deleted too. Without a limit of time, the operator decides about files. No
    ///   list has this archive then.
    private func forget(_ archive: ArchiveRecord, withFiles: Bool) async throws -> Bool {
        guard parts.files.beginChange(of: archive.id) else { return false }
        defer { parts.files.endChange(of: archive.id) }
        guard try await parts.storage.archive(archive.id)?.status == .failed else { return true }
        if withFiles { try await parts.files.delete(archive.id) }
        try await parts.storage.commit([.archiveForgotten(archive.id)])
        return true
    }
}

/// The kinds of records that the server deletes after their retention time. "Before the limit" means before the time
/// that is passed to ``Storage/deleteOld(_:olderThan:)``.
public enum OldRecords: CaseIterable, Sendable {
    /// Reports that were filed before the limit, with their chat lines.
    case reports
    /// Calls in the call logs from before the limit, even if the person has not seen them.
    case calls
    /// Entries of the audit log from before the limit.
    case audit
    /// Push endpoints that their devices last registered before the limit.
    case pushEndpoints
    /// Bans that ended before the limit. Permanent bans are kept.
    case bans
    /// Revoked tokens that expired before the limit. Expired tokens are refused anyway.
    case revokedTokens
    /// Archives that have expired before the limit. Their files have already been deleted. ``ArchiveExpiry`` deletes those that
    /// have failed, because they have files.
    case archives
    /// Archives that were uploaded to the bucket before the limit, and those of deleted projects. Their objects stay there.
    case uploadedArchives
    /// Broadcasts that ended before the limit.
    case broadcasts
    /// Profiles of people who were last online before the limit and who have no contacts, linked devices or push
    /// endpoints.
    case profiles
}

extension SQLStorage {
    @discardableResult
    public func deleteOld(_ records: OldRecords, olderThan moment: Timestamp) async throws -> Int {
        try await deleteInSteps(records, olderThan: moment)
    }

    func deleteInSteps(_ records: OldRecords, olderThan moment: Timestamp) async throws -> Int {
        var total = 0
        while true {
            let count = try await write { try $0.deleteOld(records, olderThan: moment, limit: Self.deletedAtOnce) }
            total += count
            if count < Self.deletedAtOnce { return total }
            // Let commits of clients run before the next deletion.
            await Task.yield()
        }
    }
}

extension SQLStorage {
    /// Returns archives to delete because of their age or their project.
    public func archivesToExpire(
        availableBefore moment: Timestamp?, node: String, limit: Int
    ) async throws -> [ArchiveRecord] {
        try await read { try $0.archivesToExpire(availableBefore: moment, node: node, limit: limit) }
    }

    /// Returns archives that wait to be composed, to delete because of their age or their project.
    public func waitingArchives(
        stoppedBefore moment: Timestamp?, node: String, limit: Int
    ) async throws -> [ArchiveRecord] {
        try await read { try $0.waitingArchives(stoppedBefore: moment, node: node, limit: limit) }
    }

    /// Returns archives that have failed.
    public func failedArchives(before moment: Timestamp, node: String, limit: Int) async throws -> [ArchiveRecord] {
        try await read { try $0.failedArchives(before: moment, node: node, limit: limit) }
    }
}

extension SQLTransaction {
    func archivesToExpire(
        availableBefore moment: Timestamp?, node: String, limit: Int
    ) throws -> [ArchiveRecord] {
        try rows(
            """
            SELECT * FROM archive WHERE status = 'available' AND node = ?
                AND (updatedAt < ? OR project IN (SELECT apiKey FROM deletedProject))
            ORDER BY updatedAt, id LIMIT ?
            """, [node, moment?.milliseconds ?? Int64.min, limit]
        ).compactMap { try? ArchiveRecord(row: $0) }
    }

    func waitingArchives(
        stoppedBefore moment: Timestamp?, node: String, limit: Int
    ) throws -> [ArchiveRecord] {
        // What they wait for is not a column. Few archives have only stopped.
        let stopped = try rows(
            """
            SELECT * FROM archive WHERE status = 'stopped' AND node = ?
                AND (updatedAt < ? OR project IN (SELECT apiKey FROM deletedProject))
            ORDER BY updatedAt, id
            """, [node, moment?.milliseconds ?? Int64.min]
        ).compactMap { try? ArchiveRecord(row: $0) }
        return Array(stopped.lazy.filter(\.canBeGivenUp).prefix(limit))
    }

    func failedArchives(before moment: Timestamp, node: String, limit: Int) throws -> [ArchiveRecord] {
        try rows(
            """
            SELECT * FROM archive WHERE status = 'failed' AND node = ?
                AND (updatedAt < ? OR project IN (SELECT apiKey FROM deletedProject))
            ORDER BY updatedAt, id LIMIT ?
            """,
            [node, moment.milliseconds, limit]
        ).compactMap { try? ArchiveRecord(row: $0) }
    }

    /// Deletes at most `limit` records older than `moment`. The limit keeps each transaction short.
    ///
    /// - Returns: the number of deleted rows.
    func deleteOld(_ records: OldRecords, olderThan moment: Timestamp, limit: Int) throws -> Int {
        let (table, column): (String, String)
        switch records {
        case .reports: (table, column) = ("report", "createdAt")
        case .calls: (table, column) = ("callLog", "at")
        case .audit: (table, column) = ("audit", "at")
        case .pushEndpoints: (table, column) = ("pushEndpoint", "createdAt")
        case .bans: (table, column) = ("ban", "expiresAt")
        case .revokedTokens: (table, column) = ("revokedToken", "expiresAt")
        case .archives:
            return try deleteEnded("archive", in: "'expired'", before: moment, limit: limit)
        case .uploadedArchives: return try deleteUploaded(before: moment, limit: limit)
        case .broadcasts:
            return try deleteEnded("broadcast", in: "'stopped', 'failed'", before: moment, limit: limit)
        case .profiles: return try deleteUnusedProfiles(since: moment, limit: limit)
        }
        // Select rows by these columns, because some tables have no row number.
        let columns =
            switch records {
            case .calls: "owner, call"
            case .revokedTokens: "session, fingerprint"
            case .reports, .audit, .pushEndpoints, .profiles, .archives, .uploadedArchives, .broadcasts, .bans: "id"
            }
        let key = "(\(columns))"
        return try run(
            "DELETE FROM \(table) WHERE \(key) IN (SELECT \(columns) FROM \(table) WHERE \(column) < ? ORDER BY \(column) LIMIT ?)",
            [moment.milliseconds, limit])
    }

    /// Deletes at most `limit` profiles that were last used before `moment` and whose people have no contacts, linked
    /// devices or push endpoints. Such people start over when they return. Returns the number of deleted profiles.
    private func deleteUnusedProfiles(since moment: Timestamp, limit: Int) throws -> Int {
        try run(
            """
            DELETE FROM profile WHERE identity IN (
                SELECT identity FROM profile AS unused WHERE usedAt < ?
                    AND NOT EXISTS (SELECT 1 FROM contact WHERE owner = unused.identity)
                    AND NOT EXISTS (SELECT 1 FROM device WHERE person = unused.identity)
                    AND NOT EXISTS (SELECT 1 FROM pushEndpoint WHERE identity = unused.identity)
                ORDER BY usedAt LIMIT ?)
            """,
            [moment.milliseconds, limit])
    }

    /// Deletes at most `limit` rows of archives that are in the bucket since before `moment`, or whose project was deleted: no list has
    /// these.
    private func deleteUploaded(before moment: Timestamp, limit: Int) throws -> Int {
        try run(
            """
            DELETE FROM archive WHERE id IN (
                SELECT id FROM archive WHERE status = 'uploaded'
                    AND (updatedAt < ? OR project IN (SELECT apiKey FROM deletedProject))
                ORDER BY updatedAt LIMIT ?)
            """, [moment.milliseconds, limit])
    }

    /// Deletes at most `limit` rows of archives or broadcasts with one of these statuses that last changed before `moment`.
    private func deleteEnded(_ table: String, in statuses: String, before moment: Timestamp, limit: Int) throws -> Int {
        try run(
            """
            DELETE FROM \(table) WHERE id IN (
                SELECT id FROM \(table) WHERE status IN (\(statuses)) AND updatedAt < ? ORDER BY updatedAt LIMIT ?)
            """, [moment.milliseconds, limit])
    }
}
