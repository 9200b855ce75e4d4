import Yams

/// A YAML file, flattened to dotted keys. Values stay text; the settings parse them, so that errors can quote the file.
struct ConfigurationFile {
    /// A value in the file, as written there.
    enum Value: Equatable {
        case text(String)
        case list([String])

        /// The elements of a list. A value written as text is split at commas.
        var elements: [String] {
            switch self {
            case .text(let text): text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            case .list(let items): items
            }
        }

        /// The value as a single string. Commas are kept, because a path may contain one.
        var single: String {
            switch self {
            case .text(let text): text
            case .list(let items): items.joined(separator: ",")
            }
        }
    }

    /// The values of all known keys that the file sets.
    private(set) var values: [String: Value] = [:]
    private(set) var problems: [ConfigurationError.Problem] = []
    private let source: String

    /// Parses the text of a file.
    ///
    /// - Throws: `ConfigurationError` if the text is not a YAML mapping. Other errors are added to ``problems``.
    init(yaml: String, name: String) throws(ConfigurationError) {
        source = "in \(name)"
        let root: Node?
        do {
            root = try Parser(yaml: yaml).singleRoot()
        } catch {
            throw ConfigurationError(problems: [.init(source: source, message: "is not valid YAML: \(error)")])
        }
        // Accept a file with only comments, which sets nothing.
        guard let root, !root.isEmptyScalar else { return }
        guard let mapping = root.mapping else {
            throw ConfigurationError(problems: [
                .init(source: source, message: "expected keys and values, such as \"port: 8080\"")
            ])
        }
        add(mapping, under: "")
    }

    private mutating func add(_ mapping: Node.Mapping, under prefix: String) {
        for (keyNode, node) in mapping {
            guard let key = keyNode.scalar?.string else {
                problems.append(.init(source: source, message: "keys must be plain text"))
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
                .init(key: name, source: source, message: "expected \(isList ? "a list of values" : "a single value")"))
            return
        }
        // Check for duplicates: a file may set the same key in nested and in dotted form, and the parser detects
        // duplicates only within one mapping.
        if values.updateValue(value, forKey: name) != nil {
            problems.append(.init(key: name, source: source, message: "is set twice"))
        }
    }

    /// For each known key, whether its value is a list.
    private static let settings = Dictionary(uniqueKeysWithValues: Setting.all.map { ($0.key.name, $0.isList) })

    /// The names of key groups, such as `roulette` and `tls`. A group may be empty, because all of its keys can be commented
    /// out.
    private static let groups = Set(settings.keys.compactMap { $0.split(separator: ".").first.map(String.init) })
        .subtracting(settings.keys)
}

extension Node {
    /// True for an empty value, `~` or `null`.
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
