import RTC
import Testing

/// Parses the server's answers as session descriptions.
@Suite struct SDPAnswerTests {
    private func negotiate(
        _ offer: SessionDescription, _ role: AnswerRole, _ local: LocalParameters = SDPSample.local
    ) throws -> (Negotiated, SessionDescription) {
        let negotiated = try answer(to: offer, role: role, local: local, sources: SDPSample.source)
        return (negotiated, try SessionDescription(parsing: negotiated.answer))
    }

    private func refusal(_ text: String, role: AnswerRole = .receive) -> SDPError? {
        do throws(SDPError) {
            _ = try answer(to: SessionDescription(parsing: text), role: role, local: SDPSample.local)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: SDPSample.names) func anAnswerIsLitePassiveAndBundled(_ name: String) throws {
        let (negotiated, answer) = try negotiate(SDPSample.offer(name), .receive)
        #expect(answer.isICELite)
        #expect(answer.bundleGroups == [["0", "1"]])
        #expect(answer.origin == Origin(sessionID: 42, version: 1))
        for section in answer.sections {
            #expect(section.transport.setup == .passive)
            #expect(section.transport.ufrag == "serv")
            #expect(section.transport.fingerprints == [SDPSample.local.fingerprint])
            #expect(section.direction == .recvonly)
            #expect(section.port == 9 && section.hasRTCPMux)
            #expect(section.sources == [])
        }
        #expect(answer.sections[0].transport.candidates == SDPSample.local.candidates)
        #expect(answer.sections[0].transport.hasEndOfCandidates)
        #expect(answer.sections[1].transport.candidates == SDPSample.local.candidates)
        #expect(negotiated.media.map(\.direction) == [.recvonly, .recvonly])
        #expect(negotiated.remote.setup == .actpass)
        #expect(!negotiated.remote.isICELite)
    }

    @Test func chromiumIsAnsweredWithTheSupportedCodecsAndThoseOfAllBrowsersFirst() throws {
        let (negotiated, answer) = try negotiate(SDPSample.offer("offer_chromium156"), .receive)
        #expect(answer.sections[0].payloads.map(\.payloadType) == [63, 111])
        #expect(
            answer.sections[1].payloads.map(\.payloadType) == [
                96, 97, 108, 109, 98, 99, 45, 46, 102, 103, 104, 107, 114, 115, 116, 117, 39, 40, 100, 101,
            ])
        let audio = negotiated.media[0].codecs
        #expect(audio.map(\.kind) == [.red, .opus])
        #expect(audio[1].fmtp == "minptime=10;useinbandfec=1;usedtx=1")
        #expect(audio[1].transportCC && !audio[0].nack)
        let video = negotiated.media[1].codecs
        #expect(video.first?.kind == .vp8 && video.first?.rtxPayloadType == 97)
        #expect(video.contains { $0.kind == .h264(profileLevelID: 0x42E01F, packetizationMode: 1) })
        #expect(video.contains { $0.kind == .vp9(profile: 2) && $0.rtxPayloadType == 101 })
        #expect(video.contains { $0.kind == .av1(profile: 0) })
        #expect(video.allSatisfy { $0.nack && $0.pli && $0.fir && $0.remb && $0.transportCC })
        #expect(
            negotiated.media[1].extensions == [
                .absSendTime: 2, .transportWideCC: 3, .playoutDelay: 5, .mid: 4,
                .rtpStreamID: 10, .repairedRtpStreamID: 11,
            ])
        #expect(negotiated.media[1].hasReducedSizeRTCP && negotiated.media[1].allowsMixedExtensions)
        #expect(negotiated.remote.ufrag == "Fwqk" && negotiated.remote.pwd == "5ZH0mi3OFQLg9xtHofYOWHDo")
        #expect(negotiated.remote.originSessionID == "2886051468101348257")
        #expect(negotiated.media[0].remoteSources.map(\.ssrc) == [622_024_262])
        let source = try #require(negotiated.media[1].remoteSources.first)
        #expect(source.ssrc == 3_494_040_090 && source.rtxSSRC == 1_860_522_901)
        #expect(negotiated.media[1].remoteSources.count == 1)
        #expect(negotiated.media[1].msid?.track == "36511770-b072-4dc3-9868-e62f8911f408")
    }

    @Test func firefoxIsAnsweredWithTheExtensionsOfMatchingDirection() throws {
        let (negotiated, answer) = try negotiate(SDPSample.offer("offer_firefox153"), .receive)
        #expect(answer.sections[0].payloads.map(\.payloadType) == [109])
        #expect(answer.sections[1].payloads.map(\.payloadType) == [120, 124, 121, 125, 99, 100])
        #expect(negotiated.media[0].codecs[0].fmtp == "maxplaybackrate=48000;stereo=1;useinbandfec=1;usedtx=1")
        // Firefox receives the playout delay but does not send it.
        #expect(negotiated.media[1].extensions == [.mid: 3, .absSendTime: 4, .transportWideCC: 7])
        #expect(negotiated.media[0].extensions == [.audioLevel: 1, .mid: 3, .transportWideCC: 7])
        #expect(answer.sections[0].allowsMixedExtensions)
        #expect(negotiated.remote.fingerprint.bytes.first == 0x8D)
    }

    @Test func simulcastIsAnsweredLayerByLayer() throws {
        let (negotiated, answer) = try negotiate(SDPSample.offer("offer_chromium156_simulcast"), .receive)
        #expect(negotiated.media[1].rids.map(\.id) == ["l", "m", "h"])
        #expect(negotiated.media[1].rids.allSatisfy { $0.direction == .recv && !$0.isPaused })
        #expect(
            negotiated.answer.contains("a=rid:l recv\r\na=rid:m recv\r\na=rid:h recv\r\na=simulcast:recv l;m;h\r\n"))
        #expect(answer.sections[1].simulcast?.receive.count == 3)
        #expect(negotiated.media[1].extensions[.dependencyDescriptor] == 12)
        #expect(negotiated.media[1].remoteSources == [])
    }

    @Test func aLayerWithoutASupportedCodecIsLeftOut() throws {
        let text =
            SDPSample.small.replacing("m=audio 9 UDP/TLS/RTP/SAVPF 111", with: "m=video 9 UDP/TLS/RTP/SAVPF 96 98")
            .replacing("111 opus/48000/2", with: "96 VP8/90000")
            + SDPSample.lines(
                "a=rtpmap:98 H265/90000", "a=rid:1 send pt=98", "a=rid:2 send pt=96,98;max-fps=30",
                "a=simulcast:send 1;~2")
        let (negotiated, _) = try negotiate(SessionDescription(parsing: text), .receive)
        #expect(negotiated.media[0].rids == [RID(id: "2", direction: .recv, isPaused: true, payloadTypes: [96])])
        #expect(negotiated.answer.contains("a=rid:2 recv pt=96;max-fps=30\r\na=simulcast:recv ~2\r\n"))
    }

    @Test func sentMediaHasSourcesAndCongestionControlButNoLayers() throws {
        let text = try String(decoding: SDPSample.bytes("offer_chromium156"), as: UTF8.self)
            .replacing("a=sendonly", with: "a=recvonly")
        let (negotiated, answer) = try negotiate(SessionDescription(parsing: text), .send)
        #expect(answer.sections.map(\.direction) == [.sendonly, .sendonly])
        let msid = MediaStreamID(stream: "s", track: "t1")
        #expect(answer.sections[1].streams == [msid])
        #expect(answer.sections[1].sourceGroups == [SourceGroup(semantics: .retransmission, ssrcs: [1001, 2001])])
        #expect(
            answer.sections[1].sources == [
                SourceDescription(ssrc: 1001, cname: "confab", msid: msid),
                SourceDescription(ssrc: 2001, cname: "confab", msid: msid),
            ])
        #expect(answer.sections[0].sources.map(\.ssrc) == [1000], "audio has no RTX")
        #expect(negotiated.media[0].localSource?.rtxSSRC == nil)
        #expect(negotiated.media[1].localSource == SDPSample.source("1"))
        #expect(
            negotiated.media[1].extensions == [.playoutDelay: 5, .mid: 4, .absSendTime: 2, .transportWideCC: 3])
        #expect(negotiated.answer.contains("a=rtcp-fb:96 transport-cc"))
        #expect(negotiated.media[1].codecs.allSatisfy { $0.transportCC && $0.nack && $0.remb })
    }

    @Test func packetsToASubscriberAreNumberedOnlyIfItSendsFeedbackAboutTheNumbers() throws {
        let text = try String(decoding: SDPSample.bytes("offer_chromium156"), as: UTF8.self)
            .replacing("a=sendonly", with: "a=recvonly")
        func lines(_ isKept: (Substring) -> Bool) -> String {
            text.split(whereSeparator: \.isNewline).filter(isKept).joined(separator: "\r\n") + "\r\n"
        }
        let silent = lines { !$0.hasSuffix("transport-cc") }
        let (without, _) = try negotiate(SessionDescription(parsing: silent), .send)
        #expect(without.media.allSatisfy { $0.extensions[.transportWideCC] == nil })
        #expect(without.media[1].extensions[.absSendTime] == 2)
        let unnumbered = lines { !$0.contains("transport-wide-cc") }
        let (other, answer) = try negotiate(SessionDescription(parsing: unnumbered), .send)
        #expect(other.media.allSatisfy { $0.codecs.allSatisfy { !$0.transportCC } })
        #expect(!answer.text.contains("transport-cc"))
    }

    @Test func unwantedMediaIsInactive() throws {
        let offer = try SDPSample.offer("offer_chromium156")
        let (sent, _) = try negotiate(offer, .send)
        #expect(sent.media.map(\.direction) == [.inactive, .inactive])
        #expect(sent.media.allSatisfy { !$0.isRejected && $0.localSource == nil })
        var parked = offer
        parked.sections[1].direction = .inactive
        #expect(try negotiate(parked, .receive).0.media.map(\.direction) == [.recvonly, .inactive])
        let silent = try answer(to: SessionDescription(parsing: SDPSample.small), role: .send, local: SDPSample.local)
        #expect(silent.media.map(\.direction) == [.inactive], "there is no source to send")
    }

    @Test func unsupportedSectionsAreRejectedAndTheOthersAnswered() throws {
        let others = SDPSample.lines(
            "m=application 9 UDP/DTLS/SCTP webrtc-datachannel", "a=mid:2", "a=sctp-port:5000",
            "m=audio 9 UDP/TLS/RTP/SAVPF 0 8", "a=mid:3", "a=rtpmap:0 PCMU/8000", "m=text 9 RTP/SAVPF 98", "a=mid:4",
            "m=video 0 UDP/TLS/RTP/SAVPF 96", "a=mid:5", "a=rtpmap:96 VP8/90000", "m=audio 9 RTP/AVP 96",
            "a=mid:6", "a=rtpmap:96 opus/48000/2", "m=video 0 UDP/TLS/RTP/SAVPF 96", "a=bundle-only", "a=mid:7",
            "a=rtpmap:96 VP8/90000")
        // The group's first section is rejected, so the transport must be in another one.
        let text = SDPSample.likeAiortc.replacing("BUNDLE 0 1", with: "BUNDLE 2 1 0 3 7") + others
        let (negotiated, answer) = try negotiate(SessionDescription(parsing: text), .receive)
        #expect(negotiated.media.map(\.isRejected) == [false, false, true, true, true, true, true, false])
        #expect(answer.sections.map(\.port) == [9, 9, 0, 0, 0, 0, 0, 9])
        #expect(answer.sections.map(\.mid) == ["0", "1", "2", "3", "4", "5", "6", "7"])
        #expect(answer.bundleGroups == [["1", "0", "7"]])
        #expect(answer.sections[1].transport.candidates.count == 2)
        #expect(answer.sections[0].transport.candidates.count == 2)
        #expect(negotiated.answer.contains("m=application 0 UDP/DTLS/SCTP webrtc-datachannel\r\n"))
        #expect(negotiated.answer.contains("m=audio 0 UDP/TLS/RTP/SAVPF 0 8\r\n"))
        #expect(negotiated.media[2].kind == .application && negotiated.media[4].kind == .other("text"))
    }

    @Test func anOfferLikeThatOfAiortcIsAnswered() throws {
        let offer = try SessionDescription(parsing: SDPSample.likeAiortc)
        let (negotiated, answer) = try negotiate(offer, .receive)
        #expect(answer.sections.map { $0.payloads.map(\.payloadType) } == [[96], [97, 98, 99, 100]])
        #expect(negotiated.remote.fingerprint.algorithm == .sha256)
        #expect(negotiated.remote.candidates.count == 3 && negotiated.remote.hasEndOfCandidates)
        #expect(negotiated.media[1].remoteSources == [RemoteSource(ssrc: 2001, rtxSSRC: 2002, cname: "c0ffee")])
        #expect(try negotiate(offer, .send).0.media.map(\.direction) == [.sendonly, .sendonly])
    }

    @Test func theTransportMayBeAtSessionLevelOrOnlyInTheFirstSection() throws {
        var offer = try SessionDescription(parsing: SDPSample.likeAiortc)
        let transport = offer.sections[0].transport
        offer.sections[1].transport = TransportDescription()
        offer.sections[1].hasRTCPMux = false
        #expect(try negotiate(offer, .receive).0.remote.ufrag == "abcd")
        offer.sections[0].transport = TransportDescription()
        offer.transport = transport
        #expect(try negotiate(offer, .receive).0.remote.ufrag == "abcd")
    }

    @Test func aLaterOfferIsAnsweredLikeTheFirst() throws {
        var offer = try SDPSample.offer("offer_chromium156")
        let first = try negotiate(offer, .receive).0
        for index in offer.sections.indices {
            (offer.sections[index].transport.ufrag, offer.sections[index].transport.pwd) = (
                "next", "anotherPasswordOf24Chars"
            )
        }
        var added = offer.sections[1]
        (added.mid, added.sources, added.sourceGroups) = ("2", [], [])
        offer.sections.append(added)
        offer.bundleGroups = [["0", "1", "2"]]
        var local = SDPSample.local
        (local.ufrag, local.version) = ("serw", 2)
        let (second, answer) = try negotiate(offer, .receive, local)
        #expect(second.remote.ufrag == "next" && second.remote.originSessionID == first.remote.originSessionID)
        #expect(Array(second.media.prefix(2)) == first.media)
        #expect(second.media[2].mid == "2")
        #expect(answer.origin.version == 2)
    }

    @Test(arguments: [
        ("a=rtcp-mux\r\n", "", "rtcp-mux"), ("a=ice-ufrag:abcd\r\n", "", "ice-ufrag"),
        ("a=ice-pwd:0123456789abcdefghijkl\r\n", "", "ice-pwd"),
        ("a=fingerprint:sha-256", "a=fingerprint:sha-1", "fingerprint"),
        ("actpass", "passive", "a=setup"), ("actpass", "holdconn", "a=setup"), ("t=0 0", "a=ice-lite", "ICE-lite"),
        ("a=mid:0\r\n", "", "a=mid"), ("opus/48000/2", "G722/8000", "supports"),
        ("m=audio 9", "m=audio 0", "supports"),
        ("t=0 0", "a=group:BUNDLE 1", "BUNDLE"), ("t=0 0", "a=group:BUNDLE 0\r\na=group:BUNDLE 1", "BUNDLE"),
        ("t=0 0", "a=group:BUNDLE", "BUNDLE"),
    ])
    func anOfferThatCannotBeAnsweredIsRejectedWithAMessage(_ part: String, _ other: String, _ word: String) throws {
        let refusal = try #require(self.refusal(SDPSample.small.replacing(part, with: other)))
        #expect(refusal.message.contains(word), "\(refusal)")
        #expect(refusal.message.hasSuffix("."))
    }

    @Test func severalSectionsWithoutBundleAreRejected() throws {
        let text = SDPSample.likeAiortc.replacing("a=group:BUNDLE 0 1\r\n", with: "")
        #expect(refusal(text)?.code == .unsupported)
        let alone = try SessionDescription(parsing: SDPSample.small)
        #expect(try negotiate(alone, .receive).1.bundleGroups == [], "one section needs no group")
    }

    @Test func sectionsThatConflictOnOneTransportAreRejected() {
        let extensions = SDPSample.likeAiortc.replacing("a=extmap:3 http", with: "a=extmap:2 http")
        #expect(refusal(extensions)?.code == .duplicate)
        let sources = SDPSample.likeAiortc.replacing("a=ssrc:2001", with: "a=ssrc:1001")
        #expect(refusal(sources)?.code == .duplicate)
    }

    @Test func redIsAnsweredOnlyForOpus() throws {
        let opus = "UDP/TLS/RTP/SAVPF 111"
        let red = SDPSample.small.replacing(opus, with: opus + " 63") + "a=rtpmap:63 red/48000/2\r\n"
        func kinds(_ text: String) throws -> [Codec.Kind] {
            try negotiate(SessionDescription(parsing: text), .receive).0.media[0].codecs.map(\.kind)
        }
        #expect(try kinds(red) == [.opus])
        #expect(try kinds(red + "a=fmtp:63 111/0\r\n") == [.opus])
        #expect(try kinds(red + "a=fmtp:63 111/111\r\n") == [.red, .opus])
    }

    @Test func aRobotsOfferIsAnsweredAndTheRobotReadsTheAnswer() throws {
        let source = try #require(SDPSample.source("1"))
        var robot = SDPSample.local
        (robot.ufrag, robot.sessionID, robot.candidates) = ("robo", 7, [])
        let offered = offer(
            [
                .audio(mid: "0", .sendonly, source: LocalSource(ssrc: 1, rtxSSRC: nil, msid: source.msid)),
                .video(mid: "1", .sendonly, source: source), .video(mid: "2", .recvonly),
            ], local: robot)
        let read = try SessionDescription(parsing: offered.text)
        #expect(read == offered)
        let (negotiated, answer) = try negotiate(read, .receive)
        #expect(negotiated.media.map(\.direction) == [.recvonly, .recvonly, .inactive])
        #expect(negotiated.media[1].remoteSources.first?.rtxSSRC == source.rtxSSRC)
        let (remote, media) = try accept(answer, to: offered)
        #expect(remote.isICELite && remote.setup == .passive && remote.ufrag == "serv")
        #expect(remote.candidates == SDPSample.local.candidates)
        #expect(media.map(\.direction) == [.sendonly, .sendonly, .inactive])
        #expect(media[1].codecs == negotiated.media[1].codecs)
        #expect(media[1].extensions == negotiated.media[1].extensions)
        var shorter = answer
        shorter.sections.removeLast()
        #expect(throws: SDPError.self) { try accept(shorter, to: offered) }
    }

    @Test func aSubscribingRobotLearnsTheSources() throws {
        let offered = offer([.audio(mid: "0", .recvonly), .video(mid: "1", .recvonly)], local: SDPSample.local)
        let (_, answer) = try negotiate(offered, .send)
        let media = try accept(answer, to: offered).media
        #expect(media.map(\.direction) == [.recvonly, .recvonly])
        #expect(media[1].remoteSources.map(\.ssrc) == [1001] && media[1].remoteSources[0].rtxSSRC == 2001)
        #expect(media[1].remoteSources[0].cname == "confab" && media[1].msid?.track == "t1")
    }
}
