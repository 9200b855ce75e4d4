import RTC

/// What a connection has offered so far.
struct RobotNegotiation {
    var offered: [OfferedMedia] = []
    /// Waits for its answer.
    var pending: SessionDescription?
    /// Of a restart that waits for its answer.
    var credentials: ICECredentials?
    /// Below 2^63 (RFC 8829 §5.2.1).
    let sessionID: UInt64
    var version: UInt64 = 0

    init(using random: inout some RandomNumberGenerator) { sessionID = random.next() >> 2 }
}

extension RobotConnection {
    /// Describes what it wants to send and receive, the first time or again: sections are told apart by their mids,
    /// and must stay in their order. Sections that send get a source unless they have one.
    ///
    /// - Returns: the offer, for the other end's `answer`.
    public func offer(_ media: [OfferedMedia]) -> String {
        var media = media
        for index in media.indices where media[index].direction.sends { prepare(&media[index]) }
        negotiation.offered = media
        if transport == nil, !liteCandidates.isEmpty { transport = makeServer() }
        return offer(credentials: ensureClient().local)
    }

    /// Offers the same again with new ICE credentials (RFC 8445 §9). Keys and media stay; nothing changes until the
    /// answer.
    public func restart() -> String {
        let credentials = ICECredentials(using: &random)
        negotiation.credentials = credentials
        return offer(credentials: credentials)
    }

    private func offer(credentials: ICECredentials) -> String {
        negotiation.version += 1
        let local = LocalParameters(
            ufrag: credentials.ufrag, pwd: credentials.password, fingerprint: certificate.fingerprint,
            candidates: liteCandidates, sessionID: negotiation.sessionID, version: negotiation.version,
            cname: Self.cname
        )
        var description = RTC.offer(negotiation.offered, local: local)
        description.isICELite = isLite
        negotiation.pending = description
        return description.text
    }

    private func makeServer() -> PeerTransport {
        isLite = true
        return PeerTransport(server: ICECredentials(using: &random), certificate: certificate)
    }

    private func ensureClient() -> PeerTransport {
        if let transport { return transport }
        let made = PeerTransport(
            client: ICECredentials(using: &random), certificate: certificate, random: random)
        transport = made
        return made
    }

    /// Gives a section its tracks, one for each layer, unless it has them.
    private func prepare(_ section: inout OfferedMedia) {
        guard let codec = section.codecs.first else { return }
        let hasRepair = codec.rtxPayloadType != nil
        for rid in section.rids.isEmpty ? [nil] : section.rids.map(Optional.some) {
            if track(section.mid, rid: rid) != nil { continue }
            let source =
                (rid == nil ? section.source : nil)
                ?? LocalSource(
                    ssrc: newSSRC(), rtxSSRC: hasRepair ? newSSRC() : nil,
                    msid: MediaStreamID(stream: Self.cname, track: section.mid))
            let track = RobotTrack(
                mid: section.mid, kind: section.kind, rid: rid, codec: codec, source: source, using: &random)
            track.extensions = section.extensions
            tracks.append(track)
        }
        // Layers are announced by their rids alone.
        if section.rids.isEmpty, section.source == nil, let track = track(section.mid) {
            section.source = LocalSource(
                ssrc: track.ssrc, rtxSSRC: track.repairSSRC,
                msid: MediaStreamID(stream: Self.cname, track: section.mid))
        }
    }

    private func newSSRC() -> UInt32 {
        // 0 is what RTCP says for none.
        UInt32.random(in: 1...UInt32.max, using: &random)
    }

