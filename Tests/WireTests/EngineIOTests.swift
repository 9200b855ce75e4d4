import Testing
import Wire

/// Tests the packets and payloads of Engine.IO 3 and 4 and of Socket.IO 1 to 4, as their clients write them.
@Suite("Engine.IO and Socket.IO on the wire") struct EngineIOTests {
    private static func texts(_ packets: [EngineIOPacket]) -> [String] {
        packets.map { ($0.isBinary ? "binary " : "") + "\($0.kind) " + String(decoding: $0.data, as: UTF8.self) }
    }

    @Test(
        "a body of version 4 is split at U+001E, and binary data is base64",
        arguments: [
            ("40", ["message 0"]), ("3\u{1E}42[\"next\"]", ["pong ", "message 2[\"next\"]"]),
            ("bAQIDBA==\u{1E}4\u{20AC}", ["binary message \u{1}\u{2}\u{3}\u{4}", "message \u{20AC}"]),
            ("2probe", ["ping probe"]), ("1", ["close "]), ("bYWI", ["binary message ab"]),
        ])
    func bodies(_ body: String, _ expected: [String]) throws {
        #expect(Self.texts(try EngineIOPayload.decode(Array(body.utf8), .four)) == expected)
    }

    @Test(
        "a body of version 3 has lengths in UTF-16 units",
        arguments: [
            ("2:40", ["message 0"]), ("1:36:2probe", ["pong ", "ping probe"]),
            ("3:4\u{1F600}1:3", ["message \u{1F600}", "pong "]), ("6:b4YWI=", ["binary message ab"]),
        ])
    func lengths(_ body: String, _ expected: [String]) throws {
        #expect(Self.texts(try EngineIOPayload.decode(Array(body.utf8), .three)) == expected)
    }

    @Test("a binary body of version 3 has lengths in bytes")
    func binaryBody() throws {
        let text = Array("42[\"\u{20AC}\"]".utf8)
        let body: [UInt8] = [0, UInt8(text.count / 10), UInt8(text.count % 10), 0xFF] + text + [1, 3, 0xFF, 4, 9, 8]
        let packets = try EngineIOPayload.decode(body, .three)
        #expect(packets.map(\.kind) == [.message, .message])
        #expect(packets[0].data == Array(text.dropFirst()))
        #expect(packets[1].isBinary && packets[1].data == [9, 8])
    }

