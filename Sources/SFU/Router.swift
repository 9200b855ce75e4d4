import RTC

/// The selective forwarding unit (RFC 7667 §3.7): takes datagrams of many clients, and sends each media packet on to
/// whoever subscribes to it.
///
/// It owns the peer connections, what is published and who subscribes; it has no sockets and no clock, and who may do
/// what was decided before (by the session). One loop owns a router. Invariant: a packet reaches a client only through
/// a subscription of that client to a publication that forwards it, and everything a client receives was encrypted for
/// it alone.
///
/// The loop gives it all datagrams that have arrived with `receive`, then calls `flush`; between the two the datagrams'
/// memory must stay as it is. That way each subscriber gets a burst in one piece, which is cheap to send.
public final class Router {
    let settings: RouterSettings
    let sink: any MediaSink
    let certificate: DTLSCertificate
    var generator: any RandomNumberGenerator

    /// By what the connection checks of a client begin with: our own username fragment (RFC 8445 §7.3).
    var peersByUfrag: [String: Peer] = [:]
    /// By the address at the other end, once it was validated.
    var peersByPath: [Path: Peer] = [:]
    var clients: [Key: Client] = [:]
    /// All connections of all clients, for what time does to them.
    var peers: [Peer] = []
    var publications: [Key: Publication] = [:]
    var speakers: [String: ActiveSpeaker] = [:]
    var speakersAt: MediaTime?
    /// Of no meaning: what `warm` has read must seem to be of use.
    var warmth: UInt64 = 0
    var touched: [IncomingEncoding] = []
    /// To whose video somebody has just subscribed, and waits for a keyframe.
    var urgent: [Peer] = []
    /// Sequence numbers, kept for its memory.
    var lost: [UInt16] = []
    var events: [RouterEvent] = []
    public internal(set) var counters = RouterCounters()

    /// A client connection's two peer connections.
    struct Client {
        var send: Peer?
        var receive: Peer?
        var published: Set<Key> = []
        var subscribed: Set<Key> = []
    }

    public init(
        settings: RouterSettings, certificate: DTLSCertificate, sink: any MediaSink,
        generator: any RandomNumberGenerator
    ) {
        (self.settings, self.certificate, self.sink, self.generator) = (settings, certificate, sink, generator)
        touched.reserveCapacity(256)
    }

    public var isIdle: Bool { peersByUfrag.isEmpty }
    public var peerCount: Int {
        clients.values.reduce(0) { $0 + ($1.send == nil ? 0 : 1) + ($1.receive == nil ? 0 : 1) }
    }

