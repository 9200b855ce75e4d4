/// Checked-in documents that are generated from the settings. `scripts/settings` generates them, and a test checks that
/// they are up to date.
public enum SettingDocuments {
    /// The text of `deploy/confab.sample.yaml`: all keys, commented out, each with its default and a comment.
    public static var sample: String {
        var text = introduction
        var group = ""
        for section in Setting.sections {
            text += "\n# ---- \(section.title) ----\n"
            for setting in section.settings {
                let parts = setting.key.name.split(separator: ".")
                if parts.count == 2, parts[0] != group {
                    group = String(parts[0])
                    text += "\n\(group):"
                }
                text += entry(setting, indent: parts.count == 2 ? "  " : "", name: parts[parts.count - 1])
            }
        }
        return text
    }

    /// Returns `page`, the text of `docs/limits.md`, with each table row that begins with the name of a setting
    /// replaced by a new one.
    public static func limits(_ page: String) -> String {
        let keys = Dictionary(uniqueKeysWithValues: ConfabConfiguration.keys.map { ($0.name, $0) })
        return page.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            guard let name = line.firstMatch(of: /^\| `(\w+\.\w+)` \|/)?.1, let key = keys[String(name)] else {
                return String(line)
            }
            let details = key.details.isEmpty ? "" : " \(key.details)"
            return "| `\(name)` | \(quantity(key)) | \(key.meaning) |\(details) |"
        }.joined(separator: "\n")
    }

    /// Endings of setting names, each with the unit that the values of these settings leave out.
    private static let units = [
        ("PerSecond", "/s"), ("Rate", "/s"), ("PerMinute", " a minute"), ("PerAddressAndDay", " a day"),
        ("Share", " %"),
    ]

    /// Returns the default with its unit: `64 KiB`, `10 min`, `20/s`, `16 MiB a day`.
    private static func quantity(_ key: ConfigurationKey) -> String {
        let unit = units.first { key.name.hasSuffix($0.0) }?.1 ?? ""
        return key.defaultText.replacing(/^(\d+)([A-Za-z]+)$/) { "\($0.1) \($0.2 == "m" ? "min" : $0.2)" } + unit
    }

    private static let introduction = """
        # Sample configuration for Confab. It lists all keys, commented out, with their defaults. To change a setting,
        # remove the "#" directly before its key. Pass the file with "confab serve --config confab.yaml".
        #
        # Command-line flags override environment variables, and environment variables override this file. The
        # environment variable for roulette.interestWait is CONFAB_ROULETTE_INTEREST_WAIT, and so on. A duration is a
        # whole number and a unit (ms, s, m, h or d). A size is a whole number and a unit (B, KiB, MiB or GiB). Unknown
        # keys and invalid values are errors. "confab serve --help-config" marks the keys that a reload (SIGHUP)
        # applies; the others need a restart.

        """

    /// The beginnings of `accepts` strings that are left out, because the default and the introduction already show
    /// what is accepted.
    private static let obvious = [
        "a whole number from", "a whole number and a unit (ms", "a whole number and a unit (B", "true or false",
        "a path", "an address or host name", "any text",
    ]

    private static func entry(_ setting: Setting, indent: String, name: Substring) -> String {
        let key = setting.key
        let accepts = obvious.contains(where: key.accepts.hasPrefix) ? "" : " Accepts \(key.accepts)."
        let empty = key.emptyMeaning.isEmpty ? "" : " Empty: \(key.emptyMeaning)."
        let value = setting.isList && key.defaultText.isEmpty ? "[]" : key.defaultText
        var text = ""
        var line = indent + "#"
        for word in "\(key.meaning) \(key.details)\(accepts)\(empty)".split(separator: " ") {
            if line.count + 1 + word.count > 120 {
                text += line + "\n"
                line = indent + "#"
            }
            line += " " + word
        }
        return "\n\(text)\(line)\n\(indent)#\(name):\(value.isEmpty ? "" : " ")\(value)\n"
    }
}
