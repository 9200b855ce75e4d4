import RTC

/// Offers, answers, and the closing of connections.
extension Router {
    /// Handles a client's offer for one of its two peer connections. The offer creates a new connection, changes the
    /// transceivers, or restarts ICE (RFC 8829 §5.1 to §5.3).
    /// - Returns: the answer as SDP. Throws if the offer is malformed or cannot be answered.
    public func offer(_ client: Key, _ side: Side, sdp: String, now: MediaTime) throws(SDPError) -> String {
        let offer = try SessionDescription(parsing: sdp)
        let present = peer(client, side)
        let origin = "\(offer.origin.sessionID)"
        if let present, present.originSessionID == origin, !present.isOver {
            return try answer(offer, to: present)
        }
        // Store the peer only if the offer can be answered.
        let peer = Peer(
            client: client, side: side,
            transport: PeerTransport(server: ICECredentials(using: &generator), certificate: certificate),
            originSessionID: origin, using: &generator
        )
        let answer = try answer(offer, to: peer)
        if let present { end(present) }
        set(peer, client, side)
        relinkAll(client, side)
        return answer
    }

    private func answer(_ offer: SessionDescription, to peer: Peer) throws(SDPError) -> String {
        let ufrag = offer.sections.lazy.compactMap(\.transport.ufrag).first ?? offer.transport.ufrag
        let restarts = peer.remoteUfrag != "" && ufrag != peer.remoteUfrag
        // These credentials take effect only if the offer can be answered.
        let credentials = restarts ? ICECredentials(using: &generator) : peer.transport.local
        for section in offer.sections {
            guard let mid = section.mid, let kind = peer.incoming(mid)?.kind ?? peer.outgoing(mid)?.kind else {
                continue
            }
            guard kind == section.kind else {
                throw SDPError(.unsupported, "A media section cannot change its kind. Add a new section instead.")
            }
        }
        peer.descriptions += 1
        let local = LocalParameters(
            ufrag: credentials.ufrag, pwd: credentials.password, fingerprint: certificate.fingerprint,
            candidates: settings.candidates, sessionID: UInt64(peer.ownSSRC), version: peer.descriptions,
            cname: peer.cname
        )
        let sources = plannedSources(offer, peer)
        let negotiated = try RTC.answer(
            to: offer, role: peer.side == .send ? .receive : .send, local: local, sources: { sources[$0] }
        )
        try apply(negotiated, credentials, to: peer, restarts: restarts)
        return negotiated.answer
    }

    /// Returns the RTP sources for the transceivers over which the client receives, keyed by MID: the existing
    /// sources, and new ones for new transceivers.
    private func plannedSources(_ offer: SessionDescription, _ peer: Peer) -> [String: LocalSource] {
        guard peer.side == .receive else { return [:] }
        var sources: [String: LocalSource] = [:]
        var counts: [MediaKind: Int] = [:]
        for section in offer.sections {
            guard let mid = section.mid else { continue }
            // Give the first audio section the same stream id as the first video section, the second the same as the
            // second, and so on, so that browsers synchronize them.
            counts[section.kind, default: 0] += 1
            let name = MediaStreamID(stream: "slot\(counts[section.kind, default: 0])", track: "track\(mid)")
            let known = peer.outgoing(mid)
            sources[mid] = LocalSource(
                ssrc: known?.ssrc ?? newSSRC(), rtxSSRC: known.map(\.repairSSRC) ?? newSSRC(), msid: name
            )
        }
        return sources
    }

    private func newSSRC() -> UInt32 { UInt32.random(in: 1...UInt32.max, using: &generator) }

    private func apply(
        _ negotiated: Negotiated, _ credentials: ICECredentials, to peer: Peer, restarts: Bool
    ) throws(SDPError) {
        let remote = negotiated.remote
        guard let theirs = ICECredentials(ufrag: remote.ufrag, password: remote.pwd) else {
            throw SDPError(.malformed, "The description's a=ice-ufrag or a=ice-pwd is invalid (RFC 8839 §5.4).")
        }
        guard peer.remoteFingerprint == nil || peer.remoteFingerprint == remote.fingerprint else {
            throw SDPError(.unsupported, "The fingerprint has changed. Make a new RTCPeerConnection and offer again.")
        }
        peer.remoteFingerprint = remote.fingerprint
        // An ICE restart changes the credentials of the connectivity checks, not the DTLS association (RFC 8842 §3.1).
        if restarts {
            peer.transport.restart(local: credentials, remote: theirs)
        } else {
            peer.transport.setRemote(theirs, fingerprint: remote.fingerprint)
        }
        peer.remoteUfrag = remote.ufrag
        if peersByUfrag[credentials.ufrag] !== peer {
            peersByUfrag[credentials.ufrag] = peer
            peer.ufrags.append(credentials.ufrag)
            forgetOldUfrags(of: peer)
        }
        endTracks(of: peer, without: negotiated.media)
        for media in negotiated.media where !media.isRejected {
            switch peer.side {
            case .send: applyIncoming(media, to: peer)
            case .receive: applyOutgoing(media, to: peer)
            }
        }
        relinkAll(peer.client, peer.side)
    }

