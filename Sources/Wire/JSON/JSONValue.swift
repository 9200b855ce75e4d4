/// A JSON value (RFC 8259). Objects keep their members in order in a small array: messages have a dozen members, and
/// hashing their names would cost more than comparing them.
public enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)
}

extension JSONValue {
    /// About how many bytes this is, written out.
    public var size: Int {
        switch self {
        case .null, .bool, .integer, .number: 8
        case .string(let text): text.utf8.count + 2
        case .array(let elements): elements.reduce(2) { $0 + $1.size + 1 }
        case .object(let object): object.members.reduce(2) { $0 + $1.name.utf8.count + $1.value.size + 4 }
        }
    }
}

public struct JSONObject: Hashable, Sendable {
    public struct Member: Hashable, Sendable {
        public var name: String
        public var value: JSONValue
        public init(name: String, value: JSONValue) { (self.name, self.value) = (name, value) }
    }

    public var members: [Member] = []

    public init() {}

    /// The named member, or `nil` when it is absent or `null`: the protocol does not tell the two apart.
    public subscript(name: String) -> JSONValue? {
        for member in members where member.name == name {
            return member.value == .null ? nil : member.value
        }
        return nil
    }
}

/// Why some bytes are not JSON that this program accepts.
public struct JSONError: Error, Hashable, Sendable {
    public var message: String
    /// Byte offset.
    public var offset: Int
}
