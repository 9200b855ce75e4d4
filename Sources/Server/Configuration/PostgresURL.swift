import Foundation

/// The URL of a PostgreSQL database, as far as the configuration checks it. libpq parses it.
enum PostgresURL {
    /// Returns whether the text is a URL in which no part of a password can be taken for a host or a port, which libpq quotes in
    /// its errors. A password contains no `@` or `/`, and a port needs a user before it: in `confab:text/name`, the text could be
    /// either.
    static func isValid(_ text: String) -> Bool {
        guard isURL(text), !text.contains(where: \.isWhitespace), let start = text.range(of: "://") else {
            return false
        }
        let authority = text[start.upperBound...].prefix { $0 != "/" && $0 != "?" }
        let signs = text.count { $0 == "@" }
        return signs == 0 ? !authority.contains(":") : signs == 1 && authority.contains("@")
    }

    /// Returns whether the text is a URL of PostgreSQL, and not a path.
    static func isURL(_ text: String) -> Bool { text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") }
}