    /// Ends the tracks that the description no longer contains or has rejected (RFC 8829 §5.2.2). A new track may reuse the MID
    /// of an ended one.
    private func endTracks(of peer: Peer, without media: [NegotiatedMedia]) {
        let mids = Set(media.lazy.filter { !$0.isRejected }.map(\.mid))
        for track in peer.incoming where !mids.contains(track.mid) {
            end(track)
            peer.remove(track)
        }
        for track in peer.outgoing where !mids.contains(track.mid) {
            track.attach(nil)
            peer.remove(track)
        }
    }

    /// Detaches all subscribers and drops the packets that have not been forwarded yet.
    private func end(_ track: IncomingTrack) {
        for subscriber in track.subscribers { subscriber.attach(nil) }
        touched.removeAll { $0.track === track }
    }

    private func applyIncoming(_ media: NegotiatedMedia, to peer: Peer) {
        let track: IncomingTrack
        if let known = peer.incoming(media.mid) {
            track = known
        } else {
            track = IncomingTrack(peer: peer, mid: media.mid, kind: media.kind)
            peer.incoming.append(track)
        }
        track.update(media)
        peer.midID = media.extensions[.mid] ?? peer.midID
        peer.ridID = media.extensions[.rtpStreamID] ?? peer.ridID
        peer.repairedRidID = media.extensions[.repairedRtpStreamID] ?? peer.repairedRidID
        peer.transportSequenceID = media.extensions[.transportWideCC] ?? peer.transportSequenceID
        if peer.transportSequenceID != 0, peer.arrivals == nil { peer.arrivals = TransportFeedback() }
        for rid in media.rids { _ = track.encoding(rid: rid.id) }
        guard media.rids.isEmpty, let source = media.remoteSources.first,
            let encoding = track.encoding(rid: nil)
        else { return }
        if encoding.ssrc != source.ssrc { peer.forget(encoding) }
        peer.learn(source.ssrc, encoding, isRepair: false)
        if let repair = source.rtxSSRC { peer.learn(repair, encoding, isRepair: true) }
    }

    private func applyOutgoing(_ media: NegotiatedMedia, to peer: Peer) {
        let givesFeedback = media.extensions[.transportWideCC] != nil || media.codecs.contains(where: \.remb)
        if settings.controlsCongestion, peer.downlink == nil, givesFeedback { peer.downlink = Downlink() }
        if let known = peer.outgoing(media.mid) { return known.update(media) }
        guard let source = media.localSource else { return }
        let track = OutgoingTrack(
            peer: peer, mid: media.mid, kind: media.kind, ssrc: source.ssrc,
            repairSSRC: media.codecs.contains { $0.rtxPayloadType != nil } ? source.rtxSSRC : nil,
            rewriting: RTPRewriter(
                // Use the lower half, so that the number cannot wrap soon after the start (RFC 3711 §3.3.1).
                sequence: UInt16.random(in: 0..<0x8000, using: &generator),
                timestamp: UInt32.random(in: 0...UInt32.max, using: &generator)
            ),
            repair: UInt16.random(in: 0..<0x8000, using: &generator)
        )
        track.update(media)
        if peer.isBehind, media.kind == .video { track.allow(0, 0) }
        peer.add(track)
    }

    func peer(_ client: Key, _ side: Side) -> Peer? {
        side == .send ? clients[client]?.send : clients[client]?.receive
    }

    private func set(_ peer: Peer?, _ client: Key, _ side: Side) {
        switch side {
        case .send: clients[client, default: Client()].send = peer
        case .receive: clients[client, default: Client()].receive = peer
        }
        if let peer { peers.append(peer) }
        forgetIfEmpty(client)
    }

    /// Keeps the two most recent username fragments, because checks may use the previous one until the ICE restart is
    /// complete (RFC 8445 §9), and forgets older ones.
    private func forgetOldUfrags(of peer: Peer) {
        while peer.ufrags.count > 2 {
            let oldest = peer.ufrags.removeFirst()
            if peersByUfrag[oldest] === peer { peersByUfrag[oldest] = nil }
        }
    }

    /// Closes one of the client's two peer connections.
    public func close(_ client: Key, _ side: Side) {
        guard let peer = peer(client, side) else { return }
        end(peer)
        set(nil, client, side)
    }

    private func end(_ peer: Peer) {
        peer.transport.close(sink: sink)
        peers.removeAll { $0 === peer }
        unvalidatedPaths = unvalidatedPaths.filter { $0.value !== peer }
        audioChanged = true
        for ufrag in peer.ufrags where peersByUfrag[ufrag] === peer { peersByUfrag[ufrag] = nil }
        for path in peer.paths where peersByPath[path] === peer { peersByPath[path] = nil }
        for track in peer.incoming { end(track) }
        for track in peer.outgoing { track.attach(nil) }
    }

    /// Removes a client with all its streams, subscriptions and connections.
    public func leave(_ client: Key) {
        guard let entry = clients[client] else { return }
        for stream in entry.published { unpublish(stream) }
        for stream in entry.subscribed { unsubscribe(stream, client: client) }
        close(client, .send)
        close(client, .receive)
        clients[client] = nil
    }
}
