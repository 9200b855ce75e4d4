import RTC
import Testing

/// Tests the parsing and writing of session descriptions. To test another malformed line, add it to the arguments.
@Suite struct SDPParserTests {
    private func refusal(_ text: String) -> SDPError? {
        do throws(SDPError) {
            _ = try SessionDescription(parsing: text)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: SDPSample.names) func aRealOfferRoundTrips(_ name: String) throws {
        let offer = try SDPSample.offer(name)
        let again = try SessionDescription(parsing: offer.text)
        #expect(again == offer)
        #expect(again.text == offer.text)
        #expect(offer.sections.map(\.kind) == [.audio, .video])
        #expect(offer.sections.map(\.mid) == ["0", "1"])
        #expect(offer.bundleGroups == [["0", "1"]])
    }

    @Test func anOfferWithCandidatesRoundTrips() throws {
        let offer = try SessionDescription(parsing: SDPSample.likeAiortc)
        #expect(try SessionDescription(parsing: offer.text) == offer)
        let transport = offer.sections[0].transport
        #expect(transport.candidates.map(\.kind) == [.host, .srflx, .host])
        #expect(
            transport.candidates.map(\.address) == [
                TransportAddress(v4: 0xC000_0207, port: 50123), TransportAddress(v4: 0xCB00_7105, port: 50123),
                TransportAddress(high: 0x2001_0db8_0000_0000, low: 7, port: 50124),
            ])
        #expect(transport.fingerprints.map(\.algorithm) == [.sha256, .sha384, .sha512])
        #expect(transport.hasEndOfCandidates)
    }

    @Test func theVideoSectionOfChromiumIsRead() throws {
        let video = try SDPSample.offer("offer_chromium156").sections[1]
        #expect(video.payloads.count == 23)
        let vp8 = try #require(video.payloads.first)
        #expect(vp8.encoding == "VP8")
        #expect(vp8.feedback.rawValue == 31)
        #expect(video.sourceGroups == [SourceGroup(semantics: .retransmission, ssrcs: [3494040090, 1860522901])])
        #expect(video.sources.map(\.cname) == ["/Wo1am5//OKsLOLr", "/Wo1am5//OKsLOLr"])
        #expect(video.extensions.count == 11)
        #expect(video.hasReducedSizeRTCP)
    }

    @Test func theSessionLevelAttributesOfFirefoxAreRead() throws {
        let offer = try SDPSample.offer("offer_firefox153")
        #expect(offer.direction == .sendrecv)
        #expect(offer.origin.sessionID == 25_173_881_817_037_887)
        #expect(offer.transport.fingerprints.first?.bytes.prefix(3) == [0x8D, 0x42, 0xB9])
        #expect(offer.sections[0].extensions[1].direction == .recvonly)
        // In this description, the parameters come before the encoding.
        #expect(offer.sections[1].payloads[1].parameters == "apt=120")
    }

    @Test func simulcastAndItsLayersAreRead() throws {
        let video = try SDPSample.offer("offer_chromium156_simulcast").sections[1]
        #expect(video.rids.map(\.id) == ["l", "m", "h"])
        #expect(video.simulcast?.send.map(\.rid) == ["l", "m", "h"])

        let text =
            SDPSample.small.replacing("m=audio", with: "m=video")
            + SDPSample.lines(
                "a=rid:1 send pt=111;max-width=1280;max-fps=30", "a=rid:2 send", "a=rid:r recv",
                "a=simulcast:send 1;~2,3 recv r")
        let section = try #require(try SessionDescription(parsing: text).sections.first)
        #expect(section.rids[0].payloadTypes == [111])
        #expect(section.rids[0].restrictions == "max-width=1280;max-fps=30")
        #expect(section.simulcast?.send == [.init(rid: "1"), .init(rid: "2", isPaused: true)])
        #expect(section.simulcast?.receive == [.init(rid: "r")])
        #expect(try SessionDescription(parsing: SessionDescription(parsing: text).text).sections == [section])
    }

    @Test func carriageReturnsAreOptionalAndUnknownLinesAreIgnored() throws {
        let offer = try SessionDescription(parsing: SDPSample.small)
        #expect(try SessionDescription(parsing: SDPSample.small.replacing("\r\n", with: "\n")) == offer)
        let strange = SDPSample.lines("a=unheard", "a=x:y z", "b=AS:30", "k=clear:x", "i=Grüße", "a=", "a=:")
        #expect(try SessionDescription(parsing: SDPSample.small + strange) == offer)
        #expect(try SessionDescription(parsing: String(SDPSample.small.dropLast())) == offer)
    }

