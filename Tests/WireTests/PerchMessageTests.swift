import Testing
import Wire

/// The two forms of PerchRTC's messages (`protocol/perchrtc.md`).
@Suite struct PerchMessageTests {
    private func place(_ envelope: PerchEnvelope) -> PerchPlace {
        PerchPlace(envelope: envelope, domain: "dom", application: "app", room: "lunch", user: "bob")
    }

    private func text(_ notice: PerchNotice, _ envelope: PerchEnvelope) -> String {
        String(decoding: notice.encode(for: place(envelope)), as: UTF8.self)
    }

    private func read(_ text: String, _ envelope: PerchEnvelope) -> PerchRequest? {
        try? PerchRequest(parsing: Array(text.utf8), envelope)
    }

    private let offer = PerchSignal(connection: "c1", .offer("v=0"))
    private let ice = PerchSignal(
        connection: "c1", .candidate(PerchCandidate(label: 1, mid: "video", candidate: "candidate:1 1 udp")))

    @Test func theFlatFormIsRead() {
        #expect(
            read(
                #"{"eventName":"offer","targetUserId":"bob","data":{"connectionId":"c1","offer":{"type":"offer","sdp":"v=0"}}}"#,
                .flat) == .signal(offer, to: "bob"))
        #expect(
            read(
                #"{"eventName":"ice","targetUserId":"bob","data":{"connectionId":"c1","iceCandidate":"#
                    + #"{"label":1,"id":"video","candidate":"candidate:1 1 udp"}}}"#, .flat)
                == .signal(ice, to: "bob"))
        #expect(
            read(#"{"eventName":"bye","targetUserId":"bob","data":{"connectionId":"c1"}}"#, .flat)
                == .signal(PerchSignal(connection: "c1", .bye), to: "bob"))
    }

    @Test func theLayeredFormIsRead() {
        let tail = #""o":"offer"},"p":{"connectionId":"c1","offer":{"type":"offer","sdp":"v=0"}}}"#
        for target in ["bob", "/dom/app/lunch/bob"] {
            #expect(read(#"{"t":"u","m":{"f":"x","t":"\#(target)","# + tail, .layered) == .signal(offer, to: "bob"))
        }
        #expect(read(#"{"t":"u","m":{"t":"///","# + tail, .layered) == nil)
    }

    @Test(arguments: PerchEnvelope.allCases)
    func anythingElseIsMalformed(envelope: PerchEnvelope) {
        #expect(read("ping", envelope) == .ping)
        let connection = String(repeating: "c", count: 65)
        let texts = [
            "", "pong", "[]", "{}", "null", #"{"eventName":"offer"}"#,
            #"{"eventName":"offer","targetUserId":"bob","data":{"connectionId":"c1","offer":{"type":"answer","sdp":"v"}}}"#,
            #"{"eventName":"bye","targetUserId":"bob","data":{"connectionId":""}}"#,
            #"{"eventName":"bye","targetUserId":"bob","data":{"connectionId":"\#(connection)"}}"#,
            #"{"eventName":"bye","targetUserId":7,"data":{"connectionId":"c1"}}"#,
            #"{"eventName":"shout","targetUserId":"bob","data":{"connectionId":"c1"}}"#,
            #"{"eventName":"ice","targetUserId":"bob","data":{"connectionId":"c1","iceCandidate":{"label":-1,"candidate":""}}}"#,
            #"{"t":"u","m":{"o":"bye"},"p":{"connectionId":"c1"}}"#,
        ]
        for text in texts { #expect(read(text, envelope) == nil, "\(text)") }
    }

    @Test func noticesAreWritten() {
        #expect(
            text(.peers(["amy", "cat"]), .flat) == #"{"type":"peers","room":"lunch","message":{"users":["amy","cat"]}}"#
        )
        #expect(
            text(.connected("amy"), .flat) == #"{"type":"peer_connected","userid":"amy","room":"lunch"}"#)
        #expect(
            text(.signal(offer, from: "amy"), .flat)
                == #"{"type":"offer","userid":"amy","room":"lunch","message":{"eventName":"offer","targetUserId":"bob","#
                + #""data":{"connectionId":"c1","offer":{"type":"offer","sdp":"v=0"}}}}"#)
        #expect(
            text(.peers(["amy"]), .layered) == #"{"t":"u","m":{"f":"/dom/app/lunch","o":"peers"},"p":["amy"]}"#)
        #expect(
            text(.removed("amy"), .layered) == #"{"t":"u","m":{"f":"/dom/app/lunch/amy","o":"peer_removed"}}"#)
        #expect(
            text(.signal(ice, from: "amy"), .layered)
                == #"{"t":"u","m":{"f":"/dom/app/lunch/amy","t":"bob","o":"ice"},"p":{"connectionId":"c1","iceCandidate":"#
                + #"{"label":1,"id":"video","candidate":"candidate:1 1 udp"}}}"#)
        #expect(
            text(.refused(WireError("room_full", "Full.")), .layered)
                == #"{"t":"u","m":{"f":"/dom/app/lunch","o":"refused"},"p":{"code":"room_full","message":"Full."}}"#)
    }

    // MARK: Descriptions and forms

    @Test func streamsInADescriptionAreFound() {
        let old =
            "v=0\r\na=msid-semantic: WMS ARDAMS\r\nm=audio 9\r\na=ssrc:1 cname:x\r\n"
            + "a=ssrc:1 msid:ARDAMS ARDAMSa0\r\n"
        #expect(PerchDescription.streams(in: old) == ["ARDAMS"])
        let new = "m=audio 9\r\na=msid:one a\r\nm=video 9\na=msid:two v\na=msid:one v\r\na=msid:- x\r\n"
        #expect(PerchDescription.streams(in: new) == ["one", "two"])
    }

    @Test func aStreamWithoutANameGetsOneInEachSection() {
        let sdp =
            "v=0\r\ns=-\r\nm=audio 9 x 0\r\na=mid:0\r\nm=video 9 x 96\r\na=mid:1\r\n"
            + "m=application 9 x\r\na=mid:2\r\n"
        let named = PerchDescription.named("s1", sdp)
        #expect(PerchDescription.streams(in: named) == ["s1"])
        #expect(
            named == "v=0\r\ns=-\r\nm=audio 9 x 0\r\na=mid:0\r\na=msid:s1 audio\r\nm=video 9 x 96\r\na=mid:1\r\n"
                + "a=msid:s1 video\r\nm=application 9 x\r\na=mid:2\r\n")
    }

    @Test func formsAreReadWithAndWithoutEscapes() {
        let form = FormFields(Array("ident=a%20b&secret=c+d&username=Amy's iPhone&odd=50%&username=later&bare".utf8))
        #expect(form["ident"] == "a b")
        #expect(form["secret"] == "c d")
        #expect(form["username"] == "Amy's iPhone")
        #expect(form["odd"] == "50%")
        #expect(form["bare"] == "")
        #expect(form["none"] == nil)
        #expect(FormFields([0x61, 0x3D, 0xFF])["a"] == nil)
    }
}
