import Foundation
import NIOConcurrencyHelpers
import Signaling
import Wire

/// A transaction of a database, in which the statements of storage run.
///
/// SQLite and PostgreSQL run the same statements. Write them so that both accept them:
///
/// - Parameters are `?`, or `?1`, `?2` and so on if one is used several times.
/// - Replace rows with `upsert` instead of `INSERT OR REPLACE`, and limit with `SQLText.noLimit` instead of `LIMIT -1`.
/// - In `DO UPDATE SET`, qualify the old value with the name of the table.
/// - Sums of integers are cast to BIGINT, because PostgreSQL returns a decimal.
/// - `RETURNING` is not used, because SQLite has it only since version 3.35.
protocol SQLTransaction {
    /// Runs a statement, which is prepared once and kept.
    ///
    /// - Returns: the number of rows that it inserted, updated or deleted, without those changed by triggers.
    @discardableResult
    func run(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> Int

    /// Runs an INSERT of one row into a table whose rows are numbered by the column `id`.
    ///
    /// - Returns: the row's number.
    func insert(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> Int64

    /// Runs a statement that returns rows.
    func rows(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> [SQLRow]

    /// Returns the highest number that a row of a numbered table has had, 0 if there was none.
    func lastNumber(of table: StoredTable) throws -> Int64

    /// The life of the node that writes; 0 without a cluster.
    var life: UInt32 { get }

    /// Makes the next row of a numbered table get a number above `number`.
    func setLastNumber(_ number: Int64, of table: StoredTable) throws
}

extension SQLTransaction {
    var life: UInt32 { 0 }

    /// Inserts a row, or replaces the values of the row with the same key.
    ///
    /// - Parameters:
    ///   - key: the columns of the primary key, separated by commas.
    ///   - values: the columns with their values; for each table always the same columns in the same order.
    func upsert(_ table: String, key: String, _ values: KeyValuePairs<String, (any SQLArgument)?>) throws {
        let sql = SQLText.upsert(table) { SQLText.upsert(table, key: key, columns: values.map { $0.key }) }
        try run(sql, values.map { $0.value })
    }

    func upsert(_ table: String, key: String, columns: [String], _ values: [(any SQLArgument)?]) throws {
        try run(SQLText.upsert(table, key: key, columns: columns), values)
    }
}

/// Text that several statements contain.
enum SQLText {
    /// For `LIMIT` without a limit: more rows than a table has.
    static let noLimit = Int(Int32.max)

    /// The statements that insert or replace a row, by table: making the text takes longer than inserting a row.
    private static let upserts = NIOLockedValueBox<[String: String]>([:])

    /// Returns the statement that inserts or replaces a row of this table, which is made once.
    static func upsert(_ table: String, make: () -> String) -> String {
        if let made = upserts.withLockedValue({ $0[table] }) {
            assert(made == make(), "The columns of \(table) must always be the same.")
            return made
        }
        let made = make()
        upserts.withLockedValue { $0[table] = made }
        return made
    }

    static func upsert(_ table: String, key: String, columns: [String]) -> String {
        let marks = Array(repeating: "?", count: columns.count).joined(separator: ", ")
        let assignments = columns.map { "\($0) = excluded.\($0)" }.joined(separator: ", ")
        return """
            INSERT INTO \(table) (\(columns.joined(separator: ", "))) VALUES (\(marks))
            ON CONFLICT (\(key)) DO UPDATE SET \(assignments)
            """
    }
}

/// A value in a column.
enum SQLValue: Hashable, Sendable {
    case null
    case integer(Int64)
    /// Only PostgreSQL has Booleans; SQLite stores 0 and 1.
    case boolean(Bool)
    /// Never written. SQLite returns it from a row that was edited by hand.
    case real(Double)
    case text(String)
    case blob(Data)
}

/// A value that can be passed to a statement.
protocol SQLArgument {
    var sqlValue: SQLValue { get }
}

extension SQLValue: SQLArgument { var sqlValue: SQLValue { self } }
extension Int: SQLArgument { var sqlValue: SQLValue { .integer(Int64(self)) } }
extension Int64: SQLArgument { var sqlValue: SQLValue { .integer(self) } }
extension Bool: SQLArgument { var sqlValue: SQLValue { .boolean(self) } }
extension String: SQLArgument { var sqlValue: SQLValue { .text(self) } }
extension Data: SQLArgument { var sqlValue: SQLValue { .blob(self) } }

extension Identifier128 {
    var blob: Data { Data(bytes) }
}

// MARK: - Rows

/// The type of a column in Swift.
protocol SQLColumnValue {
    /// Nil if the value has another type.
    init?(_ value: SQLValue)
}

extension Int64: SQLColumnValue {
    init?(_ value: SQLValue) {
        guard case .integer(let number) = value else { return nil }
        self = number
    }
}

extension Int: SQLColumnValue {
    init?(_ value: SQLValue) {
        guard case .integer(let number) = value else { return nil }
        self.init(exactly: number)
    }
}

extension Bool: SQLColumnValue {
    init?(_ value: SQLValue) {
        switch value {
        case .boolean(let value): self = value
        case .integer(let number): self = number != 0
        default: return nil
        }
    }
}

extension String: SQLColumnValue {
    init?(_ value: SQLValue) {
        guard case .text(let text) = value else { return nil }
        self = text
    }
}

extension Data: SQLColumnValue {
    init?(_ value: SQLValue) {
        guard case .blob(let data) = value else { return nil }
        self = data
    }
}

/// A row of a result.
struct SQLRow: Sendable {
    /// The names of the columns, in any case: PostgreSQL returns names in lower case.
    let columns: [String]
    let values: [SQLValue]

    private subscript(column: String) -> SQLValue? {
        columns.firstIndex { Self.isSame($0, column) }.map { values[$0] }
    }

    private static func isSame(_ first: String, _ second: String) -> Bool {
        first.utf8.count == second.utf8.count && zip(first.utf8, second.utf8).allSatisfy { $0 | 0x20 == $1 | 0x20 }
    }

    /// Returns a column's value of any type.
    func anyValue(_ column: String) throws -> SQLValue {
        guard let value = self[column] else { throw Self.unreadable(column) }
        return value
    }

    /// Returns a column's value. Throws `.corrupt` if it has the wrong type, for example because the row was edited by hand.
    func value<T: SQLColumnValue>(_ column: String) throws -> T {
        guard let value = self[column].flatMap({ T($0) }) else { throw Self.unreadable(column) }
        return value
    }

    func optional<T: SQLColumnValue>(_ column: String) throws -> T? {
        self[column] == .null ? nil : try value(column)
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
