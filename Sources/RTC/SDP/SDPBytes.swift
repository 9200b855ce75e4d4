/// A slice of a description's bytes, which are not copied. The type uses its own loops, because the standard
/// library's generic ones are slow in debug builds, where tests parse many thousands of descriptions.
struct SDPBytes {
    private let memory: UnsafeRawBufferPointer
    private var start: Int
    private var end: Int

    /// - Parameter memory: the description; must outlive this slice and every slice taken from it.
    init(_ memory: UnsafeRawBufferPointer) { (self.memory, start, end) = (memory, 0, memory.count) }

    private init(_ memory: UnsafeRawBufferPointer, _ start: Int, _ end: Int) {
        (self.memory, self.start, self.end) = (memory, start, end)
    }

    var count: Int { end - start }
    var isEmpty: Bool { start == end }
    var first: UInt8? { isEmpty ? nil : memory[start] }
    var last: UInt8? { isEmpty ? nil : memory[end - 1] }

    /// The slice as text. Invalid UTF-8 would be replaced, but the parser has already rejected it.
    var text: String { String(decoding: UnsafeRawBufferPointer(rebasing: memory[start..<end]), as: UTF8.self) }

    /// Returns the slice without its first `count` bytes; empty if the slice is shorter.
    func dropFirst(_ count: Int) -> SDPBytes { SDPBytes(memory, min(end, start + count), end) }
    func dropLast() -> SDPBytes { SDPBytes(memory, start, max(start, end - 1)) }

    /// Returns the bytes before the next `separator`, or all bytes if there is none, and moves past the separator.
    mutating func take(until separator: UInt8) -> SDPBytes {
        var at = start
        while at < end, memory[at] != separator { at += 1 }
        defer { start = min(end, at + 1) }
        return SDPBytes(memory, start, at)
    }

    /// Returns the pieces between separators, including empty ones.
    ///
    /// - Parameter most: the maximum number of pieces; the last piece contains the rest.
    func split(_ separator: UInt8, most: Int) -> [SDPBytes] {
        var parts: [SDPBytes] = []
        var (from, at) = (start, start)
        while at < end {
            if memory[at] == separator, parts.count < most - 1 {
                parts.append(SDPBytes(memory, from, at))
                from = at + 1
            }
            at += 1
        }
        return parts + [SDPBytes(memory, from, end)]
    }

    /// The kind of content of a line.
    enum Content: Equatable {
        case ascii, notASCII
        /// Contains NUL or a carriage return.
        case notText
    }

    var content: Content {
        var content = Content.ascii
        for index in start..<end {
            let byte = memory[index]
            if byte == 0 || byte == UInt8(ascii: "\r") { return .notText }
            if byte >= 0x80 { content = .notASCII }
        }
        return content
    }

    /// Whether the bytes are valid UTF-8. Decoding replaces invalid bytes, so only valid text is the same afterwards.
    var isUTF8: Bool { text.utf8.elementsEqual(memory[start..<end]) }

    /// Returns the bytes as a decimal number; nil if there are other characters or the number does not fit.
    func decimal<Number: FixedWidthInteger & UnsignedInteger>(_: Number.Type) -> Number? {
        guard !isEmpty else { return nil }
        var number: UInt64 = 0
        for index in start..<end {
            let digit = memory[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            let (tenfold, isTooLarge) = number.multipliedReportingOverflow(by: 10)
            let (sum, isTooLargeNow) = tenfold.addingReportingOverflow(UInt64(digit))
            guard !isTooLarge, !isTooLargeNow else { return nil }
            number = sum
        }
        return Number(exactly: number)
    }

    /// The value of one to four hexadecimal digits; nil if the slice is anything else.
    var hexadecimal: UInt16? {
        guard (1...4).contains(count) else { return nil }
        var number: UInt16 = 0
        for index in start..<end {
            let byte = memory[index]
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: return nil
            }
            number = number << 4 | UInt16(digit)
        }
        return number
    }

    /// Whether all characters are allowed in a `token` of RFC 8866 §9, or are `/`, which protocols and candidate
    /// foundations contain.
    var isToken: Bool {
        for index in start..<end {
            switch memory[index] {
            case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D...0x39, 0x41...0x5A, 0x5E...0x7E: continue
            default: return false
            }
        }
        return true
    }

    /// Whether all characters are ASCII from `!` to `~`.
    var isVisible: Bool {
        for index in start..<end where !(0x21...0x7E).contains(memory[index]) { return false }
        return true
    }

    /// Whether all characters are letters, digits, `+` or `/` (`ice-char` in RFC 8839 §5.1).
    var isICECharacters: Bool {
        for index in start..<end {
            switch memory[index] {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "+"), UInt8(ascii: "/"): continue
            default: return false
            }
        }
        return true
    }
}
