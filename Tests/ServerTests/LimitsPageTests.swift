import Foundation
import Signaling
import Testing

@testable import Server

/// Compares `docs/limits.md` with the configuration and the sources.
@Suite("The page of limits") struct LimitsPageTests {
    /// Constants whose values are computed, or that are not numbers.
    private static let computed: Set = [
        "DescriptorBudget.connections", "DescriptorBudget.transfers", "RobotConnection.maxSources", "Room.maxBudgets",
        "Rules.messages", "Rules.reports", "SRTPReceiver.maxControlSources",
    ]
    /// Constants that limit nothing that a client does.
    private static let internals: Set = ["maxAddresses", "maxAnswering", "maxIdentities", "maxReads", "maxTextSize"]

    private static let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// A row: the names in its first column, and the text of its second.
    private struct Row {
        var names: [String]
        var value: String
    }

    private let page: String
    private let rows: [Row]
    private let sources: [(path: String, text: String)]

    init() throws {
        page = try String(contentsOf: Self.root.appendingPathComponent("docs/limits.md"), encoding: .utf8)
        rows = page.split(separator: "\n").filter { $0.hasPrefix("| ") }.compactMap { line in
            let columns = line.dropFirst(2).components(separatedBy: " | ")
            let names = columns[0].matches(of: /`([\w.]+)`/).map { String($0.output.1) }
            return columns.count < 4 || names.isEmpty ? nil : Row(names: names, value: columns[1])
        }
        let base = Self.root.appendingPathComponent("Sources")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: base.path).filter { $0.hasSuffix(".swift") }
        sources = try paths.sorted().map {
            ($0, try String(contentsOf: base.appendingPathComponent($0), encoding: .utf8))
        }
    }

    // MARK: Numbers

    private static let units: [Substring: Double] = [
        "": 1, "KiB": 1024, "MiB": 1_048_576, "GiB": 1_073_741_824, "ms": 0.001, "s": 1, "m": 60, "h": 3600,
        "d": 86_400, "day": 86_400,
    ]

    /// Returns the numbers in a text such as "4 MiB/s, 10s" in bytes and seconds.
    private static func numbers(in text: String) -> [Double] {
        text.matches(of: /(\d+(?:\.\d+)?) ?(KiB|MiB|GiB|day|ms|s|m|h|d)?(?![a-zA-Z])/).map {
            (Double($0.output.1) ?? 0) * (units[$0.output.2 ?? ""] ?? 1)
        }
    }

    /// Returns the values of an initializer such as `4 << 20`, `.seconds(10)` or `Budget.Rate(perSecond: 2, burst: 100)`.
    private static func values(of text: String) -> [Double]? {
        if let rate = text.wholeMatch(of: /Budget\.Rate\(perMinute: (.+)\)/) {
            return values(of: String(rate.output.1))
        }
        if let rate = text.wholeMatch(of: /Budget\.Rate\(perSecond: (.+), burst: (.+)\)/) {
            guard let perSecond = values(of: String(rate.output.1)), let burst = values(of: String(rate.output.2))
            else { return nil }
            return perSecond + burst
        }
        if let time = text.wholeMatch(of: /\w*\.(milliseconds|seconds)\((.+)\)/) {
            let unit = time.output.1 == "seconds" ? 1 : 0.001
            return values(of: String(time.output.2))?.map { $0 * unit }
        }
        let factors = text.components(separatedBy: " * ").map(shifted)
        return factors.contains(nil) ? nil : [factors.compactMap { $0 }.reduce(1, *)]
    }

    private static func shifted(_ text: String) -> Double? {
        let parts = text.components(separatedBy: " << ").map { Double($0.filter { $0 != "_" }) }
        guard let number = parts[0], parts.count <= 2, let shift = parts.count == 2 ? parts[1] : 0 else { return nil }
        return number * Double(sign: .plus, exponent: Int(shift), significand: 1)
    }

    /// Returns the files that declare or extend the type.
    private func files(of type: String) throws -> [String] {
        let declaration = try Regex("\\b(?:struct|class|enum|actor|extension) \(type)\\b")
        return sources.map(\.text).filter { $0.contains(type) && $0.contains(declaration) }
    }

    /// Returns the initializer of a property.
    private static func initializer(of name: String, in files: [String]) throws -> String? {
        let property = try Regex("(?:let|var) \(name)(?:: \\w+)? = (.+)")
        for text in files {
            if let value = text.firstMatch(of: property)?.output[1].substring { return String(value) }
        }
        return nil
    }

    // MARK: Tests

    @Test("has the default of each key")
    func keys() {
        let defaults = Dictionary(uniqueKeysWithValues: ConfabConfiguration.keys.map { ($0.name, $0.defaultText) })
        var found = 0
        for row in rows {
            let keys = row.names.filter { $0.first?.isLowercase == true && $0.contains(".") }
            guard !keys.isEmpty else { continue }
            found += keys.count
            for key in keys where defaults[key] == nil { Issue.record("there is no key \(key)") }
            let expected = keys.flatMap { Self.numbers(in: defaults[$0] ?? "") }
            #expect(Array(Self.numbers(in: row.value).prefix(expected.count)) == expected, "\(keys)")
        }
        #expect(found > 40, "the pattern must find the keys")
    }

    @Test("has the value of each constant")
    func constants() throws {
        var count = 0
        var files: [String: [String]] = [:]
        for row in rows {
            var type: String?
            var expected: [Double] = []
            for name in row.names {
                let parts = name.split(separator: ".").map(String.init)
                if parts.count == 2, name.first?.isUppercase == true { type = parts[0] }
                guard let type, let constant = parts.last, constant.first?.isLowercase == true,
                    !Self.computed.contains(name)
                else { continue }
                if files[type] == nil { files[type] = try self.files(of: type) }
                let found = try Self.initializer(of: constant, in: files[type] ?? [])
                let text = try #require(found, "there is no \(type).\(constant)")
                expected += try #require(Self.values(of: text), "\(type).\(constant) is \(text)")
                count += 1
            }
            #expect(Array(Self.numbers(in: row.value).prefix(expected.count)) == expected, "\(row.names)")
        }
        #expect(count > 50, "the pattern must find the constants")
        let messages = Rules().messages
        #expect(rows.first { $0.names == ["Rules.messages"] }?.value == "120/s, 1056")
        #expect([messages.perSecond, messages.burst] == [120, 1056])
    }

    @Test("names every limit of the configuration and every budget of the rules")
    func complete() throws {
        let listed = Set(rows.flatMap(\.names))
        for key in ConfabConfiguration.keys where key.name.hasPrefix("limits.") {
            #expect(listed.contains(key.name), "\(key.name)")
        }
        let rules = try #require(sources.first { $0.path == "Signaling/Rules.swift" }).text
        let settings = sources.filter { $0.path.hasPrefix("Server/Configuration/") }.map(\.text).joined()
        // The keys that set each rule.
        let keys = Dictionary(
            grouping: settings.matches(of: /"(\w+\.\w+)", \\\.rules\.(\w+)/), by: { String($0.output.2) }
        ).mapValues { $0.map { String($0.output.1) } }
        let budgets = rules.matches(of: /var (\w+) = Budget\.Rate\(/).map { String($0.output.1) }
        #expect(budgets.count > 10, "the pattern must find the budgets")
        for budget in budgets {
            let names = ["Rules.\(budget)"] + (keys[budget] ?? [])
            #expect(!listed.isDisjoint(with: names), "\(budget)")
        }
    }

    @Test("names every maximum of the gateway and of the media loop")
    func maxima() {
        let listed = Set(rows.flatMap(\.names).compactMap { $0.split(separator: ".").last.map(String.init) })
        let folders = ["Server/Gateway/", "Server/MediaPlane/"]
        let maxima = sources.filter { source in folders.contains { source.path.hasPrefix($0) } }
            .flatMap { $0.text.matches(of: /static let (max\w+)/) }.map { String($0.output.1) }
        #expect(maxima.count > 10, "the pattern must find the constants")
        #expect(Set(maxima).subtracting(listed).subtracting(Self.internals).sorted() == [])
    }
}
