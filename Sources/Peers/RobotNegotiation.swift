import RTC

/// The state of a connection's negotiation: its own offers, and what the remote side has stated.
struct RobotNegotiation {
    var offered: [OfferedMedia] = []
    /// The offer that has no answer yet; nil if there is none.
    var pending: SessionDescription?
    /// The new ICE credentials of a restart that has no answer yet; nil if there is none.
    var credentials: ICECredentials?
    /// The ICE credentials and the certificate of the remote side; nil before its first description.
    var remote: ICECredentials?
    var fingerprint: Fingerprint?
    /// The session id in SDP. The two highest bits are zero, so it is well below the maximum, 2^63 - 1 (RFC 8829
    /// §5.2.1).
    let sessionID: UInt64
    var version: UInt64 = 0

    init(using random: inout some RandomNumberGenerator) { sessionID = random.next() >> 2 }
}

extension RobotConnection {
    /// Creates an offer, which can be the initial one or a later one. Sections are identified by their mids and must keep their
    /// order. A section that sends gets a source if it has none.
    ///
    /// - Returns: the offer. Pass the remote side's answer to `accept`.
    public func offer(_ media: [OfferedMedia]) -> String {
        prepare(media)
        if transport == nil, !liteCandidates.isEmpty { transport = makeServer() }
        return offer(credentials: ensureClient().local)
    }

    /// Creates an offer for an ICE restart (RFC 8445 §9). Keys and media stay the same, and nothing changes until the
    /// answer arrives. Before the remote side's first description, creates an ordinary offer.
    public func restart() -> String { restart(negotiation.offered) }

    /// Creates an offer for an ICE restart with these sections, in the order of the previous offers and answers.
    package func restart(_ media: [OfferedMedia]) -> String {
        guard negotiation.remote != nil else { return offer(media) }
        prepare(media)
        let credentials = ICECredentials(using: &random)
        negotiation.credentials = credentials
        return offer(credentials: credentials)
    }

    /// Withdraws the local offer that has no answer yet, if there is one. Called when the remote side's offer takes
    /// precedence (RFC 8829 §4.1.10.2).
    package func rollback() {
        (negotiation.pending, negotiation.credentials) = (nil, nil)
        // If no remote description has been applied yet, discard the transport. The remote side's offer determines the
        // ICE and DTLS roles, so a new one is created for it.
        if negotiation.remote == nil { (transport, isLite) = (nil, false) }
    }

    private func prepare(_ media: [OfferedMedia]) {
        var media = media
        for index in media.indices where media[index].direction.sends { prepare(&media[index]) }
        negotiation.offered = media
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
        if !isLite, !fullCandidates.isEmpty {
            for index in description.sections.indices {
                description.sections[index].transport.setup = .active
                description.sections[index].transport.candidates = fullCandidates
            }
        }
        negotiation.pending = description
        return description.text
    }

    private func makeServer() -> PeerTransport {
        isLite = true
        return PeerTransport(
            server: ICECredentials(using: &random), certificate: certificate, maxSources: Self.maxSources)
    }

    private func ensureClient() -> PeerTransport {
        if let transport { return transport }
        let made = PeerTransport(
            client: ICECredentials(using: &random), certificate: certificate, maxSources: Self.maxSources,
            random: random)
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
        guard negotiation.fingerprint ?? remote.fingerprint == remote.fingerprint else { throw Self.otherCertificate }
        (negotiation.pending, negotiation.remote, negotiation.fingerprint) = (nil, credentials, remote.fingerprint)
        if let local = negotiation.credentials {
            transport.restart(local: local, remote: credentials)
            negotiation.credentials = nil
        } else {
            transport.setRemote(credentials, fingerprint: remote.fingerprint)
        }
        if !isLite { add(remote.candidates, to: transport) }
        apply(media)
        settle(now)
    }

    // The error for a changed certificate. RFC 8842 §3.1 then requires a new DTLS association, which this connection
    // cannot have.
    private static let otherCertificate = SDPError(
        .unsupported, "The DTLS certificate changed. Open a new connection instead.")

