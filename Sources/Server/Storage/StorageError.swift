import GRDB

/// Why something could not be stored or read.
///
/// ```swift
/// do { try await storage.backup(to: path) }
/// catch let error as StorageError where error.code == .targetExists { … }
/// ```
public struct StorageError: Error, CustomStringConvertible {
    /// An open set: a later version may add codes, so a `switch` over them needs a `default`.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let description: String

        private init(_ description: String) { self.description = description }

        /// Another process held the file for longer than the busy timeout. Trying again can help.
        public static let busy = Code("busy")
        /// ``Storage/close()`` was called before.
        public static let closed = Code("closed")
        /// The file is damaged or is no database.
        public static let corrupt = Code("corrupt")
        /// The disk is full.
        public static let diskFull = Code("diskFull")
        /// Reading or writing the disk failed.
        public static let inputOutput = Code("inputOutput")
        /// The file was written by a later version of this program.
        public static let newerSchema = Code("newerSchema")
        /// The file or its directory cannot be made, opened or written.
        public static let notAccessible = Code("notAccessible")
        /// More commits wait than the disk can take. Trying again can help.
        public static let overloaded = Code("overloaded")
        /// This change cannot be stored; others can.
        public static let rejected = Code("rejected")
        /// A backup's target is there already.
        public static let targetExists = Code("targetExists")
        /// This implementation cannot do it.
        public static let unsupported = Code("unsupported")
        /// None of the others; the cause says more.
        public static let other = Code("other")
    }

    public var code: Code
    /// A sentence for the operator that says what to do. It holds no identities and no chat text.
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
    static let closed = StorageError(.closed, "The storage was closed; open it again to use it.")

    /// Translates what GRDB threw. Statement arguments, which hold people's words, do not show in a `DatabaseError`
    /// unless its configuration says so, and ours does not.
    init(_ error: DatabaseError) {
        let (code, message): (Code, String) =
            switch error.resultCode {
            case .SQLITE_BUSY, .SQLITE_LOCKED:
                (.busy, "Another program keeps the database locked; end it, or try again.")
            case .SQLITE_FULL: (.diskFull, "The disk is full; free some space.")
            case .SQLITE_IOERR: (.inputOutput, "The disk could not be read or written; check it and the system's log.")
            case .SQLITE_CORRUPT, .SQLITE_NOTADB:
                (.corrupt, "The database is damaged or is no database; put a backup in its place.")
            case .SQLITE_CANTOPEN, .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
                (.notAccessible, "The database cannot be opened for writing; check its owner and mode.")
            // GRDB's answer for a connection that was closed.
            case .SQLITE_MISUSE: (.closed, StorageError.closed.message)
            case .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_TOOBIG:
                (.rejected, "The database does not take this change.")
            default: (.other, "The database failed.")
            }
        self.init(code, message, cause: error)
    }

    /// Runs `body` so that callers see `StorageError` and never GRDB's own errors.
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
