/// The name of a room: 1 to 64 characters, at least one of them visible.
///
/// Two names are equal if people cannot tell them apart: if they differ only in case, in the Unicode encoding of the
/// same characters (NFC or NFD), in invisible characters, or in blanks at the ends or next to each other. The room
/// keeps the spelling of its creator.
public struct RoomName: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The name as it was written.
    public let text: String

    /// Creates a name. Returns nil if the text is too long or has no visible character. Also returns nil if it contains
    /// `/`, or a character that `isAllowedInNames` excludes, such as a control character. Finally, returns nil for `.`
    /// and `..`, because browsers remove them from links.
    public init?(_ text: String) {
        guard text.utf8.count <= Limits.roomNameBytes, text.count <= Limits.roomName, text != ".", text != "..",
            text.unicodeScalars.allSatisfy({ $0.isAllowedInNames && $0 != "/" }),
            text.unicodeScalars.contains(where: \.isVisibleInNames)
        else { return nil }
        self.text = text
    }

    private init(unchecked text: String) { self.text = text }

    /// A placeholder for payloads whose members have not been read yet.
    public static let unset = RoomName(unchecked: "")

    /// Returns a random name of the form `abc-defg-hij`. There are 26^10 such names, so nobody can find a room by
    /// guessing.
    public static func random(using generator: inout some RandomNumberGenerator) -> RoomName {
        let text = "xxx-xxxx-xxx".map { place -> Character in
            guard place == "x" else { return place }
            return Character(Unicode.Scalar(UInt8.random(in: UInt8(ascii: "a")...UInt8(ascii: "z"), using: &generator)))
        }
        return RoomName(unchecked: String(text))
    }

    /// The name as part of a URL's path (RFC 3986 §2.3). For most names, JavaScript's `encodeURIComponent` returns
    /// the same text.
    public var pathComponent: String {
        let digits = Array("0123456789ABCDEF")
        return text.utf8.reduce(into: "") { result, byte in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                result.append("%")
                result.append(digits[Int(byte >> 4)])
                result.append(digits[Int(byte & 15)])
            }
        }
    }

    /// Parses a component of a URL's path. Returns nil if its encoding is invalid, or if the decoded text is not a
    /// valid room name.
    public init?(pathComponent: some StringProtocol) {
        var bytes: [UInt8] = []
        var rest = pathComponent.utf8.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(Self.digit), let low = rest.next().flatMap(Self.digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        // Reject invalid UTF-8: decoding replaces it with U+FFFD, which would give a different name.
        let text = String(decoding: bytes, as: UTF8.self)
        guard Array(text.utf8) == bytes else { return nil }
        self.init(text)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    /// The text by which names are compared. It is the same for all spellings of a name.
    package var folded: String { text.foldedForNames }

    public static func == (left: RoomName, right: RoomName) -> Bool { left.folded == right.folded }
    public static func < (left: RoomName, right: RoomName) -> Bool { left.folded < right.folded }
    public func hash(into hasher: inout Hasher) { hasher.combine(folded) }
    public var description: String { text }
}

extension FieldCoder {
    mutating func room(_ name: String, _ value: inout RoomName) throws(WireError) {
        var text = value.text
        // Accept any text that fits into a message. It is checked below, because a bad name has its own error code.
        try string(name, &text, max: Limits.message)
        guard isReading else { return }
        guard let room = RoomName(text) else {
            throw WireError(
                .invalidName,
                "A room's name must have 1 to \(Limits.roomName) characters, without \"/\" or invisible characters.")
        }
        value = room
    }

    mutating func room(_ name: String, _ value: inout RoomName?) throws(WireError) {
        if isReading {
            var text: String?
            try string(name, &text, max: Limits.message)
            guard text != nil else { return value = nil }
        } else if value == nil {
            return
        }
        var present = value ?? .unset
        try room(name, &present)
        value = present
    }
}