    @Test func feedbackForAllPayloadTypesIsRead() throws {
        let text = SDPSample.small.replacing("SAVPF 111", with: "SAVPF 111 96") + "a=rtcp-fb:* nack\r\n"
        #expect(try SessionDescription(parsing: text).sections[0].payloads.map(\.feedback) == [.nack, .nack])
    }

    @Test(
        arguments: [
            ("", .missing), ("v=1\r\n", .malformed), ("o=- 1 1 IN IP4 0.0.0.0\r\n", .malformed),
            ("v=0\r\ns=-\r\n", .missing), ("v=0\r\nv=0\r\n", .malformed), ("v=0\r\no=- 1\r\n", .malformed),
            ("v=0\r\no=- 18446744073709551616 1 IN IP4 0\r\n", .malformed),
            ("v=0\r\no=- -1 1 IN IP4 0\r\n", .malformed), ("v=0\r\nM=x\r\n", .malformed),
            ("v=0\r\nxyz\r\n", .malformed), ("v=0\r\n=\r\n", .malformed), ("v=0\r\na\r\n", .malformed),
        ] as [(String, SDPError.Code)])
    func anInvalidBeginningIsRejected(_ text: String, _ code: SDPError.Code) {
        #expect(refusal(text)?.code == code)
    }

    @Test(
        arguments: [
            ("o=- 1 1 IN IP4 0.0.0.0", .malformed), ("m=audio 9 RTP/SAVPF 1\r\na=mid:", .malformed),
            ("a=mid:1", .duplicate),
            ("m=audio", .malformed), ("m=audio 65536 RTP/SAVPF 1", .malformed), ("m=audio -1 RTP/SAVPF 1", .malformed),
            ("m=audio 9 RTP/SAVPF", .malformed), ("m=audio 9 RTP/SAVPF 128", .malformed),
            ("m=audio 9 RTP/SAVPF 99999999999999999999999", .malformed), ("m=audio 9 RTP/SAVPF 1 1", .duplicate),
            ("m=audio 9 RTP/SAVPF 1\r\na=mid:0", .duplicate),
            ("m=audio 9 RTP/SAVPF 1\r\na=mid:12345678901234567", .malformed),
            ("a=ice-ufrag:abc", .malformed), ("a=ice-ufrag:ab cd", .malformed), ("a=ice-ufrag:ab:d", .malformed),
            ("a=ice-pwd:short", .malformed), ("a=ice-ufrag:" + String(repeating: "a", count: 257), .malformed),
            ("a=setup:maybe", .malformed), ("a=fingerprint:sha-256 00", .malformed),
            ("a=fingerprint:sha-256 zz", .malformed), ("a=fingerprint:sha-256", .malformed),
            (SDPSample.fingerprint("sha-256", 33), .malformed), ("a=rtpmap:x opus/48000", .malformed),
            ("a=rtpmap:111", .malformed), ("a=rtpmap:111 opus", .malformed), ("a=rtpmap:111 opus/0", .malformed),
            ("a=rtpmap:111 opus/4294967296", .malformed), ("a=rtpmap:111 opus/48000/256", .malformed),
            ("a=rtpmap:256 opus/48000", .malformed), ("a=fmtp:", .malformed), ("a=rtcp-fb:x nack", .malformed),
            ("a=extmap:0 urn:x", .malformed), ("a=extmap:256 urn:x", .malformed), ("a=extmap:1", .malformed),
            ("a=extmap:1/both urn:x", .malformed), ("a=extmap:99999999999999999999 urn:x", .malformed),
            ("a=extmap:1 urn:x\r\na=extmap:1 urn:y", .duplicate), ("a=ssrc:", .malformed),
            ("a=ssrc:4294967296 cname:x", .malformed), ("a=ssrc:1 cname:", .malformed), ("a=ssrc:1 msid:", .malformed),
            ("a=ssrc-group:FID 1 x", .malformed), ("a=msid:", .malformed), ("a=rid:", .malformed),
            ("a=rid:1 sideways", .malformed), ("a=rid:1 send pt=x", .malformed),
            ("a=rid:1 send\r\na=rid:1 send", .duplicate),
            ("a=simulcast:send", .malformed), ("a=simulcast:send 1 send 2", .malformed), ("a=simulcast:1", .malformed),
            ("a=simulcast:send 1;1", .duplicate), ("a=simulcast:send ;", .malformed),
            ("a=simulcast:send 1\r\na=simulcast:send 1", .duplicate), ("a=candidate:", .malformed),
            ("a=candidate:1 1 udp 4294967296 192.0.2.1 1 typ host", .malformed),
            ("a=candidate:1 1 udp 1 192.0.2.1 65536 typ host", .malformed),
            ("a=candidate:1 1 udp 1 192.0.2.1 1 host", .malformed), ("a=x\0", .malformed), ("a=x\ry", .malformed),
            ("a=" + String(repeating: "x", count: SessionDescription.maxLineBytes), .tooLarge),
        ] as [(String, SDPError.Code)])
    func aMalformedLineIsRejectedWithItsNumber(_ line: String, _ code: SDPError.Code) throws {
        let refusal = try #require(self.refusal(SDPSample.small + line + "\r\n"), "\(line)")
        #expect(refusal.code == code)
        #expect(try #require(refusal.line) >= 14, "\(refusal)")
        #expect(refusal.message.hasSuffix("."))
    }

