/// Answers an offer, the first of a connection as well as any later one (RFC 8829 §5.3).
///
/// The answer is ICE-lite and passive in DTLS, bundles all accepted sections, and multiplexes RTCP. Sections without a
/// codec that is understood, data channels, and what the offer itself does not use, are rejected.
///
/// - Parameter sources: what is sent in the section with that mid; asked only in the role `.send`, and only for
///   sections that want to receive. A section without a source is answered `inactive`.
/// - Throws: `SDPError` with a sentence for the client. Nothing of the offer holds then.
public func answer(
    to offer: SessionDescription, role: AnswerRole, local: LocalParameters,
    sources: (_ mid: String) -> LocalSource? = { _ in nil }
) throws(SDPError) -> Negotiated {
    let answerer = try Answerer(offer: offer, role: role, local: local)
    return answerer.answer(sources)
}

private struct Answerer {
    let offer: SessionDescription
    let role: AnswerRole
    let local: LocalParameters
    let remote: RemoteParameters
    /// By section; none where it is rejected.
    let codecs: [[Codec]]
    /// The accepted ones in the order of the offer's group: the first carries the transport (RFC 8843 §7.3.1). Nil if
    /// the offer has no group.
    let bundle: [String]?
    let tagged: String

    init(offer: SessionDescription, role: AnswerRole, local: LocalParameters) throws(SDPError) {
        (self.offer, self.role, self.local) = (offer, role, local)
        codecs = offer.sections.map { $0.isAnswerable ? Codec.all(in: $0) : [] }
        var accepted: [String: MediaSection] = [:]
        for (section, codecs) in zip(offer.sections, codecs) where !codecs.isEmpty {
            guard let mid = section.mid else { throw SDPError(.missing, "A section has no a=mid.") }
            accepted[mid] = section
        }
        guard let first = zip(offer.sections, codecs).first(where: { !$1.isEmpty })?.0 else {
            throw SDPError(.unsupported, "The offer has no audio or video that this server understands.")
        }
        bundle = try Self.bundle(offer, accepted)
        tagged = bundle?.first ?? first.mid ?? ""
        try Self.checkExtensions(accepted.values)
        try Self.checkSources(accepted.values)
        remote = try Self.transport(offer, carrier: accepted[tagged] ?? first)
    }

    /// The transport, which is in the section that carries it, or in the one that the offer expected to
    /// (RFC 8843 §7.2.1), or said for the session.
    private static func transport(
        _ offer: SessionDescription, carrier: MediaSection
    ) throws(SDPError) -> RemoteParameters {
        let expected = offer.bundleGroups.first?.first.flatMap { mid in offer.sections.first { $0.mid == mid } }
        guard carrier.hasRTCPMux || expected?.hasRTCPMux == true else {
            throw SDPError(.unsupported, "RTCP goes over the port of RTP: the offer must have a=rtcp-mux.")
        }
        let transport = carrier.transport.completed(from: expected?.transport ?? TransportDescription())
        let remote = try RemoteParameters(transport.completed(from: offer.transport), of: offer)
        guard !remote.isICELite else {
            throw SDPError(.unsupported, "This server is ICE-lite, so the client cannot be: nobody would begin.")
        }
        guard remote.setup == .actpass || remote.setup == .active else {
            throw SDPError(.unsupported, "This server is passive in DTLS: a=setup must be actpass or active.")
        }
        return remote
    }

    private static func bundle(
        _ offer: SessionDescription, _ accepted: [String: MediaSection]
    ) throws(SDPError) -> [String]? {
        guard offer.bundleGroups.count <= 1 else {
            throw SDPError(.unsupported, "All media goes over one transport: there must be one BUNDLE group.")
        }
        guard let group = offer.bundleGroups.first else {
            guard accepted.count == 1 else {
                throw SDPError(.unsupported, "All media goes over one transport: the offer must have a=group:BUNDLE.")
            }
            return nil
        }
        var seen: Set<String> = []
        let bundle = group.filter { accepted[$0] != nil && seen.insert($0).inserted }
        guard bundle.count == accepted.count else {
            throw SDPError(
                .unsupported, "All media goes over one transport: every section must be in the BUNDLE group.")
        }
        return bundle
    }

    /// On one transport an id means one thing (RFC 8843 §9.2).
    private static func checkExtensions(_ sections: some Sequence<MediaSection>) throws(SDPError) {
        var uris: [UInt8: String] = [:]
        for mapping in sections.lazy.flatMap(\.extensions) {
            guard uris.updateValue(mapping.uri, forKey: mapping.id) ?? mapping.uri == mapping.uri else {
                throw SDPError(.duplicate, "a=extmap has the id \(mapping.id) for two extensions in one BUNDLE group.")
            }
        }
    }

    /// Otherwise one section could take the packets of another.
    private static func checkSources(_ sections: some Sequence<MediaSection>) throws(SDPError) {
        var seen: Set<UInt32> = []
        for source in sections.lazy.flatMap(\.sources) where !seen.insert(source.ssrc).inserted {
            throw SDPError(.duplicate, "Two sections have the SSRC \(source.ssrc).")
        }
    }

    func answer(_ sources: (String) -> LocalSource?) -> Negotiated {
        var description = SessionDescription(origin: Origin(sessionID: local.sessionID, version: local.version))
        description.isICELite = true
        description.allowsMixedExtensions = offer.allowsMixedExtensions
        if let bundle { description.bundleGroups = [bundle] }
        var media: [NegotiatedMedia] = []
        for (section, codecs) in zip(offer.sections, codecs) {
            if let mid = section.mid, !codecs.isEmpty {
                let negotiated = negotiate(section, mid, codecs, sources)
                media.append(negotiated)
                description.sections.append(accept(section, negotiated))
            } else {
                media.append(NegotiatedMedia(rejecting: section))
                description.sections.append(reject(section))
            }
        }
        return Negotiated(remote: remote, media: media, answer: description.text)
    }

