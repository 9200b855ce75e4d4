import Wire

extension FuzzTarget {
    static let json = FuzzTarget("json", dictionary: "json") { input throws(BrokenProperty) in
        guard let value = try? JSONReader.parse(input) else { return }
        let bytes = written(value)
        let again = try? JSONReader.parse(bytes)
        try require(again == value, "\(value) is read back as \(String(describing: again))")
        // Compare bytes, because Swift treats canonically equivalent strings as equal even if their bytes differ.
        if let again { try require(written(again) == bytes, "\(value) has two encodings") }
        try require(nesting(value) <= Limits.jsonDepth + 1, "a value is nested \(nesting(value)) levels deep")
    }

    private static func written(_ value: JSONValue) -> [UInt8] {
        var writer = JSONWriter()
        writer.value(value)
        return writer.bytes
    }

    private static func nesting(_ value: JSONValue) -> Int {
        switch value {
        case .null, .bool, .integer, .number, .string: 1
        case .array(let elements): 1 + (elements.map(nesting).max() ?? 0)
        case .object(let object): 1 + (object.members.map { nesting($0.value) }.max() ?? 0)
        }
    }
}
