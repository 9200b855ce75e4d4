/// Reads an input as a script of events. After the end of the input, all values are zero.
struct InputReader {
    private var rest: ArraySlice<UInt8>

    init(_ input: [UInt8]) { rest = input[...] }

    var isEmpty: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    mutating func bytes(_ count: Int) -> [UInt8] {
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    /// Reads eight bytes as a big-endian number.
    mutating func number() -> UInt64 { (0..<8).reduce(0) { number, _ in number << 8 | UInt64(byte()) } }

    mutating func index(below count: Int) -> Int { Int(byte()) % count }

    mutating func pick<Element>(_ elements: [Element]) -> Element? {
        let byte = byte()
        return elements.isEmpty ? nil : elements[Int(byte) % elements.count]
    }
}

/// Splits a text input into lines. Invalid UTF-8 is replaced, as in a log.
func lines(of input: [UInt8]) -> [String] {
    input.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
        String(decoding: $0, as: UTF8.self)
    }
}
