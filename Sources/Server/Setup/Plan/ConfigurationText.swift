/// The text of a configuration file, in which single settings can be changed. Comments, the order and all other settings stay as
/// they are.
///
/// It understands the usual forms of YAML: a key at the beginning of a line, in a group or with dots, and a value after it or in
/// indented lines below. ``isAsExpected(after:before:)`` parses the result, and finds out if the file uses other forms.
struct ConfigurationText: Equatable, Sendable {
    /// A setting with its new value.
    struct Change: Equatable, Sendable {
        /// The name of the setting, such as `acme.domains`.
        var key: String
        /// The new value, an empty list for an empty one; nil to remove the setting, so that its default applies.
        var value: [String]?
        /// Whether the value is a list in the file.
        var isList = false
    }

    /// The lines without their newlines.
    private var lines: [String]

    init(_ text: String) {
        // By scalars: as a character, a newline after a carriage return is another one.
        lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
    }

    /// The whole file.
    var text: String { lines.joined(separator: "\n") }

    /// Sets or removes a setting.
    mutating func apply(_ change: Change) {
        let place = place(of: change.key)
        guard let value = change.value else {
            if let found = place.found { lines.replaceSubrange(found, with: comments(in: found.dropFirst())) }
            return
        }
        let written = Self.written(value, isList: change.isList)
        guard let found = place.found else {
            insert("\(place.name): \(written)", place)
            return
        }
        let line = lines[found.lowerBound]
        let name = line.prefix { $0 != ":" }
        let comment = found.count == 1 ? String(Self.comment(of: line)) : ""
        lines.replaceSubrange(found, with: comments(in: found.dropFirst()) + ["\(name): \(written)\(comment)"])
    }

    /// Whether the settings in this text are those of the text before with the changes, and nothing else changed.
    func isAsExpected(after changes: [Change], before: ConfigurationText) -> Bool {
        guard let old = try? ConfigurationFile(yaml: before.text, name: ""),
            let new = try? ConfigurationFile(yaml: text, name: ""), new.problems == old.problems
        else { return false }
        var expected = old.values.mapValues(\.elements)
        for change in changes { expected[change.key] = change.value }
        // An empty list is written as an empty value or as [].
        func cleaned(_ values: [String: [String]]) -> [String: [String]] {
            values.mapValues { $0.map { $0.trimmingBlanks() }.filter { !$0.isEmpty } }
        }
        return cleaned(expected) == cleaned(new.values.mapValues(\.elements))
    }

    // MARK: Finding

    /// Where a setting is, or belongs.
    private struct Place {
        /// The lines of the setting; nil if the file does not set it.
        var found: Range<Int>?
        /// The name at the beginning of the line.
        var name: String
        /// The line of its group; nil if the setting has none, or the file does not have the group.
        var group: Int?
        /// The group's name, if the setting has one.
        var groupName: String?
    }

    private func place(of key: String) -> Place {
        let parts = key.split(separator: ".", maxSplits: 1).map(String.init)
        // A file may also have the whole name at the beginning of a line.
        if let line = line(key, in: lines.indices, depth: 0) { return Place(found: extent(of: line), name: key) }
        guard parts.count == 2 else { return Place(name: key) }
        var place = Place(name: parts[1], group: line(parts[0], in: lines.indices, depth: 0), groupName: parts[0])
        if let group = place.group {
            let block = block(of: group)
            if let depth = childDepth(of: block), let line = line(parts[1], in: block, depth: depth) {
                place.found = extent(of: line)
            }
        }
        return place
    }

    private func line(_ name: String, in range: Range<Int>, depth: Int) -> Int? {
        range.first { Self.depth(of: lines[$0]) == depth && Self.name(in: lines[$0]) == name }
    }

    /// The lines below the key of a group that belong to it.
    private func block(of group: Int) -> Range<Int> {
        let end = lines[(group + 1)...].firstIndex { Self.isContent($0) && Self.depth(of: $0) == 0 } ?? lines.endIndex
        // Comments at the margin introduce what follows.
        let last = lines[(group + 1)..<end].lastIndex { !Self.isBlank($0) && Self.depth(of: $0) > 0 }
        return (group + 1)..<(last.map { $0 + 1 } ?? group + 1)
    }

    /// The indentation of the keys of a group.
    private func childDepth(of block: Range<Int>) -> Int? {
        block.first { Self.isContent(lines[$0]) }.map { Self.depth(of: lines[$0]) }
    }

