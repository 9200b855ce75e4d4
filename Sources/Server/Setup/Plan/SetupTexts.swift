/// The existing configuration file.
struct SetupConfiguration {
    /// The beginning of a new file.
    static let heading = """
        # The configuration of Confab, begun by confab setup. You can change it: setup keeps your settings and comments.
        # "confab settings" prints all settings with their meanings.

        """

    let text: ConfigurationText
    /// The settings of the file, without those of variables and flags.
    let configuration: ConfabConfiguration
    /// The names of the settings in the file.
    let keys: Set<String>
    let known: SetupKnown

    /// - Parameter text: the text of the file; nil if there is none.
    /// - Throws: `SetupError` if it is not a configuration file, or has invalid settings.
    init(_ text: String?, _ path: String) throws(SetupError) {
        self.text = ConfigurationText(text ?? "")
        let problems: [ConfigurationError.Problem]
        do throws(ConfigurationError) {
            let file = try ConfigurationFile(yaml: text ?? "", name: path)
            var configuration = ConfabConfiguration()
            var found = file.problems
            for setting in Setting.all {
                guard let value = file.values[setting.key.name] else { continue }
                let items = setting.isList ? value.elements : [value.single]
                let trimmed = items.map { $0.trimmingBlanks() }.filter { !setting.isList || !$0.isEmpty }
                if !setting.store(trimmed, &configuration) {
                    found.append(.rejected(key: setting.key, items: trimmed, source: "in \(path)"))
                }
            }
            problems = found
            self.configuration = configuration
            keys = Set(file.values.keys)
            known = SetupKnown(configuration, keys: keys)
        } catch {
            throw SetupError("\(error)\nCorrect \(path), and run setup again.")
        }
        guard problems.isEmpty else {
            throw SetupError("\(ConfigurationError(problems: problems))\nCorrect \(path), and run setup again.")
        }
    }
}

/// A file of variables, as systemd reads it.
enum EnvironmentText {
    /// The variables, without quotation marks around their values.
    static func variables(_ text: String) -> [String: String] {
        var found: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let line = String(line).trimmingBlanks()
            guard let equals = line.firstIndex(of: "="), !line.hasPrefix("#"), !line.hasPrefix(";") else { continue }
            var value = String(line[line.index(after: equals)...]).trimmingBlanks()
            for quote in ["\"", "'"] where value.count > 1 && value.hasPrefix(quote) && value.hasSuffix(quote) {
                value = String(value.dropFirst().dropLast())
            }
            found[String(line[..<equals]).trimmingBlanks()] = value
        }
        return found
    }
}

/// The site of nginx, as it was written from the sample and perhaps changed by the operator or certbot.
struct NginxSite {
    private let lines: [Substring]

    init(_ text: String) { lines = text.split(separator: "\n", omittingEmptySubsequences: false) }

    /// The names in its `server_name` lines.
    var names: [String] {
        lines.compactMap { Self.value(of: "server_name", in: $0) }.flatMap { $0.split(separator: " ").map(String.init) }
    }

    /// The text with the server's port in the block `upstream confab`. Servers on other machines stay as they are.
    func forwarding(to port: Int) -> String {
        var isUpstream = false
        let changed = lines.map { line -> String in
            let text = String(line).trimmingBlanks()
            if text.hasPrefix("upstream confab") { isUpstream = true }
            if isUpstream, text.hasPrefix("}") { isUpstream = false }
            // The address ends at a blank: parameters such as max_fails=3 may follow.
            guard isUpstream, let place = Self.value(of: "server", in: line)?.prefix(while: { !$0.isWhitespace }),
                place.hasPrefix("127.0.0.1:"), let own = line.firstRange(of: place)
            else { return String(line) }
            return "\(line[..<own.lowerBound])127.0.0.1:\(port)\(line[own.upperBound...])"
        }
        return changed.joined(separator: "\n")
    }

    /// The value of a directive that is alone in its line.
    private static func value(of directive: String, in line: Substring) -> String? {
        let text = String(line).trimmingBlanks()
        guard text.hasPrefix(directive + " "), let end = text.firstIndex(of: ";") else { return nil }
        return String(text[..<end].dropFirst(directive.count)).trimmingBlanks()
    }
}
