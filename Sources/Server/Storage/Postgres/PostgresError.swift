import CPostgres

/// An error that PostgreSQL or libpq reported, without stored data.
struct PostgresError: Error, CustomStringConvertible {
    /// The SQLSTATE: five characters, of which the first two are the class (Appendix A of PostgreSQL's manual).
    var state: String
    var text: String

    var description: String { "\(state): \(text)" }

    /// The classes whose messages may quote values: data exceptions, constraints and errors of triggers.
    private static let privateClasses: Set<Substring> = ["22", "23", "P0"]

    init(state: String, text: String) { (self.state, self.text) = (state, text) }

    /// Reads the error of a failed command.
    init(_ result: OpaquePointer) {
        func field(_ name: Character) -> String? {
            confab_pq_field(result, CChar(name.asciiValue ?? 0)).map { String(cString: $0) }
        }
        state = field("C") ?? ""
        if Self.privateClasses.contains(state.prefix(2)) {
            text = [field("t"), field("c"), field("n")].compactMap { $0 }.joined(separator: " ")
        } else {
            text = field("M") ?? ""
        }
    }
}

extension StorageError {
    /// The database server cannot be reached.
    static func unreachable(_ reason: String) -> StorageError {
        StorageError(
            .unreachable, "PostgreSQL cannot be reached. Check that it is running, and storage.url. (\(reason))")
    }

    /// Translates an error of PostgreSQL by its SQLSTATE.
    init(_ error: PostgresError) {
        let (code, message): (Code, String) =
            switch error.state {
            case "40001", "40P01", "55P03", "57014":
                (.busy, "Another session has locked rows of the database. Try again in a moment, or stop that session.")
            // The tables changed under a prepared statement.
            case "0A000": (.busy, "The tables of the database were changed. Try again.")
            // A server that has become a standby, is stopping or starting, or has no connections left.
            case "25006", "57P01", "57P02", "57P03", "57P05", "53300":
                (.unreachable, "PostgreSQL accepts no changes at present. The cause is in parentheses.")
            case "53100": (.diskFull, "The disk of PostgreSQL is full. Free some space.")
            // The session has lost its prepared statements, or has those of another client.
            case "26000", "42P05":
                (
                    .unreachable,
                    "PostgreSQL's session was changed. If this repeats, set pool_mode = session in PgBouncer."
                )
            case "3D000", "3F000", "42501", "57P04":
                (.notAccessible, "The database cannot be used. Check storage.url and the rights of its user.")
            // Other errors of the class XX are faults of PostgreSQL, which a change of its own can cause.
            case "XX001", "XX002": (.corrupt, "PostgreSQL found damaged data. Check its log, and restore a backup.")
            case "58030": (.inputOutput, "The disk of PostgreSQL failed. Check the disk and PostgreSQL's log.")
            default: Self.byClass(error.state)
            }
        self.init(code, message, cause: error)
    }

    private static func byClass(_ state: String) -> (Code, String) {
        switch state.prefix(2) {
        case "08": (.unreachable, "The connection to PostgreSQL failed. The cause is in parentheses.")
        case "22", "23", "54", "P0": (.rejected, "The database rejected this change. The cause is in parentheses.")
        case "28": (.notAccessible, "PostgreSQL rejected the user or the password. Check storage.url.")
        case "53": (.overloaded, "PostgreSQL lacks memory or another resource. The cause is in parentheses.")
        default: (.other, "The database operation failed. The cause is in parentheses.")
        }
    }
}