    /// What happened since the last time.
    public func takeEvents() -> [RouterEvent] {
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    // MARK: Datagrams

    /// A datagram, decrypted in place. Its memory must stay until `flush`.
    public func receive(_ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime) {
        counters.datagramsIn &+= 1
        guard let first = datagram.first else { return }
        let peer: Peer
        if let known = peersByPath[path] {
            peer = known
            // The same address can begin anew with another connection: the check says which.
            if first < 4, let other = self.peer(checking: datagram), other !== known {
                return receive(datagram, for: other, on: path, now: now)
            }
        } else if first < 4, let found = self.peer(checking: datagram) {
            peer = found
        } else {
            counters.strayDatagrams &+= 1
            return
        }
        receive(datagram, for: peer, on: path, now: now)
    }

    private func peer(checking datagram: UnsafeMutableRawBufferPointer) -> Peer? {
        guard let username = STUN.username(of: UnsafeRawBufferPointer(datagram)) else { return nil }
        return peersByUfrag[String(decoding: username.local, as: UTF8.self)]
    }

    private func receive(
        _ datagram: UnsafeMutableRawBufferPointer, for peer: Peer, on path: Path, now: MediaTime
    ) {
        switch peer.transport.receive(datagram, on: path, now: now, sink: sink) {
        case .nothing:
            // Checks and handshakes, seldom: the only ways in which a path or the state changes.
            note(peer, path)
        case .rtp(let length):
            receiveMedia(UnsafeRawBufferPointer(rebasing: datagram[..<length]), from: peer, now: now)
        case .rtcp(let length):
            receiveControl(UnsafeRawBufferPointer(rebasing: datagram[..<length]), from: peer, now: now)
        }
    }

    /// Remembers where a peer is, and tells when it can be reached, when it cannot, and of its failure, once each.
    private func note(_ peer: Peer, _ path: Path?) {
        peer.restsUntil = MediaTime(nanoseconds: .min)
        if let path, peersByPath[path] !== peer, peer.transport.isValidated(path), !isHeld(path) {
            peersByPath[path] = peer
            peer.paths.removeAll { $0 == path }
            peer.paths.append(path)
            forgetOldPaths(of: peer)
        }
        let isConnected = peer.transport.state == .connected
        if isConnected != peer.wasConnected {
            peer.wasConnected = isConnected
            events.append(.connected(client: peer.client, peer.side, isConnected))
        }
        if case .failed(.dtls(let failure)) = peer.transport.state, !peer.hasFailed {
            peer.hasFailed = true
            let reason = failure == .fingerprint ? PeerFailure.fingerprint : .handshake
            events.append(.failed(client: peer.client, peer.side, reason))
        }
    }

    /// Whether somebody's media flows over this path: a check with a forged source address must not cut that off. Who
    /// is silent there for long enough (RFC 7675) loses it.
    private func isHeld(_ path: Path) -> Bool {
        guard let holder = peersByPath[path] else { return false }
        return holder.transport.state == .connected && holder.transport.selectedPath == path
    }

    private func forgetOldPaths(of peer: Peer) {
        guard peer.paths.count > Peer.mostPaths,
            let index = peer.paths.firstIndex(where: { $0 != peer.transport.selectedPath })
        else { return }
        let oldest = peer.paths.remove(at: index)
        if peersByPath[oldest] === peer { peersByPath[oldest] = nil }
    }

    /// Whether the transport at the other end of this path is one we know: a TCP connection that is not is closed.
    public func knows(_ path: Path) -> Bool { peersByPath[path] != nil }

    /// A TCP connection is gone.
    public func pathClosed(_ path: Path) {
        guard let peer = peersByPath.removeValue(forKey: path) else { return }
        peer.paths.removeAll { $0 == path }
        peer.restsUntil = MediaTime(nanoseconds: .min)
        if path.isTCP { peer.closedSockets.append(path.socket) }
    }

    // MARK: Time

    /// Everything that is due. Call it every `interval` while the router is not idle.
    public func tick(now: MediaTime) {
        for peer in peers { tick(peer, now: now) }
        updateActiveSpeakers(now: now)
    }

    /// Handshakes repeat after 50 ms, losses are reported after 20.
    public static let interval = MediaInterval.milliseconds(20)
    /// What a subscriber is told, and reports to it, can wait as long; there are many of them.
    static let attentionInterval = MediaInterval.milliseconds(100)

    private func tick(_ peer: Peer, now: MediaTime) {
        guard peer.restsUntil <= now else { return }
        while let socket = peer.closedSockets.popLast() {
            peer.transport.remove(socket: socket, now: now)
            note(peer, nil)
        }
        if let due = peer.transport.nextTimeout, due <= now {
            peer.transport.handleTimeout(now: now, sink: sink)
            note(peer, peer.transport.selectedPath)
        }
        guard peer.transport.isWritable else { return }
        switch peer.side {
        case .send: sendFeedback(to: peer, now: now)
        case .receive:
            updateCongestionPause(of: peer, now: now)
            reportPauses(of: peer, now: now)
            sendReports(to: peer, now: now)
            // Only a TCP connection has a queue that grows.
            guard peer.transport.selectedPath?.isTCP == false else { return }
            let rest = now + Self.attentionInterval
            peer.restsUntil = peer.transport.nextTimeout.map { min($0, rest) } ?? rest
        }
    }
}

/// Where the router's datagrams go.
public protocol MediaSink: DatagramSink {
    /// How long what is queued for this path has been waiting. A datagram socket has no queue to speak of.
    func queuedTime(on path: Path) -> MediaInterval
}

public struct RouterSettings: Sendable {
    /// Where clients reach us, in all descriptions; the best first.
    public var candidates: [Candidate]
    /// A subscriber whose queue is longer than this has its video paused, until half of it is gone.
    public var longestQueue = MediaInterval.milliseconds(500)
    /// What the wall clock showed when `MediaTime` was 0.
    public var clockOrigin: NTPTime
    public init(candidates: [Candidate], clockOrigin: NTPTime) {
        (self.candidates, self.clockOrigin) = (candidates, clockOrigin)
    }
}

/// For metrics, over all peers.
public struct RouterCounters: Equatable, Sendable {
    public var datagramsIn: UInt64 = 0
    /// Of nobody we know.
    public var strayDatagrams: UInt64 = 0
    public var packetsIn: UInt64 = 0
    public var packetsForwarded: UInt64 = 0
    public var packetsDropped: UInt64 = 0
    public var packetsRepeated: UInt64 = 0
    public var packetsRecovered: UInt64 = 0
    public var nacksSent: UInt64 = 0
    public var nacksReceived: UInt64 = 0
    public var keyframesRequested: UInt64 = 0
    public var malformed: UInt64 = 0

    public init() {}
}
