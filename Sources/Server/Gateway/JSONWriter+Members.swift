import Wire

/// Members of JSON objects in responses of the HTTP endpoints.
extension JSONWriter {
    mutating func member(_ name: String, _ value: String) {
        self.name(name)
        string(value)
    }

    mutating func member(_ name: String, _ value: some BinaryInteger) {
        self.name(name)
        integer(value)
    }

    mutating func member(_ name: String, _ value: Bool) {
        self.name(name)
        bool(value)
    }

    /// Writes an array of objects, one for each row.
    mutating func list<Row>(_ name: String, _ rows: some Sequence<Row>, _ members: (inout JSONWriter, Row) -> Void) {
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
