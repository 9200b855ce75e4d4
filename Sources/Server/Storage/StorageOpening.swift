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
