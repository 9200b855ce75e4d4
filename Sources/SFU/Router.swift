import RTC

/// A selective forwarding unit (RFC 7667 §3.7). It receives the datagrams of many clients and forwards each media packet to the
/// stream's subscribers.
///
/// The router owns the peer connections, publications and subscriptions, and is itself owned by one event loop. It
/// has no sockets and no clock. It does not decide what each client may do, because signaling has already decided
/// that. Invariant: a packet reaches a client only through that client's subscription to a publication that forwards
/// it, and everything a client receives was encrypted for that client alone.
///
/// The loop passes all datagrams that have arrived to `receive` and then calls `flush`. The datagrams' memory must stay
/// unchanged until then. Each subscriber then gets a burst in one batch, which is efficient to send.
public final class Router {
    let settings: RouterSettings
    let sink: any MediaSink
    let certificate: DTLSCertificate
    var generator: any RandomNumberGenerator

    /// Maps each local username fragment to its peer. The fragment is the beginning of the username in a client's
    /// connectivity checks (RFC 8445 §7.3).
    var peersByUfrag: [String: Peer] = [:]
    /// Maps each validated path to its peer.
    var peersByPath: [Path: Peer] = [:]
    /// Maps each path that is not validated to the peer whose media or reports arrived over it, until the client
    /// answers a check over the path.
    var unvalidatedPaths: [Path: Peer] = [:]
    /// When a datagram from an unknown address was last examined.
    var unvalidatedPathsAt: MediaTime?
    /// The index in `peers` at which the last search stopped because it had tried enough keys. A report from an
    /// unknown address does not say which peer sent it, so the peers' keys are tried in turn.
    var unvalidatedPathsTried = 0
    var clients: [Key: Client] = [:]
    /// All connections of all clients, for `tick`.
    var peers: [Peer] = []
    var publications: [Key: Publication] = [:]
    var speakers: [String: ActiveSpeaker] = [:]
    var speakersAt: MediaTime?
    /// The audio tracks of each session that has more of them than can be forwarded.
    var crowds: [[IncomingTrack]] = []
    /// Whether `crowds` must be collected again.
    var audioChanged = false
    var loudestAt: MediaTime?
    var capacity = CapacityMeter()
    /// The arrival time of the datagram being processed.
    var arrivedAt = MediaTime(nanoseconds: 0)
    /// The arrival time of the oldest packet forwarded since `takeOldestArrival`; nil if there is none.
    var oldestArrival: MediaTime?
    /// The sum of the values read in `prefetch`. It has no meaning, but keeps the compiler from removing the reads.
    var warmth: UInt64 = 0
    /// Encodings with packets that have not been forwarded yet.
    var touched: [IncomingEncoding] = []
    /// The number of waiting packets that may still be sent in this tick.
    var waitingBudget = 0
    /// The index in `peers` at which the next tick starts. It advances when `waitingBudget` is used up, so that all
    /// peers get their turn.
    private var firstInTick = 0
    /// Publishers to which keyframe requests are sent at the next flush, if they are due, instead of at the next tick.
    var urgent: [Peer] = []
    /// The lost sequence numbers in one NACK, stored here to reuse the memory.
    var lost: [UInt16] = []
    var events: [RouterEvent] = []
    /// A scratch buffer for the allocation: the videos that one subscriber requests.
    var demands: [VideoRequest] = []
    /// A scratch buffer for the allocation: the options for sending each of these videos.
    var steps: [LayerOption] = []
    public internal(set) var counters = RouterCounters()

    /// The two peer connections of a client, and the streams that it publishes and subscribes to.
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

    /// Returns the events since the previous call and removes them.
    public func takeEvents() -> [RouterEvent] {
        defer { events.removeAll(keepingCapacity: true) }
        return events
    }

    // MARK: Datagrams

