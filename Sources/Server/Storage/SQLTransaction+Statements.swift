import Foundation
import Signaling
import Wire

/// The SQL statements of storage. Each runs in the caller's transaction.

extension SQLTransaction {
    func apply(_ change: Change, _ bounds: StorageBounds) throws {
        switch change {
        case .block(let owner, let blocked, let at):
            try block(owner: owner, blocked: blocked, at: at, limit: bounds.blocks)
        case .unblock(let owner, let blocked):
            try run("DELETE FROM block WHERE owner = ? AND blocked = ?", [owner.blob, blocked.blob])
        case .report(let report): try insert(report.withoutNUL)
        // The entry of the audit log is all that is stored.
        case .endedByCheck: break
        case .profile(let id, let person, let profile, let at):
            try setProfile(profile.withoutNUL, of: id, knownAs: person, at: at)
        case .linked(let device, let person): try link(device, to: person, bounds)
        case .unlinked(let device): try unlink(device)
        case .retired(let device): try retire(device)
        case .deleted(let person, _): try delete(person)
        case .keptInTouch(let first, let second, let names, let at):
            try join(first, second, names: names, at: at, limit: bounds.contacts)
        case .lostTouch(let first, let second): try separate(first, second)
        case .revoked(let revocation): try revoke(revocation)
        case .muted(let session, let isMuted, by: _, let at): try setMuted(isMuted, session, at: at)
        case .webhook(let event): try add(event, bounds)
        case .roomStored(let room): try store(room)
        case .roomForgotten(let room): try run("DELETE FROM room WHERE id = ?", [room.blob])
        case .archiveStored(let archive): try store(archive)
        case .broadcastStored(let broadcast): try store(broadcast)
        case .archiveForgotten(let archive): try run("DELETE FROM archive WHERE id = ?", [archive.blob])
        case .callPlaced(let call): try place(call.withoutNUL)
        case .callAccepted(let call, let at, people: _):
            try run("UPDATE openCall SET acceptedAt = ? WHERE call = ?", [at.milliseconds, call.blob])
        case .callOver(let call, people: _): try run("DELETE FROM openCall WHERE call = ?", [call.blob])
        case .callLogged(let record, let owner): try logCall(record.withoutNUL, of: owner, limit: bounds.calls)
        case .callSeen(let call, let owner):
            try run("UPDATE callLog SET isSeen = TRUE WHERE owner = ? AND call = ?", [owner.blob, call.blob])
        case .callsForgotten(let call, let owner): try forgetCalls(call, by: owner)
        }
        if let entry = change.summary.auditEntry { try audit(entry) }
    }

    private func block(owner: IdentityID, blocked: IdentityID, at: Timestamp, limit: Int) throws {
        let added = try run(
            "INSERT INTO block (owner, blocked, createdAt) VALUES (?, ?, ?) ON CONFLICT (owner, blocked) DO NOTHING",
            [owner.blob, blocked.blob, at.milliseconds])
        guard added > 0 else { return }
        // Delete all rows beyond the limit, not just one: the limit may have been lowered.
        try run(
            """
            DELETE FROM block WHERE id IN (
                SELECT id FROM block WHERE owner = ? ORDER BY id DESC LIMIT \(SQLText.noLimit) OFFSET ?)
            """,
            [owner.blob, max(0, limit)])
    }

    private func insert(_ report: Report) throws {
        let id = try insert(
            """
            INSERT INTO report (match, reporter, against, reason, createdAt, reporterAddress, againstAddress)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """,
            [
                report.match.blob, report.by.blob, report.against.blob, report.reason, report.createdAt.milliseconds,
                report.byAddress, report.againstAddress,
            ])
        for (position, line) in report.lines.enumerated() {
            try run(
                "INSERT INTO reportLine (report, position, author, text, at) VALUES (?, ?, ?, ?, ?)",
                [id, position, line.from.blob, line.text, line.at.milliseconds])
        }
        guard let sample = report.sample else { return }
        try run(
            "INSERT INTO reportSample (report, jpeg, at, verdict, warnings, blurs) VALUES (?, ?, ?, ?, ?, ?)",
            [
                id, Data(sample.jpeg), sample.at.milliseconds, sample.verdict?.rawValue, sample.warnings, sample.blurs,
            ])
    }

    /// Copies the blocks of a device to its person, except a block against this person.
    func mergeBlocks(of device: IdentityID, into person: IdentityID, limit: Int) throws {
        let rows = try rows(
            "SELECT blocked, createdAt FROM block WHERE owner = ? AND blocked <> ? ORDER BY id",
            [device.blob, person.blob])
        for row in rows {
            try block(owner: person, blocked: try row.id("blocked"), at: try row.time("createdAt"), limit: limit)
        }
    }

    func person(_ id: IdentityID, at now: Timestamp) throws -> PersonRecord {
        let blocked = try rows("SELECT blocked FROM block WHERE owner = ? ORDER BY id", [id.blob])
        var record = PersonRecord(blocked: try blocked.map { try $0.id("blocked") }, ban: try ban(of: id, at: now))
        record.isRetired = try resolve(id) == .retired
        try fill(&record, of: id)
        return record
    }

    func everything(of id: IdentityID, at now: Timestamp) throws -> PersonData {
        var held = PersonData()
        held.ban = try ban(of: id, at: now)
        held.blocks = try rows("SELECT blocked, createdAt FROM block WHERE owner = ? ORDER BY id", [id.blob])
            .map { PersonData.Block(person: try $0.id("blocked"), at: try $0.time("createdAt")) }
        held.reports = try rows(
            "SELECT match, reason, createdAt FROM report WHERE reporter = ? ORDER BY id", [id.blob]
        ).map {
            PersonData.KeptReport(
                match: try $0.id("match"), reason: try $0.value("reason"), at: try $0.time("createdAt"))
        }
        held.rooms = try roomsCreated(by: id)
        try fill(&held, of: id)
        return held
    }

