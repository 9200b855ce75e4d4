import Foundation
import Signaling
import Wire

/// SQL statements for projects. Each runs in the caller's transaction.
extension SQLTransaction {
    func projects() throws -> StoredProjects {
        var found = StoredProjects()
        for row in try rows("SELECT * FROM project ORDER BY createdAt, apiKey", []) {
            do {
                found.projects.append(try StoredProject(row: row))
            } catch let error as StorageError {
                found.unreadable.append(.init(apiKey: try? row.value("apiKey"), problem: error.message))
            }
        }
        return found
    }

    func projectCount() throws -> Int {
        try rows("SELECT count(*) AS number FROM project", []).first?.value("number") ?? 0
    }

    /// Returns whether no project has or had this API key.
    func isUnusedKey(_ apiKey: String) throws -> Bool {
        try rows(
            "SELECT 1 FROM project WHERE apiKey = ? UNION ALL SELECT 1 FROM deletedProject WHERE apiKey = ?",
            [apiKey, apiKey]
        ).isEmpty
    }

    /// Throws if another project has the same application. Requests may name only the application, which must then select
    /// the project.
    func requireOwnApplication(_ project: StoredProject) throws {
        guard let id = project.applicationID else { return }
        let others = try rows(
            "SELECT 1 FROM project WHERE applicationID = ? AND apiKey <> ?", [id, project.apiKey])
        guard others.isEmpty else {
            throw StorageError(
                .taken, "Another project has this application ID. Remove it there first, or use another application.")
        }
    }

    /// Deletes a project and records its API key as used. Returns whether there was such a project.
    func deleteProject(_ apiKey: String) throws -> Bool {
        guard try run("DELETE FROM project WHERE apiKey = ?", [apiKey]) > 0 else { return false }
        try run("INSERT INTO deletedProject (apiKey) VALUES (?) ON CONFLICT DO NOTHING", [apiKey])
        return true
    }

    func project(_ apiKey: String) throws -> StoredProject? {
        try rows("SELECT * FROM project WHERE apiKey = ?", [apiKey]).first.map { try StoredProject(row: $0) }
    }

    func store(_ project: StoredProject) throws {
        try upsert(
            "project", key: "apiKey",
            [
                "apiKey": project.apiKey, "secret": project.secret?.revealed,
                "previousSecret": project.previousSecret?.revealed,
                "previousUntil": project.previousUntil?.milliseconds, "name": project.name.withoutNUL,
                "createdAt": project.createdAt.milliseconds, "applicationID": project.applicationID,
                "publicKey": project.publicKey, "webhookURL": project.webhookURL,
                "webhookSecret": project.webhookSecret?.revealed, "maxConnections": project.maxConnections,
            ])
    }
}

extension StoredProject {
    fileprivate init(row: SQLRow) throws {
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
        guard isUsable else { throw SQLRow.unreadable("apiKey, secret or previousSecret") }
    }
}
