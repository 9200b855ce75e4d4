import Foundation
import Testing
import Wire

/// A part of the SDK that the scripts of `protocol/scripts` are played on: takes their inputs and translates what the part does.
protocol ScriptPlayer {
    init(settings: JSONValue)
    /// - Returns: what the part does, as items of a script.
    mutating func play(_ word: String, _ input: JSONValue, now: Timestamp) throws -> [JSONValue]
    var nextTimeout: Timestamp? { get }
    mutating func handleTimeout(now: Timestamp) -> [JSONValue]
    /// What a script compares with `is`.
    var state: JSONValue { get }
}

extension ScriptPlayer {
    var state: JSONValue { .null }
}

/// A file of `protocol/scripts`, whose README describes the format. The JavaScript tests play the same scripts.
struct ScriptFile: Sendable {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("protocol")

    /// Reads a file of `protocol`, in which `"#5"` stands for the id with that number.
    static func read(_ path: String) throws -> JSONValue {
        let text = try String(contentsOf: folder.appendingPathComponent(path), encoding: .utf8)
        let expanded = text.replacing(/"#([0-9]+)"/) { match in
            "\"" + String(repeating: "0", count: 32 - match.output.1.count) + match.output.1 + "\""
        }
        return try JSONReader.parse(Array(expanded.utf8))
    }

    private let value: JSONValue
    private let messages: JSONValue

    /// Reads the scripts of a file, one for each value of `each`.
    static func scripts(_ name: String) -> [Script] {
        // A file that cannot be read is a script without steps, which fails.
        let value = (try? read("scripts/\(name).json")) ?? ["scripts": .array([["title": "a file that can be read"]])]
        let file = Self(value: value, messages: value["messages"] ?? .null)
        return (value["scripts"]?.elements ?? []).flatMap { script -> [Script] in
            guard let each = script["each"]?.elements else { return [Script(file: file, value: script, suffix: "")] }
            return each.map { Script(file: file, value: script.replacing("$each", with: $0), suffix: ": \($0.text)") }
        }
    }

    func start(_ name: String) throws -> [JSONValue] {
        try #require(value["starts"]?[name]?.elements, "no start \(name)")
    }

    /// Returns the message of an input such as `{"server": "call.placed", …changes}`: an example of the protocol with changes.
    func message(_ input: JSONValue) throws -> JSONValue {
        guard case .object(let object) = input, let name = object.members.first?.value.string else { return .null }
        var changes = JSONObject()
        changes.members = object.members.dropFirst().filter { $0.name != "but" }
        let error: JSONValue = ["type": "error", "message": "No.", "retryable": .bool(false)]
        let message = try (name == "error" ? error : like(name)).merged(with: .object(changes))
        return message.merged(with: input["but"] ?? .object(JSONObject()))
    }

    private func like(_ name: String) throws -> JSONValue {
        if let changes = messages[name], let other = changes["like"]?.string {
            return try like(other).merged(with: changes).merged(with: ["like": .null])
        }
        return try Self.read("examples/server-\(name).json").merged(with: ["seq": .null, "ack": .null, "re": .null])
    }
}

/// A script: inputs of a part of the SDK, and what it must do then.
struct Script: Sendable, CustomTestStringConvertible {
    let file: ScriptFile
    let value: JSONValue
    let suffix: String
    var testDescription: String { (value["title"]?.string ?? "") + suffix }

    /// Plays the script, and records an issue at the first step at which the part does something else.
    func play<Player: ScriptPlayer>(on type: Player.Type) throws {
        var player = Player(settings: value["settings"] ?? .object(JSONObject()))
        var now = Timestamp(milliseconds: 1_000_000)
        if let start = value["start"] { try play([["start": start]], on: &player, &now) }
        try play(#require(value["steps"]?.elements, "no steps"), on: &player, &now)
    }

    private func play(_ steps: [JSONValue], on player: inout some ScriptPlayer, _ now: inout Timestamp) throws {
        for step in steps {
            if let start = step["start"]?.string {
                try play(file.start(start), on: &player, &now)
            } else if let times = step["times"]?.integer {
                for round in 1...times {
                    let id = String("\(round)".reversed()).padding(toLength: 32, withPad: "0", startingAt: 0)
                    let steps = step["steps"]?.replacing("$round", with: .string(String(id.reversed())))
                    try play(steps?.elements ?? [], on: &player, &now)
                }
            } else if let items = step.elements, let first = items.first {
                let done = try play(first.item, on: &player, &now)
                let expected = items.dropFirst().map(\.item)
                if let state = expected.first(where: { $0.word == "is" })?["is"] {
                    let isExact = player.state.matches(state) && state.matches(player.state)
                    try #require(isExact, "the state after \(first.text) is \(player.state.text)")
                }
                if expected.contains(where: { $0.word == "..." }) { continue }
                let effects = expected.filter { $0.word != "is" }.inChannels
                try #require(
                    done.count == effects.count && zip(done, effects).allSatisfy { $0.matches($1) },
                    "after \(first.text): expected \(effects.map(\.text)), got \(done.map(\.text))")
            }
        }
    }

