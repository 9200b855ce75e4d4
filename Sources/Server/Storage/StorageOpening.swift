import Cluster
import Foundation
import Signaling

extension ConfabConfiguration {
    /// Opens the storage of this configuration for a command, which may run beside the server. Blocks.
    ///
    /// - Throws: ``StorageError`` if it cannot be opened.
    public func openStorage() throws -> any Server.Storage { try openStorage(.command) }

    /// Opens the storage of this configuration for the server. While PostgreSQL cannot be reached, waits for at most
    /// `storage.busyTimeout`: when a machine starts, PostgreSQL may start after the server. Blocks.
    ///
    /// - Parameters:
    ///   - serverKey: the key that makes the identities in the database.
    ///   - node: the life of this server as a node of a cluster; nil if it is alone.
    ///   - log: called once, before waiting.
    func openServerStorage(
        serverKey: SecretText, node: NodeTag?, log: (String) -> Void
    ) throws -> any SQLStorage {
        let end = ContinuousClock.now + storage.busyTimeout
        var isLogged = false
        while true {
            do {
                let opened = try openStorage(
                    node.map { .node($0) } ?? .server, serverKey: ServerKeyFile.fingerprint(of: serverKey))
                if storage.url != nil { try MovedData.mark(dataDirectory) }
                return opened
            } catch let error as StorageError where error.code == .unreachable && ContinuousClock.now < end {
                if !isLogged {
                    log(
                        "\(error.message) The server waits for it, for at most \(storage.busyTimeout.components.seconds) s."
                    )
                }
                isLogged = true
                usleep(200_000)
            }
        }
    }

    /// Opens the storage of this configuration: PostgreSQL if it has a URL, and otherwise SQLite in the data directory. Blocks.
    private func openStorage(
        _ role: PostgresStorage.Role, serverKey: Data? = nil
    ) throws -> any SQLStorage {
        let bounds = StorageBounds(
            blocks: rules.maxBlocks, contacts: rules.maxContacts, webhooks: webhooks.queue,
            connections: rules.connectionsPerProject)
        guard let url = storage.url else {
            try MovedData.requireAbsence(in: dataDirectory)
            return try SQLiteStorage(directory: dataDirectory, bounds: bounds)
        }
        return try PostgresStorage(
            url: url, bounds: bounds, role: role, serverKey: serverKey, lockTimeout: storage.lockTimeout)
    }
}

/// The URL of a PostgreSQL database, as far as the configuration checks it. libpq parses it.
enum PostgresURL {
    /// Returns whether the text is a URL in which no part of a password can be taken for a host or a port, which libpq quotes in
    /// its errors. A password contains no `@` or `/`, and a port needs a user before it: in `confab:text/name`, the text could be
    /// either.
    static func isValid(_ text: String) -> Bool {
        guard isURL(text), !text.contains(where: \.isWhitespace), let start = text.range(of: "://") else {
            return false
        }
        let authority = text[start.upperBound...].prefix { $0 != "/" && $0 != "?" }
        let signs = text.count { $0 == "@" }
        return signs == 0 ? !authority.contains(":") : signs == 1 && authority.contains("@")
    }

    /// Returns whether the text is a URL of PostgreSQL, and not a path.
    static func isURL(_ text: String) -> Bool { text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") }
}