    @Test("bodies are written so that they are read back")
    func written() throws {
        let packets = ["0{\"sid\":\"a\"}", "40", "4\u{20AC}\u{1F600}"].map { Array($0.utf8) }
        #expect(
            String(decoding: EngineIOPayload.encode(Array(packets.prefix(2)), .four), as: UTF8.self)
                == "0{\"sid\":\"a\"}\u{1E}40")
        #expect(
            String(decoding: EngineIOPayload.encode(packets, .three), as: UTF8.self)
                == "12:0{\"sid\":\"a\"}2:404:4\u{20AC}\u{1F600}")
        for version in EngineIOVersion.allCases {
            let read = try EngineIOPayload.decode(EngineIOPayload.encode(packets, version), version)
            #expect(read.map { $0.encode(version) } == packets)
        }
    }

    @Test(
        "invalid bodies are malformed",
        arguments: [
            ("", EngineIOVersion.four), ("7", .four), ("x", .four), ("40\u{1E}", .four), ("b=", .four),
            ("b-_", .four), ("bA", .four), (String(repeating: "3\u{1E}", count: 300) + "3", .four),
            ("", .three), ("40", .three), (":40", .three), ("3:40", .three), ("-1:40", .three), ("2:401:", .three),
            ("99999999999999999999:4", .three), ("0:", .three), ("3:b4=", .three), ("3:b2A", .three),
            ("\u{0}\u{2}40", .three), ("\u{1}\u{1}", .three), (String(repeating: "1:3", count: 300), .three),
        ])
    func malformedBodies(_ body: String, _ version: EngineIOVersion) {
        #expect(throws: WireError.self) { try EngineIOPayload.decode(Array(body.utf8), version) }
    }

    @Test(
        "invalid binary data is malformed",
        arguments: [
            ([0, 2, 0xFF, 0x34], EngineIOVersion.three), ([0, 0xFF], .three), ([2, 1, 0xFF, 0x33], .three),
            ([1, 1, 0xFF, 3], .three), ([0, 1, 0xFF, 0xC3], .three), ([0, 9, 9, 9, 9, 9, 9, 9, 9, 0xFF], .three),
            ([0x34, 0xFF], .four), ([0xC3], .three),
        ] as [([UInt8], EngineIOVersion)])
    func malformedBinary(_ body: [UInt8], _ version: EngineIOVersion) {
        #expect(throws: WireError.self) { try EngineIOPayload.decode(body, version) }
    }

    @Test("forms and scripts of JSONP carry payloads unchanged")
    func scripts() throws {
        let form = Array("d=12%3A42%5B%22%5C%5Cn%5Cn%22%5D".utf8)
        #expect(String(decoding: try EngineIOScript.payload(form: form), as: UTF8.self) == "12:42[\"\\n\n\"]")
        for form in ["", "d", "e=1", "d=%zz"] {
            #expect(throws: WireError.self) { try EngineIOScript.payload(form: Array(form.utf8)) }
        }
        let call = EngineIOScript.call(3, Array("1:\"\u{2028}".utf8))
        #expect(String(decoding: call, as: UTF8.self) == "___eio[3](\"1:\\\"\\u2028\");")
    }

    // MARK: Socket.IO

    @Test(
        "packets are read and written back unchanged",
        arguments: [
            "0", "0{\"a\":1}", "1", "0/admin,{}", "2[\"next\"]", "212[\"next\",{}]", "2/x,7[\"a\"]", "37[]", "4\"x\"",
            "52-[\"a\"]",
        ])
    func packets(_ text: String) throws {
        #expect(String(decoding: try SocketIOMessage(parsing: text.utf8).encode(), as: UTF8.self) == text)
    }

    @Test("the parts of a packet are recognized")
    func parts() throws {
        let packet = try SocketIOMessage(parsing: "52-/admin?x=1,13[\"a\",{\"_placeholder\":true,\"num\":0}]".utf8)
        #expect(packet.kind == .binaryEvent && packet.attachments == 2)
        #expect(packet.namespace == "/admin" && packet.id == 13)
        #expect(packet.data == Array("[\"a\",{\"_placeholder\":true,\"num\":0}]".utf8))
        #expect(try SocketIOMessage(parsing: "0/admin".utf8).namespace == "/admin")
    }

    @Test(
        "invalid packets are malformed",
        arguments: [
            "", "7", "x", "5[\"a\"]", "50-[\"a\"]", "517-[\"a\"]", "5-[\"a\"]", "5999999999-[]", "2/\u{7},[]",
            "2/\(String(repeating: "x", count: 300)),[]", "299999999999999999999[\"a\"]", "29007199254740993[]",
        ])
    func malformedPackets(_ text: String) {
        #expect(throws: WireError.self) { try SocketIOMessage(parsing: text.utf8) }
    }

    @Test("an event is the same in every version, and its framing differs")
    func framings() throws {
        let project = RouletteTokEvent.empty
        #expect(
            RouletteTokFraming.allCases.map { String(decoding: project.packet($0), as: UTF8.self) } == [
                "5:::{\"name\":\"empty\"}", "2[\"empty\"]", "2[\"empty\"]",
            ])
        #expect(
            RouletteTokFraming.allCases.map {
                String(decoding: RouletteTokEvent.failed(.rateLimited).packet($0), as: UTF8.self)
            } == ["7:::rate_limited", "4\"rate_limited\"", "2[\"error\",\"rate_limited\"]"])
        #expect(try RouletteTokRequest(list: Array("[\"next\",{\"sessionId\":\"x\"}]".utf8)) == .next)
        for event in ["{}", "[]", "[1]", "[\"next\"", "[\"other\"]"] {
            #expect(throws: WireError.self) { try RouletteTokRequest(list: Array(event.utf8)) }
        }
    }
}
