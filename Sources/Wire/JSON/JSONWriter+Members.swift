/// Members of JSON objects whose fields are written one by one, such as the claims of tokens.
extension JSONWriter {
    /// Writes a member whose value is a string.
    package mutating func member(_ name: String, _ value: String) {
        self.name(name)
        string(value)
    }

    /// Writes a member whose value is an integer.
    package mutating func member(_ name: String, _ value: some BinaryInteger) {
        self.name(name)
        integer(value)
    }

    /// Writes a member whose value is `true` or `false`.
    package mutating func member(_ name: String, _ value: Bool) {
        self.name(name)
        bool(value)
    }

    /// Writes an array of objects, one for each row.
    package mutating func list<Row>(
        _ name: String, _ rows: some Sequence<Row>, _ members: (inout JSONWriter, Row) -> Void
    ) {
        self.name(name)
        beginArray()
        for row in rows {
            beginObject()
            members(&self, row)
            endObject()
        }
        endArray()
    }
}
