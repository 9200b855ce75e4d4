/// Answers the initial offer or a subsequent offer of a connection (RFC 8829 §5.3).
///
/// The answer uses ICE-lite, is passive in DTLS, bundles all accepted sections, and multiplexes RTCP. It rejects sections
/// without a supported codec, data channels, and sections that the offer marks as unused.
///
/// - Parameters:
///   - role: whether the server receives or sends the media.
///   - local: the server's parameters for the answer.
///   - sources: returns the source to send in the section with this mid. Called only in the role `.send`, for sections
///     in which the client wants to receive. A section without a source is answered with `inactive`.
/// - Throws: `SDPError` with a message for the client. In that case, no part of the offer takes effect.
public func answer(
    to offer: SessionDescription, role: AnswerRole, local: LocalParameters,
    sources: (_ mid: String) -> LocalSource? = { _ in nil }
) throws(SDPError) -> Negotiated {
    let answerer = try Answerer(offer: offer, role: role, local: local)
    return answerer.answer(sources)
}

/// Computes the answer to one offer.
private struct Answerer {
    let offer: SessionDescription
    let role: AnswerRole
    let local: LocalParameters
    let remote: RemoteParameters
    /// The supported codecs of each section; empty if the section is rejected.
    let codecs: [[Codec]]
    /// The mids of the accepted sections in the order of the offer's BUNDLE group, or nil if the offer has no group.
    /// The section with the first of these mids carries the transport (RFC 8843 §7.3.1).
    let bundle: [String]?
    let tagged: String

    init(offer: SessionDescription, role: AnswerRole, local: LocalParameters) throws(SDPError) {
        (self.offer, self.role, self.local) = (offer, role, local)
        codecs = offer.sections.map { section in
            let offered = section.isAnswerable ? Codec.all(in: section) : []
            return role == .receive ? Codec.forPublisher(offered) : offered
        }
        var accepted: [String: MediaSection] = [:]
        for (section, codecs) in zip(offer.sections, codecs) where !codecs.isEmpty {
            guard let mid = section.mid else { throw SDPError(.missing, "A media section has no a=mid. Add one.") }
            accepted[mid] = section
        }
        guard let first = zip(offer.sections, codecs).first(where: { !$1.isEmpty })?.0 else {
            throw SDPError(.unsupported, "The offer has no audio or video codec that this server supports.")
        }
        bundle = try Self.bundle(offer, accepted)
        tagged = bundle?.first ?? first.mid ?? ""
        try Self.checkExtensions(accepted.values)
        try Self.checkSources(accepted.values)
        remote = try Self.transport(offer, carrier: accepted[tagged] ?? first)
    }

    /// Reads the transport attributes from the section that carries the transport. An attribute that is missing there is taken
    /// from the offer's tagged section (RFC 8843 §7.2.1), or else from the session level.
    private static func transport(
        _ offer: SessionDescription, carrier: MediaSection
    ) throws(SDPError) -> RemoteParameters {
        let expected = offer.bundleGroups.first?.first.flatMap { mid in offer.sections.first { $0.mid == mid } }
        guard carrier.hasRTCPMux || expected?.hasRTCPMux == true else {
            throw SDPError(
                .unsupported, "The offer must have a=rtcp-mux: this server receives RTP and RTCP on one port.")
        }
        let transport = carrier.transport.completed(from: expected?.transport ?? TransportDescription())
        let remote = try RemoteParameters(transport.completed(from: offer.transport), of: offer)
        guard !remote.isICELite else {
            throw SDPError(.unsupported, "This server is ICE-lite, so the client must use full ICE. Remove a=ice-lite.")
        }
        guard remote.setup == .actpass || remote.setup == .active else {
            throw SDPError(.unsupported, "a=setup must be actpass or active: this server is passive in DTLS.")
        }
        return remote
    }

    private static func bundle(
        _ offer: SessionDescription, _ accepted: [String: MediaSection]
    ) throws(SDPError) -> [String]? {
        guard offer.bundleGroups.count <= 1 else {
            throw SDPError(.unsupported, "The offer must have only one BUNDLE group: all media uses one transport.")
        }
        guard let group = offer.bundleGroups.first else {
            guard accepted.count == 1 else {
                throw SDPError(.unsupported, "The offer must have a=group:BUNDLE: all media uses one transport.")
            }
            return nil
        }
        var seen: Set<String> = []
        let bundle = group.filter { accepted[$0] != nil && seen.insert($0).inserted }
        guard bundle.count == accepted.count else {
            throw SDPError(
                .unsupported, "Every media section must be in the BUNDLE group: all media uses one transport.")
        }
        return bundle
    }

