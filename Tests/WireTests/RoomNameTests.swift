import TestSupport
import Testing
import Wire

@Suite struct RoomNameTests {
    @Test(arguments: [
        "a", "Stand-up", "Café ☕", "会議", "Team 7", "...", "👩‍👩‍👧‍👦", "a\\b", "100%", "?", String(repeating: "x", count: 64),
        String(repeating: "é", count: 64),
    ]) func namesThatPeopleWriteAreAccepted(_ text: String) {
        #expect(RoomName(text)?.text == text)
    }

    @Test(arguments: [
        "", " ", "\u{200D}", ".", "..", "a/b", "/", "a\u{0}b", "line\nbreak", "tab\tbed", "\u{202E}gnp.exe",
        "a\u{2028}b",
        "\u{7F}", "\u{200B}", String(repeating: "x", count: 65), "e" + String(repeating: "\u{301}", count: 300),
    ]) func namesThatBreakLinksOrPagesAreRefused(_ text: String) {
        #expect(RoomName(text) == nil)
    }

    @Test(arguments: [
        ("Stand-up", "sTAND-UP"), ("Café", "CAFE\u{301}"), ("Straße", "STRASSE"), ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("ﬁne", "FINE"), ("\u{1E9B}\u{323}", "\u{1E69}"),
    ]) func caseAndEncodingMakeNoDifference(_ one: String, _ other: String) throws {
        let (one, other) = (try #require(RoomName(one)), try #require(RoomName(other)))
        #expect(one == other)
        #expect(one.hashValue == other.hashValue)
        #expect(Set([one, other]).count == 1)
    }

    /// Otherwise a stranger could send people to a room of their own with a link that looks like that of another room.
    @Test(arguments: [
        "stand up\u{200D}", "stand\u{200C} up", "\u{115F}stand up", "sta\u{1160}nd up", "stand up\u{3164}",
        "stand\u{FFA0} up", "stand up\u{FE0F}",
        "s\u{34F}tand up", "stand up\u{E0020}", "stand up\u{E007F}", "stand up\u{E0100}",
        "stand\u{180B} up", " stand up", "stand up ", "stand  up", "stand\u{A0}up", "stand\u{3000}up",
        "\u{2800}stand\u{2800}up", "STAND\u{200D} \u{3164} UP\u{FE0E}",
    ]) func namesThatLookAlikeAreOneRoom(_ text: String) throws {
        let (plain, other) = (try #require(RoomName("stand up")), try #require(RoomName(text)))
        #expect(other == plain)
        #expect(Set([plain, other]).count == 1)
        #expect(other.text == text, "the room is shown as its creator wrote it")
    }

    @Test(arguments: ["❤️", "👩‍👩‍👧‍👦", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🇩🇪", "می‌خواهم"])
    func emojiAndScriptsThatNeedJoinersKeepWorking(_ text: String) throws {
        let name = try #require(RoomName(text))
        #expect(name.text == text)
        #expect(RoomName(pathComponent: name.pathComponent) == name)
    }

    @Test func differentNamesDiffer() {
        #expect(RoomName("cafe") != RoomName("café"))
        #expect(RoomName("a b") != RoomName("ab"))
        #expect(RoomName("❤️") != RoomName("💚"))
    }

    @Test func randomNamesHaveThreeGroupsOfLetters() {
        var generator = SeededGenerator(seed: 1)
        let names = (0..<1000).map { _ in RoomName.random(using: &generator) }
        #expect(Set(names).count == 1000)
        for name in names {
            #expect(name.text.wholeMatch(of: /[a-z]{3}-[a-z]{4}-[a-z]{3}/) != nil)
            #expect(RoomName(name.text) == name)
        }
    }

    @Test func aBadNameHasItsOwnError() {
        let join = #"{"type":"room.join","seq":1,"name":"a/b","displayName":"Ada"}"#
        let error = #expect(throws: UnreadableMessage.self) { try Envelope<ClientMessage>.decode(Array(join.utf8)) }
        #expect(error?.error.code == .invalidName)
        #expect(error?.seq == 1)
    }

    @Test(arguments: ["", " ", "\n", "a\u{202E}b", String(repeating: "x", count: 41)])
    func reactionsAreShortAndVisible(_ reaction: String) {
        var verb = RoomVerb.React()
        verb.reaction = reaction
        let message = Envelope(seq: 1, message: ClientMessage.room(.react(verb)))
        let error = #expect(throws: UnreadableMessage.self) { try Envelope<ClientMessage>.decode(message.encode()) }
        #expect(error?.error.code == .malformed)
    }
}
