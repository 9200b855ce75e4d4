import RTC
import Testing

/// The answers to the offers of browsers and of apps with libwebrtc.
@Suite("Offers of each engine")
struct SDPEngineTests {
    private func negotiate(_ name: String, _ role: AnswerRole) throws -> (Negotiated, SessionDescription) {
        let negotiated = try answer(
            to: SDPSample.offer(name), role: role, local: SDPSample.local, sources: SDPSample.source)
        return (negotiated, try SessionDescription(parsing: negotiated.answer))
    }

    @Test("every engine publishes VP8, then H.264 that all can decode", arguments: SDPSample.publishing)
    func common(_ name: String) throws {
        let (negotiated, answer) = try negotiate(name, .receive)
        let kinds = negotiated.media[1].codecs.map(\.kind)
        #expect(kinds.first == .vp8, "a sender uses the first codec of the answer")
        #expect(answer.sections[1].payloads.first?.payloadType == negotiated.media[1].codecs.first?.payloadType)
        let offered = try SDPSample.offer(name).sections[1].payloads
        if offered.contains(where: { $0.parameters.contains("42e0") && $0.parameters.contains("packetization-mode=1") })
        {
            guard case .h264(let profile, 1) = kinds[1] else { throw Unexpected(kinds) }
            #expect(profile >> 8 == 0x42e0)
        }
        let rest = kinds.drop { $0 == .vp8 || $0.isCommonH264 }
        #expect(rest.first == .vp9(profile: 0))
        let types = answer.sections[1].payloads.map(\.payloadType)
        #expect(Set(types).isSubset(of: offered.map(\.payloadType)) && Set(types).count == types.count)
        for codec in negotiated.media[1].codecs { #expect(codec.rtxPayloadType != nil && codec.nack && codec.pli) }
        #expect(negotiated.media.map(\.direction) == [.recvonly, .recvonly])
    }

    @Test(
        "every engine publishes audio that survives losses, and nothing while it is silent",
        arguments: SDPSample.publishing)
    func resilient(_ name: String) throws {
        let (negotiated, answer) = try negotiate(name, .receive)
        let offered = try SDPSample.offer(name).sections[0].payloads
        let hasRED = offered.contains { $0.encoding.lowercased() == "red" }
        #expect(negotiated.media[0].codecs.map(\.kind) == (hasRED ? [.red, .opus] : [.opus]))
        let opus = try #require(answer.sections[0].payloads.last)
        #expect(opus.parameters.contains("usedtx=1") && opus.parameters.contains("useinbandfec=1"))
        if hasRED { #expect(answer.sections[0].payloads[0].parameters == "\(opus.payloadType)/\(opus.payloadType)") }
    }

    @Test("a publisher of music keeps its own choice")
    func music() throws {
        var offer = try SDPSample.offer("offer_chromium156")
        for index in offer.sections[0].payloads.indices where offer.sections[0].payloads[index].encoding == "opus" {
            offer.sections[0].payloads[index].parameters = "stereo=1;usedtx=0;useinbandfec=0"
        }
        let negotiated = try answer(to: offer, role: .receive, local: SDPSample.local, sources: SDPSample.source)
        #expect(negotiated.media[0].codecs.last?.fmtp == "stereo=1;usedtx=0;useinbandfec=0")
    }

    @Test("a subscriber's parameters stay as they are", arguments: SDPSample.watching)
    func receivedAudio(_ name: String) throws {
        let (negotiated, _) = try negotiate(name, .send)
        let offered = try SDPSample.offer(name).sections[0].payloads.filter { ["opus", "red"].contains($0.encoding) }
        #expect(negotiated.media[0].codecs.map(\.fmtp) == offered.map(\.parameters))
    }

    @Test("a publisher turns its picture upright, because not every subscriber can", arguments: SDPSample.publishing)
    func upright(_ name: String) throws {
        let (negotiated, answer) = try negotiate(name, .receive)
        #expect(negotiated.media[1].extensions[.videoOrientation] == nil)
        #expect(!answer.sections[1].extensions.contains { $0.uri == HeaderExtension.videoOrientation.rawValue })
        #expect(negotiated.media[1].extensions[.mid] != nil && negotiated.media[1].extensions[.transportWideCC] != nil)
        let isLayered = name.hasSuffix("simulcast")
        #expect(negotiated.media[1].rids.count == (isLayered ? 3 : 0))
        #expect(negotiated.media[1].remoteSources.count == (isLayered ? 0 : 1))
    }

    @Test("every engine watches in its own order and with its own numbers", arguments: SDPSample.watching)
    func watching(_ name: String) throws {
        let (negotiated, answer) = try negotiate(name, .send)
        let offer = try SDPSample.offer(name)
        let supported = offer.sections[1].payloads.filter {
            ["VP8", "VP9", "AV1", "H264"].contains($0.encoding)
        }
        #expect(negotiated.media[1].codecs.map(\.payloadType) == supported.map(\.payloadType))
        #expect(negotiated.media[1].codecs.allSatisfy { $0.rtxPayloadType != nil && $0.transportCC })
        #expect(negotiated.media.map(\.direction) == [.sendonly, .sendonly])
        #expect(negotiated.media[1].localSource == SDPSample.source("1"))
        for (section, media) in zip(offer.sections, negotiated.media) {
            for (name, id) in media.extensions {
                #expect(section.extensions.contains { $0.id == id && $0.uri == name.rawValue })
            }
            #expect(media.extensions[.dependencyDescriptor] == nil, "its frame numbers are not rewritten")
            #expect(media.extensions[.rtpStreamID] == nil)
            let isMeasured = media.codecs.contains { $0.transportCC }
            #expect((media.extensions[.transportWideCC] != nil) == isMeasured)
        }
        #expect(answer.sections[1].port == 9)
    }

    @Test("a subscriber is not sent dependency descriptors")
    func descriptors() throws {
        var offer = try SDPSample.offer("offer_chromium156_simulcast")
        for index in offer.sections.indices { offer.sections[index].direction = .recvonly }
        let negotiated = try answer(to: offer, role: .send, local: SDPSample.local, sources: SDPSample.source)
        #expect(negotiated.media[1].extensions[.dependencyDescriptor] == nil)
    }

    @Test(
        "a profile decodes itself and the profiles that are part of it",
        arguments: [
            (0x42e01f, [0x42e034, 0x42c00a, 0x4d801f, 0x58c01f]), (0x42001f, [0x420034, 0x42e01f]),
            (0x4d001f, [0x4d001f, 0x42e01f]), (0x640c1f, [0x640c34, 0x42e01f]),
            (0x64001f, [0x640034, 0x640c1f, 0x4d001f, 0x42e01f]), (0xf4001f, [0xf4000a]),
        ] as [(UInt32, [UInt32])])
    func profiles(_ ours: UInt32, _ decodable: [UInt32]) {
        let all: [UInt32] = [
            0x42e01f, 0x42e034, 0x42c00a, 0x4d801f, 0x58c01f, 0x42001f, 0x420034, 0x4d001f, 0x640c1f, 0x640c34,
            0x64001f,
            0x640034, 0xf4001f, 0xf4000a, 0x6e001f,
        ]
        let decoder = H264Profile(profileLevelID: ours)
        for theirs in all {
            let profile = H264Profile(profileLevelID: theirs)
            let isDecodable = profile == decoder || decodable.contains { H264Profile(profileLevelID: $0) == profile }
            #expect(decoder.decodes(profile) == isDecodable, "\(decoder) and \(profile)")
        }
        for theirs in decodable { #expect(decoder.decodes(H264Profile(profileLevelID: theirs))) }
    }

    private struct Unexpected: Error {
        let kinds: [Codec.Kind]
        init(_ kinds: [Codec.Kind]) { self.kinds = kinds }
    }
}

extension Codec.Kind {
    fileprivate var isCommonH264: Bool {
        guard case .h264(let id, 1) = self else { return false }
        return H264Profile(profileLevelID: id) == .constrainedBaseline
    }
}
