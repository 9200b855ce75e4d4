import Configuration
import Signaling

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension ConfabConfiguration {
    /// `CONFAB_*` variables that scripts use and that are no keys of the server.
    public static let scriptVariables: Set = [
        "CONFAB_BINARY", "CONFAB_BROWSER_CACHE", "CONFAB_BROWSER_JOBS", "CONFAB_BROWSER_TIER", "CONFAB_BUILD",
        "CONFAB_CONFIG", "CONFAB_MODEL_EVENTS", "CONFAB_MODEL_SEED", "CONFAB_MUTATION_SECONDS", "CONFAB_MUTATION_SEED",
        "CONFAB_REPORT", "CONFAB_STATE",
    ]

    /// A warning for each `CONFAB_*` variable that is no key, with the nearest that is. Not an error, as in a file: an
    /// environment is shared with whatever else the operator runs.
    public static func warnings(about environment: [String: String]) -> [String] {
        let known = Set(Setting.all.map(\.key.environmentName))
        return environment.keys.sorted()
            .filter { $0.hasPrefix("CONFAB_") && !known.contains($0) && !scriptVariables.contains($0) }
            .map { ConfigurationError.Problem.unknown(key: $0, source: "in the environment", known: known).description }
    }

    /// A configuration file larger than this is some other file.
    private static let largestFile: ByteCount = .mebibytes(1)

    /// Reads the configuration: flags win over `CONFAB_*` variables, those over the file, the file over the defaults.
    ///
    /// ```swift
    /// let configuration = try ConfabConfiguration.load(
    ///     overrides: ["port": "0"], environment: ProcessInfo.processInfo.environment, file: "confab.yaml")
    /// ```
    ///
    /// - Parameters:
    ///   - overrides: the flags given, by key name (`roulette.interestWait`); lists are comma-separated.
    ///   - environment: all variables; those not beginning with `CONFAB_` are ignored.
    ///   - file: path of a YAML file; nil reads none.
    /// - Throws: `ConfigurationError` with every problem: keys that do not exist, values that are not accepted, and
    ///   values that contradict each other.
    public static func load(
        overrides: [String: String] = [:], environment: [String: String] = [:], file: String? = nil
    ) throws(ConfigurationError) -> ConfabConfiguration {
        var text: String?
        if let file { text = try contents(of: file) }
        return try load(overrides: overrides, environment: environment, yaml: text, named: file ?? "the file")
    }

    /// The same with the file's text; `name` is what errors call it.
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
        if problems.isEmpty { problems = configuration.contradictions }
        guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
        return configuration
    }

    /// The winning value's elements; nil when nobody gave one.
    private static func items(of setting: Setting, in reader: ConfigReader) -> [String]? {
        let key = ConfigKey(setting.key.name)
        let items =
            setting.isList
            ? reader.stringArray(forKey: key)
            : reader.string(forKey: key, isSecret: setting.key.isSecret).map { [$0] }
        // Blanks around a value are never meant; variables come with them. A secret is taken as it is: blanks alone are a
        // secret that is too weak, not one that is unset.
        let trimmed = setting.key.isSecret ? items : items?.map { $0.trimmingBlanks() }
        return setting.isList ? trimmed?.filter { !$0.isEmpty } : trimmed
    }

    /// Values in the shape in which the reader will ask for them; unknown keys, already reported, drop out.
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
            source: "in \(path)", message: "cannot be read; check that the file is there")
        do {
            let data = try Data(contentsOf: URL(fileURLWithPath: path))
            problem.message = "is no configuration: give a UTF-8 text file of at most \(largestFile)"
            if data.count <= largestFile.bytes, let text = String(validating: data, as: UTF8.self) { return text }
        } catch {}
        throw ConfigurationError(problems: [problem])
    }

    /// Values that are fine one by one and wrong together.
    private var contradictions: [ConfigurationError.Problem] {
        var found: [ConfigurationError.Problem] = []
        func require(_ condition: Bool, _ key: String, _ message: String) {
            if !condition { found.append(.init(key: key, message: message)) }
        }
        require(
            (tls.certificate == nil) == (tls.privateKey == nil), "tls.certificate",
            "give both tls.certificate and tls.privateKey, or neither")
        require(
            (ice.turnUsername == nil) == (ice.turnPassword == nil), "ice.turnUsername",
            "give both ice.turnUsername and ice.turnPassword, or neither")
        require(
            ice.turnSecret == nil || ice.turnUsername == nil, "ice.turnSecret",
            "give either ice.turnSecret or a fixed ice.turnUsername and ice.turnPassword, not both")
        require(
            ice.turnServers.isEmpty || ice.turnSecret != nil || ice.turnUsername != nil, "ice.turnServers",
            "TURN servers need ice.turnSecret, or ice.turnUsername and ice.turnPassword")
        require(
            rules.firstSkipWait <= rules.longestSkipWait, "roulette.firstSkipWait",
            "must not be longer than roulette.longestSkipWait")
        require(
            !metrics.isEnabled || metrics.port != port || port == 0, "metrics.port",
            "must differ from port: metrics are not for the public")
        return found
    }
}

extension ConfigurationError.Problem {
    static func unknown(key: String, source: String, known: Set<String>) -> Self {
        let nearest = known.min { (editDistance($0, key), $0) < (editDistance($1, key), $1) }
        return .init(key: key, source: source, message: "there is no such key; the nearest is \(nearest ?? "none")")
    }

    static func rejected(key: ConfigurationKey, items: [String], source: String) -> Self {
        let value = key.isSecret ? "[redacted]" : items.joined(separator: ", ")
        return .init(key: key.name, value: value, source: source, message: "is not accepted; give \(key.accepts)")
    }
}

/// Levenshtein's distance, ignoring case; both sides are cut at 64 characters, longer than any key.
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
