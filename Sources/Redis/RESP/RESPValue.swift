/// A value of RESP3, Redis's protocol (https://github.com/redis/redis-specifications, protocol/RESP3.md).
///
/// Strings are bytes, because Redis does not check their encoding. Streamed strings and aggregates do not exist here:
/// no server sends them, and the parser refuses them.
package enum RESPValue: Equatable, Sendable {
    /// The null of RESP3, or a null string or array of RESP2.
    case null
    /// A truth value.
    case boolean(Bool)
    /// A signed integer of 64 bits.
    case number(Int64)
    /// A floating-point number, which can be infinite or NaN.
    case double(Double)
    /// The decimal digits of an integer of any size, with an optional sign.
    case bigNumber([UInt8])
    /// A short string without line breaks, such as `OK`.
    case simpleString([UInt8])
    /// A string of any bytes.
    case bulkString([UInt8])
    /// A text with the three bytes that name its format: `txt` or `mkd`.
    case verbatimString(format: [UInt8], [UInt8])
    /// An error without line breaks. It begins with a code, such as `NOSCRIPT`.
    case simpleError([UInt8])
    /// An error of any bytes.
    case bulkError([UInt8])
    /// An ordered list.
    case array([RESPValue])
    /// A list without an order. The parser does not remove duplicates.
    case set([RESPValue])
    /// Keys and values in the order in which the server sent them. The parser does not remove duplicates.
    case map([Pair])
    /// A message that answers no command. The first element is its kind, such as `message`.
    case push([RESPValue])
    /// A value with attributes, which a client may ignore.
    indirect case attributed([Pair], RESPValue)

    /// A key and its value.
    package struct Pair: Equatable, Sendable {
        /// Of any type, but usually a string.
        package var key: RESPValue
        /// What belongs to the key.
        package var value: RESPValue

        package init(_ key: RESPValue, _ value: RESPValue) { (self.key, self.value) = (key, value) }
    }

    /// The value without its attributes.
    package var content: RESPValue {
        var value = self
        while case .attributed(_, let inner) = value { value = inner }
        return value
    }

    /// The bytes of a string of any kind; nil for other values.
    package var bytes: [UInt8]? {
        switch content {
        case .simpleString(let bytes), .bulkString(let bytes), .verbatimString(_, let bytes): bytes
        default: nil
        }
    }

    /// A string of any kind as text. Invalid UTF-8 is replaced. Nil for other values.
    package var text: String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

    /// The integer, also if the server sent it as a string of digits; nil for other values.
    package var integer: Int64? {
        if case .number(let number) = content { return number }
        return text.flatMap { Int64($0) }
    }

    /// The elements of an array, a set or a push; nil for other values.
    package var elements: [RESPValue]? {
        switch content {
        case .array(let elements), .set(let elements), .push(let elements): elements
        default: nil
        }
    }

    /// The printable text of an error, cut after 256 bytes; nil for other values.
    package var errorText: String? {
        switch content {
        case .simpleError(let bytes), .bulkError(let bytes): String(printable: bytes)
        default: nil
        }
    }

    /// Returns the value of the first pair with this key in a map; nil for other values.
    package subscript(key: String) -> RESPValue? {
        guard case .map(let pairs) = content else { return nil }
        return pairs.first { $0.key.text == key }?.value
    }
}

/// The first byte of a value, which is its type.
enum RESPType: UInt8 {
    case null = 0x5F  // _
    case boolean = 0x23  // #
    case number = 0x3A  // :
    case double = 0x2C  // ,
    case bigNumber = 0x28  // (
    case simpleString = 0x2B  // +
    case bulkString = 0x24  // $
    case verbatimString = 0x3D  // =
    case simpleError = 0x2D  // -
    case bulkError = 0x21  // !
    case array = 0x2A  // *
    case set = 0x7E  // ~
    case map = 0x25  // %
    case push = 0x3E  // >
    case attribute = 0x7C  // |
}
