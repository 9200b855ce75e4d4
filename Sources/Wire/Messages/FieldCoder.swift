/// Reads the members of a message from JSON, or writes them to JSON. Each payload lists its members in one function that serves
/// for both, so that reading and writing cannot diverge.
///
/// Reading throws `malformed`, with the member's name, if a required member is missing or a value has the wrong type or is out
/// of range. An optional member may be absent or `null`. When writing, members that are nil are left out. Limits are checked
/// only when reading.
public struct FieldCoder {
    /// The object that is read; empty while writing.
    let object: JSONObject
    var writer: JSONWriter
    /// True while values are read from JSON, false while values are written to JSON.
    public let isReading: Bool

    /// Creates a coder that reads the members of an object.
    package init(reading object: JSONObject) {
        self.object = object
        writer = JSONWriter(capacity: 0)
        isReading = true
    }

    init(writing writer: JSONWriter) {
        object = JSONObject()
        self.writer = writer
        isReading = false
    }

    /// Returns an object with the members that `fields` writes, as JSON.
    package static func object(
        _ fields: (inout FieldCoder) throws(WireError) -> Void
    ) throws(WireError) -> [UInt8] {
        var coder = FieldCoder(writing: JSONWriter())
        coder.writer.beginObject()
        try fields(&coder)
        coder.writer.endObject()
        return coder.writer.bytes
    }

    /// Returns the error for a bad member. `expected` is a closure, so that its text is created only for an error.
    private static func malformed(_ name: String, _ expected: @autoclosure () -> String) -> WireError {
        WireError(.malformed, "The member \"\(name)\" must be \(expected()).")
    }

    /// Whether the object that is read has this member, and it is not `null`.
    package func has(_ name: String) -> Bool { object[name] != nil }

    private func required(_ name: String, _ expected: @autoclosure () -> String) throws(WireError) -> JSONValue {
        guard let value = object[name] else { throw Self.malformed(name, expected()) }
        return value
    }

    // MARK: Strings

    /// Reads or writes a required string of at most `max` UTF-8 bytes.
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

