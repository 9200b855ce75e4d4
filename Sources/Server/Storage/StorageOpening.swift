import Foundation
import Signaling

extension ConfabConfiguration {
    /// Opens the storage of this configuration for a command, which may run beside the server. Blocks.
    ///
    /// - Throws: ``StorageError`` if it cannot be opened.
    public func openStorage() throws -> any Server.Storage { try openStorage(.command) }

    /// Opens the storage of this configuration: PostgreSQL if it has a URL, and otherwise SQLite in the data directory. Blocks.
    func openStorage(_ role: PostgresStorage.Role) throws -> any SQLStorage {
        let bounds = StorageBounds(
            blocks: rules.maxBlocks, contacts: rules.maxContacts, webhooks: webhooks.queue,
            connections: rules.connectionsPerProject)
        guard let url = storage.url else { return try SQLiteStorage(directory: dataDirectory, bounds: bounds) }
        return try PostgresStorage(url: url, bounds: bounds, role: role, lockTimeout: storage.lockTimeout)
    }
}

/// The URL of a PostgreSQL database, as far as the configuration checks it. libpq parses it.
enum PostgresURL {
    /// Returns whether the text is a URL whose password contains no `@` or `/`. libpq would take what follows them for a host or
    /// a port, and quote it in an error.
    static func isValid(_ text: String) -> Bool {
        guard isURL(text), !text.contains(where: \.isWhitespace), let start = text.range(of: "://") else {
            return false
        }
        let authority = text[start.upperBound...].prefix { $0 != "/" && $0 != "?" }
        let signs = text.count { $0 == "@" }
        return signs == 0 || signs == 1 && authority.contains("@")
    }

    /// Returns whether the text is a URL of PostgreSQL, and not a path.
    static func isURL(_ text: String) -> Bool { text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") }
}
