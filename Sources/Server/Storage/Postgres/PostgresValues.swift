import CPostgres
import Foundation

/// The parameters of a statement, in the format of libpq.
///
/// Text and bytes are binary, so that no value needs escapes and a U+0000 in text is an error of the server instead of the end
/// of the text. Numbers are text, because the server knows whether a parameter has 32 or 64 bits and the client does not.
struct PostgresParameters {
    private var bytes: [UInt8] = []
    /// Where each value starts in `bytes`; nil for NULL.
    private var starts: [Int?] = []
    private var lengths: [Int32] = []
    private var formats: [Int32] = []

    init(_ arguments: [(any SQLArgument)?]) {
        for argument in arguments { append(argument?.sqlValue ?? .null) }
    }

    private mutating func append(_ value: SQLValue) {
        switch value {
        case .null: append(nil, isBinary: false)
        case .integer(let number): append("\(number)".utf8, isBinary: false)
        case .boolean(let isTrue): append((isTrue ? "t" : "f").utf8, isBinary: false)
        case .real(let number): append("\(number)".utf8, isBinary: false)
        case .text(let text): append(text.utf8, isBinary: true)
        case .blob(let data): append(data, isBinary: true)
        }
    }

    private mutating func append(_ value: (any Collection<UInt8>)?, isBinary: Bool) {
        starts.append(value == nil ? nil : bytes.count)
        lengths.append(Int32(clamping: value?.count ?? 0))
        formats.append(isBinary ? 1 : 0)
        // libpq reads values in text format up to a NUL.
        if let value { bytes += Array(value) + [0] }
    }

    /// Calls `body` with the number of parameters and the arrays that libpq needs.
    func withPointers<T>(
        _ body: (
            Int32, UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?
        ) -> T
    ) -> T {
        bytes.withUnsafeBufferPointer { bytes in
            bytes.withMemoryRebound(to: CChar.self) { characters in
                let values = starts.map { start in start.map { characters.baseAddress! + $0 } }
                return body(Int32(starts.count), values, lengths, formats)
            }
        }
    }
}

/// A result of libpq, with all columns in binary format.
final class PostgresResult {
    let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) { self.pointer = pointer }

    deinit { confab_pq_clear(pointer) }

    /// The number of rows that the statement changed.
    var changedCount: Int { Int(String(cString: confab_pq_changed(pointer))) ?? 0 }

    var columns: [String] {
        (0..<confab_pq_columns(pointer)).map { confab_pq_column_name(pointer, $0).map { String(cString: $0) } ?? "" }
    }

    func rows() throws -> [SQLRow] {
        let columns = columns
        let types = columns.indices.map { confab_pq_column_type(pointer, Int32($0)) }
        return try (0..<confab_pq_rows(pointer)).map { row in
            let values = try columns.indices.map { try value(row, $0, types[$0], columns[$0]) }
            return SQLRow(columns: columns, values: values)
        }
    }

    private func value(_ row: Int32, _ column: Int, _ type: UInt32, _ name: String) throws -> SQLValue {
        let column = Int32(column)
        guard confab_pq_is_null(pointer, row, column) == 0 else { return .null }
        let length = Int(confab_pq_length(pointer, row, column))
        let bytes = UnsafeBufferPointer(start: confab_pq_value(pointer, row, column), count: length)
        guard let value = SQLValue(bytes, type: type) else { throw SQLRow.unreadable(name) }
        return value
    }
}

extension SQLValue {
    /// The object IDs of types, which are the same in every database (`pg_type.dat`).
    private enum ObjectID {
        static let boolean: UInt32 = 16
        static let bytes: UInt32 = 17
        static let integer8: UInt32 = 20
        static let integer4: UInt32 = 23
        static let text: UInt32 = 25
    }

    /// Reads a value in binary format. Returns nil if it has a type that storage does not use.
    init?(_ bytes: UnsafeBufferPointer<UInt8>, type: UInt32) {
        switch (type, bytes.count) {
        case (ObjectID.boolean, 1): self = .boolean(bytes[0] != 0)
        case (ObjectID.bytes, _): self = .blob(Data(bytes))
        case (ObjectID.text, _): self = .text(String(decoding: bytes, as: UTF8.self))
        case (ObjectID.integer8, 8):
            self = .integer(Int64(bitPattern: bytes.reduce(0 as UInt64) { $0 << 8 | UInt64($1) }))
        case (ObjectID.integer4, 4):
            self = .integer(Int64(Int32(bitPattern: bytes.reduce(0 as UInt32) { $0 << 8 | UInt32($1) })))
        default: return nil
        }
    }
}

extension SQLText {
    /// Replaces SQLite's parameters `?` and `?1` with PostgreSQL's `$1`. A statement has only one of the two forms, and no `?`
    /// in its literals.
    static func numbered(_ sql: String) -> String {
        var (result, number) = ("", 0)
        let pieces = sql.split(separator: "?", omittingEmptySubsequences: false)
        result += pieces[0]
        for piece in pieces.dropFirst() {
            number += 1
            let hasNumber = piece.first?.isWholeNumber == true
            result += hasNumber ? "$\(piece)" : "$\(number)\(piece)"
        }
        return result
    }
}
