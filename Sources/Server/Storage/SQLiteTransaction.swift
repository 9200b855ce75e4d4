import Foundation
import GRDB

/// A transaction of GRDB.
extension Database: SQLTransaction {
    /// Runs a cached statement, because compiling a statement takes longer than running it.
    @discardableResult
    func run(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> Int {
        try cachedStatement(sql: sql).execute(arguments: Self.arguments(arguments))
        return changesCount
    }

    func insert(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> Int64 {
        try run(sql, arguments)
        return lastInsertedRowID
    }

    func rows(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> [SQLRow] {
        let statement = try cachedStatement(sql: sql)
        let columns = statement.columnNames
        let cursor = try ValuesCursor(statement, Self.arguments(arguments))
        var rows: [SQLRow] = []
        while let values = try cursor.next() { rows.append(SQLRow(columns: columns, values: values)) }
        return rows
    }

    func lastNumber(of table: StoredTable) throws -> Int64 {
        let sql =
            table.numbers == .unique
            ? "SELECT max(seq) AS number FROM sqlite_sequence WHERE name = '\(table.name)'"
            : "SELECT max(id) AS number FROM \(table.name)"
        return try rows(sql, []).first?.optional("number") ?? 0
    }

    func setLastNumber(_ number: Int64, of table: StoredTable) throws {
        // SQLite numbers the rows of other tables from the highest that is left.
        guard table.numbers == .unique else { return }
        try run("DELETE FROM sqlite_sequence WHERE name = ?", [table.name])
        try run("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", [table.name, number])
    }

    private static func arguments(_ arguments: [(any SQLArgument)?]) -> StatementArguments {
        func value(_ index: Int) -> DatabaseValue { (arguments[index]?.sqlValue ?? .null).databaseValue }
        // As literals: GRDB's initializers for sequences are generic code in another module, which is not specialized here and takes
        // longer than a short statement.
        var list: StatementArguments = []
        var index = 0
        while index + 4 <= arguments.count {
            list += [value(index), value(index + 1), value(index + 2), value(index + 3)]
            index += 4
        }
        while index < arguments.count {
            list += [value(index)]
            index += 1
        }
        return list
    }
}

/// The rows of a statement, as arrays of their values. It must be read to the end.
///
/// GRDB's `Row` makes a dictionary of the names of all columns each time that a statement runs, which takes longer than a short
/// statement.
private final class ValuesCursor: DatabaseCursor {
    typealias Element = [SQLValue]

    let _statement: Statement
    var _isDone = false

    init(_ statement: Statement, _ arguments: StatementArguments) throws {
        _statement = statement
        // This also resets the statement.
        try statement.setArguments(arguments)
    }

    func _element(sqliteStatement: SQLiteStatement) -> [SQLValue] {
        (0..<CInt(columnCount)).map { SQLValue(DatabaseValue(sqliteStatement: sqliteStatement, index: $0)) }
    }
}

extension SQLValue {
    fileprivate init(_ value: DatabaseValue) {
        switch value.storage {
        case .null: self = .null
        case .int64(let number): self = .integer(number)
        case .double(let number): self = .real(number)
        case .string(let text): self = .text(text)
        case .blob(let data): self = .blob(data)
        }
    }

    fileprivate var databaseValue: DatabaseValue {
        switch self {
        case .null: .null
        case .integer(let number): number.databaseValue
        case .boolean(let value): value.databaseValue
        case .real(let number): number.databaseValue
        case .text(let text): text.databaseValue
        case .blob(let data): data.databaseValue
        }
    }
}