    private func ban(of id: IdentityID, at now: Timestamp) throws -> Ban? {
        try rows(
            "SELECT * FROM ban WHERE identity = ? AND (expiresAt IS NULL OR expiresAt > ?)",
            [id.blob, now.milliseconds]
        ).first.map { try Ban(row: $0) }
    }
}

// MARK: - Bans

extension SQLTransaction {
    func bans(at now: Timestamp) throws -> [Ban] {
        try rows("SELECT * FROM ban WHERE expiresAt IS NULL OR expiresAt > ? ORDER BY id", [now.milliseconds]).map {
            try Ban(row: $0)
        }
    }

    func addBan(_ ban: Ban) throws {
        // Delete and insert instead of updating, so that the newest ban is the last in the list.
        try removeBan(ban.subject)
        let (identity, address): (Data?, String?) =
            switch ban.subject {
            case .identity(let id): (id.blob, nil)
            case .address(let text): (nil, text)
            }
        try run(
            "INSERT INTO ban (identity, address, reason, createdAt, expiresAt) VALUES (?, ?, ?, ?, ?)",
            [identity, address, ban.reason.withoutNUL, ban.createdAt.milliseconds, ban.expiresAt?.milliseconds])
    }

    @discardableResult
    func removeBan(_ subject: BanSubject) throws -> Bool {
        switch subject {
        case .identity(let id): try run("DELETE FROM ban WHERE identity = ?", [id.blob]) > 0
        case .address(let text): try run("DELETE FROM ban WHERE address = ?", [text]) > 0
        }
    }
}

extension Ban {
    fileprivate init(row: SQLRow) throws {
        let address: String? = try row.optional("address")
        let expiresAt: Int64? = try row.optional("expiresAt")
        self.init(
            subject: try address.map { .address($0) } ?? .identity(row.id("identity")),
            reason: try row.value("reason"),
            createdAt: try row.time("createdAt"),
            expiresAt: expiresAt.map { Timestamp(milliseconds: $0) })
    }
}

// MARK: - Reports

extension SQLTransaction {
    func reports(includingClosed: Bool, limit: Int) throws -> [StoredReport] {
        let filter = includingClosed ? "" : "WHERE closedAt IS NULL"
        let listed = "FROM report \(filter) ORDER BY createdAt DESC, id DESC LIMIT ?"
        // Replace a negative limit with 0, because SQLite treats it as unlimited.
        let limit = max(0, limit)
        // One statement reads the lines of all reports, and one their samples.
        var lines: [Int64: [ChatLine]] = [:]
        for row in try rows(
            """
            SELECT report, author, text, at FROM reportLine WHERE report IN (SELECT id \(listed))
            ORDER BY report, position
            """, [limit])
        {
            let id: Int64 = try row.value("report")
            lines[id, default: []].append(try chatLine(row))
        }
        var samples: [Int64: ReportedSample] = [:]
        for row in try rows(
            """
            SELECT report, at, verdict, warnings, blurs FROM reportSample WHERE report IN (SELECT id \(listed))
            """, [limit])
        {
            let id: Int64 = try row.value("report")
            samples[id] = try sample(row, jpeg: [])
        }
        return try rows("SELECT * \(listed)", [limit]).map { row in
            let id: Int64 = try row.value("id")
            return try storedReport(row, lines[id] ?? [], samples[id])
        }
    }

    func openReportCount() throws -> Int {
        try rows("SELECT count(*) AS number FROM report WHERE closedAt IS NULL", []).first?.value("number") ?? 0
    }

    func report(id: Int64) throws -> StoredReport? {
        guard let row = try rows("SELECT * FROM report WHERE id = ?", [id]).first else { return nil }
        let lines = try rows("SELECT author, text, at FROM reportLine WHERE report = ? ORDER BY position", [id])
            .map { try chatLine($0) }
        let sample = try rows("SELECT * FROM reportSample WHERE report = ?", [id]).first.map { row in
            let jpeg: Data = try row.value("jpeg")
            return try self.sample(row, jpeg: Array(jpeg))
        }
        return try storedReport(row, lines, sample)
    }

    func closeReport(id: Int64, at now: Timestamp) throws -> Bool {
        try run("UPDATE report SET closedAt = ? WHERE id = ? AND closedAt IS NULL", [now.milliseconds, id]) > 0
    }

    private func chatLine(_ row: SQLRow) throws -> ChatLine {
        ChatLine(from: try row.id("author"), text: try row.value("text"), at: try row.time("at"))
    }

    private func sample(_ row: SQLRow, jpeg: [UInt8]) throws -> ReportedSample {
        let verdict: String? = try row.optional("verdict")
        let (warnings, blurs): (Int64, Int64) = (try row.value("warnings"), try row.value("blurs"))
        return ReportedSample(
            jpeg: jpeg, at: try row.time("at"), verdict: verdict.flatMap(SampleVerdict.init),
            warnings: Int(clamping: warnings), blurs: Int(clamping: blurs))
    }

    private func storedReport(_ row: SQLRow, _ lines: [ChatLine], _ sample: ReportedSample?) throws -> StoredReport {
        var report = Report(
            match: try row.id("match"), by: try row.id("reporter"), against: try row.id("against"),
            reason: try row.value("reason"), lines: lines, createdAt: try row.time("createdAt"),
            byAddress: try row.value("reporterAddress"), againstAddress: try row.value("againstAddress"))
        report.sample = sample
        return StoredReport(id: try row.value("id"), report: report, closedAt: try row.optionalTime("closedAt"))
    }
}