    /// Takes the answer to the last offer; checks of the other end's candidates begin with the next `handleTimeout`.
    ///
    /// - Throws: `SDPError` if it is none, or one that this end cannot go by.
    public func accept(answer text: String, now: MediaTime) throws(SDPError) {
        guard let pending = negotiation.pending, let transport else {
            throw SDPError(.malformed, "There is no offer that this could answer.")
        }
        let (remote, media) = try RTC.accept(try SessionDescription(parsing: text), to: pending)
        guard remote.setup == (isLite ? .active : .passive) else {
            throw SDPError(.unsupported, "Both would be the client in DTLS, or neither.")
        }
        guard let credentials = ICECredentials(ufrag: remote.ufrag, password: remote.pwd) else {
            throw SDPError(.malformed, "The answer's ICE credentials are none.")
        }
        negotiation.pending = nil
        if let local = negotiation.credentials {
            transport.restart(local: local, remote: credentials)
            negotiation.credentials = nil
        } else {
            guard transport.setRemote(credentials, fingerprint: remote.fingerprint) else {
                throw SDPError(.unsupported, "Another certificate needs another connection.")
            }
        }
        if !isLite { add(remote.candidates, to: transport) }
        apply(media)
        settle(now)
    }

    /// Answers an offer of the other end.
    ///
    /// - Parameter candidates: where this end can be reached, for an offer of one that is not ICE-lite.
    /// - Returns: the answer.
    public func answer(offer text: String, candidates: [Candidate] = [], now: MediaTime) throws(SDPError) -> String {
        var offer = try SessionDescription(parsing: text)
        let isClient = offer.isICELite
        offer.isICELite = false
        if transport == nil {
            transport = isClient ? ensureClient() : makeServer()
        }
        guard let transport else { throw SDPError(.unsupported, "There is no transport.") }
        negotiation.version += 1
        let local = LocalParameters(
            ufrag: transport.local.ufrag, pwd: transport.local.password, fingerprint: certificate.fingerprint,
            candidates: isClient ? [] : candidates, sessionID: negotiation.sessionID, version: negotiation.version,
            cname: Self.cname
        )
        let negotiated = try RTC.answer(to: offer, role: .receive, local: local)
        let remote = negotiated.remote
        guard let credentials = ICECredentials(ufrag: remote.ufrag, password: remote.pwd),
            transport.setRemote(credentials, fingerprint: remote.fingerprint)
        else { throw SDPError(.unsupported, "Another certificate needs another connection.") }
        if isClient { add(remote.candidates, to: transport) }
        apply(negotiated.media)
        settle(now)
        guard isClient else { return negotiated.answer }
        // Against a lite end this one is full, and the client in DTLS.
        var answer = try SessionDescription(parsing: negotiated.answer)
        answer.isICELite = false
        for index in answer.sections.indices where answer.sections[index].transport.setup != nil {
            answer.sections[index].transport.setup = .active
        }
        return answer.text
    }

    private func add(_ candidates: [Candidate], to transport: PeerTransport) {
        for candidate in candidates where candidate.transport == .udp && canReach(candidate.address) {
            transport.add(Path(socket: socket, remote: candidate.address), priority: candidate.priority)
        }
    }

    private func canReach(_ address: TransportAddress) -> Bool { address.isIPv4 ? reachesIPv4 : reachesIPv6 }

    private func apply(_ media: [NegotiatedMedia]) {
        var sources: [UInt32: RobotReception] = [:]
        for media in media where !media.isRejected {
            for track in tracks where track.mid == media.mid {
                if let codec = media.codecs.first(where: { $0.kind == track.codec.kind }) ?? media.codecs.first {
                    track.codec = codec
                }
                track.extensions = media.extensions
            }
            guard media.direction.receives else { continue }
            if let id = media.extensions[.mid] { midExtension = id }
            let reception = reception(media.mid) ?? RobotReception(media, complains: complains)
            if !receptions.contains(where: { $0 === reception }) { receptions.append(reception) }
            (reception.codecs, reception.msid) = (media.codecs, media.msid ?? media.remoteSources.first?.msid)
            if let source = media.remoteSources.first { _ = reception.bind(source) }
            if let ssrc = reception.ssrc { sources[ssrc] = reception }
            if let ssrc = reception.repairSSRC { sources[ssrc] = reception }
        }
        announce(sources)
    }
}
