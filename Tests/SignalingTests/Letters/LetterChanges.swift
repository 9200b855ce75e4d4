import Wire

/// Random changes of letters, most of which can still be read.
enum LetterChanges {
    static func change(_ bytes: [UInt8], using random: inout some RandomNumberGenerator) -> [UInt8] {
        guard let value = try? JSONReader.parse(bytes) else { return bytes }
        var writer = JSONWriter()
        writer.value(change(value, using: &random))
        return writer.bytes
    }

    private static func change(_ value: JSONValue, using random: inout some RandomNumberGenerator) -> JSONValue {
        switch value {
        case .bool: .bool(.random(using: &random))
        case .integer(let number):
            Int.random(in: 0..<4, using: &random) == 0
                ? .integer(number &+ Int64.random(in: -2...1000, using: &random)) : value
        case .string(let text): .string(change(text, using: &random))
        case .array(let elements): .array(elements.map { change($0, using: &random) })
        case .object(let object): .object(change(object, using: &random))
        case .null, .number: value
        }
    }

    private static func change(_ object: JSONObject, using random: inout some RandomNumberGenerator) -> JSONObject {
        var members: [JSONObject.Member] = []
        for member in object.members where Int.random(in: 0..<40, using: &random) > 0 {
            let isName = ["to", "event", "type"].contains(member.name)
            members.append(
                .init(name: member.name, value: isName ? member.value : change(member.value, using: &random)))
        }
        return JSONObject(members)
    }

    private static func change(_ text: String, using random: inout some RandomNumberGenerator) -> String {
        switch Int.random(in: 0..<10, using: &random) {
        // Other ids, and other texts of the same length.
        case 0..<3 where IdentityID(text) != nil: "\(IdentityID.random(using: &random))"
        case 3 where !text.isEmpty: String(text.shuffled(using: &random))
        case 4:
            text + ["é", "\u{1F469}\u{200D}\u{1F4BB}", "\n", "\"", "\\", "\u{0}", "a"].randomElement(using: &random)!
        default: text
        }
    }
}
