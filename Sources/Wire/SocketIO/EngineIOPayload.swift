/// The body of a polling request or answer of Engine.IO.
///
/// Version 4 separates packets by U+001E. Version 3 writes the length of each packet before it. In version 3, a body with a
/// binary packet is binary: each digit of a length is one byte. Python's client always sends such bodies.
public enum EngineIOPayload {
    private static let separator: UInt8 = 0x1E

    /// Returns the body that carries these packets, which are encoded as text.
    public static func encode(_ packets: [[UInt8]], _ version: EngineIOVersion) -> [UInt8] {
        switch version {
        case .four: Array(packets.joined(separator: [separator]))
        case .three:
            packets.reduce(into: []) { bytes, packet in
                bytes += "\(String(decoding: packet, as: UTF8.self).utf16.count):".utf8
                bytes += packet
            }
        }
    }

    /// Returns the packets in a body.
    ///
    /// - Throws: `malformed`, with a message that describes the problem.
    public static func decode(_ bytes: [UInt8], _ version: EngineIOVersion) throws(WireError) -> [EngineIOPacket] {
        guard let first = bytes.first else { throw malformed("The body must contain a packet.") }
        if version == .three, first <= 1 { return try decodeBinary(bytes) }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw malformed("The body must be UTF-8.") }
        let texts =
            version == .three
            ? try split(text)
            : bytes.split(
                separator: separator, maxSplits: SocketIOPayload.maxPackets, omittingEmptySubsequences: false
            ).map { Array($0) }
        guard texts.count <= SocketIOPayload.maxPackets else { throw tooManyPackets }
        var packets: [EngineIOPacket] = []
        for text in texts { packets.append(try EngineIOPacket(parsing: text, version)) }
        return packets
    }

    private static func malformed(_ message: String) -> WireError { WireError(.malformed, message) }

    private static let tooManyPackets = malformed("A body must not exceed \(SocketIOPayload.maxPackets) packets.")
    private static let wrongLength = malformed("A packet is longer or shorter than its declared length.")

    /// Splits `length:packet…`, where lengths count UTF-16 units.
    private static func split(_ text: String) throws(WireError) -> [[UInt8]] {
        var rest = text.unicodeScalars[...]
        var packets: [[UInt8]] = []
        while !rest.isEmpty {
            guard packets.count < SocketIOPayload.maxPackets else { throw tooManyPackets }
            let digits = rest.prefix { "0"..."9" ~= $0 }
            rest = rest.dropFirst(digits.count)
            guard digits.count <= 7, var left = Int(String(digits)), rest.popFirst() == ":" else {
                throw malformed("A packet must begin with its length and a colon.")
            }
            var end = rest.startIndex
            while left > 0, end < rest.endIndex {
                left -= UTF16.width(rest[end])
                end = rest.index(after: end)
            }
            guard left == 0 else { throw wrongLength }
            packets.append(Array(String(rest[..<end]).utf8))
            rest = rest[end...]
        }
        return packets
    }

    /// Decodes a binary body: for each packet 0 (text) or 1 (binary), the digits of its length in bytes, 255, and the packet.
    private static func decodeBinary(_ bytes: [UInt8]) throws(WireError) -> [EngineIOPacket] {
        var rest = bytes[...]
        var packets: [EngineIOPacket] = []
        while let kind = rest.popFirst() {
            guard packets.count < SocketIOPayload.maxPackets else { throw tooManyPackets }
            let digits = rest.prefix { $0 <= 9 }
            rest = rest.dropFirst(digits.count)
            guard kind <= 1, (1...7).contains(digits.count), rest.popFirst() == 0xFF else {
                throw malformed("A packet must begin with 0 or 1, its length and 255.")
            }
            let length = digits.reduce(0) { $0 * 10 + Int($1) }
            guard length <= rest.count else { throw wrongLength }
            let packet = rest.prefix(length)
            rest = rest.dropFirst(length)
            if kind == 1 {
                packets.append(try EngineIOPacket(binary: packet, .three))
            } else {
                guard String(validating: packet, as: UTF8.self) != nil else {
                    throw malformed("A text packet must be UTF-8.")
                }
                packets.append(try EngineIOPacket(parsing: packet, .three))
            }
        }
        return packets
    }
}

/// JSONP polling of Engine.IO: answers are scripts, and bodies are forms.
public enum EngineIOScript {
    /// Returns the script `___eio[index]("text");`.
    public static func call(_ index: Int, _ text: [UInt8]) -> [UInt8] {
        Array("___eio[\(index)](".utf8) + SocketIOScript.literal(text) + Array(");".utf8)
    }

    /// Returns the payload of a posted form, which is the form field `d`. A browser's form changes line breaks, so clients
    /// escape them: `\n` is a line break and `\\n` a backslash and an n.
    ///
    /// - Throws: `malformed` if there is no such field.
    public static func payload(form: [UInt8]) throws(WireError) -> [UInt8] {
        let fields = form.split(separator: UInt8(ascii: "&"))
        guard let field = fields.first(where: { $0.starts(with: "d=".utf8) }),
            let text = FormFields.decoded(field.dropFirst(2))
        else { throw WireError(.malformed, "The form must have a field \"d\".") }
        return unescaped(text)
    }

    private static func unescaped(_ text: [UInt8]) -> [UInt8] {
        let (backslash, letter) = (UInt8(ascii: "\\"), UInt8(ascii: "n"))
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        var rest = text[...]
        while let byte = rest.popFirst() {
            if byte == backslash, rest.first == letter {
                rest.removeFirst()
                result.append(UInt8(ascii: "\n"))
            } else if byte == backslash, rest.starts(with: [backslash, letter]) {
                rest.removeFirst(2)
                result += [backslash, letter]
            } else {
                result.append(byte)
            }
        }
        return result
    }
}
