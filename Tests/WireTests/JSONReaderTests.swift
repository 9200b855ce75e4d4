import Testing
import Wire

@Suite struct JSONReaderTests {
    private func parse(_ text: String) throws -> JSONValue { try JSONReader.parse(text.utf8) }

    private func refusal(_ bytes: some Collection<UInt8>) -> String? {
        do throws(JSONError) {
            _ = try JSONReader.parse(bytes)
            return nil
        } catch {
            return error.message
        }
    }

    @Test func everyKindOfValueIsRead() throws {
        let value = try parse(#" {"a":[1,-2,0.5,1e3,true,false,null],"b":{"c":""}} "#)
        var inner = JSONObject()
        inner.members = [.init(name: "c", value: .string(""))]
        var object = JSONObject()
        object.members = [
            .init(
                name: "a",
                value: .array([
                    .integer(1), .integer(-2), .number(0.5), .number(1000), .bool(true), .bool(false), .null,
                ])),
            .init(name: "b", value: .object(inner)),
        ]
        #expect(value == .object(object))
    }

    @Test(arguments: [
        "", " ", "nul", "tru", "falsey", "TRUE", "NaN", "Infinity", "-", "+1", "01", "-01", ".5", "1.", "1e", "1e+",
        "0x10",
        "'a'", "\"", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\ud83d\\u12\"", "[", "[1", "[1,", "[1,]",
        "[,1]", "[1 2]",
        "{", "{a:1}", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{,}", "{\"a\" 1}", "{1:2}", "{}x",
        "[]]",
        "1 2", "// comment\n1", "\u{FEFF}1", "nullx", "\u{0}", "1\u{0}",
    ])
    func whatIsNotJSONIsRefused(_ text: String) {
        #expect(refusal(text.utf8) != nil)
    }

    @Test func nestingBeyondTheLimitIsRefused() throws {
        let allowed = Limits.jsonDepth
        #expect(
            refusal((String(repeating: "[", count: allowed) + "1" + String(repeating: "]", count: allowed)).utf8) == nil
        )
        #expect(refusal((String(repeating: "[", count: allowed + 1) + "1").utf8) == "nested too deeply")
        // A recursive reader would overflow the stack long before the end.
        #expect(refusal(String(repeating: "[", count: 200_000).utf8) == "nested too deeply")
        #expect(refusal(String(repeating: #"{"a":"#, count: 200_000).utf8) == "nested too deeply")
    }

    @Test func duplicateMembersAreRefusedInAnySpelling() {
        #expect(refusal(#"{"a":1,"a":1}"#.utf8) == "duplicate member name")
        #expect(refusal(#"{"a":1,"\u0061":2}"#.utf8) == "duplicate member name")
        #expect(refusal(#"{"a":{"b":1,"b":2}}"#.utf8) == "duplicate member name")
        #expect(refusal(#"{"a":{"a":1},"b":{"a":2}}"#.utf8) == nil)
        #expect(refusal(#"{"a":1,"A":1}"#.utf8) == nil)
    }

    @Test func theNumberOfMembersIsLimited() {
        func object(_ count: Int) -> String { "{" + (0..<count).map { "\"\($0)\":0" }.joined(separator: ",") + "}" }
        #expect(refusal(object(Limits.jsonMembers).utf8) == nil)
        #expect(refusal(object(Limits.jsonMembers + 1).utf8) == "too many members")
    }

    @Test func aLoneSurrogateBecomesTheReplacementCharacter() throws {
        #expect(try parse(#""\ud83d""#) == .string("\u{FFFD}"))
        #expect(try parse(#""\ude00""#) == .string("\u{FFFD}"))
        #expect(try parse(#""\ud83dx""#) == .string("\u{FFFD}x"))
        #expect(try parse(#""\ud83d\n""#) == .string("\u{FFFD}\n"))
        #expect(try parse(#""\ud83d\ud83d\ude00""#) == .string("\u{FFFD}\u{1F600}"))
        #expect(try parse(#""\ud83d\u0041""#) == .string("\u{FFFD}A"))
        #expect(try parse(#""\ude00\ud83d""#) == .string("\u{FFFD}\u{FFFD}"))
    }

    @Test func escapesAreDecoded() throws {
        #expect(try parse(#""\"\\\/\b\f\n\r\t""#) == .string("\"\\/\u{8}\u{C}\n\r\t"))
        #expect(try parse(#""\u00e9\u20AC\ud83d\ude00\uFFFF\u0000""#) == .string("é€\u{1F600}\u{FFFF}\u{0}"))
        #expect(try parse(#""\udbff\udfff""#) == .string("\u{10FFFF}"))
    }

    @Test func numbersOutOfRangeAreRefusedAndNeverWrapAround() throws {
        #expect(try parse("9223372036854775807") == .integer(.max))
        #expect(try parse("-9223372036854775808") == .integer(.min))
        #expect(try parse("9223372036854775808") == .number(9_223_372_036_854_775_808))
        #expect(try parse("-0") == .integer(0))
        #expect(refusal("1e309".utf8) == "number out of range")
        #expect(refusal("-1e309".utf8) == "number out of range")
        #expect(refusal("1e99999999999999999999".utf8) == "number out of range")
        #expect(try parse("1e-400") == .number(0))
        #expect(refusal(String(repeating: "9", count: 41).utf8) == "number too long")
        #expect(refusal(("0." + String(repeating: "3", count: 100_000)).utf8) == "number too long")
    }

    @Test func controlCharactersInStringsAreRefusedUnlessEscaped() {
        for byte in UInt8(0)..<0x20 {
            #expect(refusal([0x22, byte, 0x22]) == "unescaped control character in a string")
            #expect(refusal([0x22, 0x5C, 0x6E, byte, 0x22]) == "unescaped control character in a string")
        }
        #expect(refusal([0x22, 0x7F, 0x22]) == nil)
    }

    @Test(
        arguments: [
            [0x80], [0xC0, 0xAF], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80],
            [0xF8, 0x88, 0x80, 0x80, 0x80],
            [0xFF], [0xFE], [0xC3], [0xE2, 0x82], [0xF0, 0x9F, 0x98],
        ] as [[UInt8]])
    func badUTF8InAStringIsRefused(_ bytes: [UInt8]) {
        #expect(refusal([0x22] + bytes + [0x22]) == "string is not UTF-8")
        #expect(refusal([0x22, 0x5C, 0x6E] + bytes + [0x22]) == "string is not UTF-8")
        #expect(refusal(bytes) != nil)
    }

    @Test func theErrorHasThePosition() {
        let error = #expect(throws: JSONError.self) { try JSONReader.parse(#"{"a":tru}"#.utf8) }
        #expect(error?.offset == 8)
    }

    @Test func noncontiguousBytesAreReadToo() throws {
        let bytes = Array(#"[1,2]"#.utf8)
        #expect(
            try JSONReader.parse(bytes.reversed().reversed() as ReversedCollection<ReversedCollection<[UInt8]>>)
                == .array([.integer(1), .integer(2)]))
    }
}
