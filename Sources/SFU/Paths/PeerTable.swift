import RTC

/// All peer connections, and how datagrams find them: by path, or by the username in a connectivity check.
final class PeerTable {
    private let output: RouterOutput
    /// All connections of all clients.
    private(set) var all: [Peer] = []
    private(set) var byClient: [Key: Pair] = [:]
    /// Maps each local username fragment to its peer. The fragment is the beginning of the username in a client's
    /// connectivity checks (RFC 8445 §7.3).
    private(set) var byUfrag: [String: Peer] = [:]
    /// Maps each validated path to its peer.
    private(set) var byPath: [Path: Peer] = [:]
    /// Maps each path that is not validated to the peer whose media or reports arrived over it, until the client
    /// answers a check over the path.
    private(set) var unvalidated: [Path: Peer] = [:]
    /// When a datagram from an unknown address was last examined.
    private var examinedAt: MediaTime?
    /// The index in `all` at which the last search stopped because it had tried enough keys. A report from an unknown
    /// address does not say which peer sent it, so the peers' keys are tried in turn.
    private var lastTried = 0

    /// The two peer connections of a client.
    struct Pair {
        var send: Peer?
        var receive: Peer?
    }

    init(output: RouterOutput) { self.output = output }

    /// Whether there are no connections.
    var isEmpty: Bool { byUfrag.isEmpty }

    // MARK: Clients

    func peer(_ client: Key, _ side: Side) -> Peer? {
        side == .send ? byClient[client]?.send : byClient[client]?.receive
    }

    /// Adds a connection of a client that has none for this side.
    func add(_ peer: Peer) {
        switch peer.side {
        case .send: byClient[peer.client, default: Pair()].send = peer
        case .receive: byClient[peer.client, default: Pair()].receive = peer
        }
        all.append(peer)
    }

    /// Closes a connection, and forgets everything about it.
    func end(_ peer: Peer) {
        peer.transport.close(sink: output.sink)
        all.removeAll { $0 === peer }
        unvalidated = unvalidated.filter { $0.value !== peer }
        for ufrag in peer.ufrags where byUfrag[ufrag] === peer { byUfrag[ufrag] = nil }
        for path in peer.paths where byPath[path] === peer { byPath[path] = nil }
        if self.peer(peer.client, peer.side) === peer {
            switch peer.side {
            case .send: byClient[peer.client]?.send = nil
            case .receive: byClient[peer.client]?.receive = nil
            }
            if let pair = byClient[peer.client], pair.send == nil, pair.receive == nil { byClient[peer.client] = nil }
        }
        peer.half.end()
    }

    /// Lets the client's checks use a local username fragment.
    func add(ufrag: String, of peer: Peer) {
        guard byUfrag[ufrag] !== peer else { return }
        byUfrag[ufrag] = peer
        for old in peer.add(ufrag: ufrag) where byUfrag[old] === peer { byUfrag[old] = nil }
    }

    // MARK: Paths

    /// Returns the peer that a datagram belongs to; nil if it belongs to none that is known.
    func peer(of datagram: UnsafeMutableRawBufferPointer, on path: Path) -> Peer? {
        let isCheck = datagram[0] < 4
        if let known = byPath[path] {
            // A client can start another connection from the same address. The username in the check identifies the
            // connection.
            return isCheck ? peer(checking: datagram) ?? known : known
        }
        return isCheck ? peer(checking: datagram) ?? unvalidated[path] : nil
    }

    private func peer(checking datagram: UnsafeMutableRawBufferPointer) -> Peer? {
        guard let username = STUN.username(of: UnsafeRawBufferPointer(datagram)) else { return nil }
        return byUfrag[String(decoding: username.local, as: UTF8.self)]
    }

    /// Returns whether this path belongs to a peer.
    func knows(_ path: Path) -> Bool { byPath[path] != nil }

    /// Removes the path of a closed TCP connection.
    func pathClosed(_ path: Path) { byPath.removeValue(forKey: path)?.remove(path) }

    /// Records a peer's path, and the changes of its state.
    func note(_ peer: Peer, _ path: Path?) {
        peer.half.wake()
        if let path, byPath[path] !== peer, peer.transport.isValidated(path), !isInUse(path) {
            byPath[path] = peer
            unvalidated[path] = nil
            if let oldest = peer.add(path), byPath[oldest] === peer { byPath[oldest] = nil }
        }
        peer.noteChanges(to: output)
    }

    /// Returns whether a connected peer uses this path. If so, a check with a forged source address cannot take the
    /// path over. A peer loses its path if it sends no checks for long enough (RFC 7675).
    private func isInUse(_ path: Path) -> Bool {
        guard let holder = byPath[path] else { return false }
        return holder.transport.state == .connected && holder.transport.selectedPath == path
    }
}

/// Handles clients whose address changes during a connection, because a NAT assigned a new one or the client switched
/// networks.
extension PeerTable {
    /// The minimum time between two datagrams from unknown addresses that are examined, because each causes a search.
    private static let examinationInterval = MediaInterval.milliseconds(20)
    /// The maximum number of unknown addresses being checked. When it is reached, all of them are forgotten.
    private static let maxUnvalidated = 64
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
            examinedAt.map({ now - $0 >= Self.examinationInterval }) ?? true
        else { return }
        examinedAt = now
        if unvalidated.count >= Self.maxUnvalidated { unvalidated.removeAll(keepingCapacity: true) }
        // The second byte 192 to 223 identifies RTCP (RFC 5761 §4).
        if (192...223).contains(datagram[1]) { return receiveUnvalidatedReport(datagram, on: path, now: now) }
        let ssrc = UnsafeRawBufferPointer(datagram).bigEndian32(at: 8)
        guard let peer = all.first(where: { $0.half.sends(ssrc) }) else { return }
        unvalidated[path] = peer
        _ = peer.transport.receiveUnvalidated(datagram, on: path, now: now, sink: output.sink)
    }

    /// Finds the subscriber that sent a report. Browsers use the same SSRC in all reports, so only a subscriber's key
    /// identifies it. Only subscribers that have been silent for 200 ms are tried. Without transport-wide feedback
    /// nearly all subscribers can be silent that long; later reports then try the others.
    private func receiveUnvalidatedReport(_ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime) {
        // A connectivity check of this address may be in progress. Its entry is needed to match the answer, so
        // restore the entry if no subscriber's key fits.
        let former = unvalidated[path]
        if former?.side == .send { return }
        withUnsafeTemporaryAllocation(byteCount: datagram.count, alignment: 8) { copy in
            var tries = 0
            let start = lastTried
            for step in 1...max(1, all.count) where !all.isEmpty && tries < Self.maxTries {
                let index = (start + step) % all.count
                let peer = all[index]
                guard peer.side == .receive, peer.heardAt.map({ now - $0 >= Self.silence }) ?? false else { continue }
                tries += 1
                if tries == Self.maxTries { lastTried = index }
                // Decryption overwrites its input, so use a copy.
                copy.copyMemory(from: UnsafeRawBufferPointer(datagram))
                unvalidated[path] = peer
                if peer.transport.receiveUnvalidated(copy, on: path, now: now, sink: output.sink) { return }
            }
            unvalidated[path] = former
        }
    }
}
