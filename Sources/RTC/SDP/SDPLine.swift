/// One line of a description, read from the left.
struct SDPLine {
    /// Counted from 1.
    let number: Int
    private(set) var rest: SDPBytes

    init(number: Int, _ rest: SDPBytes) { (self.number, self.rest) = (number, rest) }

    var isAtEnd: Bool { rest.isEmpty }

    /// What comes before the next `separator`, or everything. The separator is passed over.
    mutating func take(until separator: UInt8) -> SDPBytes { rest.take(until: separator) }

    /// Up to the next space. Spaces in front are passed over.
    mutating func word() -> SDPBytes {
        while rest.first == UInt8(ascii: " ") { rest = rest.dropFirst(1) }
        return rest.take(until: UInt8(ascii: " "))
    }

    func malformed(_ sentence: String) -> SDPError { SDPError(.malformed, line: number, sentence) }
    func tooMany(_ most: Int, _ what: String) -> SDPError {
        SDPError(.tooMany, line: number, "There are more than \(most) \(what).")
    }

    /// The next word, as a decimal number.
    mutating func number<Number: FixedWidthInteger & UnsignedInteger>(
        _: Number.Type, _ what: String
    ) throws(SDPError) -> Number {
        guard let number = word().decimal(Number.self) else {
            throw malformed("\(what) is a number from 0 to \(Number.max).")
        }
        return number
    }

    /// The next word, if it is a token (RFC 8866 §9) of at most so many characters.
    mutating func token(_ what: String, upTo most: Int) throws(SDPError) -> String {
        try token(word(), what, upTo: most)
    }

    func token(_ bytes: SDPBytes, _ what: String, upTo most: Int) throws(SDPError) -> String {
        guard (1...most).contains(bytes.count), bytes.isToken else {
            throw malformed("\(what) is 1 to \(most) letters, digits and signs.")
        }
        return bytes.text
    }

    /// The next word, if it is ASCII that can be seen: some write an `@` where the clause says token.
    mutating func visible(_ what: String, upTo most: Int) throws(SDPError) -> String {
        let word = word()
        guard (1...most).contains(word.count), word.isVisible else {
            throw malformed("\(what) is 1 to \(most) characters of ASCII without spaces.")
        }
        return word.text
    }
}
