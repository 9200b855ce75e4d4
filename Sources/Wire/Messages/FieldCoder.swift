/// Visits a message's members once for both directions: each payload lists its members in one function, and that function
/// reads them from JSON or writes them to it. So what is written cannot drift from what is read.
public struct FieldCoder {
    private let object: JSONObject
    var writer: JSONWriter
    public let isReading: Bool

    init(reading object: JSONObject) {
        self.object = object
        writer = JSONWriter(capacity: 0)
        isReading = true
    }

    init(writing writer: JSONWriter) {
        object = JSONObject()
        self.writer = writer
        isReading = false
    }

    /// What was expected is put into words only when it did not come.
    private static func malformed(_ name: String, _ expected: @autoclosure () -> String) -> WireError {
        WireError(.malformed, "The member \"\(name)\" must be \(expected()).")
    }

    private func required(_ name: String, _ expected: @autoclosure () -> String) throws(WireError) -> JSONValue {
        guard let value = object[name] else { throw Self.malformed(name, expected()) }
        return value
    }

    // MARK: Strings

    /// At most `max` UTF-8 bytes.
    public mutating func string(_ name: String, _ value: inout String, max: Int) throws(WireError) {
        guard isReading else {
            writer.name(name)
            return writer.string(value)
        }
        func expected() -> String { "a string of at most \(max) bytes" }
        guard case .string(let text) = try required(name, expected()), text.utf8.count <= max else {
            throw Self.malformed(name, expected())
        }
        value = text
    }

