import RTC

/// Answers clients' offers.
final class Negotiator {
    private let settings: RouterSettings
    private let certificate: DTLSCertificate
    private var generator: any RandomNumberGenerator

    init(settings: RouterSettings, certificate: DTLSCertificate, generator: any RandomNumberGenerator) {
        (self.settings, self.certificate, self.generator) = (settings, certificate, generator)
    }

    /// Creates the connection that an offer describes.
    func makePeer(
        _ client: Key, _ side: Side, for offer: SessionDescription, _ makeHalf: (PeerLink) -> any PeerHalf
    ) -> Peer {
        let transport = PeerTransport(server: makeCredentials(), certificate: certificate)
        let link = PeerLink(client: client, transport: transport, using: &generator)
        return Peer(
            side: side, link: link, half: makeHalf(link), originSessionID: "\(offer.origin.sessionID)")
    }

    /// Creates the connection of one end of a relay, with new credentials.
    /// - Parameters:
    ///   - client: the key of the connection, for its reports.
    ///   - isController: whether this end is controlling in ICE, and the client in DTLS.
    func makeRelayLink(_ client: Key, isController: Bool) -> PeerLink {
        let (credentials, maxSources) = (makeCredentials(), 2 * RelayChannels.count)
        let transport =
            isController
            ? PeerTransport(client: credentials, certificate: certificate, maxSources: maxSources, random: generator)
            : PeerTransport(server: credentials, certificate: certificate, maxSources: maxSources)
        return PeerLink(client: client, transport: transport, using: &generator)
    }

    /// Answers an offer, and applies what was negotiated to the peer.
    func answer(_ offer: SessionDescription, to peer: Peer, _ peers: PeerTable) throws(SDPError) -> String {
        let ufrag = offer.sections.lazy.compactMap(\.transport.ufrag).first ?? offer.transport.ufrag
        let restarts = peer.remoteUfrag != "" && ufrag != peer.remoteUfrag
        // These credentials take effect only if the offer can be answered.
        let credentials = restarts ? makeCredentials() : peer.transport.local
        for section in offer.sections {
            guard let mid = section.mid, let kind = peer.half.kind(of: mid) else {
                continue
            }
            guard kind == section.kind else {
                throw SDPError(.unsupported, "A media section cannot change its kind. Add a new section instead.")
            }
        }
        peer.countDescription()
        let local = LocalParameters(
            ufrag: credentials.ufrag, pwd: credentials.password, fingerprint: certificate.fingerprint,
            candidates: settings.candidates, sessionID: UInt64(peer.link.ownSSRC), version: peer.descriptions,
            cname: peer.link.cname
        )
        let sources = plannedSources(offer, peer)
        let negotiated = try RTC.answer(
            to: offer, role: peer.side == .send ? .receive : .send, local: local, sources: { sources[$0] }
        )
        try apply(negotiated, credentials, to: peer, peers, restarts: restarts)
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
            let known = peer.half.localSource(mid)
            sources[mid] = LocalSource(
                ssrc: known?.ssrc ?? newSSRC(), rtxSSRC: known.map(\.repairSSRC) ?? newSSRC(), msid: name
            )
        }
        return sources
    }

    private func makeCredentials() -> ICECredentials {
        settings.owner.map { ICECredentials(using: &generator, owner: $0) } ?? ICECredentials(using: &generator)
    }

    private func newSSRC() -> UInt32 { UInt32.random(in: 1...UInt32.max, using: &generator) }

    private func apply(
        _ negotiated: Negotiated, _ credentials: ICECredentials, to peer: Peer, _ peers: PeerTable, restarts: Bool
    ) throws(SDPError) {
        let remote = negotiated.remote
        guard let theirs = ICECredentials(ufrag: remote.ufrag, password: remote.pwd) else {
            throw SDPError(.malformed, "The description's a=ice-ufrag or a=ice-pwd is invalid (RFC 8839 §5.4).")
        }
        guard peer.remoteFingerprint == nil || peer.remoteFingerprint == remote.fingerprint else {
            throw SDPError(.unsupported, "The fingerprint has changed. Make a new RTCPeerConnection and offer again.")
        }
        // An ICE restart changes the credentials of the connectivity checks, not the DTLS association (RFC 8842 §3.1).
        if restarts {
            peer.transport.restart(local: credentials, remote: theirs)
        } else {
            peer.transport.setRemote(theirs, fingerprint: remote.fingerprint)
        }
        peer.setRemote(ufrag: remote.ufrag, remote.fingerprint)
        peers.add(ufrag: credentials.ufrag, of: peer)
        // A new track may reuse the MID of a track that the description no longer contains or has rejected (RFC 8829
        // §5.2.2).
        let accepted = negotiated.media.filter { !$0.isRejected }
        peer.half.removeTracks(except: Set(accepted.map(\.mid)))
        for media in accepted { peer.half.apply(media, using: &generator) }
    }
}
