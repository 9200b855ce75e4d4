import Foundation
import GRDB
import Signaling
import Wire

/// Helpers for SQL statements and typed columns.

extension Database {
    /// Runs a cached statement, because compiling a statement takes longer than running it.
    func run(_ sql: String, _ arguments: StatementArguments) throws {
        try cachedStatement(sql: sql).execute(arguments: arguments)
    }

    func rows(_ sql: String, _ arguments: StatementArguments) throws -> [Row] {
        try Row.fetchAll(cachedStatement(sql: sql), arguments: arguments)
    }
}

extension Identifier128 {
    var blob: Data { Data(bytes) }
}

extension Row {
    /// Returns a column's value. Throws `.corrupt` if it has the wrong type, for example because the file was edited
    /// by hand. GRDB's typed subscript would trap instead.
    func value<T: DatabaseValueConvertible>(_ column: String) throws -> T {
        guard let value = T.fromDatabaseValue(self[column]) else { throw Self.unreadable(column) }
        return value
    }

    func optional<T: DatabaseValueConvertible>(_ column: String) throws -> T? {
        let value: DatabaseValue = self[column]
        return value.isNull ? nil : try self.value(column)
    }

    func id<ID: Identifier128>(_ column: String) throws -> ID {
        let blob: Data = try value(column)
        guard let id = ID(bytes: blob) else { throw Self.unreadable(column) }
        return id
    }

    func time(_ column: String) throws -> Timestamp {
        Timestamp(milliseconds: try value(column))
    }

    func optionalTime(_ column: String) throws -> Timestamp? {
        let milliseconds: Int64? = try optional(column)
        return milliseconds.map { Timestamp(milliseconds: $0) }
    }

    func choice<T: RawRepresentable>(_ column: String) throws -> T where T.RawValue == String {
        guard let choice = T(rawValue: try value(column)) else { throw Self.unreadable(column) }
        return choice
    }

    func session(_ column: String) throws -> SessionID {
        guard let id = SessionID(try value(column) as String) else { throw Self.unreadable(column) }
        return id
    }

    static func unreadable(_ column: String) -> StorageError {
        StorageError(.corrupt, "The database contains an invalid value in column \(column). Restore a backup.")
    }
}
