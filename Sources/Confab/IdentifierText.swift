import Wire

// Ids as text, which an application keeps, or finds in a link or a push. Interpolation, as in "\(id)", is the reverse. The
// initializers of `Wire` have no label, and only files that import `Wire` see them.

extension SessionID {
    /// Reads an id of 1 to 255 characters of base64url; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension ConnectionID {
    /// Reads an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension StreamID {
    /// Reads an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension MatchID {
    /// Reads an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension PersonID {
    /// Reads an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension RoomID {
    /// Reads an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension CallID {
    /// Reads an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension RoomFileID {
    /// Reads an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}
