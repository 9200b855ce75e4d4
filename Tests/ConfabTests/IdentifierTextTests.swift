import Confab
import Testing

/// Imports only `Confab`, as an application does, so that it does not compile if an id needs another module.
@Suite("Ids as text")
struct IdentifierTextTests {
    private static let digits = "0123456789abcdef0123456789abcdef"

    @Test("an id is read from the text that interpolation writes")
    func roundTrip() throws {
        let digits = Self.digits
        #expect("\(try #require(SessionID(text: "1_MX4-session")))" == "1_MX4-session")
        #expect("\(try #require(ConnectionID(text: digits)))" == digits)
        #expect("\(try #require(StreamID(text: digits)))" == digits)
        #expect("\(try #require(MatchID(text: digits)))" == digits)
        #expect("\(try #require(PersonID(text: digits)))" == digits)
        #expect("\(try #require(RoomID(text: digits)))" == digits)
        #expect("\(try #require(RoomFileID(text: digits)))" == digits)
        #expect("\(try #require(CallID(text: digits)))" == digits)
    }

    @Test("other texts are no ids", arguments: ["", "x", digits + "0", digits.uppercased()])
    func refused(_ text: String) {
        #expect(PersonID(text: text) == nil)
        #expect(CallID(text: text) == nil)
        #expect(MatchID(text: text) == nil)
    }

    @Test("a session's id has only characters of base64url", arguments: ["", "a b", "é", "a/b"])
    func refusedSession(_ text: String) {
        #expect(SessionID(text: text) == nil)
    }
}
