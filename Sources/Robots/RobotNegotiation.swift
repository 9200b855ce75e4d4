import RTC

/// The state of a connection's offers.
struct RobotNegotiation {
    var offered: [OfferedMedia] = []
    /// The offer that has no answer yet.
    var pending: SessionDescription?
    /// The new ICE credentials of a restart that has no answer yet.
    var credentials: ICECredentials?
    /// The session id in SDP, which must be below 2^63 (RFC 8829 §5.2.1).
    let sessionID: UInt64
    var version: UInt64 = 0

    init(using random: inout some RandomNumberGenerator) { sessionID = random.next() >> 2 }
}

extension RobotConnection {
    /// Creates an offer, which can be the initial one or a later one. Sections are identified by their mids and must keep their
    /// order. A section that sends gets a source if it has none.
    ///
    /// - Returns: the offer. The remote side must pass it to `answer`.
    public func offer(_ media: [OfferedMedia]) -> String {
        var media = media
        for index in media.indices where media[index].direction.sends { prepare(&media[index]) }
        negotiation.offered = media
        if transport == nil, !liteCandidates.isEmpty { transport = makeServer() }
        return offer(credentials: ensureClient().local)
    }

    /// Creates an offer for an ICE restart (RFC 8445 §9). Keys and media stay the same, and nothing changes until the answer
    /// arrives.
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

    /// Creates the tracks of a section, one per layer, unless they already exist.
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
        // Announce no source for simulcast layers, which only have RIDs.
        if section.rids.isEmpty, section.source == nil, let track = track(section.mid) {
            section.source = LocalSource(
                ssrc: track.ssrc, rtxSSRC: track.repairSSRC,
                msid: MediaStreamID(stream: Self.cname, track: section.mid))
        }
    }

    private func newSSRC() -> UInt32 {
        // Exclude 0, because RTCP uses SSRC 0 to mean none.
        UInt32.random(in: 1...UInt32.max, using: &random)
    }

    /// Applies the answer to the most recent offer. Connectivity checks start with the next `handleTimeout`.
    ///
    /// - Throws: `SDPError` if the answer is invalid or not supported.
    public func accept(answer text: String, now: MediaTime) throws(SDPError) {
        guard let pending = negotiation.pending, let transport else {
            throw SDPError(.malformed, "No offer is waiting for an answer.")
        }
        let (remote, media) = try RTC.accept(try SessionDescription(parsing: text), to: pending)
        guard remote.setup == (isLite ? .active : .passive) else {
            throw SDPError(.unsupported, "The answer's a=setup must make one side the DTLS client.")
        }
        guard let credentials = ICECredentials(ufrag: remote.ufrag, password: remote.pwd) else {
            throw SDPError(.malformed, "The answer's ICE credentials are invalid.")
        }
        negotiation.pending = nil
        if let local = negotiation.credentials {
            transport.restart(local: local, remote: credentials)
            negotiation.credentials = nil
        } else {
            guard transport.setRemote(credentials, fingerprint: remote.fingerprint) else {
                throw SDPError(.unsupported, "The DTLS certificate changed. Open a new connection instead.")
            }
        }
        if !isLite { add(remote.candidates, to: transport) }
        apply(media)
        settle(now)
    }

    /// Applies an offer from the remote side and returns the answer.
    ///
    /// - Parameter candidates: the candidates of this side, for an offer from a full ICE agent.
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
        else { throw SDPError(.unsupported, "The DTLS certificate changed. Open a new connection instead.") }
        if isClient { add(remote.candidates, to: transport) }
        apply(negotiated.media)
        settle(now)
        guard isClient else { return negotiated.answer }
        // The remote side is ICE-lite, so this side is a full agent and the DTLS client.
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
            if let id = media.extensions[.transportWideCC] { transportExtension = id }
            let reception = reception(media.mid) ?? RobotReception(media, sendsFeedback: sendsFeedback)
            if !receptions.contains(where: { $0 === reception }) { receptions.append(reception) }
            (reception.codecs, reception.msid) = (media.codecs, media.msid ?? media.remoteSources.first?.msid)
            if let source = media.remoteSources.first { _ = reception.bind(source) }
            if let ssrc = reception.ssrc { sources[ssrc] = reception }
            if let ssrc = reception.repairSSRC { sources[ssrc] = reception }
        }
        announce(sources)
    }
}
