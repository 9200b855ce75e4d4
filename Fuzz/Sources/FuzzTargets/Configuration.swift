@testable import Server

extension FuzzTarget {
    /// Fuzzes a configuration file. Some of the lines are used as environment variables (`CONFAB_PORT=1`) or flags
    /// (`--port=1`).
    static let configuration = FuzzTarget("configuration", dictionary: "configuration") {
        input throws(BrokenProperty) in
        let given = Given(input)
        let configuration: ConfabConfiguration
        do throws(ConfigurationError) {
            configuration = try .load(
                overrides: given.flags, environment: given.variables, yaml: given.yaml, named: "confab.yaml")
        } catch {
            return try require(
                !error.problems.isEmpty && !error.description.isEmpty, "a configuration is rejected without a reason")
        }
        try checkWrittenForm(configuration)
        try checkSecrecy(configuration)
        try checkEditing(given.yaml)
    }

    private struct Given {
        var yaml = ""
        var variables: [String: String] = [:]
        var flags: [String: String] = [:]

        init(_ input: [UInt8]) {
            for line in lines(of: input) {
                let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
                if parts.count == 2, parts[0].hasPrefix("CONFAB_") {
                    variables[parts[0]] = parts[1]
                } else if parts.count == 2, parts[0].hasPrefix("--") {
                    flags[String(parts[0].dropFirst(2))] = parts[1]
                } else {
                    yaml += line + "\n"
                }
            }
        }
    }

    /// Checks that every value can be parsed from its form in the help and in the log.
    private static func checkWrittenForm(_ configuration: ConfabConfiguration) throws(BrokenProperty) {
        var texts: [String: String] = [:]
        for setting in Setting.all { texts[setting.key.name] = setting.text(configuration) }
        let again: ConfabConfiguration
        do throws(ConfigurationError) {
            again = try .load(overrides: texts, environment: [:], yaml: nil, named: "")
        } catch {
            throw BrokenProperty(description: "an accepted configuration is rejected after encoding it: \(error)")
        }
        for setting in Setting.all {
            let (first, second) = (setting.text(configuration), setting.text(again))
            try require(first == second, "\(setting.key.name) is \"\(first)\" and was read as \"\(second)\"")
        }
        try require(again == configuration, "a configuration differs after encoding and parsing it")
    }

    /// Checks that setting a key in a file a second time changes nothing.
    private static func checkEditing(_ yaml: String) throws(BrokenProperty) {
        let before = ConfigurationText(yaml)
        let changes = [
            ConfigurationText.Change(key: "port", value: ["443"]),
            ConfigurationText.Change(key: "acme.domains", value: ["chat.example.org"], isList: true),
            ConfigurationText.Change(key: "media.port"),
        ]
        var after = before
        for change in changes { after.apply(change) }
        guard after.isAsExpected(after: changes, before: before) else { return }
        var again = after
        for change in changes { again.apply(change) }
        try require(again == after, "an edited configuration is edited again: \(after.text)")
    }

    /// Checks that the logged configuration is the same with other secrets.
    private static func checkSecrecy(_ configuration: ConfabConfiguration) throws(BrokenProperty) {
        var other = configuration
        if other.apiSecret != nil { other.apiSecret = SecretText("another") }
        if other.ice.turnSecret != nil { other.ice.turnSecret = SecretText("another") }
        if other.ice.turnPassword != nil { other.ice.turnPassword = SecretText("another") }
        try require("\(configuration)" == "\(other)", "the logged configuration depends on a secret")
    }
}
