import Testing
import Wire

/// Tests the packets and payloads of Socket.IO 0.9, as its clients write them. To add a case, add a row.
@Suite("Socket.IO 0.9 on the wire") struct SocketIOTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var text: String
        var packet: SocketIOPacket
        var testDescription: String { text }
        init(_ text: String, _ packet: SocketIOPacket) { (self.text, self.packet) = (text, packet) }
    }

    static let written: [Case] = [
        Case("0::", SocketIOPacket(.disconnect)),
        Case("0::/lobby", SocketIOPacket(.disconnect, endpoint: "/lobby")),
        Case("1::", SocketIOPacket(.connect)),
        Case("1::/lobby?x=1", SocketIOPacket(.connect, endpoint: "/lobby?x=1")),
        Case("2::", SocketIOPacket(.heartbeat)),
        Case("3:7::hi there", SocketIOPacket(.message, id: 7, data: "hi there".utf8)),
        Case("4:::{\"n\":3}", SocketIOPacket(.json, data: "{\"n\":3}".utf8)),
        Case(
            "5:3+::{\"name\":\"a:b::c\"}",
            SocketIOPacket(.event, id: 3, wantsData: true, data: "{\"name\":\"a:b::c\"}".utf8)),
        Case("6:::7+[\"ok\",{\"n\":1}]", SocketIOPacket(.acknowledgement, data: "7+[\"ok\",{\"n\":1}]".utf8)),
        Case("7:::1+0", SocketIOPacket.notHandshaken),
        Case("8::", SocketIOPacket(.noop)),
    ]

    @Test("packets are read and written back unchanged", arguments: written)
    func packets(_ sample: Case) throws {
        #expect(try SocketIOPacket(parsing: sample.text.utf8) == sample.packet)
        #expect(String(decoding: sample.packet.encode(), as: UTF8.self) == sample.text)
    }

    @Test(
        "omitted and additional parts are accepted",
        arguments: [
            Case("2", SocketIOPacket(.heartbeat)), Case("2:::", SocketIOPacket(.heartbeat)),
            Case("1::/x:", SocketIOPacket(.connect, endpoint: "/x")), Case("0:::", SocketIOPacket(.disconnect)),
        ])
    func lenience(_ sample: Case) throws {
        #expect(try SocketIOPacket(parsing: sample.text.utf8) == sample.packet)
    }

    @Test(
        "invalid packets are malformed",
        arguments: [
            "", ":", "9::", "5", "5:", "55::", "a::", "5:x::{}", "5:-1::{}", "5:99999999999999999999::{}", "5:++::{}",
            "5:+::{}", "5::\u{7}:{}", "5::\u{e9}:{}", "5::\(String(repeating: "x", count: 300)):{}",
        ])
    func malformedPackets(_ text: String) {
        #expect(throws: WireError.self) { try SocketIOPacket(parsing: text.utf8) }
    }

    @Test("a payload of several packets is split by UTF-16 length and by code points")
    func payloads() throws {
        let face = "3:::\u{1F600}"
        for length in [face.utf16.count, face.unicodeScalars.count] {
            let text = "\u{FFFD}\(length)\u{FFFD}\(face)\u{FFFD}3\u{FFFD}2::"
            #expect(
                try SocketIOPayload.decode(Array(text.utf8)).map { String(decoding: $0, as: UTF8.self) } == [
                    face, "2::",
                ])
        }
        #expect(try SocketIOPayload.decode(Array("2::".utf8)) == [Array("2::".utf8)])
    }

    @Test("a payload is written as a single packet or with framing")
    func writingPayloads() {
        #expect(SocketIOPayload.encode([Array("8::".utf8)]) == Array("8::".utf8))
        let two = SocketIOPayload.encode([Array("1::".utf8), Array("5:::{\"name\":\"empty\"}".utf8)])
        #expect(
            String(decoding: two, as: UTF8.self) == "\u{FFFD}3\u{FFFD}1::\u{FFFD}20\u{FFFD}5:::{\"name\":\"empty\"}")
    }

    @Test(
        "a payload with wrong lengths is malformed",
        arguments: [
            "", "\u{FFFD}", "\u{FFFD}\u{FFFD}2::", "\u{FFFD}4\u{FFFD}2::", "\u{FFFD}2\u{FFFD}2::",
            "\u{FFFD}3\u{FFFD}2::x",
            "\u{FFFD}99999999999999999999\u{FFFD}2::", "\u{FFFD}-3\u{FFFD}2::", "\u{FFFD}3\u{FFFD}2::\u{FFFD}",
            String(repeating: "\u{FFFD}3\u{FFFD}2::", count: SocketIOPayload.maxPackets + 1),
        ])
    func malformedPayloads(_ text: String) {
        #expect(throws: WireError.self) { try SocketIOPayload.decode(Array(text.utf8)) }
    }

    @Test("bytes that are not UTF-8 are malformed")
    func notText() {
        #expect(throws: WireError.self) { try SocketIOPayload.decode([0x32, 0xFF]) }
    }

    @Test("a script keeps U+FFFD as it is and has no line separators")
    func scripts() {
        let call = SocketIOScript.call(3, Array("\u{FFFD}3\u{FFFD}1::\"\\\u{2028}".utf8))
        #expect(String(decoding: call, as: UTF8.self) == "io.j[3](\"\u{FFFD}3\u{FFFD}1::\\\"\\\\\\u2028\");")
    }

    @Test("a form's payload is a JSON string, escaped for a form")
    func forms() throws {
        let bytes = try SocketIOScript.payload(
            form: Array("x=1&d=%225%3A%3A%3A%7B%5C%22name%5C%22%3A+%5C%22next%5C%22%7D%22".utf8))
        #expect(String(decoding: bytes, as: UTF8.self) == "5:::{\"name\": \"next\"}")
    }

    @Test(
        "a form without a JSON string is malformed",
        arguments: ["", "d", "d=", "d=5", "d=%22", "d=%2", "d=%zz", "e=%22%22"])
    func malformedForms(_ form: String) {
        #expect(throws: WireError.self) { try SocketIOScript.payload(form: Array(form.utf8)) }
    }

    @Test(
        "RouletteTok's requests are accepted with any arguments",
        arguments: [
            (#"{"name":"next","args":[{"sessionId":"s-42"}]}"#, RouletteTokRequest.next),
            (#"{"name":"next","args":[{}]}"#, .next), (#"{"name":"next","args":[]}"#, .next),
            (#"{"name":"next"}"#, .next),
            (#"{"name":"disconnectPartners"}"#, .disconnectPartners),
            (#"{"name":"disconnectPartners","args":[]}"#, .disconnectPartners),
        ])
    func requests(_ event: String, _ request: RouletteTokRequest) throws {
        #expect(try RouletteTokRequest(event: Array(event.utf8)) == request)
    }

    @Test(
        "other events are rejected with their own codes",
        arguments: [
            ("", WireError.Code.malformed), ("[]", .malformed), ("{}", .malformed), (#"{"name":7}"#, .malformed),
            (#"{"name":"next","args":7}"#, .malformed), (#"{"name":"initial"}"#, .unknownType),
        ])
    func otherEvents(_ event: String, _ code: WireError.Code) {
        #expect { try RouletteTokRequest(event: Array(event.utf8)) } throws: { ($0 as? WireError)?.code == code }
    }

    /// The iOS client splits at three colons and uses `args[0]` without a check.
    @Test("events have the format of the client of 2012")
    func events() throws {
        let session = try #require(SessionID("1_abc"))
        let texts = [.empty, .disconnectPartner, .initial(Admission(session: session, token: "t.t.t"))]
            .map { (event: RouletteTokEvent) in String(decoding: event.packet(.object), as: UTF8.self) }
        #expect(
            texts == [
                #"5:::{"name":"empty"}"#, #"5:::{"name":"disconnectPartner"}"#,
                #"5:::{"name":"initial","args":[{"sessionId":"1_abc","token":"t.t.t"}]}"#,
            ])
    }
}
