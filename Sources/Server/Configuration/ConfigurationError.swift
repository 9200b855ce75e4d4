/// An invalid configuration. Lists all problems, so that the operator can fix them in one go.
public struct ConfigurationError: Error, Equatable, Sendable {
    /// One setting that is unknown, invalid or in conflict with others, or a problem with the configuration file as a
    /// whole.
    public struct Problem: Equatable, Sendable {
        /// The name of the key, or the name as given if the key is unknown. Nil if the problem is the file itself.
        public var key: String?
        /// The value as given, redacted if it is secret. Nil if the problem is not about one value.
        public var value: String?
        /// Where the value was given: `on the command line`, `in CONFAB_PORT`, `in confab.yaml`. Nil if values from
        /// several sources may be involved.
        public var source: String?
        /// What is wrong and what to do.
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
    /// A heading, followed by one line per problem.
    public var description: String {
        (["The configuration is invalid:"] + problems.map { "  \($0)" }).joined(separator: "\n")
    }
}
