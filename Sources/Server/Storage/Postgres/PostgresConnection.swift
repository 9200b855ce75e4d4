import CPostgres
import Foundation
import Wire

/// How to connect to PostgreSQL.
struct PostgresAddress: Sendable {
    /// A URL (`postgresql://…`). It may contain a password, so it is never logged.
    let url: SecretText

    /// - Throws: `.notAccessible` if libpq is not installed or rejects the URL.
    init(_ url: SecretText) throws(StorageError) {
        guard confab_pq_load() != 0 else {
            throw StorageError(
                .notAccessible,
                "PostgreSQL needs the library libpq. Install it (Debian: apt-get install libpq5, macOS: brew install libpq)."
            )
        }
        guard PostgresURL.isValid(url.revealed), confab_pq_is_valid(url.revealed) != 0 else {
            throw StorageError(
                .notAccessible,
                "storage.url is not a URL that PostgreSQL accepts. Name a user if it has a port or a password, and write special "
                    + "characters of the password as %XX.")
        }
        self.url = url
    }
}

/// A connection to PostgreSQL. All functions block, so it is used only on the threads of `PostgresThreads`.
final class PostgresConnection: SQLTransaction {
    /// Whether the connection failed, so that the outcome of the last command is unknown.
    private(set) var isBroken = false
    /// Whether a statement of the current transaction failed. PostgreSQL then turns COMMIT into ROLLBACK without an error.
    private var hasFailed = false
    private let pointer: OpaquePointer
    /// The names of the prepared statements, keyed by their text.
    private var prepared: [String: String] = [:]
    private var answerTimeout: Duration
    /// The life of the node whose storage this is; 0 without a cluster, and for sessions that do not write.
    var life: UInt32 = 0

    /// Connects and sets up the session.
    init(_ address: PostgresAddress, _ timeouts: PostgresTimeouts = .standard) throws {
        answerTimeout = timeouts.answer
        let keywords = timeouts.keywords + [("dbname", address.url.revealed), ("client_encoding", "UTF8")]
        guard let pointer = Self.connect(keywords) else { throw StorageError.unreachable("memory is exhausted") }
        self.pointer = pointer
        guard confab_pq_is_connected(pointer) != 0 else {
            isBroken = true
            throw StorageError.unreachable(Self.error(of: pointer))
        }
        try setUp(timeouts)
    }

    deinit { confab_pq_finish(pointer) }

    private static func connect(_ parameters: [(String, String)]) -> OpaquePointer? {
        let keywords = parameters.map { strdup($0.0) }, values = parameters.map { strdup($0.1) }
        defer { for text in keywords + values { free(text) } }
        return confab_pq_connect(
            keywords.map { UnsafePointer($0) } + [nil], values.map { UnsafePointer($0) } + [nil])
    }

    private static func error(of pointer: OpaquePointer) -> String {
        String(cString: confab_pq_error(pointer)).split(whereSeparator: \.isNewline).joined(separator: " ")
    }

    private func setUp(_ timeouts: PostgresTimeouts) throws {
        let encoding = confab_pq_parameter(pointer, "server_encoding").map { String(cString: $0) }
        guard encoding == "UTF8" else {
            throw StorageError(
                .notAccessible,
                "The database has the encoding \(encoding ?? "unknown"). Create it with createdb --encoding=UTF8.")
        }
        try command(
            "\(timeouts.settings); SET client_min_messages = error; SET default_transaction_isolation = 'read committed'"
        )
        // A commit that PostgreSQL has answered must survive a power failure. Always set it, because a value of the session
        // outlives a change of the server's configuration. Only `remote_apply` waits for more than `on`.
        try command(
            """
            SELECT set_config('synchronous_commit',
                CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)
            """)
    }

    /// The server's version, such as 150006 for 15.6.
    var serverVersion: Int { Int(confab_pq_server_version(pointer)) }

    // MARK: Transactions

