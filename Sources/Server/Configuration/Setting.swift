import Wire

/// The description of a configuration key, for `--help-config`, error messages and the documents that
/// `SettingDocuments` generates.
public struct ConfigurationKey: Sendable, Equatable {
    /// The full name, with dots between the levels, such as `roulette.interestWait`.
    public let name: String
    /// The default value as written in the file; empty if there is no default.
    public let defaultText: String
    /// What the setting does, in one line.
    public let meaning: String
    /// What else an operator should know, in full sentences: reasons, what counts toward a limit, and advice. Empty if
    /// there is nothing to add.
    public let details: String
    /// The accepted values, for error messages. The text completes "expected …".
    public let accepts: String
    /// What an empty value means, such as `no limit`. Empty text if a value is required, or if `meaning` already says
    /// what an empty value means.
    public let emptyMeaning: String
    /// True if the value must never be shown.
    public let isSecret: Bool
    /// True if a reload (SIGHUP) changes the setting in the running server. Otherwise a change needs a restart.
    public let isLive: Bool

    /// The environment variable: `CONFAB_ROULETTE_INTEREST_WAIT` for `roulette.interestWait`.
    public var environmentName: String {
        var name = "CONFAB_"
        var previous: Character = "_"
        for character in self.name {
            if character.isUppercase, previous.isLowercase { name += "_" }
            name += character == "." ? "_" : character.uppercased()
            previous = character
        }
        return name
    }
}

/// A parser and writer for one type of value.
struct Format<Value: Sendable>: Sendable {
    /// The accepted values, for error messages. The text completes "expected …".
    var accepts: String
    /// What an empty value means; see `ConfigurationKey`.
    var emptyMeaning = ""
    /// True for a list, which is a sequence in the file and comma-separated text elsewhere.
    var isList = false
    /// Parses a value from its elements: exactly one, or any number for a list. Returns nil if the text is invalid.
    var parse: @Sendable ([String]) -> Value?
    var write: @Sendable (Value) -> String
}

/// A configuration key with access to its property in the configuration.
struct Setting: Sendable {
    let key: ConfigurationKey
    let isList: Bool
    /// Parses and stores a value. Returns false and stores nothing if the text is invalid.
    let store: @Sendable ([String], inout ConfabConfiguration) -> Bool
    /// Returns the setting's value as text, not redacted; empty if there is no value.
    let text: @Sendable (ConfabConfiguration) -> String
    /// Copies the setting's value from the first configuration to the second.
    let copy: @Sendable (ConfabConfiguration, inout ConfabConfiguration) -> Void

    /// When a changed value applies.
    enum Application { case atReload, atRestart }

    init<Value: Sendable>(
        _ name: String, _ path: any WritableKeyPath<ConfabConfiguration, Value> & Sendable, _ format: Format<Value>,
        _ meaning: String, _ details: String = "", isSecret: Bool = false,
        applies application: Application = .atRestart
    ) {
        text = { format.write($0[keyPath: path]) }
        copy = { $1[keyPath: path] = $0[keyPath: path] }
        store = { items, configuration in
            guard let value = format.parse(items) else { return false }
            configuration[keyPath: path] = value
            return true
        }
        isList = format.isList
        key = ConfigurationKey(
            name: name, defaultText: format.write(ConfabConfiguration()[keyPath: path]), meaning: meaning,
            details: details, accepts: format.accepts, emptyMeaning: format.emptyMeaning, isSecret: isSecret,
            isLive: application == .atReload)
    }
}

extension Format {
    /// A format for a single value.
    static func single(
        _ accepts: String, parse: @escaping @Sendable (String) -> Value?, write: @escaping @Sendable (Value) -> String
    ) -> Format {
        Format(accepts: accepts, parse: { $0.count == 1 ? parse($0[0]) : nil }, write: write)
    }

