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
        return try Row.fetchAll(statement, arguments: Self.arguments(arguments)).map { row in
            SQLRow(columns: columns, values: row.databaseValues.map { SQLValue($0) })
        }
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
        // As optional existentials: for a sequence of DatabaseValue, GRDB looks up a key path at run time, which takes longer than a
        // short statement.
        let values: [(any DatabaseValueConvertible)?] = arguments.map { ($0?.sqlValue ?? .null).databaseValue }
        return StatementArguments(values)
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
