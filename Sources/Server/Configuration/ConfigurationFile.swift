import Yams

/// A YAML file flattened to dotted keys. Values stay text: what a number or duration is, the settings decide, so that a
/// wrong one is reported with the words that stand in the file.
struct ConfigurationFile {
    enum Value: Equatable {
        case text(String)
        case list([String])

        /// Text outside YAML, and lazy YAML, writes a list with commas.
        var elements: [String] {
            switch self {
            case .text(let text): text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            case .list(let items): items
            }
        }

        /// As one value, whose commas are its own: a path may have one.
        var single: String {
            switch self {
            case .text(let text): text
            case .list(let items): items.joined(separator: ",")
            }
        }
    }

    /// Of known keys only.
    private(set) var values: [String: Value] = [:]
    private(set) var problems: [ConfigurationError.Problem] = []
    private let source: String

    /// - Throws: `ConfigurationError` when the text is no YAML mapping. Everything smaller is in ``problems``.
    init(yaml: String, name: String) throws(ConfigurationError) {
        source = "in \(name)"
        let root: Node?
        do {
            root = try Parser(yaml: yaml).singleRoot()
        } catch {
            throw ConfigurationError(problems: [.init(source: source, message: "is not valid YAML: \(error)")])
        }
        // A file of comments is a file of defaults.
        guard let root, !root.isEmptyScalar else { return }
        guard let mapping = root.mapping else {
            throw ConfigurationError(problems: [
                .init(source: source, message: "give keys and values, such as \"port: 8080\"")
            ])
        }
        add(mapping, under: "")
    }

    private mutating func add(_ mapping: Node.Mapping, under prefix: String) {
        for (keyNode, node) in mapping {
            guard let key = keyNode.scalar?.string else {
                problems.append(.init(source: source, message: "a key is not plain text"))
                continue
            }
            let name = prefix + key
            if let nested = node.mapping, !Self.settings.keys.contains(name) {
                add(nested, under: name + ".")
            } else if !(node.isEmptyScalar && Self.groups.contains(name)) {
                add(node, named: name)
            }
        }
    }

    private mutating func add(_ node: Node, named name: String) {
        guard let isList = Self.settings[name] else {
            problems.append(.unknown(key: name, source: source, known: Set(Self.settings.keys)))
            return
        }
        let value: Value
        let items = node.sequence?.compactMap(\.scalar?.string)
        if node.isEmptyScalar {
            value = .text("")
        } else if let text = node.scalar?.string {
            value = .text(text)
        } else if let items, isList, items.count == node.sequence?.count {
            value = .list(items)
        } else {
            problems.append(
                .init(key: name, source: source, message: "give \(isList ? "a list of values" : "one value")"))
            return
        }
        // The same key can be spelt nested and dotted; the parser sees repetition only within one mapping.
        if values.updateValue(value, forKey: name) != nil {
            problems.append(.init(key: name, source: source, message: "is given twice"))
        }
    }

    /// Key name to "is a list".
    private static let settings = Dictionary(uniqueKeysWithValues: Setting.all.map { ($0.key.name, $0.isList) })

    /// `roulette`, `tls` and so on, which may stand there with everything below commented out.
    private static let groups = Set(settings.keys.compactMap { $0.split(separator: ".").first.map(String.init) })
        .subtracting(settings.keys)
}

extension Node {
    /// Nothing, `~` or `null`.
    fileprivate var isEmptyScalar: Bool {
        guard let scalar, scalar.style == .plain || scalar.style == .any else { return false }
        return ["", "~", "null"].contains(scalar.string)
    }
}

extension String {
    func trimmingBlanks() -> String {
        let start = drop(while: \.isWhitespace)
        return String(start.reversed().drop(while: \.isWhitespace).reversed())
    }
}
