/// A JSON parser for untrusted bytes. It accepts at most `Limits.jsonDepth` nested levels and `Limits.jsonMembers`
/// members per object. It rejects duplicate names, because RFC 8259 §4 leaves their meaning open. No input makes it
/// trap.
///
/// Written for speed: Foundation's coders take 6–7 µs for a message that this parser reads in less than 1 µs. See
/// `docs/decisions/0002-own-json-codec.md`.
public struct JSONReader {
    private let bytes: UnsafeBufferPointer<UInt8>
    private let maxDepth: Int
    private var at = 0

    private init(_ bytes: UnsafeBufferPointer<UInt8>, maxDepth: Int) { (self.bytes, self.maxDepth) = (bytes, maxDepth) }

    /// Parses exactly one JSON value, with optional white space around it.
    ///
    /// - Parameter maxDepth: the maximum number of nested levels.
    /// - Throws: a ``JSONError`` with the problem and its byte offset.
    public static func parse(
        _ bytes: some Collection<UInt8>, maxDepth: Int = Limits.jsonDepth
    ) throws(JSONError) -> JSONValue {
        let result =
            bytes.withContiguousStorageIfAvailable { buffer in parse(buffer: buffer, maxDepth) }
            ?? Array(bytes).withUnsafeBufferPointer { parse(buffer: $0, maxDepth) }
        return try result.get()
    }

    private static func parse(buffer: UnsafeBufferPointer<UInt8>, _ maxDepth: Int) -> Result<JSONValue, JSONError> {
        var reader = JSONReader(buffer, maxDepth: maxDepth)
        do throws(JSONError) {
            let value = try reader.value(depth: 0)
            reader.skipSpace()
            if reader.at != buffer.count { throw reader.fault("unexpected data after the value") }
            return .success(value)
        } catch {
            return .failure(error)
        }
    }

    private func fault(_ message: String) -> JSONError { JSONError(message: message, offset: at) }

    private var next: UInt8? { at < bytes.count ? bytes[at] : nil }

    private mutating func skipSpace() {
        while at < bytes.count {
            switch bytes[at] {
            case 0x20, 0x09, 0x0A, 0x0D: at += 1
            default: return
            }
        }
    }

