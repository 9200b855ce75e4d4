@testable import Redis

extension FuzzTarget {
    /// Fuzzes the parser of what Redis sends, with small limits. The first byte is the size of the pieces in which the rest
    /// arrives. The pieces must not change the result, and what is parsed must be encoded so that it is parsed again.
    static let resp = FuzzTarget("resp", longestInput: 600, dictionary: "resp") { input throws(BrokenProperty) in
        var limits = RESPParser.Limits()
        (limits.maxDepth, limits.maxElements) = (4, 64)
        (limits.maxBulkBytes, limits.maxLineBytes, limits.maxValueBytes) = (200, 100, 300)
        let bytes = Array(input.dropFirst())
        let whole = try parse(bytes, by: bytes.count, limits)
        let pieces = try parse(bytes, by: Int(input.first ?? 0) % 16 + 1, limits)
        try require(
            whole.text == pieces.text && whole.violation == pieces.violation,
            "in pieces, \(pieces.violation.map { "\($0)" } ?? "no violation") follows \(pieces.values.count) values, "
                + "but \(whole.values.count) are read at once")
        for value in whole.values {
            try require(depth(of: value) <= limits.maxDepth, "a value is nested too deep")
            // Compares encodings, because a NaN does not equal itself.
            let again = try parse(value.encoded, by: 1, RESPParser.Limits())
            try require(again.text == value.encoded && again.violation == nil, "\(value) is read back differently")
        }
    }

    /// The values of an input, and the violation that ended it.
    private struct Parsed {
        var values: [RESPValue] = []
        var violation: RESPViolation?
        var text: [UInt8] { values.flatMap(\.encoded) }
    }

    private static func parse(
        _ bytes: [UInt8], by size: Int, _ limits: RESPParser.Limits
    ) throws(BrokenProperty) -> Parsed {
        var parser = RESPParser(limits: limits)
        var parsed = Parsed()
        var rest = bytes[...]
        while !rest.isEmpty {
            parser.append(rest.prefix(max(size, 1)))
            rest = rest.dropFirst(max(size, 1))
            do throws(RESPViolation) {
                while let value = try parser.next() { parsed.values.append(value) }
            } catch {
                parsed.violation = error
            }
            try require(parser.bufferedBytes <= bytes.count, "more bytes are stored than have arrived")
        }
        return parsed
    }

    private static func depth(of value: RESPValue) -> Int {
        switch value {
        case .array(let elements), .set(let elements), .push(let elements):
            elements.isEmpty ? 0 : 1 + (elements.map(depth).max() ?? 0)
        case .map(let pairs): pairs.isEmpty ? 0 : 1 + depth(of: pairs)
        case .attributed(let pairs, let value): 1 + max(depth(of: pairs), depth(of: value))
        default: 0
        }
    }

    private static func depth(of pairs: [RESPValue.Pair]) -> Int {
        pairs.map { max(depth(of: $0.key), depth(of: $0.value)) }.max() ?? 0
    }
}
