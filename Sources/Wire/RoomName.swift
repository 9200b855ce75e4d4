/// The name of a room: 1 to 64 characters, at least one of them visible.
///
/// Two names are equal if they differ only in case, or in how Unicode encodes the same characters (NFC or NFD). The room keeps
/// the spelling of the person who created it.
public struct RoomName: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The name as it was written.
    public let text: String

    /// Creates a name, or returns nil if the name is too long, contains `/` or characters that cannot be shown, or is `.` or
    /// `..`, which browsers remove from links.
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

    /// Returns a random name of the form `abc-defg-hij`. There are 26^10 of them, so that nobody finds a room by guessing.
    public static func random(using generator: inout some RandomNumberGenerator) -> RoomName {
        let text = "xxx-xxxx-xxx".map { place -> Character in
            guard place == "x" else { return place }
            return Character(Unicode.Scalar(UInt8.random(in: UInt8(ascii: "a")...UInt8(ascii: "z"), using: &generator)))
        }
        return RoomName(unchecked: String(text))
    }

    /// The form in which names are compared. `String` compares canonically equivalent texts as equal. Converting to uppercase
    /// first folds characters such as "ß", whose lowercase form differs from that of "SS".
    private var folded: String { text.uppercased().lowercased() }

    public static func == (left: RoomName, right: RoomName) -> Bool { left.folded == right.folded }
    public static func < (left: RoomName, right: RoomName) -> Bool { left.folded < right.folded }
    public func hash(into hasher: inout Hasher) { hasher.combine(folded) }
    public var description: String { text }
}

extension FieldCoder {
    mutating func room(_ name: String, _ value: inout RoomName) throws(WireError) {
        var text = value.text
        // The length is checked later, because a bad name has its own error code.
        try string(name, &text, max: Limits.message)
        guard isReading else { return }
        guard let room = RoomName(text) else {
            throw WireError(
                .invalidName,
                "A room's name must have 1 to \(Limits.roomName) characters, without \"/\" and invisible characters.")
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
