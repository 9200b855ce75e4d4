/// Parses a style sheet byte by byte. Never traps, and reads each byte at most a few times.
struct StylesheetParser {
    private typealias Rule = Stylesheet.Rule

    private let bytes: [UInt8]
    private var at = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    mutating func rules() throws(StylesheetError) -> [Stylesheet.Rule] {
        var rules: [Stylesheet.Rule] = []
        try skipSpace()
        while at < bytes.count {
            guard rules.count < Stylesheet.maxRules else {
                throw fault("There are more than \(Stylesheet.maxRules) rules.")
            }
            rules.append(try rule())
            try skipSpace()
        }
        return rules
    }

    // MARK: Characters

    private func fault(_ message: String) -> StylesheetError {
        StylesheetError(line: 1 + bytes.prefix(at).count { $0 == UInt8(ascii: "\n") }, message: message)
    }

    private var next: UInt8? { at < bytes.count ? bytes[at] : nil }

    private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0a, 0x0c, 0x0d].contains(byte) }

    /// Skips white space and comments. Returns whether there was any.
    @discardableResult
    private mutating func skipSpace() throws(StylesheetError) -> Bool {
        let start = at
        while let byte = next {
            if Self.isSpace(byte) {
                at += 1
            } else if byte == UInt8(ascii: "/"), at + 1 < bytes.count, bytes[at + 1] == UInt8(ascii: "*") {
                let begin = at
                at += 2
                while at + 1 < bytes.count, !(bytes[at] == UInt8(ascii: "*") && bytes[at + 1] == UInt8(ascii: "/")) {
                    at += 1
                }
                guard at + 1 < bytes.count else {
                    at = begin
                    throw fault("A comment does not end.")
                }
                at += 2
            } else {
                break
            }
        }
        return at > start
    }

    private mutating func skip(_ character: Character) -> Bool {
        guard let ascii = character.asciiValue, next == ascii else { return false }
        at += 1
        return true
    }

    private mutating func expect(_ character: Character) throws(StylesheetError) {
        guard skip(character) else { throw fault("Expected \"\(character)\"\(found).") }
    }

    /// What is there instead, for messages.
    private var found: String {
        guard let next else { return " before the end" }
        return next >= 0x21 && next < 0x7f ? " instead of \"\(Character(UnicodeScalar(next)))\"" : ""
    }

    private static func isName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    private mutating func name(_ what: String) throws(StylesheetError) -> String {
        let start = at
        while let byte = next, Self.isName(byte) { at += 1 }
        guard at > start else { throw fault("Expected \(what)\(found).") }
        return String(decoding: bytes[start..<at], as: UTF8.self)
    }

    // MARK: Selectors

    private mutating func rule() throws(StylesheetError) -> Stylesheet.Rule {
        var selectors = [try selector()]
        while skip(",") {
            try skipSpace()
            selectors.append(try selector())
        }
        try expect("{")
        var declarations: [Stylesheet.Declaration] = []
        try skipSpace()
        while !skip("}") {
            declarations += try declaration()
            try skipSpace()
            guard skip(";") || next == UInt8(ascii: "}") else { throw fault("Expected \";\" or \"}\"\(found).") }
            try skipSpace()
            while skip(";") { try skipSpace() }
        }
        return Stylesheet.Rule(selectors: selectors, declarations: declarations)
    }

    /// Parses a selector, and the space after it.
    private mutating func selector() throws(StylesheetError) -> Stylesheet.Selector {
        var selector = Stylesheet.Selector(compounds: [try compound()], combinators: [])
        while true {
            let hasSpace = try skipSpace()
            guard let byte = next, byte != UInt8(ascii: ","), byte != UInt8(ascii: "{") else { return selector }
            if skip("+") {
                selector.combinators.append(.next)
            } else if skip("~") {
                selector.combinators.append(.later)
            } else {
                throw fault(
                    hasSpace ? "Only the combinators + and ~ are supported." : "Expected \"{\"\(found).")
            }
            try skipSpace()
            selector.compounds.append(try compound())
            guard selector.compounds.count <= Stylesheet.maxCompounds else {
                throw fault("A selector has more than \(Stylesheet.maxCompounds) parts.")
            }
        }
    }

    private mutating func compound() throws(StylesheetError) -> Stylesheet.Compound {
        var compound = Stylesheet.Compound()
        let start = at
        if let byte = next, Self.isName(byte) {
            guard try name("a selector") == "stream" else { throw fault("The only type of elements is stream.") }
            compound.isTyped = true
        }
        while true {
            if skip(".") {
                compound.classes.append(try name("a class"))
            } else if skip(":") {
                compound.positions.append(try position())
            } else {
                break
            }
        }
        guard at > start else { throw fault("Expected a selector such as stream or .focus\(found).") }
        return compound
    }

    private mutating func position() throws(StylesheetError) -> Stylesheet.Position {
        switch try name("a pseudo-class") {
        case "first-child": return .fromStart(1)
        case "last-child": return .fromEnd(1)
        case "nth-child": return .fromStart(try index())
        case "nth-last-child": return .fromEnd(try index())
        case let other: throw fault("The pseudo-class \"\(other)\" is not supported.")
        }
    }

    private mutating func index() throws(StylesheetError) -> Int {
        try expect("(")
        try skipSpace()
        guard let index = Int(try name("a number")), (1...1_000).contains(index) else {
            throw fault("The position of a child must be a number from 1.")
        }
        try skipSpace()
        try expect(")")
        return index
    }

    // MARK: Declarations

    private mutating func declaration() throws(StylesheetError) -> [Stylesheet.Declaration] {
        let property = try name("a property").lowercased()
        try skipSpace()
        try expect(":")
        let words = try words()
        if property == "margin" { return try margins(words) }
        guard words.count == 1, let word = words.first else {
            throw fault("The property \"\(property)\" must have one value.")
        }
        if property == "overflow" {
            guard word == "hidden" else { throw fault("The only value of overflow is hidden.") }
            return []
        }
        return [try declaration(property, word)]
    }

    private mutating func words() throws(StylesheetError) -> [String] {
        var words: [String] = []
        while true {
            try skipSpace()
            let start = at
            while let byte = next,
                Self.isName(byte) || byte == UInt8(ascii: "%") || byte == UInt8(ascii: ".")
                    || byte == UInt8(ascii: "+")
            {
                at += 1
            }
            guard at > start else { return words }
            words.append(String(decoding: bytes[start..<at], as: UTF8.self).lowercased())
        }
    }

    private func declaration(_ property: String, _ word: String) throws(StylesheetError) -> Stylesheet.Declaration {
        if let name = Stylesheet.LengthProperty(rawValue: property) { return .length(name, try length(word, name)) }
        let known: Stylesheet.Declaration?
        switch property {
        case "z-index": known = Int(word).flatMap { (0...1_000_000).contains($0) ? .zIndex($0) : nil }
        case "position":
            known = ["absolute", "relative"].contains(word) ? .position(isAbsolute: word == "absolute") : nil
        case "display": known = StyleDisplay(rawValue: word).map { .display($0) }
        case "float": known = StyleFloat(rawValue: word).map { .float($0) }
        // The initial value is none, and so is the container's.
        case "clear":
            known = StyleClear(rawValue: ["initial", "inherit"].contains(word) ? "none" : word).map { .clear($0) }
        case "object-fit": known = LayoutFit(rawValue: word).map { .objectFit($0) }
        default: throw fault("The property \"\(property)\" is not supported.")
        }
        guard let known else { throw fault("The value \"\(word)\" of \(property) is not supported.") }
        return known
    }

    /// Parses one to four values, in the order of CSS: top, right, bottom, left.
    private func margins(_ words: [String]) throws(StylesheetError) -> [Stylesheet.Declaration] {
        var lengths: [StyleLength] = []
        for word in words { lengths.append(try length(word, .marginTop)) }
        guard let first = lengths.first, lengths.count <= 4 else {
            throw fault("The property \"margin\" must have one to four values.")
        }
        let right = lengths.count > 1 ? lengths[1] : first
        return [
            .length(.marginTop, first), .length(.marginRight, right),
            .length(.marginBottom, lengths.count > 2 ? lengths[2] : first),
            .length(.marginLeft, lengths.count > 3 ? lengths[3] : right),
        ]
    }

    private func length(_ word: String, _ property: Stylesheet.LengthProperty) throws(StylesheetError) -> StyleLength {
        let length: StyleLength?
        if word.hasSuffix("%") {
            length = Self.number(word.dropLast()).map { .percent($0) }
        } else if word.hasSuffix("px") {
            length = Self.number(word.dropLast(2)).map { .pixels($0) }
        } else {
            length = Self.number(word[...]) == 0 ? .pixels(0) : nil
        }
        guard let length else {
            throw fault("The value \"\(word)\" of \(property.rawValue) must be a number with px or %.")
        }
        guard property.maySubtract || length.resolved(100) >= 0 else {
            throw fault("The value of \(property.rawValue) must not be negative.")
        }
        return length
    }

    /// Parses a decimal number of at most 100,000 without an exponent.
    private static func number(_ text: Substring) -> Double? {
        let digits = text.utf8.drop { $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "+") }
        guard text.utf8.count <= 16, text.utf8.count - digits.count <= 1,
            digits.contains(where: { $0 != UInt8(ascii: ".") }),
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".") })
        else { return nil }
        guard
            let number = Double(
                digits.first == UInt8(ascii: ".") ? "0\(Substring(digits))" : String(Substring(digits))),
            number <= 100_000
        else { return nil }
        return text.first == "-" ? -number : number
    }
}
