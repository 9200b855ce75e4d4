import GRDB

/// An error while reading or writing storage.
///
/// ```swift
/// do { try await storage.backup(to: path) }
/// catch let error as StorageError where error.code == .targetExists { … }
/// ```
public struct StorageError: Error, CustomStringConvertible {
    /// An error code. Later versions may add codes, so a `switch` needs a `default`.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String

        private init(_ description: String) { self.description = description }

        /// Another process locked the file for longer than the busy timeout. Retrying can help.
        public static let busy = Code("busy")
        /// The storage was closed.
        public static let closed = Code("closed")
        /// The file is damaged or is not a database.
        public static let corrupt = Code("corrupt")
        /// No space is left on the device, or a quota is used up.
        public static let diskFull = Code("diskFull")
        /// Reading or writing the disk failed.
        public static let inputOutput = Code("inputOutput")
        /// A newer version of this program wrote the file.
        public static let newerSchema = Code("newerSchema")
        /// The file or its directory cannot be created, opened or written.
        public static let notAccessible = Code("notAccessible")
        /// Too many commits are waiting for the disk. Retrying can help.
        public static let overloaded = Code("overloaded")
        /// This change cannot be stored; others can.
        public static let rejected = Code("rejected")
        /// Another record has a value that must be unique.
        public static let taken = Code("taken")
        /// The target of a backup already exists.
        public static let targetExists = Code("targetExists")
        /// There are already as many items of this kind, such as projects, as are allowed.
        public static let tooMany = Code("tooMany")
        /// PostgreSQL cannot be reached. Retrying can help.
        public static let unreachable = Code("unreachable")
        /// Another server has taken over the database. This one may no longer write to it, and has to stop.
        public static let fenced = Code("fenced")
        /// The connection to PostgreSQL failed during a commit, and PostgreSQL did not come back in time to say whether the change
        /// was stored. It is either stored completely or not at all. The server treats it like a change that was not stored:
        /// the people concerned are disconnected, and load what is stored when they return. Do not repeat it without reading.
        public static let unsettled = Code("unsettled")
        /// This kind of storage cannot do this.
        public static let unsupported = Code("unsupported")
        /// Any other error. The cause has details.
        public static let other = Code("other")
    }

    public var code: Code
    /// A sentence for the operator, with advice. It contains no identities and no chat text.
    public var message: String
    public var cause: (any Error)?

    public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    public var description: String {
        cause.map { "\(message) (\(code): \($0))" } ?? "\(message) (\(code))"
    }
}

extension StorageError {
    static let closed = StorageError(.closed, "The storage is closed. Open it again to use it.")

    /// Translates an error of GRDB. A `DatabaseError` contains statement arguments, and so private text, only if the
    /// database's configuration enables this. The configuration of `SQLiteStorage` does not.
    init(_ error: DatabaseError) {
        let (code, message): (Code, String) =
            switch error.resultCode {
            case .SQLITE_BUSY, .SQLITE_LOCKED:
                (.busy, "Another process has locked the database. Try again in a moment, or stop that process.")
            case .SQLITE_FULL: (.diskFull, "The disk is full. Free some space.")
            case .SQLITE_IOERR: (.inputOutput, "The disk failed. Check the disk and the system log.")
            case .SQLITE_CORRUPT, .SQLITE_NOTADB:
                (.corrupt, "The database file is damaged or is not a database. Restore a backup.")
            case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
                (.notAccessible, "The database cannot be opened for writing. Check its owner and permissions.")
            // GRDB reports this for a closed connection.
            case .SQLITE_MISUSE: (.closed, StorageError.closed.message)
            case .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_TOOBIG:
                (.rejected, "The database rejected this change. The cause is in parentheses.")
            default: (.other, "The database operation failed. The cause is in parentheses.")
            }
        self.init(code, message, cause: error)
    }

    /// Runs `body` and translates errors of GRDB.
    static func translating<T: Sendable>(_ body: () async throws -> T) async throws -> T {
        do {
            return try await body()
        } catch let error as DatabaseError {
            throw StorageError(error)
        }
    }

    static func translating<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch let error as DatabaseError {
            throw StorageError(error)
        }
    }
}
