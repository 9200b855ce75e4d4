/// The command with which a systemd unit starts the server.
struct UnitCommand: Equatable {
    /// The text after `ExecStart=`, on one line.
    let text: String

    /// Returns the values of a key in a unit, in their order. A backslash at the end of a line continues it.
    static func values(of key: String, in unit: String) -> [String] {
        unit.replacing("\\\n", with: " ").split(whereSeparator: \.isNewline).compactMap { line in
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, String(parts[0]).trimmingBlanks() == key else { return nil }
            return String(parts[1]).trimmingBlanks()
        }
    }

    /// The last command of a unit; nil if it has none.
    init?(in unit: String) {
        guard let text = Self.values(of: "ExecStart", in: unit).last, !text.isEmpty else { return nil }
        self.init(text: text.replacing("\t", with: " "))
    }

    private init(text: String) { self.text = text }

    /// The path of the executable; nil if it is not absolute.
    var program: String? {
        // systemd allows these characters before the path.
        let path = text.drop { "@-:+!|".contains($0) }.prefix { $0 != " " }
        return path.hasPrefix("/") ? String(path) : nil
    }

    /// Returns the command with these options, such as `--config`. Everything else stays as it is.
    ///
    /// - Returns: nil if the options would have to change, and the command does not run `serve` or has quotation marks or escapes.
    func setting(_ options: KeyValuePairs<String, String>) -> UnitCommand? {
        var words = text.split(separator: " ", omittingEmptySubsequences: false).map { String($0) }
        for (name, value) in options {
            var isSet = false
            for index in words.indices {
                let word = Self.bare(words[index])
                if word.hasPrefix("\(name)=") {
                    isSet = true
                    if word != "\(name)=\(value)" { words[index] = "\(name)=\(value)" }
                } else if word == name, let next = words.indices.first(where: { $0 > index && !words[$0].isEmpty }) {
                    isSet = true
                    if Self.bare(words[next]) != value { words[next] = value }
                }
            }
            if !isSet { words += [name, value] }
        }
        let changed = UnitCommand(text: words.joined(separator: " "))
        if changed == self { return self }
        return words.contains("serve") && !text.contains { "\"'\\".contains($0) } ? changed : nil
    }

    private static func bare(_ word: String) -> String { word.filter { $0 != "\"" && $0 != "'" } }
}