    public mutating func string(_ name: String, _ value: inout String?, max: Int) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var text = value ?? ""
        try string(name, &text, max: max)
        value = text
    }

    public mutating func strings(_ name: String, _ value: inout [String]?, max: Int) throws(WireError) {
        guard isReading else {
            guard let value else { return }
            writer.name(name)
            writer.beginArray()
            for text in value { writer.string(text) }
            return writer.endArray()
        }
        guard let member = object[name] else { return value = nil }
        func expected() -> String { "a list of at most \(Limits.list) strings of at most \(max) bytes" }
        guard case .array(let elements) = member, elements.count <= Limits.list else {
            throw Self.malformed(name, expected())
        }
        var texts: [String] = []
        for element in elements {
            guard case .string(let text) = element, text.utf8.count <= max else {
                throw Self.malformed(name, expected())
            }
            texts.append(text)
        }
        value = texts
    }

    public mutating func choice<C: RawRepresentable<String>>(_ name: String, _ value: inout C) throws(WireError) {
        var raw = value.rawValue
        try string(name, &raw, max: Limits.name)
        guard let choice = C(rawValue: raw) else { throw Self.malformed(name, "one of the values the protocol names") }
        value = choice
    }

    public mutating func choice<C: RawRepresentable<String>>(_ name: String, _ value: inout C?) throws(WireError) {
        var raw = value?.rawValue
        try string(name, &raw, max: Limits.name)
        guard let raw else { return value = nil }
        guard let choice = C(rawValue: raw) else { throw Self.malformed(name, "one of the values the protocol names") }
        value = choice
    }

    public mutating func id<I: Identifier128>(_ name: String, _ value: inout I) throws(WireError) {
        guard isReading else {
            writer.name(name)
            return writer.string(value.description)
        }
        func expected() -> String { "an id of 32 hexadecimal digits" }
        guard case .string(let text) = try required(name, expected()), let id = I(text) else {
            throw Self.malformed(name, expected())
        }
        value = id
    }

    public mutating func id<I: Identifier128>(_ name: String, _ value: inout I?) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var present = value ?? I(high: 0, low: 0)
        try id(name, &present)
        value = present
    }

    public mutating func ids<I: Identifier128>(_ name: String, _ value: inout [I]?) throws(WireError) {
        var texts = value?.map(\.description)
        try strings(name, &texts, max: 32)
        guard let texts else { return value = nil }
        var ids: [I] = []
        for text in texts {
            guard let id = I(text) else { throw Self.malformed(name, "a list of ids of 32 hexadecimal digits") }
            ids.append(id)
        }
        value = ids
    }

    // MARK: Numbers and booleans

    public mutating func integer<N: FixedWidthInteger>(
        _ name: String, _ value: inout N, in range: ClosedRange<N>
    ) throws(WireError) {
        guard isReading else {
            writer.name(name)
            return writer.integer(value)
        }
        func expected() -> String { "an integer from \(range.lowerBound) to \(range.upperBound)" }
        guard case .integer(let integer) = try required(name, expected()), let number = N(exactly: integer),
            range.contains(number)
        else { throw Self.malformed(name, expected()) }
        value = number
    }

    public mutating func integer<N: FixedWidthInteger>(
        _ name: String, _ value: inout N?, in range: ClosedRange<N>
    ) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var present = value ?? range.lowerBound
        try integer(name, &present, in: range)
        value = present
    }

    public mutating func timestamp(_ name: String, _ value: inout Timestamp) throws(WireError) {
        var milliseconds = value.milliseconds
        try integer(name, &milliseconds, in: 0...(1 << 53))
        value = Timestamp(milliseconds: milliseconds)
    }

    public mutating func timestamp(_ name: String, _ value: inout Timestamp?) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var present = value ?? Timestamp(milliseconds: 0)
        try timestamp(name, &present)
        value = present
    }

    public mutating func milliseconds(_ name: String, _ value: inout Duration?) throws(WireError) {
        var milliseconds = value?.wholeMilliseconds
        try integer(name, &milliseconds, in: 0...(1 << 53))
        value = milliseconds.map { .milliseconds($0) }
    }

    public mutating func milliseconds(_ name: String, _ value: inout Duration) throws(WireError) {
        var milliseconds = value.wholeMilliseconds
        try integer(name, &milliseconds, in: 0...(1 << 53))
        value = .milliseconds(milliseconds)
    }

    public mutating func bool(_ name: String, _ value: inout Bool) throws(WireError) {
        guard isReading else {
            writer.name(name)
            return writer.bool(value)
        }
        guard case .bool(let bool) = try required(name, "true or false") else {
            throw Self.malformed(name, "true or false")
        }
        value = bool
    }

    public mutating func bool(_ name: String, _ value: inout Bool?) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var present = value ?? false
        try bool(name, &present)
        value = present
    }

    // MARK: Nested payloads

    public mutating func nested<P: Payload>(_ name: String, _ value: inout P) throws(WireError) {
        guard isReading else {
            writer.name(name)
            return try write(&value)
        }
        guard case .object(let object) = try required(name, "an object") else {
            throw Self.malformed(name, "an object")
        }
        value = try P(members: object)
    }

    public mutating func nested<P: Payload>(_ name: String, _ value: inout P?) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var present = value ?? P()
        try nested(name, &present)
        value = present
    }

    public mutating func list<P: Payload>(_ name: String, _ value: inout [P]) throws(WireError) {
        guard isReading else {
            writer.name(name)
            writer.beginArray()
            for var element in value { try write(&element) }
            return writer.endArray()
        }
        guard case .array(let elements) = try required(name, "a list") else { throw Self.malformed(name, "a list") }
        value = []
        for element in elements {
            guard case .object(let object) = element else { throw Self.malformed(name, "a list of objects") }
            value.append(try P(members: object))
        }
    }

    /// Any JSON, passed on as it is. `.null` counts as present: for a candidate it means "no more".
    public mutating func json(_ name: String, _ value: inout JSONValue?) throws(WireError) {
        if isReading {
            value = object.members.first { $0.name == name }?.value
        } else if let value {
            writer.name(name)
            writer.value(value)
        }
    }

    private mutating func write<P: Payload>(_ value: inout P) throws(WireError) {
        writer.beginObject()
        try value.fields(&self)
        writer.endObject()
    }
}
