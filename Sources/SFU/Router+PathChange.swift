import RTC

/// Handles clients whose address changes during a connection, because a NAT assigned a new one or the client switched
/// networks.
extension Router {
    /// The minimum time between two datagrams from unknown addresses that are examined, because each causes a search.
    private static let unvalidatedPathsInterval = MediaInterval.milliseconds(20)
    /// The maximum number of unknown addresses being checked. When it is reached, all of them are forgotten.
    private static let maxUnvalidatedPaths = 64
    /// How long a subscriber must have been silent before a report from an unknown address is tried with its key, and
    /// the maximum number of keys to try for one report.
    private static let (silence, maxTries) = (MediaInterval.milliseconds(200), 64)

    /// Handles a datagram from an unknown address. If it is media of a known publisher or a report of a subscriber,
    /// the client may not have noticed the change to its address, so the server checks the new address. This takes one
    /// round trip, while the client's next check may be seconds away. Only checks are sent to the new address until
    /// the client has answered one.
    func receiveUnvalidated(_ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime) {
        // Examine only RTP and RTCP (RFC 7983 §7). A TCP connection cannot change its address.
        guard !path.isTCP, datagram.count >= RTPPacket.fixedHeaderLength, (128...191).contains(datagram[0]),
            unvalidatedPathsAt.map({ now - $0 >= Self.unvalidatedPathsInterval }) ?? true
        else { return }
        unvalidatedPathsAt = now
        if unvalidatedPaths.count >= Self.maxUnvalidatedPaths { unvalidatedPaths.removeAll(keepingCapacity: true) }
        // The second byte 192 to 223 identifies RTCP (RFC 5761 §4).
        if (192...223).contains(datagram[1]) { return receiveUnvalidatedReport(datagram, on: path, now: now) }
        let ssrc = UnsafeRawBufferPointer(datagram).bigEndian32(at: 8)
        guard let peer = peers.first(where: { $0.side == .send && $0.sources[ssrc] != nil }) else { return }
        unvalidatedPaths[path] = peer
        _ = peer.transport.receiveUnvalidated(datagram, on: path, now: now, sink: sink)
    }

    /// Finds the subscriber that sent a report. Browsers use the same SSRC in all reports, so only a subscriber's key
    /// identifies it. Only subscribers that have been silent for 200 ms are tried. Without transport-wide feedback
    /// nearly all subscribers can be silent that long; later reports then try the others.
    private func receiveUnvalidatedReport(_ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime) {
        // A connectivity check of this address may be in progress. Its entry is needed to match the answer, so
        // restore the entry if no subscriber's key fits.
        let former = unvalidatedPaths[path]
        if former?.side == .send { return }
        withUnsafeTemporaryAllocation(byteCount: datagram.count, alignment: 8) { copy in
            var tries = 0
            for step in 1...max(1, peers.count) where !peers.isEmpty && tries < Self.maxTries {
                let index = (unvalidatedPathsTried + step) % peers.count
                let peer = peers[index]
                guard peer.side == .receive, peer.heardAt.map({ now - $0 >= Self.silence }) ?? false else { continue }
                tries += 1
                if tries == Self.maxTries { unvalidatedPathsTried = index }
                // Decryption overwrites its input, so use a copy.
                copy.copyMemory(from: UnsafeRawBufferPointer(datagram))
                unvalidatedPaths[path] = peer
                if peer.transport.receiveUnvalidated(copy, on: path, now: now, sink: sink) { return }
            }
            unvalidatedPaths[path] = former
        }
    }

    /// Handles the selection of another path. For a publisher, requests keyframes, because too many packets were lost
    /// on the previous path to be retransmitted. For a subscriber, resets the congestion control, because the estimate
    /// of the previous path does not apply to the new one.
    func noteMove(of peer: Peer) {
        guard let path = peer.transport.selectedPath, path != peer.lastPath else { return }
        defer { peer.lastPath = path }
        guard peer.lastPath != nil else { return }
        peer.downlink?.control.pathChanged()
        guard peer.side == .send else { return }
        for track in peer.incoming where track.kind == .video {
            for encoding in track.encodings where encoding.isWatched { encoding.keyframes.publisherMoved() }
        }
        urgent.append(peer)
    }
}
