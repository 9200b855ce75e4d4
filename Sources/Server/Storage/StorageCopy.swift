import Foundation
import Signaling
import Wire

/// Copies all data from one kind of storage to another, for `confab storage copy`.
public struct StorageCopy: Sendable {
    /// Where storage is.
    public enum Place: Sendable {
        /// SQLite in a data directory.
        case directory(String)
        case postgres(SecretText)

        /// A URL (`postgresql://…`) or a path. Returns nil for a URL that cannot be used.
        public init?(_ text: String) {
            guard PostgresURL.isURL(text) else {
                self = .directory(text)
                return
            }
            guard PostgresURL.isValid(text) else { return nil }
            self = .postgres(SecretText(text))
        }
    }

    /// The state of the copy of one table.
    public struct Progress: Sendable, Equatable {
        public var table: String
        /// The number of rows that were copied.
        public var copied: Int
        public var total: Int
    }

    private let source: any SQLStorage
    private let target: any SQLStorage
    private let places: (source: Place, target: Place)
    /// The locks of the data directories, which keep servers out. PostgreSQL's lock is the connection's.
    private let locks: [DirectoryLock]

    /// Opens both. Blocks.
    ///
    /// - Throws: `StorageError` or `DataDirectoryError`, also if a server uses one of them.
    public init(from source: Place, to target: Place) throws {
        var locks: [DirectoryLock] = []
        places = (source, target)
        self.source = try Self.open(source, mustExist: true, &locks)
        self.target = try Self.open(target, mustExist: false, &locks)
        self.locks = locks
    }

    private static func open(
        _ place: Place, mustExist: Bool, _ locks: inout [DirectoryLock]
    ) throws -> any SQLStorage {
        switch place {
        case .directory(let path):
            guard !mustExist || StorageFiles.exists(path + "/" + SQLiteStorage.fileName) else {
                throw StorageError(.notAccessible, "\(path) contains no database (\(SQLiteStorage.fileName)).")
            }
            locks.append(try DirectoryLock(directory: path))
            return try SQLiteStorage(directory: path)
        case .postgres(let url): return try PostgresStorage(url: url, role: .copy)
        }
    }

    /// Copies all rows, and compares their numbers.
    ///
    /// - Parameter progress: called after each step of at most ``rowsAtOnce`` rows.
    /// - Returns: the final state of each table.
    /// - Throws: `StorageError`: `.targetExists` if the target has any data, `.rejected` if the target does not accept a row, or
    ///   if the numbers of rows differ, `.notAccessible` if the identities of the target belong to another server key. After an
    ///   error, the target contains a part of the data.
    public func run(progress: @Sendable (Progress) -> Void) async throws -> [Progress] {
        let (key, other) = (
            try await serverKey(of: places.source, source), try await serverKey(of: places.target, target)
        )
        if let key, let other, key != other { throw StorageError.otherServerKey }
        let tables = try await Self.run(source, target, progress)
        if let key, let target = target as? PostgresStorage { try await target.setServerKey(key) }
        try mark()
        return tables
    }

    private func serverKey(of place: Place, _ storage: any SQLStorage) async throws -> Data? {
        switch place {
        case .directory(let path): try ProjectFile.keyFingerprint(in: path)
        case .postgres: try await (storage as? PostgresStorage)?.serverKey()
        }
    }

    /// Makes commands without `storage.url` refuse to use the source's data directory after a move to PostgreSQL, and accept the
    /// target's after a move back.
    private func mark() throws {
        if case .directory(let path) = places.target { MovedData.unmark(path) }
        if case .directory(let path) = places.source, case .postgres = places.target { try MovedData.mark(path) }
    }

    /// What the operator still has to do, as sentences.
    public func notes() throws -> [String] {
        guard case .directory(let path) = places.target, try ProjectFile.keyFingerprint(in: path) == nil else {
            return []
        }
        return [
            "\(path) has no \(ServerKeyFile.fileName). Copy \(ServerKeyFile.fileName), \(ProjectFile.fileName) and push.pem from the "
                + "earlier data directory before the server starts, so that identities stay valid."
        ]
    }

    public func close() async throws {
        try await source.close()
        try await target.close()
    }

    /// The maximum number of rows in one transaction.
    public static let rowsAtOnce = 1000

    // MARK: Copying

    static func run(
        _ source: some SQLStorage, _ target: some SQLStorage, _ progress: @Sendable (Progress) -> Void
    ) async throws -> [Progress] {
        for table in StoredTable.all where try await target.read({ try $0.count(of: table) }) > 0 {
            throw StorageError(
                .targetExists, "The target already contains data (table \(table.name)). Use an empty database.")
        }
        var done: [Progress] = []
        for table in StoredTable.all { done.append(try await copy(table, source, target, progress)) }
        return done
    }

    private static func copy(
        _ table: StoredTable, _ source: some SQLStorage, _ target: some SQLStorage,
        _ progress: @Sendable (Progress) -> Void
    ) async throws -> Progress {
        var state = Progress(table: table.name, copied: 0, total: try await source.read { try $0.count(of: table) })
        var last: SQLRow?
        while true {
            let after = last
            let rows = try await source.read { try $0.rows(of: table, after: after, limit: rowsAtOnce) }
            guard let end = rows.last else { break }
            try await target.write { transaction in for row in rows { try transaction.insert(row, into: table) } }
            last = end
            state.copied += rows.count
            progress(state)
        }
        if table.numbers != .none {
            let number = try await source.read { try $0.lastNumber(of: table) }
            try await target.write { try $0.setLastNumber(number, of: table) }
        }
        let counts = [
            try await source.read { try $0.count(of: table) }, try await target.read { try $0.count(of: table) },
        ]
        guard counts.allSatisfy({ $0 == state.copied }) else {
            throw StorageError(
                .rejected,
                "The numbers of rows in the table \(table.name) differ: \(counts[0]) in the source, \(counts[1]) in the "
                    + "target. Did anything change the source? Copy again into an empty database.")
        }
        state.total = state.copied
        return state
    }
}

extension SQLTransaction {
    fileprivate func count(of table: StoredTable) throws -> Int {
        try rows("SELECT count(*) AS number FROM \(table.name)", []).first?.value("number") ?? 0
    }

    /// Returns the rows with the next keys.
    fileprivate func rows(of table: StoredTable, after row: SQLRow?, limit: Int) throws -> [SQLRow] {
        let key = table.key.joined(separator: ", ")
        guard let row else {
            return try rows("SELECT * FROM \(table.name) ORDER BY \(key) LIMIT ?", [limit])
        }
        let marks = table.key.map { _ in "?" }.joined(separator: ", ")
        let last: [(any SQLArgument)?] = try table.key.map { try row.anyValue($0) }
        return try rows(
            "SELECT * FROM \(table.name) WHERE (\(key)) > (\(marks)) ORDER BY \(key) LIMIT ?", last + [limit])
    }

    fileprivate func insert(_ row: SQLRow, into table: StoredTable) throws {
        try upsert(table.name, key: table.key.joined(separator: ", "), columns: row.columns, row.values)
    }
}