    private func play(
        _ input: JSONValue, on player: inout some ScriptPlayer, _ now: inout Timestamp
    ) throws -> [JSONValue] {
        var effects: [JSONValue] = []
        switch input.word {
        case "wait":
            let end = now + .milliseconds(try #require(input["wait"]?.integer))
            while let next = player.nextTimeout, next <= end {
                now = max(now, next)
                effects += player.handleTimeout(now: now)
            }
            now = end
        case "sleep":
            now = now + .milliseconds(try #require(input["sleep"]?.integer))
            effects = player.handleTimeout(now: now)
        case "server", "answer":
            let message = try file.message(input).lengthened
            effects = try player.play(input.word, [input.word: message], now: now)
        case let word: effects = try player.play(word, input.lengthened, now: now)
        }
        return effects.inChannels
    }
}

extension [JSONValue] {
    /// What goes to the server, what callers get, and what the application receives: the order within each of these is compared.
    fileprivate var inChannels: [JSONValue] {
        let (toServer, toCallers): (Set, Set) = (["open", "send", "close"], ["answered", "failed"])
        return filter { toServer.contains($0.word) } + filter { toCallers.contains($0.word) }
            + filter { !toServer.contains($0.word) && !toCallers.contains($0.word) }
    }
}

extension JSONValue: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        var object = JSONObject()
        object.members = elements.map { .init(name: $0.0, value: $0.1) }
        self = .object(object)
    }
}

extension JSONValue: ExpressibleByStringLiteral {
    public init(stringLiteral value: String) { self = .string(value) }
}

extension JSONValue {
    subscript(name: String) -> JSONValue? { if case .object(let object) = self { object[name] } else { nil } }
    var elements: [JSONValue]? { if case .array(let elements) = self { elements } else { nil } }
    var string: String? { if case .string(let string) = self { string } else { nil } }
    var integer: Int64? { if case .integer(let integer) = self { integer } else { nil } }
    var bool: Bool? { if case .bool(let bool) = self { bool } else { nil } }
    var text: String { String(decoding: bytes, as: UTF8.self) }
    var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.value(self)
        return writer.bytes
    }

    /// An input or an effect as an object: a plain string is one without details.
    var item: JSONValue { if case .string(let word) = self { [word: .bool(true)] } else { self } }
    /// The name of the first member.
    var word: String { if case .object(let object) = self { object.members.first?.name ?? "" } else { "" } }

    /// Returns a copy in which `null` removes a member.
    func merged(with changes: JSONValue) -> JSONValue {
        guard case .object(let changed) = changes else { return changes }
        var result = JSONObject()
        if case .object(let object) = self { result = object }
        for change in changed.members {
            let former = result[change.name] ?? .null
            result.members.removeAll { $0.name == change.name }
            guard change.value != .null else { continue }
            result.members.append(.init(name: change.name, value: former.merged(with: change.value)))
        }
        return .object(result)
    }

    /// Whether all members that are expected are there. A member that is expected to be `null` must be absent.
    func matches(_ expected: JSONValue) -> Bool {
        switch expected {
        case .object(let object):
            guard case .object = self else { return false }
            return object.members.allSatisfy { member in
                member.value == .null ? self[member.name] == nil : self[member.name]?.matches(member.value) ?? false
            }
        case .array(let elements):
            guard let own = self.elements, own.count == elements.count else { return false }
            return zip(own, elements).allSatisfy { $0.matches($1) }
        default: return self == expected
        }
    }

    func replacing(_ placeholder: String, with value: JSONValue) -> JSONValue {
        switch self {
        case .string(placeholder): value
        case .array(let elements): .array(elements.map { $0.replacing(placeholder, with: value) })
        case .object: mapMembers { $0.replacing(placeholder, with: value) }
        default: self
        }
    }

    /// A copy with the strings for which `{"length": 70000}` stands.
    fileprivate var lengthened: JSONValue {
        guard case .object(let object) = self else { return self }
        if object.members.count <= 2, word == "length", let length = self["length"]?.integer {
            return .string(String(repeating: self["of"]?.string ?? "x", count: Int(length)))
        }
        return mapMembers(\.lengthened)
    }

    private func mapMembers(_ change: (JSONValue) -> JSONValue) -> JSONValue {
        guard case .object(var object) = self else { return self }
        for index in object.members.indices { object.members[index].value = change(object.members[index].value) }
        return .object(object)
    }

    /// The message with `word` in place of `type`, as the first member: `{"send": "call.end", …}`.
    static func message(_ word: String, _ bytes: [UInt8]) throws -> JSONValue {
        guard case .object(var object) = try JSONReader.parse(bytes) else { return .null }
        let type = object["type"] ?? .null
        object.members.removeAll { $0.name == "type" }
        object.members.insert(.init(name: word, value: type), at: 0)
        return .object(object)
    }

    /// The message without its first member, with `type` in its place: the reverse of `message`.
    func asMessage(_ type: String) -> JSONValue {
        guard case .object(var object) = self else { return self }
        object.members.removeFirst()
        object.members.insert(.init(name: "type", value: .string(type)), at: 0)
        return .object(object)
    }
}

/// A random number generator with which each delay is the longest possible.
struct LongestDelays: RandomNumberGenerator, Sendable {
    mutating func next() -> UInt64 { .max }
}