    /// A format for an optional value. Empty text means no value, so an environment variable can unset a key that the file
    /// sets.
    ///
    /// - Parameter empty: what an empty value means, such as `no limit`.
    static func optional<Wrapped>(_ format: Format<Wrapped>, empty: String = "") -> Format where Value == Wrapped? {
        Format(
            accepts: format.accepts, emptyMeaning: empty,
            parse: { items in items.allSatisfy(\.isEmpty) ? .some(nil) : format.parse(items).map(Value.some) },
            write: { $0.map(format.write) ?? "" })
    }

    /// A format for any number of elements, each of which must be valid.
    static func list<Element>(of format: Format<Element>) -> Format where Value == [Element] {
        Format(
            accepts: "a list, each item " + format.accepts, isList: true,
            parse: { items in
                let values = items.compactMap { format.parse([$0]) }
                return values.count == items.count ? values : nil
            },
            write: { $0.map(format.write).joined(separator: ", ") })
    }
}

extension Format<String> {
    /// A format for non-empty text without whitespace or control characters.
    static func word(
        _ accepts: String, where isAccepted: @escaping @Sendable (String) -> Bool = { _ in true }
    ) -> Format {
        .single(accepts, parse: { isWord($0) && isAccepted($0) ? $0 : nil }, write: { $0 })
    }

    /// A format for an address or a name to listen on. Drops the brackets of an IPv6 address, which only URLs need.
    static let host = Format.single(
        "an address or host name",
        parse: { text in
            let host = URLAuthority(host: text).host
            return isWord(host) && !host.contains(where: "[]".contains) && (host == text || IPAddress(host) != nil)
                ? host : nil
        }, write: { $0 })

    static let path = Format.single(
        "a path", parse: { $0.isEmpty || $0.unicodeScalars.contains { $0.value < 0x20 } ? nil : $0 }, write: { $0 })

    /// A format for an origin or base URL, stored with scheme and host in lower case and no trailing slash.
    static func webURL(_ accepts: String, allowsPath: Bool) -> Format {
        .single(accepts, parse: { WebURLText.normalized($0, allowsPath: allowsPath) }, write: { $0 })
    }

    private static func isWord(_ text: String) -> Bool {
        !text.isEmpty
            && text.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value != 0x7f && !$0.properties.isWhitespace }
    }
}

extension Format<SecretText> {
    static func secret(_ accepts: String, where isAccepted: @escaping @Sendable (String) -> Bool) -> Format {
        .single(accepts, parse: { isAccepted($0) ? SecretText($0) : nil }, write: \.revealed)
    }
}

extension Format<Int> {
    static func integer(_ range: ClosedRange<Int>) -> Format {
        .single(
            "a whole number from \(range.lowerBound) to \(range.upperBound)",
            parse: { text in Int(text).flatMap { range.contains($0) ? $0 : nil } }, write: { String($0) })
    }
}

extension Format<Bool> {
    static let boolean = Format.single(
        "true or false",
        parse: { text in
            switch text.lowercased() {
            case "true", "yes", "on", "1": true
            case "false", "no", "off", "0": false
            default: nil
            }
        }, write: { String($0) })
}

extension Format<Duration> {
    static func duration(_ range: ClosedRange<Duration>) -> Format {
        .single(
            "a whole number and a unit (ms, s, m, h or d), from \(DurationText.write(range.lowerBound)) to "
                + DurationText.write(range.upperBound),
            parse: { text in DurationText.parse(text).flatMap { range.contains($0) ? $0 : nil } },
            write: DurationText.write)
    }
}

extension Format<Double> {
    /// A format for a `Double` that accepts only whole numbers. Used for rate limits, which never need fractions.
    static func whole(_ range: ClosedRange<Int>) -> Format {
        let format = Format<Int>.integer(range)
        return Format(
            accepts: format.accepts, parse: { items in format.parse(items).map { Double($0) } },
            write: { format.write(Int($0.rounded())) })
    }
}

