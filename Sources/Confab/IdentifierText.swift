import Wire

// Creates ids from text that an application has stored, or received in a link or a push notification. Interpolation,
// as in "\(id)", is the reverse. The initializers in `Wire` have no label, and are visible only to files that import
// `Wire`.

extension SessionID {
    /// Parses an id of 1 to 255 characters of base64url; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension ConnectionID {
    /// Parses an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension StreamID {
    /// Parses an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension MatchID {
    /// Parses an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension PersonID {
    /// Parses an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension RoomID {
    /// Parses an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension CallID {
    /// Parses an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}

extension RoomFileID {
    /// Parses an id of 32 lowercase hexadecimal digits; nil for any other text.
    public init?(text: String) { self.init(text) }
}
