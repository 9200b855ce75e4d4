import Foundation
import Signaling
import Testing

@testable import Server

/// Checks that the code defines each default once, and that help and documents agree with it.
@Suite("The configuration's defaults") struct DefaultsTests {
    private static let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// The files that declare the settings.
    private static let homes = [
        "Signaling/Rules.swift", "Server/Configuration/ConfabConfiguration.swift",
        "Server/Configuration/ConfabConfiguration+Tracing.swift",
        "Server/Push/PushConfiguration.swift", "Server/Webhooks/WebhookConfiguration.swift",
    ]

    private static func files(below folder: String, _ ending: String) throws -> [(path: String, text: String)] {
        let base = root.appendingPathComponent(folder)
        let names = try FileManager.default.subpathsOfDirectory(atPath: base.path).filter { $0.hasSuffix(ending) }
        return try names.sorted().map { ($0, try String(contentsOf: base.appendingPathComponent($0), encoding: .utf8)) }
    }

    /// Returns the names of stored properties with a numeric default, such as `var grace: Duration = .seconds(5)`.
    private static func numbers(in text: String) -> [String] {
        let property =
            /(?:var|let) (?<name>\w+)(?:: [\w.]+\??)? = (?:\d|\.(?:milli)?seconds\(\d|Budget\.Rate\(|Duration\.seconds\(\d)/
        return text.split(separator: "\n").filter { $0.hasPrefix("    ") }.compactMap { line in
            line.firstMatch(of: property).map { String($0.output.name) }
        }
    }

    @Test("no other type of the server and no message repeats a default")
    func onlyHere() throws {
        // Many types have a port, an interval or a timeout, and many local variables are named seconds.
        let ambiguous: Set = ["interval", "port", "seconds", "timeout"]
        let sources = try Self.files(below: "Sources", ".swift")
        let homes = sources.filter { Self.homes.contains($0.path) }
        #expect(homes.count == Self.homes.count)
        let settings = Set(homes.flatMap { Self.numbers(in: $0.text) }).subtracting(ambiguous)
        #expect(settings.count > 60, "the pattern must find the settings")
        for (path, text) in sources where !Self.homes.contains(path) {
            guard ["Server/", "Signaling/", "Command/", "Wire/Messages/"].contains(where: path.hasPrefix) else {
                continue
            }
            #expect(settings.intersection(Self.numbers(in: text)).sorted() == [], "\(path) repeats a default")
        }
    }

    @Test("the server routes media, and its other rules are the defaults of Rules")
    func rules() {
        var rules = ConfabConfiguration().rules
        #expect(rules.routesMedia)
        rules.routesMedia = false
        #expect(rules == Rules())
    }

    @Test("setting a key changes only that setting")
    func independence() throws {
        for setting in Setting.all {
            guard let other = Self.otherValue(of: setting) else { continue }
            var configuration = ConfabConfiguration()
            let isStored = setting.store([other], &configuration)
            #expect(isStored, "\(setting.key.name)")
            let changed = Setting.all.filter { $0.text(configuration) != $0.key.defaultText }.map(\.key.name)
            #expect(changed == [setting.key.name])
        }
    }

    /// Returns a valid value that is not the default; nil unless the setting is a number, duration, size or choice.
    private static func otherValue(of setting: Setting) -> String? {
        let candidates = ["7", "3", "7s", "3s", "7KiB", "3KiB", "true", "false", "relayed", "json", "debug"]
        var scratch = ConfabConfiguration()
        return candidates.first { $0 != setting.key.defaultText && !setting.isList && setting.store([$0], &scratch) }
    }

    @Test("`confab serve --help-config` prints a line per key, with its default and meaning, and what a reload applies")
    func help() {
        let lines = ConfabConfiguration.help.split(separator: "\n")
        #expect(lines.count == ConfabConfiguration.keys.count)
        for (line, key) in zip(lines, ConfabConfiguration.keys) {
            let text = key.defaultText.isEmpty ? "unset" : key.defaultText
            #expect(line == "\(key.name) (\(text)): \(key.meaning)" + (key.isLive ? " [reload]" : ""))
        }
        for start in ["port (8080): ", "publicURL (unset): "] {
            #expect(lines.contains { $0.hasPrefix(start) })
        }
    }

    @Test("docs/operations.md lists exactly the keys that a reload applies")
    func reloaded() throws {
        let text = try String(contentsOf: Self.root.appendingPathComponent("docs/operations.md"), encoding: .utf8)
        let section = try #require(text.components(separatedBy: "## Reloading").dropFirst().first)
            .components(separatedBy: "\n## ")[0]
        let table = section.split(separator: "\n").filter { $0.hasPrefix("| ") }.joined()
        let listed = table.matches(of: /`(\w+(?:\.\w+)?)`/).map { String($0.output.1) }
        #expect(listed.sorted() == ConfabConfiguration.keys.filter(\.isLive).map(\.name).sorted())
    }

    /// Finds `` `key` (value) `` and ``value (`key`)`` in the documents.
    @Test("defaults in the documents are correct")
    func documents() throws {
        let defaults = Dictionary(uniqueKeysWithValues: ConfabConfiguration.keys.map { ($0.name, $0.defaultText) })
        var found = 0
        for (path, text) in try Self.files(below: "docs", ".md") {
            let line = text.split(separator: "\n").joined(separator: " ")
            let after = line.matches(of: /`(?<key>\w+\.\w+)` \((?<value>\d[^)]*)\)/).map {
                ($0.output.key, $0.output.value)
            }
            let before = line.matches(of: /(?<value>\d+ \w+) \(`(?<key>\w+\.\w+)`\)/).map {
                ($0.output.key, $0.output.value)
            }
            for (key, value) in after + before {
                guard let text = defaults[String(key)] else { continue }
                found += 1
                #expect(Self.matches(String(value), text), "\(path): \(key) is \(text), not \(value)")
            }
        }
        #expect(found >= 8, "the pattern must find the defaults in the documents")
    }

    /// True if prose ("30 days", "10 s", "20 lines") has the same value as the text in the file ("30d", "10s", "20").
    private static func matches(_ prose: String, _ text: String) -> Bool {
        if prose == text { return true }
        let number = String(prose.prefix { $0.isNumber })
        let unit = String(prose.dropFirst(number.count).drop { $0 == " " }.prefix(1))
        return [number, number + unit].contains(text)
    }
}