    /// Reads or writes an optional string of at most `max` UTF-8 bytes.
    public mutating func string(_ name: String, _ value: inout String?, max: Int) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var text = value ?? ""
        try string(name, &text, max: max)
        value = text
    }

    /// Reads or writes an optional list of at most `count` strings, each of at most `max` UTF-8 bytes.
    public mutating func strings(
        _ name: String, _ value: inout [String]?, max: Int, count: Int = Limits.list
    ) throws(WireError) {
        guard isReading else {
            guard let value else { return }
            writer.name(name)
            writer.beginArray()
            for text in value { writer.string(text) }
            return writer.endArray()
        }
        guard let member = object[name] else { return value = nil }
        func expected() -> String { "a list of at most \(count) strings of at most \(max) bytes" }
        guard case .array(let elements) = member, elements.count <= count else {
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

    /// Reads or writes a required string that is a raw value of `C`.
    public mutating func choice<C: RawRepresentable<String>>(_ name: String, _ value: inout C) throws(WireError) {
        var raw = value.rawValue
        try string(name, &raw, max: Limits.name)
        guard let choice = C(rawValue: raw) else { throw Self.malformed(name, "a value listed in the protocol") }
        value = choice
    }

    /// Reads or writes an optional string that is a raw value of `C`.
    public mutating func choice<C: RawRepresentable<String>>(_ name: String, _ value: inout C?) throws(WireError) {
        var raw = value?.rawValue
        try string(name, &raw, max: Limits.name)
        guard let raw else { return value = nil }
        guard let choice = C(rawValue: raw) else { throw Self.malformed(name, "a value listed in the protocol") }
        value = choice
    }

    /// Reads or writes a required id of 32 lowercase hexadecimal digits.
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

    /// Reads or writes an optional id of 32 lowercase hexadecimal digits.
    public mutating func id<I: Identifier128>(_ name: String, _ value: inout I?) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var present = value ?? I(high: 0, low: 0)
        try id(name, &present)
        value = present
    }

    /// Reads or writes an optional list of at most `count` ids.
    public mutating func ids<I: Identifier128>(
        _ name: String, _ value: inout [I]?, count: Int = Limits.list
    ) throws(WireError) {
        var texts = value?.map(\.description)
        try strings(name, &texts, max: 32, count: count)
        guard let texts else { return value = nil }
        var ids: [I] = []
        for text in texts {
            guard let id = I(text) else { throw Self.malformed(name, "a list of ids of 32 hexadecimal digits") }
            ids.append(id)
        }
        value = ids
    }

    // MARK: Numbers and booleans

    /// Reads or writes a required integer within `range`.
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

    /// Reads or writes an optional integer within `range`.
    public mutating func integer<N: FixedWidthInteger>(
        _ name: String, _ value: inout N?, in range: ClosedRange<N>
    ) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var present = value ?? range.lowerBound
        try integer(name, &present, in: range)
        value = present
    }

    /// Reads or writes a required time in milliseconds since 1970, 0 to 2^53.
    public mutating func timestamp(_ name: String, _ value: inout Timestamp) throws(WireError) {
        var milliseconds = value.milliseconds
        try integer(name, &milliseconds, in: 0...(1 << 53))
        value = Timestamp(milliseconds: milliseconds)
    }

    /// Reads or writes an optional time in milliseconds since 1970, 0 to 2^53.
    public mutating func timestamp(_ name: String, _ value: inout Timestamp?) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var present = value ?? Timestamp(milliseconds: 0)
        try timestamp(name, &present)
        value = present
    }

    /// Reads or writes an optional duration in whole milliseconds, 0 to 2^53.
    public mutating func milliseconds(_ name: String, _ value: inout Duration?) throws(WireError) {
        var milliseconds = value?.wholeMilliseconds
        try integer(name, &milliseconds, in: 0...(1 << 53))
        value = milliseconds.map { .milliseconds($0) }
    }

    /// Reads or writes a required duration in whole milliseconds, 0 to 2^53.
    public mutating func milliseconds(_ name: String, _ value: inout Duration) throws(WireError) {
        var milliseconds = value.wholeMilliseconds
        try integer(name, &milliseconds, in: 0...(1 << 53))
        value = .milliseconds(milliseconds)
    }

    /// Reads or writes a required Boolean member.
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

    /// Reads or writes an optional `true` or `false`.
    public mutating func bool(_ name: String, _ value: inout Bool?) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var present = value ?? false
        try bool(name, &present)
        value = present
    }

    // MARK: Nested payloads

    /// Reads or writes a required object.
    public mutating func nested<P: Payload>(_ name: String, _ value: inout P) throws(WireError) {
        try object(name) { coder throws(WireError) in try value.fields(&coder) }
    }

    /// Reads or writes a required object, whose members are those that `fields` reads or writes.
    package mutating func object(
        _ name: String, _ fields: (inout FieldCoder) throws(WireError) -> Void
    ) throws(WireError) {
        guard isReading else {
            writer.name(name)
            writer.beginObject()
            try fields(&self)
            return writer.endObject()
        }
        guard case .object(let members) = try required(name, "an object") else {
            throw Self.malformed(name, "an object")
        }
        var coder = FieldCoder(reading: members)
        try fields(&coder)
    }

    /// Reads or writes an optional object.
    public mutating func nested<P: Payload>(_ name: String, _ value: inout P?) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var present = value ?? P()
        try nested(name, &present)
        value = present
    }

    /// Reads or writes a required list of objects, of any length.
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

    /// Reads or writes an optional list of objects, of any length.
    public mutating func list<P: Payload>(_ name: String, _ value: inout [P]?) throws(WireError) {
        if isReading, object[name] == nil { return value = nil }
        if !isReading, value == nil { return }
        var present = value ?? []
        try list(name, &present)
        value = present
    }

    /// Reads or writes any JSON value without changes. `.null` counts as present, because a candidate that is `null`
    /// means the end of candidates.
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
