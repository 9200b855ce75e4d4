import Cluster
import Foundation
import Signaling
import Wire

/// SQL statements for the outbox of webhooks. Each runs in the caller's transaction.
extension SQLTransaction {
    /// Adds an event to the outbox. An event that reports the creation of something is refused and counted if the outbox
    /// has no room for it. The event for the end of something is always added if the event for its creation was, because
    /// the space for it was reserved then.
    func add(_ event: WebhookEvent, _ bounds: StorageBounds) throws {
        let body = WebhookBody(event)
        guard try body.isEnd || hasRoom(for: event.project, bounds) else {
            try run(
                """
                INSERT INTO webhookBacklog (project, waiting, refused) VALUES (?, 0, 1)
                ON CONFLICT (project) DO UPDATE SET refused = webhookBacklog.refused + 1
                """, [event.project])
            return
        }
        guard let kind = body.kind else { return try insert(body.bytes, event.project, event.session, at: event.at) }
        // Delete, instead of replacing the row below, so that the triggers count the bytes.
        let ended = try run(
            "DELETE FROM webhookOpen WHERE session = ? AND kind = ? AND subject = ?",
            [event.session.text, kind.rawValue, body.subject])
        if body.isEnd {
            guard ended > 0 else { return }
        } else {
            try run(
                "INSERT INTO webhookOpen (project, session, kind, subject, detail) VALUES (?, ?, ?, ?, ?)",
                [event.project, event.session.text, kind.rawValue, body.subject, Data(body.detail)])
        }
        try insert(body.bytes, event.project, event.session, at: event.at)
    }

    /// Returns whether a project may add another beginning. When the outbox as a whole is full, a project whose waiting
    /// events take less than an equal share of it still may, so that some projects cannot use up what the others need.
    ///
    /// The space for ends counts only for all projects together. A project whose webhook accepts everything may have as
    /// many connections and streams as the server allows.
    private func hasRoom(for project: String, _ bounds: StorageBounds) throws -> Bool {
        let row = try rows("SELECT waiting, bytes FROM webhookBacklog WHERE project = ?", [project]).first
        let (waiting, bytes): (Int, Int) = (try row?.value("waiting") ?? 0, try row?.value("bytes") ?? 0)
        guard waiting < bounds.webhooks, bytes < bounds.webhookBytes else { return false }
        guard bytes >= bounds.webhookBytesOfAll / StoredProject.maxCount else { return true }
        let total: Int? = try rows(
            "SELECT CAST(SUM(bytes + reserved) AS BIGINT) AS total FROM webhookBacklog", []
        ).first?.optional("total")
        return (total ?? 0) < bounds.webhookBytesOfAll
    }

    private func insert(_ body: [UInt8], _ project: String, _ session: SessionID, at: Timestamp) throws {
        try run(
            "INSERT INTO webhookEvent (delivery, project, session, at, body) VALUES (?, ?, ?, ?, ?)",
            [Data.random(16), project, session.text, at.milliseconds, Data(body)])
    }

    func webhooks(of project: String, after id: Int64, limit: Int) throws -> [WebhookEntry] {
        try rows(
            "SELECT id, project, session, at FROM webhookEvent WHERE project = ? AND id > ? ORDER BY id LIMIT ?",
            [project, id, max(0, limit)]
        ).map { try WebhookEntry(row: $0) }
    }

    func webhook(following entry: WebhookEntry) throws -> WebhookEntry? {
        try rows(
            "SELECT id, project, session, at FROM webhookEvent WHERE session = ? AND id > ? ORDER BY id LIMIT 1",
            [entry.session.text, entry.id]
        ).first.map { try WebhookEntry(row: $0) }
    }

    func webhookMessage(_ id: Int64) throws -> WebhookMessage? {
        try rows("SELECT delivery, body FROM webhookEvent WHERE id = ?", [id]).first.map { row in
            let (delivery, body): (Data, Data) = (try row.value("delivery"), try row.value("body"))
            return WebhookMessage(delivery: Array(delivery), body: Array(body))
        }
    }

    /// Removes up to `limit` rows of each table that belong to a project, unless the project has a webhook. Returns false
    /// if there may be more of them.
    func removeWebhooks(of project: String, limit: Int) throws -> Bool {
        // The webhook may have been set since the caller looked.
        guard try webhookTarget(of: project) == nil else { return true }
        var isComplete = true
        for table in ["webhookEvent", "webhookOpen"] {
            let removed = try run(
                "DELETE FROM \(table) WHERE id IN (SELECT id FROM \(table) WHERE project = ? LIMIT ?)",
                [project, limit])
            if removed >= limit { isComplete = false }
        }
        if isComplete { try run("DELETE FROM webhookBacklog WHERE project = ?", [project]) }
        return isComplete
    }

    /// Removes up to `limit` events of a project that happened before a time. Returns how many were removed.
    func removeWebhooks(of project: String, before time: Timestamp, limit: Int) throws -> Int {
        try run(
            """
            DELETE FROM webhookEvent WHERE id IN (
                SELECT id FROM webhookEvent WHERE project = ? AND at < ? ORDER BY at LIMIT ?)
            """, [project, time.milliseconds, limit])
    }

