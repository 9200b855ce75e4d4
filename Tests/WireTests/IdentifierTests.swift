import TestSupport
import Testing
import Wire

@Suite struct IdentifierTests {
    private let id = ConnectionID(high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210)
    private let text = "0123456789abcdeffedcba9876543210"

    @Test func anIdentifierIsWrittenAs32LowerCaseDigits() {
        #expect(id.description == text)
        #expect(ConnectionID(high: 0, low: 0).description == String(repeating: "0", count: 32))
        #expect(ConnectionID(high: .max, low: .max).description == String(repeating: "f", count: 32))
    }

    @Test func textAndBytesRoundTrip() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<200 {
            let id = StreamID.random(using: &generator)
            #expect(StreamID(id.description) == id)
            #expect(StreamID(bytes: id.bytes) == id)
        }
        #expect(ConnectionID(text) == id)
        #expect(
            id.bytes == [1, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0xFE, 0xDC, 0xBA, 0x98, 0x76, 0x54, 0x32, 0x10])
    }

    @Test(arguments: [
        "", "0123456789abcdeffedcba987654321", "0123456789abcdeffedcba98765432100", "0123456789ABCDEFFEDCBA9876543210",
        "0123456789abcdeffedcba987654321g", " 123456789abcdeffedcba9876543210", "0x23456789abcdeffedcba9876543210",
        "01234567-89ab-cdef-fedc-ba98765432", "٠123456789abcdeffedcba9876543210",
    ])
    func everyOtherSpellingIsRefused(_ text: String) {
        #expect(ConnectionID(text) == nil)
    }

    @Test func tooFewBytesAreRefusedAndTooManyAreTruncated() {
        #expect(MatchID(bytes: [UInt8](repeating: 1, count: 15)) == nil)
        #expect(MatchID(bytes: [UInt8](repeating: 1, count: 17)) == MatchID(bytes: [UInt8](repeating: 1, count: 16)))
    }

    /// To decide which peer is polite, browsers compare the texts and the server compares the values. Both must have
    /// the same order.
    @Test func theOrderOfIdentifiersIsTheOrderOfTheirTexts() {
        var generator = SeededGenerator(seed: 2)
        let ids = (0..<200).map { _ in ConnectionID.random(using: &generator) }
        #expect(ids.sorted().map(\.description) == ids.map(\.description).sorted())
    }

    @Test func aSessionIDIsSafeInAPathALogAndAString() {
        #expect(SessionID("1_MX40-_zZ9")?.text == "1_MX40-_zZ9")
        for text in [
            "", "a b", "a/b", "a\n", "a\"", "é", "a.b", "a~b", String(repeating: "a", count: Limits.sessionID + 1),
        ] {
            #expect(SessionID(text) == nil)
        }
        #expect(SessionID(String(repeating: "a", count: Limits.sessionID)) != nil)
    }
}