    private func negotiate(
        _ section: MediaSection, _ mid: String, _ codecs: [Codec], _ sources: (String) -> LocalSource?
    ) -> NegotiatedMedia {
        let offered = section.direction ?? offer.direction ?? .sendrecv
        let source = role == .send && offered.receives ? sources(mid) : nil
        let isUsed = role == .receive ? offered.sends : source != nil
        let direction: MediaDirection = isUsed ? (role == .receive ? .recvonly : .sendonly) : .inactive
        var media = NegotiatedMedia(accepting: section, mid: mid, direction: direction)
        media.codecs = codecs
        if role == .send { for index in codecs.indices { media.codecs[index].transportCC = false } }
        media.allowsMixedExtensions = offer.allowsMixedExtensions || section.allowsMixedExtensions
        for mapping in section.extensions {
            guard let known = mapping.answered(role), media.extensions[known] == nil else { continue }
            media.extensions[known] = mapping.id
        }
        if role == .receive { media.rids = rids(section, codecs) }
        media.localSource = source
        if !codecs.contains(where: { $0.rtxPayloadType != nil }) { media.localSource?.rtxSSRC = nil }
        return media
    }

    /// What the offer sends, without those layers for which no codec is left.
    private func rids(_ section: MediaSection, _ codecs: [Codec]) -> [RID] {
        let offered = section.rids.filter(\.isSend)
        let order = section.simulcast?.send ?? offered.map { Simulcast.Stream(rid: $0.id) }
        return order.compactMap { stream in
            guard let rid = offered.first(where: { $0.id == stream.rid }) else { return nil }
            let understood = rid.payloadTypes.filter { type in codecs.contains { $0.payloadType == type } }
            guard rid.payloadTypes.isEmpty || !understood.isEmpty else { return nil }
            return RID(id: rid.id, direction: .recv, isPaused: stream.isPaused, payloadTypes: understood)
        }
    }

    private func reject(_ section: MediaSection) -> MediaSection {
        var answer = MediaSection(kind: section.kind, port: 0, protocolName: section.protocolName)
        answer.formats = section.formats
        answer.payloads = section.payloads.map { PayloadFormat(payloadType: $0.payloadType) }
        (answer.mid, answer.direction) = (section.mid, .inactive)
        return answer
    }

    private func accept(_ section: MediaSection, _ media: NegotiatedMedia) -> MediaSection {
        // Port 9 says that the candidates have the ports (RFC 8840 §4.1).
        var answer = MediaSection(kind: section.kind, port: 9, protocolName: section.protocolName)
        (answer.mid, answer.direction) = (media.mid, media.direction)
        answer.transport = local.transport(setup: .passive)
        // The first section's would do (RFC 8843 §7.3.1); but aiortc 1.16 takes those of the last.
        answer.transport.candidates = local.candidates
        answer.transport.hasEndOfCandidates = true
        (answer.hasRTCPMux, answer.hasReducedSizeRTCP) = (true, section.hasReducedSizeRTCP)
        answer.allowsMixedExtensions = section.allowsMixedExtensions
        answer.payloads = media.codecs.flatMap(\.payloads)
        answer.extensions = section.extensions.compactMap { mapping in
            guard let known = mapping.answered(role), media.extensions[known] == mapping.id else { return nil }
            var mapping = mapping
            // One that goes both ways stays so: it is written where we send, and read where we receive.
            mapping.direction = mapping.direction?.reversed
            return mapping
        }
        answer.rids = media.rids.map { layer in
            var rid = RestrictionIdentifier(id: layer.id, isSend: false)
            rid.payloadTypes = layer.payloadTypes
            rid.restrictions = section.rids.first { $0.isSend && $0.id == layer.id }?.restrictions ?? ""
            return rid
        }
        if section.simulcast != nil, !media.rids.isEmpty {
            var simulcast = Simulcast()
            simulcast.receive = media.rids.map { Simulcast.Stream(rid: $0.id, isPaused: $0.isPaused) }
            answer.simulcast = simulcast
        }
        if let source = media.localSource { answer.announce(source, cname: local.cname) }
        return answer
    }
}

extension MediaSection {
    /// Whether this is in use, and media over SRTP keyed by DTLS (RFC 8829 §5.1.2 has the names).
    fileprivate var isAnswerable: Bool {
        guard isActive, kind == .audio || kind == .video else { return false }
        return ["UDP/TLS/RTP/SAVPF", "TCP/TLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVPF", "RTP/SAVPF"].contains(protocolName)
    }

    /// Writes down what is sent here (RFC 5576, RFC 4588 §8, RFC 8830).
    mutating func announce(_ source: LocalSource, cname: String) {
        streams = [source.msid]
        sources = [SourceDescription(ssrc: source.ssrc, cname: cname, msid: source.msid)]
        guard let rtxSSRC = source.rtxSSRC else { return }
        sources.append(SourceDescription(ssrc: rtxSSRC, cname: cname, msid: source.msid))
        sourceGroups = [SourceGroup(semantics: .retransmission, ssrcs: [source.ssrc, rtxSSRC])]
    }
}

extension ExtensionMapping {
    /// Which one it is, if it is answered, and goes the way in which the media goes.
    fileprivate func answered(_ role: AnswerRole) -> HeaderExtension? {
        let direction = direction ?? .sendrecv
        guard let known = HeaderExtension(rawValue: uri), known.isAnswered(role), id != 15,
            role == .receive ? direction.sends : direction.receives
        else { return nil }
        return known
    }
}