    private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
        guard depth <= maxDepth else { throw fault("nested too deeply") }
        skipSpace()
        guard let byte = next else { throw fault("expected a value") }
        switch byte {
        case UInt8(ascii: "{"): return .object(try object(depth: depth))
        case UInt8(ascii: "["): return .array(try array(depth: depth))
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        default: throw fault("expected a value")
        }
    }

    private mutating func literal(_ word: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        for index in 0..<word.utf8CodeUnitCount {
            guard next == word.utf8Start[index] else { throw fault("expected a value") }
            at += 1
        }
        return value
    }

    private mutating func object(depth: Int) throws(JSONError) -> JSONObject {
        at += 1
        var object = JSONObject()
        skipSpace()
        if next == UInt8(ascii: "}") {
            at += 1
            return object
        }
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw fault("expected a member name") }
            let name = try string()
            guard !object.members.contains(where: { $0.name == name }) else { throw fault("duplicate member name") }
            guard object.members.count < Limits.jsonMembers else { throw fault("too many members") }
            skipSpace()
            guard next == UInt8(ascii: ":") else { throw fault("expected ':'") }
            at += 1
            object.members.append(.init(name: name, value: try value(depth: depth + 1)))
            skipSpace()
            if next == UInt8(ascii: ",") {
                at += 1
            } else if next == UInt8(ascii: "}") {
                at += 1
                return object
            } else {
                throw fault("expected ',' or '}'")
            }
        }
    }

    private mutating func array(depth: Int) throws(JSONError) -> [JSONValue] {
        at += 1
        var array: [JSONValue] = []
        skipSpace()
        if next == UInt8(ascii: "]") {
            at += 1
            return array
        }
        while true {
            array.append(try value(depth: depth + 1))
            skipSpace()
            if next == UInt8(ascii: ",") {
                at += 1
            } else if next == UInt8(ascii: "]") {
                at += 1
                return array
            } else {
                throw fault("expected ',' or ']'")
            }
        }
    }

    private mutating func number() throws(JSONError) -> JSONValue {
        let start = at
        var isInteger = true
        if next == UInt8(ascii: "-") { at += 1 }
        guard let first = next, isDigit(first) else { throw fault("expected a digit") }
        if first == UInt8(ascii: "0") { at += 1 } else { skipDigits() }
        if next == UInt8(ascii: ".") {
            isInteger = false
            at += 1
            guard let digit = next, isDigit(digit) else { throw fault("expected a digit") }
            skipDigits()
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            isInteger = false
            at += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { at += 1 }
            guard let digit = next, isDigit(digit) else { throw fault("expected a digit") }
            skipDigits()
        }
        guard at - start <= 40 else { throw fault("number too long") }
        let text = String(decoding: UnsafeBufferPointer(rebasing: bytes[start..<at]), as: UTF8.self)
        if isInteger, let integer = Int64(text) { return .integer(integer) }
        guard let double = Double(text), double.isFinite else { throw fault("number out of range") }
        return .number(double)
    }

    private func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

    private mutating func skipDigits() {
        while let byte = next, isDigit(byte) { at += 1 }
    }

    private mutating func string() throws(JSONError) -> String {
        at += 1
        let start = at
        while at < bytes.count {
            let byte = bytes[at]
            if byte == UInt8(ascii: "\"") {
                let slice = UnsafeBufferPointer(rebasing: bytes[start..<at])
                at += 1
                guard let text = String(validating: slice, as: UTF8.self) else { throw fault("string is not UTF-8") }
                return text
            }
            if byte == UInt8(ascii: "\\") { return try escapedString(from: start) }
            if byte < 0x20 { throw fault("unescaped control character in a string") }
            at += 1
        }
        throw fault("unterminated string")
    }

    private mutating func escapedString(from start: Int) throws(JSONError) -> String {
        var unescaped = Array(bytes[start..<at])
        while let byte = next {
            at += 1
            switch byte {
            case UInt8(ascii: "\""):
                guard let text = String(validating: unescaped, as: UTF8.self) else {
                    throw fault("string is not UTF-8")
                }
                return text
            case UInt8(ascii: "\\"):
                try escape(into: &unescaped)
            case 0..<0x20:
                throw fault("unescaped control character in a string")
            default:
                unescaped.append(byte)
            }
        }
        throw fault("unterminated string")
    }

    private mutating func escape(into bytes: inout [UInt8]) throws(JSONError) {
        guard let byte = next else { throw fault("unterminated string") }
        at += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): bytes.append(byte)
        case UInt8(ascii: "b"): bytes.append(0x08)
        case UInt8(ascii: "f"): bytes.append(0x0C)
        case UInt8(ascii: "n"): bytes.append(0x0A)
        case UInt8(ascii: "r"): bytes.append(0x0D)
        case UInt8(ascii: "t"): bytes.append(0x09)
        case UInt8(ascii: "u"): bytes.append(contentsOf: String(try unicodeEscape()).utf8)
        default: throw fault("unknown escape sequence")
        }
    }

    /// Reads a `\u` escape. A lone surrogate becomes U+FFFD, as in JavaScript's encoder. It is not an error, because an input
    /// field can cut an emoji in half, and the whole chat message would then be lost.
    private mutating func unicodeEscape() throws(JSONError) -> Character {
        let unit = try hexadecimalUnit()
        if UTF16.isTrailSurrogate(unit) { return "\u{FFFD}" }
        guard UTF16.isLeadSurrogate(unit) else { return Character(Unicode.Scalar(unit) ?? "\u{FFFD}") }
        guard at + 1 < bytes.count, bytes[at] == UInt8(ascii: "\\"), bytes[at + 1] == UInt8(ascii: "u") else {
            return "\u{FFFD}"
        }
        let before = at
        at += 2
        let trail = try hexadecimalUnit()
        guard UTF16.isTrailSurrogate(trail) else {
            at = before
            return "\u{FFFD}"
        }
        let scalar = 0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(trail) - 0xDC00)
        return Character(Unicode.Scalar(scalar) ?? "\u{FFFD}")
    }

    private mutating func hexadecimalUnit() throws(JSONError) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw fault("expected four hexadecimal digits")
            }
            unit = unit << 4 | UInt16(digit)
            at += 1
        }
        return unit
    }
}
