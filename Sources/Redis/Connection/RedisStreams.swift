/// A place in a stream.
package struct RedisStreamPosition: Hashable, Sendable {
    /// The stream's key.
    package var stream: String
    /// The id of the last entry that is known. Entries after it are read.
    package var after: String

    package init(_ stream: String, after: String) { (self.stream, self.after) = (stream, after) }
}

/// What a writer appended to a stream with `XADD`.
package struct RedisStreamEntry: Hashable, Sendable {
    /// A name and a value. Names can repeat.
    package struct Field: Hashable, Sendable {
        /// Any bytes, not necessarily text.
        package var name: [UInt8]
        /// Any bytes, as the sender wrote them.
        package var value: [UInt8]
    }

    /// The key of the entry's stream.
    package var stream: String
    /// The entry's id, such as `1526919030474-55`. Later entries have greater ids.
    package var id: String
    package var fields: [Field]

    /// Reads the answer to `XREAD`: a map of keys to lists of entries, or null.
    static func read(_ answer: RESPValue) throws(RedisError) -> [RedisStreamEntry] {
        switch answer.content {
        case .null: return []
        case .map(let streams):
            var entries: [RedisStreamEntry] = []
            for stream in streams {
                guard let key = stream.key.text, let found = stream.value.elements else { throw unreadable }
                for entry in found { entries.append(try RedisStreamEntry(entry, of: key)) }
            }
            return entries
        default: throw unreadable
        }
    }

    private init(_ entry: RESPValue, of stream: String) throws(RedisError) {
        guard let parts = entry.elements, parts.count == 2, let id = parts[0].text, let words = parts[1].elements,
            words.count.isMultiple(of: 2)
        else { throw Self.unreadable }
        (self.stream, self.id) = (stream, id)
        fields = []
        for index in stride(from: 0, to: words.count, by: 2) {
            guard let name = words[index].bytes, let value = words[index + 1].bytes else { throw Self.unreadable }
            fields.append(Field(name: name, value: value))
        }
    }

    private static let unreadable = RedisError(.protocolViolation, "Redis answered XREAD in an unknown form.")
}