    /// A setting's line, with the lines of its value below.
    private func extent(of line: Int) -> Range<Int> {
        let depth = Self.depth(of: lines[line])
        var end = line + 1
        for index in lines.indices.dropFirst(line + 1) {
            let text = lines[index]
            guard Self.isContent(text) else { continue }
            let own = Self.depth(of: text)
            // A list may be as far to the left as its key, and so may the bracket at its end.
            let belongs = own > depth || own == depth && "-]".contains(text.dropFirst(own).first ?? " ")
            guard belongs else { break }
            end = index + 1
        }
        return line..<end
    }

    private func comments(in range: some Sequence<Int>) -> [String] {
        range.map { lines[$0] }.filter { !Self.isContent($0) && !Self.isBlank($0) }
    }

    // MARK: Inserting

    private mutating func insert(_ setting: String, _ place: Place) {
        guard let groupName = place.groupName else {
            if let sample = sample(of: place.name, in: lines.indices, depth: 0) {
                lines.insert(setting, at: sample + 1)
            } else {
                append([setting])
            }
            return
        }
        guard let group = place.group else { return append(["", "\(groupName):", "  \(setting)"]) }
        let block = block(of: group)
        let depth = childDepth(of: block) ?? block.first.map { Self.depth(of: lines[$0]) } ?? 2
        let line = String(repeating: " ", count: depth) + setting
        if let sample = sample(of: place.name, in: block, depth: depth) {
            lines.insert(line, at: sample + 1)
        } else {
            lines.insert(line, at: block.upperBound)
        }
    }

    /// The line in which the setting is commented out, as in the sample.
    private func sample(of name: String, in range: Range<Int>, depth: Int) -> Int? {
        range.first { Self.depth(of: lines[$0]) == depth && lines[$0].dropFirst(depth).hasPrefix("#\(name):") }
    }

    /// Adds lines at the end, in front of the last newline.
    private mutating func append(_ added: [String]) {
        while let last = lines.last, Self.isBlank(last) { lines.removeLast() }
        let isFirst = lines.isEmpty
        lines += isFirst ? Array(added.drop { $0.isEmpty }) : added
        lines.append("")
    }

    // MARK: Lines

    private static func depth(of line: String) -> Int { line.prefix { $0 == " " }.count }

    private static func isBlank(_ line: String) -> Bool { line.allSatisfy(\.isWhitespace) }

    /// Whether a line has more than a comment.
    private static func isContent(_ line: String) -> Bool {
        !isBlank(line) && line.drop(while: \.isWhitespace).first != "#"
    }

    /// The key at the beginning of a line; nil if there is none.
    private static func name(in line: String) -> String? {
        guard isContent(line), let colon = line.firstIndex(of: ":") else { return nil }
        let rest = line[line.index(after: colon)...]
        guard rest.isEmpty || rest.first?.isWhitespace == true else { return nil }
        let name = String(line[..<colon]).trimmingBlanks()
        for quote in ["\"", "'"] where name.count > 2 && name.hasPrefix(quote) && name.hasSuffix(quote) {
            return String(name.dropFirst().dropLast())
        }
        return name
    }

    /// The comment at the end of a line, with the blanks before it; empty if there is none.
    private static func comment(of line: String) -> Substring {
        var quote: Character?
        var previous: Character = ":"
        for index in line.indices {
            let character = line[index]
            if let open = quote {
                if character == open { quote = nil }
            } else if "\"'".contains(character), previous.isWhitespace || "[{,".contains(previous) {
                quote = character
            } else if character == "#", previous.isWhitespace {
                let blanks = line[..<index].reversed().prefix { $0 == " " }.count
                return line[line.index(index, offsetBy: -blanks)...]
            }
            previous = character
        }
        return ""
    }

    /// A value as it is written after the colon.
    private static func written(_ value: [String], isList: Bool) -> String {
        isList ? "[" + value.map(quoted).joined(separator: ", ") + "]" : value.first.map(quoted) ?? ""
    }

    private static func quoted(_ text: String) -> String {
        let plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/@+-:?="
        let first = text.first.map { $0.isLetter || $0.isNumber || $0 == "/" } ?? true
        if first, text != "null", !text.hasSuffix(":"), text.allSatisfy({ plain.contains($0) }) { return text }
        var escaped = ""
        for character in text {
            if "\"\\".contains(character) { escaped += "\\" }
            escaped.append(character)
        }
        return "\"\(escaped)\""
    }
}