    /// Processes a datagram, which is decrypted in place. The datagram's memory must stay valid until `flush`.
    /// - Parameter arrivedAt: when the datagram arrived, if that was before `now`. Publishers' bandwidth estimation
    ///   needs the times between arrivals, not between the iterations of a busy loop.
    public func receive(
        _ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime, arrivedAt: MediaTime? = nil
    ) {
        counters.datagramsIn &+= 1
        self.arrivedAt = arrivedAt ?? now
        guard let first = datagram.first else { return }
        let peer: Peer
        if let known = peersByPath[path] {
            peer = known
            // A client can start another connection from the same address. The username in the check identifies the connection.
            if first < 4, let other = self.peer(checking: datagram), other !== known {
                return receive(datagram, for: other, on: path, now: now)
            }
        } else if first < 4, let found = self.peer(checking: datagram) ?? unvalidatedPaths[path] {
            peer = found
        } else {
            counters.strayDatagrams &+= 1
            return receiveUnvalidated(datagram, on: path, now: now)
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
            // Look for changes only after connectivity checks and handshakes. These are rare, and nothing else
            // changes the path or the state.
            note(peer, path)
        case .rtp(let length):
            receiveMedia(UnsafeRawBufferPointer(rebasing: datagram[..<length]), from: peer, now: now)
        case .rtcp(let length):
            receiveControl(UnsafeRawBufferPointer(rebasing: datagram[..<length]), from: peer, now: now)
        }
    }

