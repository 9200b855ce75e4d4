import Wire

/// Validates, cleans up and generates the display names of people.
package enum PersonName {
    /// Returns the name with whitespace trimmed and collapsed, or `nil` if the name is too long or contains invisible
    /// characters that change how the surrounding text looks.
    ///
    /// Returns an empty name if no character of the name is visible.
    package static func normalized(_ text: String) -> String? {
        // Reject very long input before processing it.
        guard text.utf8.count <= 4 * Limits.personNameBytes, text.unicodeScalars.allSatisfy(\.isAllowedInNames) else {
            return nil
        }
        let name = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        guard name.count <= Limits.personName, name.utf8.count <= Limits.personNameBytes else { return nil }
        return name.unicodeScalars.contains(where: \.isVisibleInNames) ? name : ""
    }

    /// Returns a name from a user token in a form that can be shown. Replaces characters that are not allowed with
    /// spaces, and truncates a name that is too long. Returns an empty name if no character is visible.
    static func vouched(_ name: String) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in name.unicodeScalars.prefix(Limits.name) {
            scalars.append(scalar.isAllowedInNames ? scalar : " ")
        }
        let words = String(scalars).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        var shown = ""
        for character in words.prefix(Limits.personName) {
            guard shown.utf8.count + String(character).utf8.count <= Limits.personNameBytes else { break }
            shown.append(character)
        }
        return shown.unicodeScalars.contains(where: \.isVisibleInNames) ? shown : ""
    }

    static let invalid = WireError(
        .invalidName,
        "A name must not exceed \(Limits.personName) characters or contain line breaks or invisible characters."
    )

    // MARK: Generated names

    /// Returns a generated name. The same person always gets the same name.
    static func generated(_ person: PersonID) -> String {
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
