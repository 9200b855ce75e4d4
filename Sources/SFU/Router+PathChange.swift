import RTC

/// Clients whose address changes in the middle, because a NAT assigned a new one or the client has changed networks.
extension Router {
    /// The minimum time between two looks at media from unknown addresses, which cost a search.
    private static let astrayInterval = MediaInterval.milliseconds(20)
    /// The maximum number of addresses that are being checked.
    private static let maxAstray = 64

    /// Handles a datagram from an unknown address. If it is media of a known publisher, who does not know of the new address, the
    /// server checks the address itself. This takes a round trip; the publisher's next check may be seconds away.
    func receiveAstray(_ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime) {
        // RFC 7983 §7 and RFC 5761 §4: RTP, not RTCP. A TCP connection has an address of its own.
        guard !path.isTCP, datagram.count >= RTPPacket.fixedHeaderLength, (128...191).contains(datagram[0]),
            !(192...223).contains(datagram[1]), astrayAt.map({ now - $0 >= Self.astrayInterval }) ?? true
        else { return }
        astrayAt = now
        let ssrc = UnsafeRawBufferPointer(datagram).bigEndian32(at: 8)
        guard let peer = peers.first(where: { $0.side == .send && $0.sources[ssrc] != nil }) else { return }
        if astray.count >= Self.maxAstray { astray.removeAll(keepingCapacity: true) }
        astray[path] = peer
        peer.transport.receiveAstray(datagram, on: path, now: now, sink: sink)
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