    /// Applies an offer from the remote side and returns the answer. A local offer without an answer is withdrawn.
    ///
    /// This side receives in all sections, and also sends in the sections of its own tracks.
    ///
    /// - Parameter candidates: the candidates of this side, for an offer from a full ICE agent.
    public func answer(offer text: String, candidates: [Candidate] = [], now: MediaTime) throws(SDPError) -> String {
        var offer = try SessionDescription(parsing: text)
        rollback()
        // The first description determines the roles permanently.
        let isClient = transport == nil ? offer.isICELite : !isLite
        guard isClient || !offer.isICELite else {
            throw SDPError(.unsupported, "Both sides would be ICE-lite. Open a new connection instead.")
        }
        offer.isICELite = false
        if transport == nil {
            transport = isClient ? ensureClient() : makeServer()
        }
        guard let transport else { throw SDPError(.unsupported, "There is no transport.") }
        negotiation.version += 1
        // A remote side that restarts ICE needs new credentials from this side too (RFC 8839 §4.4.3).
        let theirs = try remoteCredentials(in: offer)
        let restarts = negotiation.remote.map { $0 != theirs } ?? false
        let ours = restarts ? ICECredentials(using: &random) : transport.local
        let local = LocalParameters(
            ufrag: ours.ufrag, pwd: ours.password, fingerprint: certificate.fingerprint,
            candidates: isClient ? fullCandidates : candidates, sessionID: negotiation.sessionID,
            version: negotiation.version, cname: Self.cname
        )
        let negotiated = try combinedAnswer(to: offer, local)
        guard negotiation.fingerprint ?? negotiated.remote.fingerprint == negotiated.remote.fingerprint else {
            throw Self.otherCertificate
        }
        if restarts {
            transport.restart(local: ours, remote: theirs)
        } else {
            transport.setRemote(theirs, fingerprint: negotiated.remote.fingerprint)
        }
        (negotiation.remote, negotiation.fingerprint) = (theirs, negotiated.remote.fingerprint)
        if isClient { add(negotiated.remote.candidates, to: transport) }
        apply(negotiated.media)
        settle(now)
        guard isClient else { return negotiated.answer }
        // Correct the answer: this side is a full ICE agent and the DTLS client.
        var answer = try SessionDescription(parsing: negotiated.answer)
        answer.isICELite = false
        for index in answer.sections.indices where answer.sections[index].transport.setup != nil {
            answer.sections[index].transport.setup = .active
        }
        return answer.text
    }

    private func remoteCredentials(in description: SessionDescription) throws(SDPError) -> ICECredentials {
        guard let found = description.iceCredentials,
            let credentials = ICECredentials(ufrag: found.ufrag, password: found.pwd)
        else { throw SDPError(.malformed, "The offer's ICE credentials are missing or invalid.") }
        return credentials
    }

    /// Answers an offer once as the receiver and once as the sender of media, and merges the two answers section by
    /// section. Without tracks, answers only as the receiver.
    private func combinedAnswer(
        to offer: SessionDescription, _ local: LocalParameters
    ) throws(SDPError) -> Negotiated {
        var answered = try RTC.answer(to: offer, role: .receive, local: local)
        guard !tracks.isEmpty else { return answered }
        let sent = try RTC.answer(to: offer, role: .send, local: local) { mid in source(of: mid) }
        var description = try SessionDescription(parsing: answered.answer)
        let sections = try SessionDescription(parsing: sent.answer).sections
        for (index, media) in sent.media.enumerated() where media.direction.sends {
            let receives = answered.media[index].direction.receives
            answered.media[index] = media
            description.sections[index] = sections[index]
            guard receives else { continue }
            (answered.media[index].direction, description.sections[index].direction) = (.sendrecv, .sendrecv)
        }
        answered.answer = description.text
        return answered
    }

    /// Returns the source that this side sends in a section; nil if it sends nothing there.
    private func source(of mid: String) -> LocalSource? {
        guard negotiation.offered.contains(where: { $0.mid == mid && $0.direction.sends }), let track = track(mid)
        else { return nil }
        return LocalSource(
            ssrc: track.ssrc, rtxSSRC: track.repairSSRC, msid: MediaStreamID(stream: stream(of: mid), track: mid))
    }

    private func stream(of mid: String) -> String {
        negotiation.offered.first { $0.mid == mid }?.source?.msid.stream ?? Self.cname
    }

    /// Adds a candidate that the remote side sent after its description, as the text of an `a=candidate` line.
    ///
    /// - Returns: false if the candidate is malformed or is of a kind that is not supported, such as a host name.
    @discardableResult
    package func add(candidate text: String, now: MediaTime) -> Bool {
        let line = text.hasPrefix("a=") ? text : "a=" + text
        guard let found = (try? ICEFragment(parsing: Array(line.utf8)))?.candidates, !found.isEmpty else {
            return false
        }
        // An ICE-lite agent answers checks but sends none.
        if !isLite, let transport { add(found, to: transport) }
        settle(now)
        return true
    }

    private func add(_ candidates: [Candidate], to transport: PeerTransport) {
        for candidate in candidates where candidate.transport == .udp && canReach(candidate.address) {
            transport.add(Path(socket: socket, remote: candidate.address), priority: candidate.priority)
        }
    }

    private func canReach(_ address: TransportAddress) -> Bool { address.isIPv4 ? reachesIPv4 : reachesIPv6 }

    private func apply(_ media: [NegotiatedMedia]) {
        negotiated = media
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
