import Testing
import Wire

/// Error messages must name the member, because developers of other clients depend on these messages.
@Suite struct FieldCoderTests {
    private static let stream = "5a6b7c8d9e0f41a2b3c4d5e6f7081929"

    private func refusal(_ text: String) -> UnreadableMessage? {
        do throws(UnreadableMessage) {
            _ = try Envelope<ClientMessage>.decode(text.utf8)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [
        (#"{}"#, "type"),
        (#"{"type":5}"#, "type"),
        (#"{"type":null}"#, "type"),
        (#"{"type":"ack","ack":"1"}"#, "ack"),
        (#"{"type":"ack","ack":-1}"#, "ack"),
        (#"{"type":"roulette.next","seq":0}"#, "seq"),
        (#"{"type":"roulette.next","seq":1.5}"#, "seq"),
        (#"{"type":"roulette.next","seq":9007199254740993}"#, "seq"),
        (#"{"type":"hello"}"#, "version"),
        (#"{"type":"hello","version":"1"}"#, "version"),
        (#"{"type":"hello","version":99999999999}"#, "version"),
        (#"{"type":"hello","version":1,"identity":7}"#, "identity"),
        (#"{"type":"hello","version":1,"resume":[]}"#, "resume"),
        (#"{"type":"hello","version":1,"resume":{"received":0}}"#, "secret"),
        (#"{"type":"hello","version":1,"resume":{"secret":"x","received":-1}}"#, "received"),
        (#"{"type":"session.join","seq":1,"token":"x"}"#, "sessionId"),
        (#"{"type":"session.join","seq":1,"sessionId":"1_a"}"#, "token"),
        (#"{"type":"session.publish","seq":1,"sessionId":"1_a","hasAudio":1,"hasVideo":true}"#, "hasAudio"),
        (
            #"{"type":"session.publish","seq":1,"sessionId":"1_a","hasAudio":true,"hasVideo":true,"videoType":"hologram"}"#,
            "videoType"
        ),
        (#"{"type":"session.publish","seq":1,"sessionId":"1_a","hasAudio":true,"hasVideo":true,"width":-1}"#, "width"),
        (
            #"{"type":"session.publish","seq":1,"sessionId":"1_a","hasAudio":true,"hasVideo":true,"height":20000}"#,
            "height"
        ),
        (#"{"type":"session.unpublish","seq":1,"sessionId":"1_a","streamId":"5a"}"#, "streamId"),
        (#"{"type":"session.negotiate","seq":1,"sessionId":"1_a","to":"x","candidate":null}"#, "to"),
        (#"{"type":"session.forceMute","seq":1,"sessionId":"1_a","active":true,"excluded":["x"]}"#, "excluded"),
        (#"{"type":"session.forceMute","seq":1,"sessionId":"1_a","active":true,"excluded":{}}"#, "excluded"),
        (#"{"type":"roulette.start","seq":1,"mode":"smoke signals"}"#, "mode"),
        (#"{"type":"roulette.start","seq":1,"interests":"chess"}"#, "interests"),
        (#"{"type":"roulette.start","seq":1,"interests":[1]}"#, "interests"),
        (#"{"type":"roulette.report","seq":1}"#, "reason"),
        (#"{"type":"roulette.block","seq":1,"matchId":"me"}"#, "matchId"),
        (#"{"type":"media.offer","seq":1,"sdp":"v=0"}"#, "side"),
        (#"{"type":"media.offer","seq":1,"side":"both","sdp":"v=0"}"#, "side"),
        (#"{"type":"media.offer","seq":1,"side":"send"}"#, "sdp"),
        (#"{"type":"media.close","seq":1,"side":""}"#, "side"),
        (#"{"type":"session.connected","seq":1,"sessionId":"1_a","connectionId":"\#(stream)"}"#, "connected"),
        (
            #"{"type":"session.update","seq":1,"sessionId":"1_a","streamId":"\#(stream)","audioMid":"12345678901234567"}"#,
            "audioMid"
        ),
        (#"{"type":"session.update","seq":1,"sessionId":"1_a","streamId":"\#(stream)","videoMid":1}"#, "videoMid"),
        (
            #"{"type":"session.subscribe","seq":1,"sessionId":"1_a","streamId":"\#(stream)","audio":true,"video":true,"priority":-1}"#,
            "priority"
        ),
        (
            #"{"type":"session.subscribe","seq":1,"sessionId":"1_a","streamId":"\#(stream)","audio":true,"video":true,"priority":101}"#,
            "priority"
        ),
    ])
    func aMemberThatIsMissingOrWrongIsNamed(_ text: String, _ member: String) throws {
        let refusal = try #require(self.refusal(text))
        #expect(refusal.error.code == .malformed)
        #expect(refusal.error.message.contains("\"\(member)\""), "\(refusal.error.message)")
        #expect(!refusal.error.retryable)
    }

    @Test func theNumberOfAMalformedMessageIsKept() {
        let refusal = self.refusal(#"{"type":"session.signal","seq":12,"ack":4,"data":5,"sessionId":"1_a"}"#)
        #expect(refusal?.seq == 12)
        #expect(refusal?.ack == 4)
    }

    @Test func unknownVerbsAreNotMalformed() {
        #expect(refusal(#"{"type":"session.levitate","seq":3}"#)?.error.code == .unknownType)
        let long = String(repeating: "x", count: 200)
        #expect((refusal("{\"type\":\"\(long)\",\"seq\":3}")?.error.message.utf8.count ?? 999) < 150)
    }

    @Test func anInvalidSessionIDHasItsOwnCode() {
        #expect(refusal(#"{"type":"session.leave","seq":1,"sessionId":"../etc"}"#)?.error.code == .sessionInvalid)
        #expect(refusal(#"{"type":"session.leave","seq":1,"sessionId":""}"#)?.error.code == .sessionInvalid)
    }

    @Test func unknownMembersAreIgnored() throws {
        let text = #"{"type":"roulette.start","seq":1,"mood":{"deep":[1,2]},"mode":"text"}"#
        #expect(try Envelope<ClientMessage>.decode(text.utf8).message == .roulette(.start(.init(mode: .text))))
    }

    @Test func nullIsTheSameAsAbsentExceptForACandidate() throws {
        let start = #"{"type":"roulette.start","seq":1,"mode":null,"interests":null,"name":null}"#
        #expect(try Envelope<ClientMessage>.decode(start.utf8).message == .roulette(.start(.init())))
        let to = #""seq":1,"sessionId":"1_a","to":"\#(Self.stream)""#
        #expect(refusal(#"{"type":"session.negotiate",\#(to)}"#)?.error.code == .malformed)
        guard
            case .session(.negotiate(let end)) = try Envelope<ClientMessage>.decode(
                #"{"type":"session.negotiate",\#(to),"candidate":null}"#.utf8
            ).message
        else { return #expect(Bool(false), "a null candidate ends the candidates") }
        #expect(end.candidate == .null)
    }

    @Test func aNegotiationHasADescriptionOrACandidateAndNotBoth() {
        let both =
            #"{"type":"session.negotiate","seq":1,"sessionId":"1_a","to":"\#(Self.stream)","description":{"type":"offer","sdp":""},"candidate":{}}"#
        #expect(refusal(both)?.error.code == .malformed)
    }

    @Test func textsAreLimitedInBytes() throws {
        func start(_ name: String) -> String { "{\"type\":\"roulette.start\",\"seq\":1,\"name\":\"\(name)\"}" }
        #expect(refusal(start(String(repeating: "é", count: Limits.name / 2))) == nil)
        #expect(refusal(start(String(repeating: "é", count: Limits.name / 2) + "x"))?.error.code == .malformed)
    }

    @Test func listsFromClientsAreLimited() {
        func mute(_ count: Int) -> String {
            let ids = (0..<count).map { _ in "\"\(Self.stream)\"" }.joined(separator: ",")
            return
                "{\"type\":\"session.forceMute\",\"seq\":1,\"sessionId\":\"1_a\",\"active\":true,\"excluded\":[\(ids)]}"
        }
        #expect(refusal(mute(Limits.list)) == nil)
        #expect(refusal(mute(Limits.list + 1))?.error.code == .malformed)
    }

    @Test(arguments: ["1", "[]", "\"hello\"", "null", "[{\"type\":\"ping\"}]"])
    func aMessageThatIsNoObjectIsRefused(_ text: String) {
        #expect(refusal(text)?.error.code == .malformed)
        #expect(refusal(text)?.seq == nil)
    }

    @Test func anErrorHasThePositionInTheJSON() {
        #expect(refusal("{\"type\":\"ping\"")?.error.message.contains("byte 14") == true)
    }

    @Test func unnumberedMessagesAreTheFourOfTheProtocol() throws {
        let unnumbered = try Set(
            GoldenMessage.all.filter(\.isFromClient).map { try Envelope<ClientMessage>.decode($0.bytes).message }
                .filter(\.isUnnumbered).map(\.type)
        )
        #expect(unnumbered == ["hello", "ack", "ping", "bye"])
    }
}
