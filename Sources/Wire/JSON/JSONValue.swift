/// A JSON value (RFC 8259).
public enum JSONValue: Hashable, Sendable {
    /// The literal `null`.
    case null
    /// The literal `true` or `false`.
    case bool(Bool)
    /// A number that has no fraction or exponent and fits in 64 bits.
    case integer(Int64)
    /// Any other number. Numbers that were read are always finite. A number that is not finite is written as `null`.
    case number(Double)
    /// A string without escapes. A lone surrogate is read as U+FFFD.
    case string(String)
    /// An array with its elements in order.
    case array([JSONValue])
    /// An object with its members in order. The names are unique in an object that was read.
    case object(JSONObject)
}

extension JSONValue {
    /// The approximate length of the value in bytes when it is written as JSON.
    public var size: Int {
        switch self {
        case .null, .bool, .integer, .number: 8
        case .string(let text): text.utf8.count + 2
        case .array(let elements): elements.reduce(2) { $0 + $1.size + 1 }
        case .object(let object): object.members.reduce(2) { $0 + $1.name.utf8.count + $1.value.size + 4 }
        }
    }
}

/// A JSON object. The members are in an array rather than a dictionary, because messages have at most a dozen members, and
/// hashing their names would cost more than comparing them.
public struct JSONObject: Hashable, Sendable {
    /// A name and its value.
    public struct Member: Hashable, Sendable {
        /// The name without quotes and escapes.
        public var name: String
        /// The value, which may be `.null`.
        public var value: JSONValue
        public init(name: String, value: JSONValue) { (self.name, self.value) = (name, value) }
    }

    /// All members, in the order in which they were read or appended.
    public var members: [Member] = []

    public init() {}

    public init(_ members: [Member]) { self.members = members }

    /// The value of the named member, or nil if the member is absent or `null`. The protocol does not distinguish the two.
    public subscript(name: String) -> JSONValue? {
        for member in members where member.name == name {
            return member.value == .null ? nil : member.value
        }
        return nil
    }
}

/// The reason why bytes are not JSON that ``JSONReader`` accepts.
public struct JSONError: Error, Hashable, Sendable {
    /// The problem, as a phrase such as "unterminated string".
    public var message: String
    /// Where parsing stopped: the number of bytes from the start.
    public var offset: Int
}
