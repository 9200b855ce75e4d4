import Foundation
import GRDB
import Signaling
import Wire

/// SQL statements for projects. Each runs in the caller's transaction.
extension Database {
    /// Returns all stored projects, oldest first.
    func projects() throws -> [StoredProject] {
        try rows("SELECT * FROM project ORDER BY createdAt, apiKey", []).map { try StoredProject(row: $0) }
    }

    func project(_ apiKey: String) throws -> StoredProject? {
        try rows("SELECT * FROM project WHERE apiKey = ?", [apiKey]).first.map { try StoredProject(row: $0) }
    }

    func store(_ project: StoredProject) throws {
        try run(
            """
            INSERT OR REPLACE INTO project
                (apiKey, secret, previousSecret, previousUntil, name, createdAt, applicationID, publicKey, webhookURL,
                webhookSecret, maxConnections)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                project.apiKey, project.secret?.revealed, project.previousSecret?.revealed,
                project.previousUntil?.milliseconds, project.name.withoutNUL, project.createdAt.milliseconds,
                project.applicationID, project.publicKey, project.webhookURL, project.webhookSecret?.revealed,
                project.maxConnections,
            ])
    }
}

extension StoredProject {
    fileprivate init(row: Row) throws {
        func secret(_ column: String) throws -> SecretText? {
            (try row.optional(column) as String?).map { SecretText($0) }
        }
        self.init(
            apiKey: try row.value("apiKey"), secret: try secret("secret"), name: try row.value("name"),
            createdAt: try row.time("createdAt"))
        (previousSecret, previousUntil) = (try secret("previousSecret"), try row.optionalTime("previousUntil"))
        (applicationID, publicKey) = (try row.optional("applicationID"), try row.optional("publicKey"))
        (webhookURL, webhookSecret) = (try row.optional("webhookURL"), try secret("webhookSecret"))
        maxConnections = try row.optional("maxConnections")
    }
}