    func webhookBacklogs() throws -> [String: WebhookBacklog] {
        var found: [String: WebhookBacklog] = [:]
        for row in try rows("SELECT project, waiting, refused FROM webhookBacklog", []) {
            found[try row.value("project")] = WebhookBacklog(
                waiting: try row.value("waiting"), refused: try row.value("refused"))
        }
        return found
    }

    /// Adds the ends of up to `limit` sessions, connections or streams (`kind`) that were reported as created and not
    /// yet as destroyed, in the order of their creation.
    ///
    /// - Returns: the projects of the added events, one for each event.
    func endReported(_ kind: WebhookBody.Kind, at now: Timestamp, limit: Int) throws -> [String] {
        try rows(
            "SELECT id, project, session, detail FROM webhookOpen WHERE kind = ? ORDER BY id LIMIT ?",
            [kind.rawValue, limit]
        ).map { try end($0, kind, at: now).project }
    }

    /// Does the same for streams or connections (`kind`) of one life of a node: ids begin with its tag. With the connections, adds the
    /// ends of sessions in which nobody else is connected.
    ///
    /// - Returns: the projects of the added events, and whether there may be more events.
    func endReported(
        _ kind: WebhookBody.Kind, of life: NodeTag, at now: Timestamp, limit: Int
    ) throws -> (projects: [String], isComplete: Bool) {
        let ended = try rows(
            "SELECT id, project, session, detail FROM webhookOpen WHERE kind = ? AND subject LIKE ? ORDER BY id LIMIT ?",
            [kind.rawValue, "\(ConnectionID(high: life.rawValue << 24, low: 0).description.prefix(10))%", limit]
        ).map { try end($0, kind, at: now) }
        var projects = ended.map(\.project)
        for session in kind == .connection ? Set(ended.map(\.session)).sorted(by: { $0.text < $1.text }) : [] {
            projects += try rows(
                """
                SELECT id, project, session, detail FROM webhookOpen AS open WHERE kind = ? AND session = ?
                    AND NOT EXISTS (SELECT 1 FROM webhookOpen WHERE session = open.session AND kind <> open.kind)
                """, [WebhookBody.Kind.session.rawValue, session.text]
            ).map { try end($0, .session, at: now).project }
        }
        return (projects, ended.count < limit)
    }

    private func end(
        _ row: SQLRow, _ kind: WebhookBody.Kind, at now: Timestamp
    ) throws -> (project: String, session: SessionID) {
        let (id, project, session): (Int64, String, SessionID) = (
            try row.value("id"), try row.value("project"), try row.session("session")
        )
        let detail: Data = try row.value("detail")
        let body = WebhookBody(
            endOf: kind, Array(detail), project: project, session: session, at: now, .networkDisconnected)
        try run("DELETE FROM webhookOpen WHERE id = ?", [id])
        try insert(body.bytes, project, session, at: now)
        return (project, session)
    }
}

extension WebhookEntry {
    fileprivate init(row: SQLRow) throws {
        self.init(
            id: try row.value("id"), project: try row.value("project"), session: try row.session("session"),
            at: try row.time("at"))
    }
}

extension SQLStorage {
    /// Maximum number of rows per table that one transaction changes when a project is removed or the server starts.
    private static var webhooksAtOnce: Int { 500 }

    public func webhooks(of project: String, after id: Int64, limit: Int) async throws -> [WebhookEntry] {
        try await read { try $0.webhooks(of: project, after: id, limit: limit) }
    }

    public func webhook(following entry: WebhookEntry) async throws -> WebhookEntry? {
        try await read { try $0.webhook(following: entry) }
    }

    public func webhookMessage(_ id: Int64) async throws -> WebhookMessage? {
        try await read { try $0.webhookMessage(id) }
    }

    public func removeWebhook(_ id: Int64) async throws { try await writer.commit([.removeWebhook(id)]) }

    public func removeWebhooks(of project: String) async throws {
        while try await !write({ try $0.removeWebhooks(of: project, limit: Self.webhooksAtOnce) }) {
            // Let commits of clients run before the next deletion.
            await Task.yield()
        }
    }

    public func removeWebhooks(of project: String, before time: Timestamp) async throws -> Int {
        var total = 0
        while true {
            let removed = try await write {
                try $0.removeWebhooks(of: project, before: time, limit: Self.webhooksAtOnce)
            }
            total += removed
            guard removed == Self.webhooksAtOnce else { return total }
            await Task.yield()
        }
    }

    public func webhookBacklogs() async throws -> [String: WebhookBacklog] {
        try await read { try $0.webhookBacklogs() }
    }

    @discardableResult
    public func endReportedSessions(at now: Timestamp) async throws -> Int {
        var total = 0
        for kind in [WebhookBody.Kind.stream, .connection, .session] {
            while true {
                let ended = try await write { try $0.endReported(kind, at: now, limit: Self.webhooksAtOnce) }
                webhookSignal.announce(Set(ended))
                total += ended.count
                if ended.count < Self.webhooksAtOnce { break }
            }
        }
        return total
    }

    @discardableResult
    public func endReportedSessions(of life: NodeTag, at now: Timestamp) async throws -> Int {
        var total = 0
        for kind in [WebhookBody.Kind.stream, .connection] {
            while true {
                let (projects, isComplete) = try await write {
                    try $0.endReported(kind, of: life, at: now, limit: Self.webhooksAtOnce)
                }
                webhookSignal.announce(Set(projects))
                total += projects.count
                if isComplete { break }
            }
        }
        return total
    }
}