    /// Records a peer's path, and reports each connection, disconnection and failure once.
    private func note(_ peer: Peer, _ path: Path?) {
        peer.idleUntil = MediaTime(nanoseconds: .min)
        if let path, peersByPath[path] !== peer, peer.transport.isValidated(path), !isInUse(path) {
            peersByPath[path] = peer
            unvalidatedPaths[path] = nil
            peer.paths.removeAll { $0 == path }
            peer.paths.append(path)
            forgetOldPaths(of: peer)
        }
        noteMove(of: peer)
        let isWritable = peer.transport.isWritable
        if isWritable != peer.wasWritable {
            peer.wasWritable = isWritable
            for track in peer.outgoing { track.source?.needsSelection = true }
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

    /// Returns whether a connected peer uses this path. If so, a check with a forged source address cannot take the
    /// path over. A peer loses its path if it sends no checks for long enough (RFC 7675).
    private func isInUse(_ path: Path) -> Bool {
        guard let holder = peersByPath[path] else { return false }
        return holder.transport.state == .connected && holder.transport.selectedPath == path
    }

    private func forgetOldPaths(of peer: Peer) {
        guard peer.paths.count > Peer.maxPaths,
            let index = peer.paths.firstIndex(where: { $0 != peer.transport.selectedPath })
        else { return }
        let oldest = peer.paths.remove(at: index)
        if peersByPath[oldest] === peer { peersByPath[oldest] = nil }
    }

    /// Returns whether this path belongs to a peer. The event loop closes TCP connections for which this is false.
    public func knows(_ path: Path) -> Bool { peersByPath[path] != nil }

    /// Removes the path of a closed TCP connection. The next tick removes it from the peer's transport.
    public func pathClosed(_ path: Path) {
        guard let peer = peersByPath.removeValue(forKey: path) else { return }
        peer.paths.removeAll { $0 == path }
        peer.idleUntil = MediaTime(nanoseconds: .min)
        if path.isTCP { peer.closedSockets.append(path.socket) }
    }

    // MARK: Time

    /// Performs all work that is due. Must be called every `interval` while the router is not idle.
    public func tick(now: MediaTime) {
        waitingBudget = settings.longestFlush
        let (peers, first) = (peers, firstInTick)
        for offset in peers.indices {
            let index = (first + offset) % peers.count
            let hadBudget = waitingBudget > 0
            tick(peers[index], now: now)
            if hadBudget, waitingBudget == 0 { firstInTick = (index + 1) % peers.count }
        }
        updateActiveSpeakers(now: now)
        updateLoudest(now: now)
        updateCapacity(now: now)
    }

    /// The time between ticks, short enough for DTLS retransmissions after 100 ms and NACKs after 20 ms.
    public static let interval = MediaInterval.milliseconds(20)
    /// How often a UDP subscriber is checked for reports and events that are due. Longer than a tick, because checking
    /// all subscribers in every tick would take much CPU time.
    static let subscriberInterval = MediaInterval.milliseconds(100)

    private func tick(_ peer: Peer, now: MediaTime) {
        guard peer.idleUntil <= now else { return }
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
        case .send:
            sendFeedback(to: peer, now: now)
            judgeUplink(of: peer, now: now)
        case .receive:
            updateDownlink(of: peer, now: now)
            reportSubscriptions(of: peer, now: now)
            sendSenderReports(to: peer, now: now)
            // A TCP connection does not become idle, because its queue must be checked at every tick. UDP has no queue.
            guard peer.transport.selectedPath?.isTCP == false, !isProbing(peer) else { return }
            let rest = now + Self.subscriberInterval
            peer.idleUntil = peer.transport.nextTimeout.map { min($0, rest) } ?? rest
        }
    }
}

/// A destination for the router's datagrams.
public protocol MediaSink: DatagramSink {
    /// Returns how long the oldest queued data for this path has been waiting. A UDP socket has practically no queue.
    func queuedTime(on path: Path) -> MediaInterval
}

/// The settings of a router: its candidates, its limits and the origin of its clock.
public struct RouterSettings: Sendable {
    /// The server's ICE candidates, in order of preference, that all descriptions contain.
    public var candidates: [Candidate]
    /// The maximum time that data to a subscriber may wait in the queue before the video is paused. Video resumes at half this
    /// time.
    public var longestQueue = MediaInterval.milliseconds(500)
    /// The maximum number of video packets sent in one flush or tick, about 5 ms of work. It bounds how long other
    /// streams wait.
    public var longestFlush = 1000
    /// Whether to estimate the bitrate of each subscriber's connection, and to choose layers accordingly.
    public var controlsCongestion = true
    /// The maximum number of publishers in a session whose audio is forwarded. If there are more, only the loudest are.
    public var loudestStreams = Int.max
    /// The maximum bitrate sent to the subscribers of one session, in bits per second; nil for no limit.
    public var sessionBitrate: Int?
    /// The maximum bitrate sent to the subscribers of all sessions, in bits per second; nil for no limit.
    public var totalBitrate: Int?
    /// The wall-clock time at `MediaTime` 0.
    public var clockOrigin: NTPTime
    public init(candidates: [Candidate], clockOrigin: NTPTime) {
        (self.candidates, self.clockOrigin) = (candidates, clockOrigin)
    }
}

/// Counters for metrics, summed over all peers.
public struct RouterCounters: Equatable, Sendable {
    public var datagramsIn: UInt64 = 0
    /// The number of datagrams that belong to no known peer.
    public var strayDatagrams: UInt64 = 0
    public var packetsIn: UInt64 = 0
    public var packetsForwarded: UInt64 = 0
    public var packetsDropped: UInt64 = 0
    public var packetsRetransmitted: UInt64 = 0
    public var packetsRecovered: UInt64 = 0
    public var nacksSent: UInt64 = 0
    public var nacksReceived: UInt64 = 0
    public var keyframesRequested: UInt64 = 0
    public var malformed: UInt64 = 0
    /// The bytes of padding sent only to probe subscribers' connections.
    public var paddingBytes: UInt64 = 0
    /// The number of times that a video was paused because the subscriber's connection could not keep up, or was
    /// resumed afterward.
    public var changesForSlowness: UInt64 = 0
    /// The number of times that a video was paused because the subscriber could not decode the codec, or was resumed
    /// afterward.
    public var changesForCodec: UInt64 = 0
    /// The number of changes (layer switches, warnings and limits) reported because the bitrate that a subscriber's
    /// connection carries changed.
    public var changesForBandwidth: UInt64 = 0
    /// The number of layer switches made because the subscriber requested another size or frame rate.
    public var changesForSize: UInt64 = 0
    /// The number of layer switches made because the publisher started or stopped sending a layer.
    public var changesForPublisher: UInt64 = 0
    /// A gauge: the number of sessions that have reached their bandwidth limit. If the server has reached its own
    /// limit, this is the number of all sessions.
    public var fullSessions: UInt64 = 0

    public init() {}
}
