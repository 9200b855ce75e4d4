/// The body of a polling request or answer. A single packet is the whole body. In a body with several packets, each is preceded
/// by U+FFFD, the packet's length, and U+FFFD.
///
/// JavaScript clients count lengths in UTF-16 units and Python clients in code points. Both give the same result for answers,
/// which are ASCII. Requests with either kind of length are accepted.
public enum SocketIOPayload {
    private static let boundary: Unicode.Scalar = "\u{FFFD}"
    private static let boundaryBytes: [UInt8] = [0xEF, 0xBF, 0xBD]
    /// Maximum number of packets in one body. Clients do not collect more than this between two requests.
    public static let maxPackets = 256

    /// Returns the body that carries these packets.
    public static func encode(_ packets: [[UInt8]]) -> [UInt8] {
        if packets.count == 1 { return packets[0] }
        return packets.reduce(into: []) { bytes, packet in
            let length = String(decoding: packet, as: UTF8.self).utf16.count
            bytes += boundaryBytes + Array("\(length)".utf8) + boundaryBytes + packet
        }
    }

    /// Returns the packets in a body.
    ///
    /// - Throws: `malformed`, with a message that describes the problem.
    public static func decode(_ bytes: [UInt8]) throws(WireError) -> [[UInt8]] {
        guard let text = String(validating: bytes, as: UTF8.self) else { throw malformed("The body must be UTF-8.") }
        guard !bytes.isEmpty else { throw malformed("The body must contain a packet.") }
        guard bytes.starts(with: boundaryBytes) else { return [bytes] }
        var rest = text.unicodeScalars[...]
        var packets: [[UInt8]] = []
        while !rest.isEmpty {
            guard packets.count < maxPackets else { throw malformed("A body must not exceed \(maxPackets) packets.") }
            let length = try readLength(&rest)
            guard let packet = take(length, from: &rest, utf16: true) ?? take(length, from: &rest, utf16: false) else {
                throw malformed("A packet is longer or shorter than its declared length.")
            }
            packets.append(Array(String(packet).utf8))
        }
        return packets
    }

    private static func malformed(_ message: String) -> WireError { WireError(.malformed, message) }

    private static func readLength(_ rest: inout Substring.UnicodeScalarView) throws(WireError) -> Int {
        guard rest.popFirst() == boundary else { throw malformed("With several packets, each must begin with U+FFFD.") }
        let digits = rest.prefix { "0"..."9" ~= $0 }
        rest = rest.dropFirst(digits.count)
        guard digits.count <= 7, let length = Int(String(digits)), rest.popFirst() == boundary else {
            throw malformed("A packet's length must be a number between two U+FFFD characters.")
        }
        return length
    }

    /// Removes and returns a packet of `length` units. Returns nil unless another packet or the end of the body follows.
    private static func take(
        _ length: Int, from rest: inout Substring.UnicodeScalarView, utf16: Bool
    ) -> Substring.UnicodeScalarView? {
        var left = length
        var end = rest.startIndex
        while left > 0, end < rest.endIndex {
            left -= utf16 ? UTF16.width(rest[end]) : 1
            end = rest.index(after: end)
        }
        guard left == 0, end == rest.endIndex || rest[end] == boundary else { return nil }
        defer { rest = rest[end...] }
        return rest[..<end]
    }
}

/// JSONP polling: answers are scripts, for pages that can only load scripts from another origin.
public enum SocketIOScript {
    /// Returns the script `io.j[index]("text");`. U+FFFD is not escaped in it, because the Python client does not understand
    /// the escape.
    public static func call(_ index: Int, _ text: [UInt8]) -> [UInt8] {
        Array("io.j[\(index)](".utf8) + literal(text) + Array(");".utf8)
    }

    /// Returns the text as a string literal of JavaScript.
    static func literal(_ text: [UInt8]) -> [UInt8] {
        var writer = JSONWriter(capacity: text.count + 32)
        writer.string(String(decoding: text, as: UTF8.self))
        return lineSeparatorsEscaped(writer.bytes)
    }

    /// Escapes U+2028 and U+2029. A JSON string may contain these characters, but in the JavaScript of 2012 they ended
    /// a line, which made the string invalid.
    private static func lineSeparatorsEscaped(_ bytes: [UInt8]) -> [UInt8] {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.unicodeScalars.contains(where: { $0 == "\u{2028}" || $0 == "\u{2029}" }) else { return bytes }
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\u{2028}": escaped += "\\u2028"
            case "\u{2029}": escaped += "\\u2029"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return Array(escaped.utf8)
    }

    /// Returns the payload of a posted form, which is the JSON string in the form field `d`.
    ///
    /// - Throws: `malformed` if there is no such field, or if its value is not a JSON string.
    public static func payload(form: [UInt8]) throws(WireError) -> [UInt8] {
        let fields = form.split(separator: UInt8(ascii: "&"))
        guard let field = fields.first(where: { $0.starts(with: "d=".utf8) }) else {
            throw WireError(.malformed, "The form must have a field \"d\".")
        }
        guard let json = FormFields.decoded(field.dropFirst(2)), let value = try? JSONReader.parse(json),
            case .string(let text) = value
        else { throw WireError(.malformed, "The form's field \"d\" must be a JSON string.") }
        return Array(text.utf8)
    }
}
