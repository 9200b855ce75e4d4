/// Why a configuration was refused: every problem found, so that one restart mends them all.
public struct ConfigurationError: Error, Equatable, Sendable {
    /// One thing that is wrong.
    public struct Problem: Equatable, Sendable {
        /// The key as in the file, or the name as given when there is no such key; nil when a whole file is wrong.
        public var key: String?
        /// As given, redacted when secret; nil when it is not about one value.
        public var value: String?
        /// Completes "given …": `on the command line`, `in CONFAB_PORT`, `in confab.yaml`.
        public var source: String?
        /// A sentence that says what to do.
        public var message: String
    }

    public var problems: [Problem]
}

extension ConfigurationError.Problem: CustomStringConvertible {
    public var description: String {
        let given = [value.map { LogText.escaped("\"\($0)\"") }, source].compactMap(\.self).joined(separator: " ")
        return [key, given.isEmpty ? nil : given, message].compactMap(\.self).joined(separator: ": ")
    }
}

extension ConfigurationError: CustomStringConvertible {
    /// One problem a line.
    public var description: String {
        (["The configuration is not usable:"] + problems.map { "  \($0)" }).joined(separator: "\n")
    }
}
