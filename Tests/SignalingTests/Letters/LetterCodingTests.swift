import Foundation
import TestSupport
import Testing
import Wire

@testable import Signaling

/// Tests the form in which nodes send letters to each other, with the files in `protocol/letters/`.
@Suite struct LetterCodingTests {
    // MARK: Golden files

    @Test func everyGoldenLetterIsEncodedAgainWithTheSameBytes() throws {
        #expect(GoldenLetter.all.count > 100)
        for golden in GoldenLetter.all {
            let letter = try Letter(encoded: golden.bytes)
            #expect(String(decoding: try letter.encoded(), as: UTF8.self) == golden.text, "\(golden)")
        }
    }

    @Test func everyEventThatIsSentHasAGoldenLetterAndARowInTheDocumentation() {
        let names = Set(Letter.blankByName.keys)
        #expect(Letter.blankByName.count == Letter.blanks.count, "a name is missing, or two events have the same")
        #expect(Set(GoldenLetter.all.map(\.name)) == names)
        #expect(Set(LetterRow.all.map { "\($0.machine) \($0.event)" }) == names)
        #expect(LetterRow.all.count == names.count)
    }

    /// Together, the golden letters of an event contain all its members. So this fails for a new member until both a golden letter
    /// and the documentation have it.
    @Test func theDocumentationNamesTheMembersOfEachEvent() {
        for row in LetterRow.all {
            let letters = GoldenLetter.all.filter { $0.name == "\(row.machine) \(row.event)" }
            let members = letters.reduce(into: Set<String>()) { $0.formUnion($1.members.keys) }
            #expect(members.subtracting(["to", "event"]) == row.members, "\(row.machine) \(row.event)")
        }
    }

    @Test func aLetterHasTheDocumentedForm() throws {
        let match = MatchID(high: 0, low: 42)
        let letter = Letter.match(match, .away(IdentityID(high: 0, low: 7), true))
        let text = """
            {"to":["match","\(match)"],"event":"away","person":"\(IdentityID(high: 0, low: 7))","away":true}
            """
        #expect(String(decoding: try letter.encoded(), as: UTF8.self) == text)
        #expect(try Letter(encoded: Array(text.utf8)) == letter)
    }

    // MARK: Events that are not sent

    /// Compares with the source, so that a new case of an event fails until it is either encoded or listed here.
    @Test(arguments: CodedEvents.all)
    func everyCaseIsEitherEncodedOrListedAsOneThatStays(_ events: CodedEvents) throws {
        let cases = try events.casesInSource()
        #expect(Set(events.sent).union(events.staying) == cases, "\(events)")
        #expect(Set(events.sent).isDisjoint(with: events.staying), "\(events)")
    }

    @Test func anEventThatConcernsOnlyItsNodeIsNotEncoded() {
        for letter in CodedEvents.someThatStay { #expect(throws: LetterError.staysHere) { try letter.encoded() } }
    }

    @Test func theRecordOfAPersonAndTheLinesOfAReportStayHere() throws {
        let client = ConnectionID(high: 1, low: 2)
        let record = PersonRecord(blocked: [IdentityID(high: 3, low: 4)], hasPush: true)
        let arrival = Letter.person(
            IdentityID(high: 5, low: 6), .arrived(client, address: "203.0.113.7", .chosen("Ana"), record))
        #expect(
            try Letter(encoded: arrival.encoded())
                == .person(
                    IdentityID(high: 5, low: 6),
                    .arrived(client, address: "203.0.113.7", .chosen("Ana"), PersonRecord())))

        var report = Report.blank
        report.lines = [ChatLine(from: .blank, text: "hello", at: .blank)]
        let sent = try Letter.session(.unset, .report(report, by: client, re: 1)).encoded()
        #expect(!String(decoding: sent, as: UTF8.self).contains("hello"))
    }

    // MARK: Random letters

    @Test func aChangedLetterIsEitherRefusedOrReadTheSameAgain() throws {
        let seed = UInt64.random(in: 1...UInt64.max)
        print("seed of the changed letters: \(seed)")
        var random = SeededGenerator(seed: seed)
        var read = 0
        let letters = GoldenLetter.all.map(\.bytes)
        for _ in 0..<3000 {
            let changed = LetterChanges.change(letters.randomElement(using: &random) ?? [], using: &random)
            guard let letter = try? Letter(encoded: changed) else { continue }
            read += 1
            let encoded = try letter.encoded()
            let again = try Letter(encoded: encoded)
            guard again == letter, try again.encoded() == encoded else {
                Issue.record("\(String(decoding: changed, as: UTF8.self)) is read differently again, seed \(seed)")
                return
            }
        }
        #expect(read > 500, "nearly all changed letters are refused, so this test tests nothing; seed \(seed)")
    }

    // MARK: Other versions and damaged letters

    @Test func unknownMembersAreIgnored() throws {
        for golden in GoldenLetter.all {
            let extended = golden.text.dropLast() + #","laterMember":{"a":[1,2]}}"#
            #expect(try Letter(encoded: Array(extended.utf8)) == Letter(encoded: golden.bytes))
        }
    }