    /// Checks that no header extension id has two meanings on the transport (RFC 8843 §9.2).
    private static func checkExtensions(_ sections: some Sequence<MediaSection>) throws(SDPError) {
        var uris: [UInt8: String] = [:]
        for mapping in sections.lazy.flatMap(\.extensions) {
            guard uris.updateValue(mapping.uri, forKey: mapping.id) ?? mapping.uri == mapping.uri else {
                throw SDPError(
                    .duplicate,
                    "a=extmap uses id \(mapping.id) for two extensions. Ids must be unique in a BUNDLE group.")
            }
        }
    }

    /// Checks that each SSRC belongs to one section, so that no section can take over packets of another.
    private static func checkSources(_ sections: some Sequence<MediaSection>) throws(SDPError) {
        var seen: Set<UInt32> = []
        for source in sections.lazy.flatMap(\.sources) where !seen.insert(source.ssrc).inserted {
            throw SDPError(.duplicate, "Two media sections use SSRC \(source.ssrc). SSRCs must be unique.")
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
        media.allowsMixedExtensions = offer.allowsMixedExtensions || section.allowsMixedExtensions
        for mapping in section.extensions {
            guard let known = mapping.answered(role), media.extensions[known] == nil else { continue }
            // Skip transport-wide sequence numbers for a subscriber that sends no feedback about them.
            if role == .send, known == .transportWideCC, !codecs.contains(where: \.transportCC) { continue }
            media.extensions[known] = mapping.id
        }
        if role == .send, media.extensions[.transportWideCC] == nil {
            for index in codecs.indices { media.codecs[index].transportCC = false }
        }
        if role == .receive { media.rids = rids(section, codecs) }
        media.localSource = source
        if !codecs.contains(where: { $0.rtxPayloadType != nil }) { media.localSource?.rtxSSRC = nil }
        return media
    }

    /// Returns the simulcast layers in the offer, without those that have no supported codec.
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
        // Port 9 is a placeholder, because the candidates contain the ports (RFC 8840 §4.1).
        var answer = MediaSection(kind: section.kind, port: 9, protocolName: section.protocolName)
        (answer.mid, answer.direction) = (media.mid, media.direction)
        answer.transport = local.transport(setup: .passive)
        // Write the candidates in every section. The first section would suffice (RFC 8843 §7.3.1), but aiortc 1.16 reads those
        // of the last section.
        answer.transport.candidates = local.candidates
        answer.transport.hasEndOfCandidates = true
        (answer.hasRTCPMux, answer.hasReducedSizeRTCP) = (true, section.hasReducedSizeRTCP)
        answer.allowsMixedExtensions = section.allowsMixedExtensions
        answer.payloads = media.codecs.flatMap(\.payloads)
        answer.extensions = section.extensions.compactMap { mapping in
            guard let known = mapping.answered(role), media.extensions[known] == mapping.id else { return nil }
            var mapping = mapping
            // Write the direction from the server's point of view. `sendrecv` stays `sendrecv`.
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
    /// Whether the section is active and carries audio or video over DTLS-SRTP (protocol names from RFC 8829 §5.1.2).
    fileprivate var isAnswerable: Bool {
        guard isActive, kind == .audio || kind == .video else { return false }
        return ["UDP/TLS/RTP/SAVPF", "TCP/TLS/RTP/SAVPF", "TCP/DTLS/RTP/SAVPF", "RTP/SAVPF"].contains(protocolName)
    }

    /// Adds the SSRCs, the RTX group and the msid of a source (RFC 5576, RFC 4588 §8, RFC 8830).
    mutating func announce(_ source: LocalSource, cname: String) {
        streams = [source.msid]
        sources = [SourceDescription(ssrc: source.ssrc, cname: cname, msid: source.msid)]
        guard let rtxSSRC = source.rtxSSRC else { return }
        sources.append(SourceDescription(ssrc: rtxSSRC, cname: cname, msid: source.msid))
        sourceGroups = [SourceGroup(semantics: .retransmission, ssrcs: [source.ssrc, rtxSSRC])]
    }
}

extension ExtensionMapping {
    /// Returns the extension if the server supports it in this role and its direction includes that of the media.
    /// Returns nil otherwise, and for id 15, which is reserved (RFC 8285 §4.2).
    fileprivate func answered(_ role: AnswerRole) -> HeaderExtension? {
        let direction = direction ?? .sendrecv
        guard let known = HeaderExtension(rawValue: uri), known.isAnswered(role), id != 15,
            role == .receive ? direction.sends : direction.receives
        else { return nil }
        return known
    }
}
