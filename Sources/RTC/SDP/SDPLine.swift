/// One line of a description, parsed from left to right.
struct SDPLine {
    /// The line number, counted from 1.
    let number: Int
    private(set) var rest: SDPBytes

    init(number: Int, _ rest: SDPBytes) { (self.number, self.rest) = (number, rest) }

    var isAtEnd: Bool { rest.isEmpty }

    /// Returns the bytes before the next `separator`, or all bytes if there is none, and moves past the separator.
    mutating func take(until separator: UInt8) -> SDPBytes { rest.take(until: separator) }

    /// Returns the next word and moves past it. Skips leading spaces.
    mutating func word() -> SDPBytes {
        while rest.first == UInt8(ascii: " ") { rest = rest.dropFirst(1) }
        return rest.take(until: UInt8(ascii: " "))
    }

    func malformed(_ sentence: String) -> SDPError { SDPError(.malformed, line: number, sentence) }
    func tooMany(_ most: Int, _ what: String) -> SDPError {
        SDPError(.tooMany, line: number, "Too many \(what): the maximum is \(most).")
    }

    /// Reads the next word as a decimal number.
    /// - Parameter what: names the value in the error message.
    mutating func number<Number: FixedWidthInteger & UnsignedInteger>(
        _: Number.Type, _ what: String
    ) throws(SDPError) -> Number {
        guard let number = word().decimal(Number.self) else {
            throw malformed("\(what) must be a number from 0 to \(Number.max).")
        }
        return number
    }

    /// Reads the next word as a token (RFC 8866 §9) of at most `most` characters.
    mutating func token(_ what: String, upTo most: Int) throws(SDPError) -> String {
        try token(word(), what, upTo: most)
    }

    func token(_ bytes: SDPBytes, _ what: String, upTo most: Int) throws(SDPError) -> String {
        guard (1...most).contains(bytes.count), bytes.isToken else {
            throw malformed("\(what) must be 1 to \(most) letters, digits and symbols (RFC 8866 token).")
        }
        return bytes.text
    }

    /// Reads the next word as visible ASCII. Used for values in which some clients write `@`, although the grammar requires a
    /// token.
    mutating func visible(_ what: String, upTo most: Int) throws(SDPError) -> String {
        let word = word()
        guard (1...most).contains(word.count), word.isVisible else {
            throw malformed("\(what) must be 1 to \(most) ASCII characters without spaces.")
        }
        return word.text
    }
}