    @Test(arguments: [
        (#"{"to":["match","x"],"event":"paused"}"#, "match paused"),
        (#"{"to":["recording","x"],"event":"begin"}"#, "recording begin"),
        (
            #"{"to":["person","00000000000000000000000000000001"],"event":"verb","client":"\#(zero)","re":1,"message":{"type":"x"}}"#,
            "person verb"
        ),
    ])
    func anEventOfALaterVersionIsReportedByItsName(_ text: String, _ name: String) {
        #expect(throws: LetterError.unknownEvent(name)) { try Letter(encoded: Array(text.utf8)) }
    }

    private static let zero = "00000000000000000000000000000000"

    @Test(arguments: [
        ("", "A letter is not valid JSON: expected a value at byte 0."),
        ("[]", "A letter must be a JSON object."),
        ("{}", #"The member "event" must be a string of at most 256 bytes."#),
        (#"{"event":"away"}"#, #"The member "to" of a letter must name a machine."#),
        (#"{"event":"away","to":[]}"#, #"The member "to" of a letter must name a machine."#),
        (
            #"{"event":"away","to":"match"}"#,
            #"The member "to" must be a list of at most 2 strings of at most 256 bytes."#
        ),
        (
            #"{"event":"leave","to":["match","x"],"person":"\#(zero)","reason":"stopped"}"#,
            #"The member "to" must contain the id of a match."#
        ),
        (
            #"{"event":"leave","to":["match"],"person":"\#(zero)","reason":"stopped"}"#,
            #"The member "to" must contain the id of a match."#
        ),
        (
            #"{"event":"leave","to":["match","\#(zero)"],"reason":"stopped"}"#,
            #"The member "person" must be an id of 32 hexadecimal digits."#
        ),
        (
            #"{"event":"leave","to":["match","\#(zero)"],"person":"\#(zero)","reason":"bored"}"#,
            #"The member "reason" must be a value listed in the protocol."#
        ),
        (
            #"{"event":"show","to":["directory"],"listing":{"identity":"\#(zero)","person":"\#(zero)","name":"","busy":false,"cell":{"row":-1,"column":0},"blocked":""}}"#,
            #"The member "row" must be an integer from 0 to 9999."#
        ),
        (
            #"{"event":"presence.inherited","to":["person","\#(zero)"],"blocked":"AAAA","push":true}"#,
            #"The member "blocked" must be identities of 16 bytes each, as base64url."#
        ),
        (
            #"{"event":"verb","to":["session","1_a"],"client":"\#(zero)","re":1,"message":{"type":"ping"}}"#,
            #"The member "message" must be a request about a session."#
        ),
        (
            #"{"event":"room.mute","to":["session","1_a"],"target":{}}"#,
            #"The target must be "one" or "everyoneExcept"."#
        ),
    ])
    func aDamagedLetterIsRefusedWithASentence(_ text: String, _ sentence: String) {
        #expect(throws: LetterError.malformed(sentence)) { try Letter(encoded: Array(text.utf8)) }
    }

    @Test func aTruncatedLetterIsRefused() {
        for golden in GoldenLetter.all {
            let bytes = golden.bytes
            let read = (0..<bytes.count).filter { (try? Letter(encoded: bytes.prefix($0))) != nil }
            #expect(read.isEmpty, "\(golden) is read with only these lengths: \(read)")
        }
    }

    // MARK: Sizes

    @Test func aClientsMessageAtTheLimitOfNestingIsReadInALetter() throws {
        let levels = Limits.jsonDepth
        let candidate = String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
        let id = ConnectionID(high: 1, low: 1)
        let text = #"{"type":"session.negotiate","seq":1,"sessionId":"1_a","to":"\#(id)","candidate":\#(candidate)}"#
        guard case .session(let verb) = try Envelope<ClientMessage>.decode(Array(text.utf8)).message else {
            Issue.record("not a request about a session")
            return
        }
        let letter = Letter.session(try #require(SessionID("1_a")), .verb(id, re: 1, verb))
        #expect(try Letter(encoded: letter.encoded()) == letter)
        let looked = Letter.lookup(.blank, .asked(Introduction(identity: .blank, client: id, re: 1, .session(verb))))
        #expect(try Letter(encoded: looked.encoded()) == looked)
    }

    @Test func aDescriptionOfTheLargestSizeFitsIntoALetter() throws {
        // The client sends "\b", which is 2 bytes in its message and 6 in ours.
        var negotiate = SessionVerb.Negotiate()
        negotiate.session = try #require(SessionID("1_a"))
        negotiate.description = SessionDescription(
            type: .offer, sdp: String(repeating: "\u{8}", count: Limits.description / 2))
        let letter = Letter.session(negotiate.session, .verb(.blank, re: 1, .negotiate(negotiate)))
        #expect(try Letter(encoded: letter.encoded()) == letter)
    }

    @Test func aLetterBeyondTheMaximumSizeIsNotEncodedAndNotRead() {
        let blocked = (0..<60_000).map { IdentityID(high: 1, low: $0) }
        let letter = Letter.person(.blank, .presence(.inherited(blocked: blocked, hasPush: false)))
        #expect(throws: LetterError.self) { try letter.encoded() }
        let spaces = [UInt8](repeating: 0x20, count: Letter.maxEncodedSize + 1)
        #expect(throws: LetterError.tooLarge(Letter.maxEncodedSize + 1)) { try Letter(encoded: spaces) }
    }

    @Test func theDocumentedNumberOfBlockedPeopleFits() throws {
        let blocked = (0..<40_000).map { IdentityID(high: 1, low: $0) }
        let letter = Letter.person(.blank, .presence(.inherited(blocked: blocked, hasPush: false)))
        #expect(try Letter(encoded: letter.encoded()) == letter)
    }
}
