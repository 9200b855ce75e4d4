import Configuration
import Signaling

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ConfabConfiguration {
    /// `CONFAB_*` variables that scripts use. They are not settings of the server, so they cause no warning.
    public static let scriptVariables: Set = [
        "CONFAB_BINARY", "CONFAB_BROWSER_CACHE", "CONFAB_BROWSER_JOBS", "CONFAB_BROWSER_TIER", "CONFAB_BUILD",
        "CONFAB_CONFIG", "CONFAB_MODEL_EVENTS", "CONFAB_MODEL_SEED", "CONFAB_MUTATION_SECONDS", "CONFAB_MUTATION_SEED",
        "CONFAB_REPORT", "CONFAB_STATE",
    ]

    /// Returns a warning for each unknown `CONFAB_*` variable. The warning names the most similar known variable.
    /// Unlike unknown keys in a file, unknown variables are not errors, because other programs share the environment.
    public static func warnings(about environment: [String: String]) -> [String] {
        let known = Set(Setting.all.map(\.key.environmentName))
        return environment.keys.sorted()
            .filter { $0.hasPrefix("CONFAB_") && !known.contains($0) && !scriptVariables.contains($0) }
            .map { ConfigurationError.Problem.unknown(key: $0, source: "in the environment", known: known).description }
    }

    /// Maximum size of a configuration file. A larger file is probably not a configuration file.
    private static let maxFileSize: ByteCount = .mebibytes(1)

    /// Loads the configuration. Flags override `CONFAB_*` variables, which override the file, which overrides the defaults.
    ///
    /// ```swift
    /// let configuration = try ConfabConfiguration.load(
    ///     overrides: ["port": "0"], environment: ProcessInfo.processInfo.environment, file: "confab.yaml")
    /// ```
    ///
    /// - Parameters:
    ///   - overrides: the values of flags, keyed by setting name (`roulette.interestWait`). Lists are
    ///     comma-separated.
    ///   - environment: all environment variables. Variables without the prefix `CONFAB_` are ignored.
    ///   - file: path of a YAML file, or nil for none.
    /// - Throws: `ConfigurationError` if the file cannot be read or parsed. If keys are unknown or values are
    ///   invalid, the error lists all of them. Otherwise, if values conflict with each other, it lists all conflicts.
    public static func load(
        overrides: [String: String] = [:], environment: [String: String] = [:], file: String? = nil
    ) throws(ConfigurationError) -> ConfabConfiguration {
        var text: String?
        if let file { text = try contents(of: file) }
        return try load(overrides: overrides, environment: environment, yaml: text, named: file ?? "the file")
    }

    /// Loads the configuration. `yaml` is the text of the file, or nil if there is none. Errors refer to the file as
    /// `name`.
    static func load(
        overrides: [String: String], environment: [String: String], yaml: String?, named name: String
    ) throws(ConfigurationError) -> ConfabConfiguration {
        let names = Set(Setting.all.map(\.key.name))
        let variableNames = Set(Setting.all.map(\.key.environmentName))
        let variables = environment.filter { variableNames.contains($0.key) }
        let file = try ConfigurationFile(yaml: yaml ?? "", name: name)
        var problems = file.problems
        problems += overrides.keys.sorted().filter { !names.contains($0) }.map {
            .unknown(key: $0, source: "on the command line", known: names)
        }
        let reader = ConfigReader(providers: [
            InMemoryProvider(name: "flags", values: provided(overrides.mapValues { .text($0) })),
            EnvironmentVariablesProvider(environmentVariables: variables).prefixKeys(with: "confab"),
            InMemoryProvider(name: "file", values: provided(file.values)),
        ])
        var configuration = ConfabConfiguration()
        for setting in Setting.all {
            guard let items = items(of: setting, in: reader), !setting.store(items, &configuration) else { continue }
            let key = setting.key
            let source =
                overrides[key.name] != nil
                ? "on the command line"
                : variables[key.environmentName] != nil ? "in \(key.environmentName)" : "in \(name)"
            problems.append(.rejected(key: key, items: items, source: source))
        }
        if problems.isEmpty { problems = configuration.conflicts }
        guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
        return configuration
    }

    /// Returns the elements of a setting's value from the source with the highest precedence; nil if no source sets it.
    private static func items(of setting: Setting, in reader: ConfigReader) -> [String]? {
        let key = ConfigKey(setting.key.name)
        let items =
            setting.isList
            ? reader.stringArray(forKey: key, isSecret: setting.key.isSecret)
            : reader.string(forKey: key, isSecret: setting.key.isSecret).map { [$0] }
        // Trim whitespace, which environment variables often contain. Do not trim a single secret: a secret of spaces must be
        // rejected as too weak, not treated as unset.
        let trimmed = setting.key.isSecret && !setting.isList ? items : items?.map { $0.trimmingBlanks() }
        return setting.isList ? trimmed?.filter { !$0.isEmpty } : trimmed
    }

    /// Converts values to the types that the reader expects. Skips unknown keys, which are reported separately.
    private static func provided(_ values: [String: ConfigurationFile.Value]) -> [AbsoluteConfigKey: ConfigValue] {
        var found: [AbsoluteConfigKey: ConfigValue] = [:]
        for setting in Setting.all {
            guard let value = values[setting.key.name] else { continue }
            let content: ConfigContent =
                setting.isList ? .stringArray(value.elements) : .string(value.single)
            found[AbsoluteConfigKey(ConfigKey(setting.key.name))] = ConfigValue(content, isSecret: setting.key.isSecret)
        }
        return found
    }

    private static func contents(of path: String) throws(ConfigurationError) -> String {
        var problem = ConfigurationError.Problem(
            source: "in \(path)", message: "cannot be read; check that the file exists")
        do {
            let data = try Data(contentsOf: URL(fileURLWithPath: path))
            problem.message = "is not a configuration file; expected UTF-8 text of at most \(maxFileSize)"
            if data.count <= maxFileSize.bytes, let text = String(validating: data, as: UTF8.self) { return text }
        } catch {}
        throw ConfigurationError(problems: [problem])
    }

    /// Problems with values that are valid on their own but conflict with each other, or that require another setting.
    private var conflicts: [ConfigurationError.Problem] {
        var found: [ConfigurationError.Problem] = []
        func require(_ condition: Bool, _ key: String, _ message: String) {
            if !condition { found.append(.init(key: key, message: message)) }
        }
        require(
            (tls.certificate == nil) == (tls.privateKey == nil), "tls.certificate",
            "set both tls.certificate and tls.privateKey, or neither")
        let own = BasePath(self).reservedSegment
        require(
            own == nil, "publicURL",
            "its path begins with /\(own ?? ""), which is a path of Confab itself; choose another one, such as /video")
        require(
            (ice.turnUsername == nil) == (ice.turnPassword == nil), "ice.turnUsername",
            "set both ice.turnUsername and ice.turnPassword, or neither")
        require(
            ice.turnSecret == nil || ice.turnUsername == nil, "ice.turnSecret",
            "set either ice.turnSecret or ice.turnUsername and ice.turnPassword, not both")
        require(
            ice.turnServers.isEmpty || ice.turnSecret != nil || ice.turnUsername != nil, "ice.turnServers",
            "requires ice.turnSecret, or ice.turnUsername and ice.turnPassword")
        require(
            (perch.ident == nil) == (perch.secret == nil), "perch.ident",
            "set both perch.ident and perch.secret, or neither")
        let bucket = archives.bucket
        require(
            bucket.name == nil || (bucket.endpoint != nil && bucket.accessKey != nil && bucket.secretKey != nil),
            "recording.bucket",
            "requires recording.bucketEndpoint, recording.bucketAccessKey and recording.bucketSecretKey")
        require(
            rules.firstSkipWait <= rules.longestSkipWait, "roulette.firstSkipWait",
            "must not be longer than roulette.longestSkipWait")
        require(
            !metrics.isEnabled || metrics.port != port || port == 0, "metrics.port",
            "must differ from port, because metrics must not be public")
        require(
            admin.port == nil || admin.port == 0
                || (admin.port != port && (!metrics.isEnabled || admin.port != metrics.port)), "admin.port",
            "must differ from port, because the operator's page must not be public, and from metrics.port")
        require(
            moderation.program.isEmpty || moderation.url == nil, "moderation.url",
            "set either moderation.program or moderation.url, not both")
        require(
            moderation.token == nil || moderation.url != nil, "moderation.token", "requires moderation.url")
        return found + acmeConflicts + cluster.conflicts(storage: storage)
    }
}

extension ConfigurationError.Problem {
    static func unknown(key: String, source: String, known: Set<String>) -> Self {
        let nearest = known.min { (editDistance($0, key), $0) < (editDistance($1, key), $1) }
        return .init(key: key, source: source, message: "unknown key; did you mean \(nearest ?? "none")?")
    }

    static func rejected(key: ConfigurationKey, items: [String], source: String) -> Self {
        let value = key.isSecret ? "[redacted]" : items.joined(separator: ", ")
        return .init(key: key.name, value: value, source: source, message: "is invalid; expected \(key.accepts)")
    }
}

/// Returns the Levenshtein distance, ignoring case. Compares only the first 64 characters; no key is longer.
func editDistance(_ left: String, _ right: String) -> Int {
    let left = Array(left.lowercased().prefix(64))
    let right = Array(right.lowercased().prefix(64))
    var row = Array(0...right.count)
    for (index, character) in left.enumerated() {
        var diagonal = row[0]
        row[0] = index + 1
        for column in right.indices {
            let substituted = diagonal + (character == right[column] ? 0 : 1)
            diagonal = row[column + 1]
            row[column + 1] = min(substituted, row[column] + 1, row[column + 1] + 1)
        }
    }
    return row[right.count]
}