    @Test(arguments: [
        "a=candidate:1 1 udp 1 7f2c.local 1 typ host", "a=candidate:1 1 tcp 1 192.0.2.1 9 typ host tcptype active",
        "a=candidate:1 1 udp 1 192.0.2.1 1 typ moon", "a=candidate:1 1 sctp 1 192.0.2.1 1 typ host",
        "a=candidate:1 1 udp 1 192.0.2.256 1 typ host", "a=candidate:1 1 udp 1 192.0.2 1 typ host",
        "a=candidate:1 1 udp 1 1:2 1 typ host", "a=candidate:1 1 udp 1 ::: 1 typ host",
        "a=candidate:1 1 udp 1 1::2::3 1 typ host", "a=candidate:1 1 udp 1 1:2:3:4:5:6:7:8:9 1 typ host",
        "a=candidate:1 1 udp 1 -0::1 1 typ host", "a=candidate:1 1 udp 1 fe80::1%eth0 1 typ host",
        "a=candidate:1 1 udp 1 1:2:3:4:5:6:7:: 1 typ srflx typ", "a=fingerprint:md5 00", "a=rtcp-fb:111 x",
        "a=extmap:4100 urn:x", "a=ssrc-group:UNHEARD 1", "a=rtpmap:5 x/1", "a=group:BUNDLE",
    ])
    func anUnsupportedLineIsIgnored(_ line: String) throws {
        let read = try SessionDescription(parsing: SDPSample.small + line + "\r\n")
        let bare = try SessionDescription(parsing: SDPSample.small)
        let isLongForm = line.contains("6:7::")
        #expect(isLongForm ? read.sections[0].transport.candidates.count == 1 : read == bare)
    }

    @Test(
        arguments: [
            ("::", 0, 0), ("::1", 0, 1), ("1::", 0x1_0000_0000_0000, 0),
            ("1:2:3:4:5:6:7:8", 0x1_0002_0003_0004, 0x5_0006_0007_0008),
            ("::ffff:192.0.2.1", 0, 0xFFFF_C000_0201), ("2001:DB8::a:0:1", 0x2001_0DB8_0000_0000, 0xA_0000_0001),
        ] as [(String, UInt64, UInt64)])
    func candidateAddressesAreRead(_ host: String, _ high: UInt64, _ low: UInt64) throws {
        let line = "a=candidate:1 1 udp 1 \(host) 7 typ host\r\n"
        let candidate = try SessionDescription(parsing: SDPSample.small + line).sections[0].transport.candidates.first
        #expect(candidate?.address == TransportAddress(high: high, low: low, port: 7))
    }

    @Test func textThatIsNotUTF8IsRejected() {
        let bytes = Array(SDPSample.small.utf8) + Array("i=".utf8) + [0xC3, 0x28] + Array("\r\n".utf8)
        #expect(throws: SDPError(.malformed, line: 14, "The session description must be UTF-8.")) {
            try SessionDescription(parsing: bytes)
        }
    }
}