    /// Begins a transaction that writes. The database may have other defaults. Each statement sees what was committed before it.
    static let beginWriting = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
    /// Begins a transaction that writes, and waits for those of other processes, such as `confab ban`: the statements read what
    /// they change, and readers of the outbox expect that events become visible in the order of their numbers. SQLite has the
    /// same rule.
    static let beginAlone = "\(beginWriting); SELECT pg_advisory_xact_lock(\(0x434F_4E57), hashtext(current_schema()))"
    /// Begins a transaction that sees one state of the database.
    static let beginReading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    /// Runs `body` in a transaction. If it throws, nothing is changed.
    func transaction<T>(_ begin: String, _ body: () throws -> T) throws -> T {
        try self.begin(begin)
        let value = try rollingBack(body)
        try commit()
        return value
    }

    func begin(_ sql: String) throws {
        hasFailed = false
        try command(sql)
    }

    /// Runs `body`, and ends the transaction if it throws.
    func rollingBack<T>(_ body: () throws -> T) throws -> T {
        do {
            let value = try body()
            guard !hasFailed else { throw StorageError(.other, "A statement of the transaction failed.") }
            return value
        } catch {
            if !isBroken { do { try command("ROLLBACK") } catch { isBroken = true } }
            throw error
        }
    }

    func commit() throws { try command("COMMIT") }

    /// Runs `body` without limits on the time of its statements, for migrations.
    func withoutTimeouts<T>(_ body: () throws -> T) throws -> T {
        let before = answerTimeout
        answerTimeout = PostgresTimeouts.long
        defer { answerTimeout = before }
        try command("SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0")
        return try body()
    }

    // MARK: Statements

    /// Runs statements without parameters.
    func command(_ sql: String) throws {
        _ = try answer(confab_pq_send(pointer, sql))
    }

    @discardableResult
    func run(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> Int {
        try execute(sql, arguments).changedCount
    }

    func insert(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> Int64 {
        guard let row = try rows(sql + " RETURNING id", arguments).first else { throw SQLRow.unreadable("id") }
        return try row.value("id")
    }

    func rows(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> [SQLRow] {
        try execute(sql, arguments).rows()
    }

    func lastNumber(of table: StoredTable) throws -> Int64 {
        try rows(
            "SELECT COALESCE(pg_sequence_last_value(pg_get_serial_sequence('\(table.name)', 'id')::regclass), 0) AS number",
            []
        ).first?.value("number") ?? 0
    }

    func setLastNumber(_ number: Int64, of table: StoredTable) throws {
        guard number > 0 else { return }
        _ = try rows("SELECT setval(pg_get_serial_sequence('\(table.name)', 'id'), ?)", [number])
    }

    private func execute(_ sql: String, _ arguments: [(any SQLArgument)?]) throws -> PostgresResult {
        let name = try prepare(sql)
        let parameters = PostgresParameters(arguments)
        return try answer(
            parameters.withPointers { count, values, lengths, formats in
                confab_pq_send_prepared(pointer, name, count, values, lengths, formats)
            })
    }

    /// Prepares a statement the first time, because planning it takes longer than running it.
    private func prepare(_ sql: String) throws -> String {
        if let name = prepared[sql] { return name }
        let name = "confab\(prepared.count)"
        _ = try answer(confab_pq_send_prepare(pointer, name, SQLText.numbered(sql)))
        prepared[sql] = name
        return name
    }

    /// Waits for the result of a command.
    private func answer(_ sent: Int32) throws -> PostgresResult {
        guard sent != 0, let waited = confab_pq_wait(pointer, answerTimeout.wholeMilliseconds) else {
            isBroken = true
            throw StorageError.unreachable(Self.error(of: pointer))
        }
        let result = PostgresResult(waited)
        guard confab_pq_succeeded(waited) == 0 else { return result }
        hasFailed = true
        if confab_pq_is_connected(pointer) == 0 {
            isBroken = true
            throw StorageError.unreachable(Self.error(of: pointer))
        }
        let error = StorageError(PostgresError(waited))
        // Connect again: the server may be a standby now, or the prepared statements no longer fit the tables.
        if error.code == .unreachable || (error.cause as? PostgresError)?.state == "0A000" { isBroken = true }
        throw error
    }
}
