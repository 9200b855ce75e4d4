import RTC

/// Clients whose address changes in the middle, because a NAT assigned a new one or the client has changed networks.
extension Router {
    /// The minimum time between two looks at media from unknown addresses, which cost a search.
    private static let astrayInterval = MediaInterval.milliseconds(20)
    /// The maximum number of addresses that are being checked.
    private static let maxAstray = 64
    /// How long nothing must have come from a subscriber before its reports may come from elsewhere, and with how many
    /// subscribers' keys to try one report.
    private static let (silence, maxTries) = (MediaInterval.milliseconds(200), 64)

    /// Handles a datagram from an unknown address. If it is media of a known publisher or a report of a subscriber, who does not
    /// know of the new address, the server checks the address itself. This takes a round trip; the client's next check may be
    /// seconds away. Nothing but checks is sent there before the client has answered one.
    func receiveAstray(_ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime) {
        // RFC 7983 §7: RTP or RTCP. A TCP connection has an address of its own.
        guard !path.isTCP, datagram.count >= RTPPacket.fixedHeaderLength, (128...191).contains(datagram[0]),
            astrayAt.map({ now - $0 >= Self.astrayInterval }) ?? true
        else { return }
        astrayAt = now
        if astray.count >= Self.maxAstray { astray.removeAll(keepingCapacity: true) }
        // RFC 5761 §4
        if (192...223).contains(datagram[1]) { return receiveAstrayReport(datagram, on: path, now: now) }
        let ssrc = UnsafeRawBufferPointer(datagram).bigEndian32(at: 8)
        guard let peer = peers.first(where: { $0.side == .send && $0.sources[ssrc] != nil }) else { return }
        astray[path] = peer
        _ = peer.transport.receiveAstray(datagram, on: path, now: now, sink: sink)
    }

    /// Finds the subscriber whose report this is. Browsers use the same SSRC in all reports, so only a subscriber's key tells.
    /// Only subscribers that have been silent for 200 ms are tried. Without transport-wide feedback these can be nearly all; then
    /// later reports try the others.
    private func receiveAstrayReport(_ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime) {
        // A check of this address may be under way. Its answer is found by this entry.
        let former = astray[path]
        if former?.side == .send { return }
        withUnsafeTemporaryAllocation(byteCount: datagram.count, alignment: 8) { copy in
            var tries = 0
            for step in 1...max(1, peers.count) where !peers.isEmpty && tries < Self.maxTries {
                let index = (astrayTried + step) % peers.count
                let peer = peers[index]
                guard peer.side == .receive, peer.heardAt.map({ now - $0 >= Self.silence }) ?? false else { continue }
                tries += 1
                if tries == Self.maxTries { astrayTried = index }
                // Decryption overwrites what it reads.
                copy.copyMemory(from: UnsafeRawBufferPointer(datagram))
                astray[path] = peer
                if peer.transport.receiveAstray(copy, on: path, now: now, sink: sink) { return }
            }
            astray[path] = former
        }
    }

    /// Requests keyframes from a publisher whose media comes over another path. Packets that were on the former path are lost,
    /// and too many to be sent again. What is known about the former path to a subscriber says nothing about the new one.
    func noteMove(of peer: Peer) {
        guard let path = peer.transport.selectedPath, path != peer.lastPath else { return }
        defer { peer.lastPath = path }
        guard peer.lastPath != nil else { return }
        peer.downlink?.control.pathChanged()
        guard peer.side == .send else { return }
        for track in peer.incoming where track.kind == .video {
            for encoding in track.encodings where encoding.isWatched { encoding.keyframes.want() }
        }
        urgent.append(peer)
    }
}
