/// The webhooks in the table `project`.
struct StoredWebhookTargets<Store: SQLStorage>: WebhookTargets {
    let storage: Store

    func webhooks() async throws -> [String: WebhookTarget] { try await storage.read { try $0.webhookTargets() } }

    func webhook(of project: String) async throws -> WebhookTarget? {
        try await storage.read { try $0.webhookTarget(of: project) }
    }
}

extension SQLTransaction {
    /// Returns the webhooks of all projects that have one, keyed by API key. Omits the rows that cannot be read.
    fileprivate func webhookTargets() throws -> [String: WebhookTarget] {
        var found: [String: WebhookTarget] = [:]
        for row in try rows("SELECT apiKey, webhookURL, webhookSecret FROM project WHERE webhookURL IS NOT NULL", []) {
            guard let key: String = try? row.value("apiKey") else { continue }
            found[key] = WebhookTarget(row: row)
        }
        return found
    }

    /// Returns the webhook of a project; nil if it has none.
    func webhookTarget(of project: String) throws -> WebhookTarget? {
        try rows("SELECT webhookURL, webhookSecret FROM project WHERE apiKey = ?", [project]).first
            .flatMap { WebhookTarget(row: $0) }
    }
}

extension WebhookTarget {
    /// Creates the webhook of a project in storage. Returns nil if the project has none, or if the URL or the secret
    /// cannot be used: an older version may have accepted it, or the database was edited by hand. Such a project has no
    /// webhook anywhere: its sessions report nothing, nothing is sent, and its events are removed.
    init?(storedURL url: String?, secret: String?) {
        guard let url, let secret, let target = try? WebhookTarget(url: url, secret: secret) else { return nil }
        self = target
    }

    fileprivate init?(row: SQLRow) {
        self.init(storedURL: try? row.optional("webhookURL"), secret: try? row.optional("webhookSecret"))
    }
}
