import Wire

/// What people go by in lists and calls.
enum PersonName {
    /// As it is shown: without spaces about it or more than one in a row. `nil` for what cannot be a name: too long, or with
    /// what cannot be seen and changes how the text around it looks.
    ///
    /// What shows nothing is the empty name.
    static func normalised(_ wish: String) -> String? {
        // Ten kilobytes are not worth looking at.
        guard wish.utf8.count <= 4 * Limits.personNameBytes, wish.unicodeScalars.allSatisfy(isAllowed) else {
            return nil
        }
        let name = wish.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        guard name.count <= Limits.personName, name.utf8.count <= Limits.personNameBytes else { return nil }
        return name.unicodeScalars.contains(where: isVisible) ? name : ""
    }

    /// A name that a program vouches for is shown in any case: what cannot be shown of it is left out.
    static func vouched(_ name: String) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in name.unicodeScalars.prefix(Limits.name) {
            scalars.append(isAllowed(scalar) ? scalar : " ")
        }
        let words = String(scalars).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        var shown = ""
        for character in words.prefix(Limits.personName) {
            guard shown.utf8.count + String(character).utf8.count <= Limits.personNameBytes else { break }
            shown.append(character)
        }
        return shown.unicodeScalars.contains(where: isVisible) ? shown : ""
    }

    /// Not what breaks lines, turns the direction of what follows (U+202A–202E, 2066–2069, 200E, 200F, 061C), or is not
    /// there at all. Joiners stay: Persian and families of emoji need them; so do the tags of flags.
    private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
        case .format: scalar == "\u{200C}" || scalar == "\u{200D}" || 0xE0020...0xE007F ~= scalar.value
        default: true
        }
    }

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        // The empty pattern of braille is no space by its category, and shows nothing all the same.
        !scalar.properties.isWhitespace && !scalar.properties.isDefaultIgnorableCodePoint && scalar != "\u{2800}"
    }

    static let invalid = WireError(
        .invalidName,
        "A name is at most \(Limits.personName) characters, without line breaks and invisible signs; choose another."
    )

    // MARK: For who chose none

    /// Always the same for the same person.
    static func pleasant(_ person: PersonID) -> String {
        let adjective = adjectives[Int(person.low % UInt64(adjectives.count))]
        let animal = animals[Int(person.low / UInt64(adjectives.count) % UInt64(animals.count))]
        return "\(adjective) \(animal)"
    }

    private static let adjectives = [
        "Amber", "Bold", "Brave", "Breezy", "Bright", "Brisk", "Calm", "Cheerful", "Clever", "Cosy", "Curious",
        "Dapper",
        "Daring", "Dreamy", "Eager", "Early", "Earnest", "Easy", "Fair", "Fleet", "Friendly", "Gentle", "Glad",
        "Golden",
        "Graceful", "Happy", "Hardy", "Honest", "Humble", "Jolly", "Keen", "Kind", "Lively", "Lucky", "Mellow", "Merry",
        "Mild", "Neat", "Nimble", "Noble", "Patient", "Peaceful", "Playful", "Polite", "Proud", "Quick", "Quiet",
        "Ready",
        "Rosy", "Serene", "Silver", "Sincere", "Snug", "Spry", "Steady", "Sunny", "Swift", "Tender", "Tidy", "Upbeat",
        "Vivid", "Warm", "Wise", "Witty",
    ]

    private static let animals = [
        "Alpaca", "Antelope", "Badger", "Beaver", "Bison", "Blackbird", "Bluebird", "Bumblebee", "Butterfly", "Camel",
        "Caribou", "Chamois", "Chipmunk", "Cormorant", "Cricket", "Curlew", "Deer", "Dolphin", "Dormouse", "Dragonfly",
        "Duck", "Falcon", "Finch", "Firefly", "Fox", "Gazelle", "Goldfinch", "Hare", "Hedgehog", "Heron", "Ibex", "Jay",
        "Kestrel", "Kingfisher", "Koala", "Ladybird", "Lark", "Lemur", "Llama", "Lynx", "Magpie", "Marmot", "Marten",
        "Nightingale", "Nuthatch", "Otter", "Owl", "Panda", "Pelican", "Penguin", "Plover", "Pony", "Puffin", "Quail",
        "Robin", "Seal", "Sparrow", "Squirrel", "Starling", "Swallow", "Swan", "Tortoise", "Wren", "Zebra",
    ]
}