extension Format<Int> {
    /// A format for a number of bytes with a unit.
    static func size(_ range: ClosedRange<ByteCount>) -> Format {
        .single(
            "a whole number and a unit (B, KiB, MiB or GiB), from \(range.lowerBound) to \(range.upperBound)",
            parse: { text in ByteCount(text).flatMap { range.contains($0) ? $0.bytes : nil } },
            write: { ByteCount(bytes: $0).description })
    }
}

extension Format<Bitrate> {
    /// A format for a bitrate limit. The minimum is what one stream takes, so that a value with a wrong unit does not
    /// stop all media.
    static let bitrate = Format.single(
        "a whole number and a unit (kbit/s, Mbit/s or Gbit/s), from 100kbit/s to 1000Gbit/s",
        parse: { text in
            Bitrate(text).flatMap { (100_000...1_000_000_000_000).contains($0.bitsPerSecond) ? $0 : nil }
        }, write: \.description)
}

extension Format where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    static var choice: Format {
        .single(
            "one of " + Value.allCases.map(\.rawValue).joined(separator: ", "), parse: Value.init(rawValue:),
            write: \.rawValue)
    }
}

/// A minimal URL parser for settings.
enum WebURLText {
    /// Returns `http(s)://host[:port][/path]` with scheme and host in lower case and no trailing slashes.
    ///
    /// Returns nil for a URL with credentials, query, fragment or spaces, with an invalid host or port, or with a path
    /// that is not allowed. A path has segments of letters, digits and `-._~`, none of them `.` or `..`: proxies
    /// decode and resolve all other paths, each in its own way.
    static func normalized(_ text: String, allowsPath: Bool) -> String? {
        let lower = text.lowercased()
        guard let scheme = ["https://", "http://"].first(where: lower.hasPrefix), text.utf8.count <= 2048,
            text.utf8.allSatisfy({ (0x21...0x7e).contains($0) && $0 != UInt8(ascii: "\\") })
        else { return nil }
        let rest = text.dropFirst(scheme.count)
        let authority = rest.prefix { $0 != "/" }
        let path = rest[authority.endIndex...]
        guard !rest.contains(where: { "?#@".contains($0) }), isAuthority(authority.lowercased()) else { return nil }
        let trimmed = String(path.reversed().drop { $0 == "/" }.reversed())
        guard trimmed.isEmpty || (allowsPath && isPath(trimmed)) else { return nil }
        return scheme + authority.lowercased() + trimmed
    }

    /// Returns the path of a normalized URL. Runs for every request, so it searches bytes instead of characters, which
    /// is faster.
    static func path(_ url: String) -> String { String(Substring(afterScheme(url).drop { $0 != UInt8(ascii: "/") })) }

    /// Returns the host of a normalized URL, without the brackets of an IPv6 address.
    static func host(_ url: String) -> String {
        let authority = Substring(afterScheme(url).prefix { $0 != UInt8(ascii: "/") })
        let host = authority.hasPrefix("[") ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
        return URLAuthority(host: host).host
    }

    private static func afterScheme(_ url: String) -> Substring.UTF8View {
        url.utf8.drop { $0 != UInt8(ascii: "/") }.dropFirst(2)
    }

    private static func isPath(_ text: String) -> Bool {
        text.dropFirst().split(separator: "/", omittingEmptySubsequences: false).allSatisfy { segment in
            !segment.isEmpty && segment != "." && segment != ".." && segment.utf8.allSatisfy(isPathByte)
        }
    }

    private static func isPathByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "~"): true
        default: isHostByte(byte)
        }
    }

    private static func isAuthority(_ text: String) -> Bool {
        let host: Substring
        if text.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]"), IPAddress(text[..<close].dropFirst()) != nil else {
                return false
            }
            host = text[...close]
        } else {
            host = text.prefix { $0 != ":" }
            guard !host.isEmpty, host.utf8.allSatisfy(isHostByte) else { return false }
        }
        let port = text[host.endIndex...]
        return port.isEmpty || (port.hasPrefix(":") && UInt16(port.dropFirst()) != nil)
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
        }
    }
}
