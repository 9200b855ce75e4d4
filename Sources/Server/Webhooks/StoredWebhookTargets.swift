import GRDB

/// The webhooks in the table `project`.
///
/// A webhook that cannot be used is treated as missing: an older version may have accepted it, or the database was
/// edited by hand.
struct StoredWebhookTargets: WebhookTargets {
    let storage: SQLiteStorage

    func webhooks() async throws -> [String: WebhookTarget] {
        try await storage.read { db in
            guard try db.tableExists("project") else { return [:] }
            let rows = try db.rows(
                "SELECT apiKey, webhookURL, webhookSecret FROM project WHERE webhookURL IS NOT NULL", [])
            var found: [String: WebhookTarget] = [:]
            for row in rows { found[try row.value("apiKey")] = try Self.target(row) }
            return found
        }
    }

    func webhook(of project: String) async throws -> WebhookTarget? {
        try await storage.read { db in
            guard try db.tableExists("project") else { return nil }
            return try db.rows(
                """
                SELECT webhookURL, webhookSecret FROM project
                WHERE apiKey = ? AND webhookURL IS NOT NULL AND webhookSecret IS NOT NULL
                """, [project]
            ).first.flatMap { try Self.target($0) }
        }
    }

    private static func target(_ row: Row) throws -> WebhookTarget? {
        let secret: String? = try row.optional("webhookSecret")
        return try? WebhookTarget(url: try row.value("webhookURL"), secret: secret ?? "")
    }
}
