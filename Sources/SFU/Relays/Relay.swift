import RTC

/// One end of a relay: a connection with a media loop of another node. Media goes in both directions: `RelaySender` sends the feeds of
/// this node's publishers, and `RelayReceiver` receives the streams of the other node's.
///
/// Each attempt to connect has a transport, a sender and a receiver of its own. All state about streams is discarded with them.
final class Relay {
    let id: RelayID
    private let peer: RelayPeer
    private let output: RouterOutput
    private let negotiator: Negotiator
    private var link: RelayLink
    /// The connection of the present attempt.
    private var connection: RelayConnection?
    /// The other end's credentials, and the attempt that they belong to.
    private var remote: (attempt: UInt32, credentials: ICECredentials)?
    private var sender: RelaySender?
    private(set) var receiver: RelayReceiver?
    private var heartbeatAt: MediaTime?
    /// The clients of the other node that this node demands, in this attempt and in later ones.
    private var pulled = ClientOrder()
    /// The limits that were reported.
    private var reachedLimits: Set<RelayLimit> = []
    /// The number of layers of each video that were last reported as not offered.
    private var reportedLevel = 0
    private let host: Host
    private let report: (RelayEvent) -> Void

    /// The parts of the router that a relay connects.
    struct Host {
        let feeds: FeedTable
        let ingress: Ingress
        let streams: Streams
        /// The index of the router's media loop.
        let loop: Int
    }

    init(
        _ id: RelayID, _ peer: RelayPeer, _ host: Host, _ output: RouterOutput, _ negotiator: Negotiator,
        now: MediaTime, report: @escaping (RelayEvent) -> Void
    ) {
        (self.id, self.peer, self.host, self.output) = (id, peer, host, output)
        (self.negotiator, self.report) = (negotiator, report)
        link = RelayLink(now: now)
        open(attempt: 1)
    }

    /// The username fragment in the other end's checks.
    var ufrag: String? { connection?.transport.local.ufrag }

    func isValidated(_ path: Path) -> Bool { connection?.transport.isValidated(path) ?? false }

    /// Whether media can be sent over this path now.
    func uses(_ path: Path) -> Bool { link.hasConnection && connection?.transport.selectedPath == path }

    // MARK: Attempts

    private func carryOut(_ effects: [RelayLink.Effect], now: MediaTime) {
        for effect in effects {
            switch effect {
            case .open(let attempt): open(attempt: attempt)
            case .connect: connect()
            case .started: start(now: now)
            case .paused:
                sender?.pause()
                receiver?.pause()
                report(.connected(id, false))
            case .ended: end(now: now)
            case .closed:
                connection?.transport.close(sink: output.sink)
                connection = nil
            }
        }
    }

    private func open(attempt: UInt32) {
        connection?.transport.close(sink: output.sink)
        // The relay's own key, which is no client's.
        let key = Key(high: UInt64(id.index), low: UInt64(id.node))
        let link = negotiator.makeRelayLink(key, isController: peer.isController)
        connection = RelayConnection(link: link, output: output) { [unowned self] in reached($0) }
        report(.credentials(id, attempt: attempt, link.transport.local))
    }

    private func reached(_ limit: RelayLimit) {
        if reachedLimits.insert(limit).inserted { report(.full(id, limit)) }
    }

    private func connect() {
        guard let remote, remote.attempt == link.attempt, let transport = connection?.transport else { return }
        transport.setRemote(remote.credentials, fingerprint: peer.fingerprint)
        for path in peer.paths { transport.add(path, priority: 1) }
    }

    private func start(now: MediaTime) {
        guard let connection else { return }
        sender = RelaySender(connection, feeds: host.feeds, carriesPublishers: Int(id.index) == host.loop)
        let receiver = RelayReceiver(connection, ingress: host.ingress, streams: host.streams)
        self.receiver = receiver
        heartbeatAt = nil
        for client in pulled.all { receiver.pull(client, now: now) }
        report(.connected(id, true))
        // A new attempt to connect offers all layers. Nothing is reported until it succeeds, because no layer crosses before that.
        noteThinning()
    }

    private func end(now: MediaTime) {
        sender?.end()
        receiver?.end(now: now)
        (sender, receiver) = (nil, nil)
        report(.connected(id, false))
    }

    func close(now: MediaTime) { carryOut(link.handle(.close, now: now), now: now) }

    /// The other end's credentials have arrived.
    func receive(_ credentials: ICECredentials, attempt: UInt32, now: MediaTime) {
        guard attempt >= link.attempt else { return }
        remote = (attempt, credentials)
        carryOut(link.handle(.credentials(attempt: attempt), now: now), now: now)
    }

    // MARK: Demand

    func pull(_ client: Key, now: MediaTime) {
        guard pulled.insert(client) else { return }
        receiver?.pull(client, now: now)
    }

    func stopPulling(_ client: Key, now: MediaTime) {
        pulled.remove(client)
        receiver?.stopPulling(client, now: now)
    }

    // MARK: Datagrams

    func receive(_ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime, arrivedAt: MediaTime) {
        guard let transport = connection?.transport else { return }
        switch transport.receive(datagram, on: path, now: now, sink: output.sink) {
        case .nothing: noteState(now: now)
        case .rtp(let length):
            heard(now: now)
            let bytes = UnsafeRawBufferPointer(rebasing: datagram[..<length])
            receiver?.receive(bytes, spare: datagram.count - length, now: now, arrivedAt: arrivedAt)
        case .rtcp(let length):
            heard(now: now)
            receiveControl(UnsafeRawBufferPointer(rebasing: datagram[..<length]), now: now)
        }
    }

    private func noteState(now: MediaTime) {
        if connection?.transport.state == .connected { carryOut(link.handle(.connected, now: now), now: now) }
    }

    private func heard(now: MediaTime) {
        guard link.heard(now: now) else { return }
        sender?.resume(now: now)
        receiver?.resume()
        report(.connected(id, true))
    }

    private func receiveControl(_ bytes: UnsafeRawBufferPointer, now: MediaTime) {
        guard let compound = RTCPCompound(bytes) else { return output.counters.malformed &+= 1 }
        for packet in compound {
            switch packet {
            case .application(let packet):
                guard let message = RelayMessage(packet) else {
                    output.counters.malformed &+= 1
                    continue
                }
                receive(message, now: now)
            case .nack(let nack): sender?.retransmit(nack, now: now)
            case .pli(let request): sender?.requestKeyframe(request.media, .refresh, now: now)
            case .fir(let request):
                for entry in request.entries { sender?.requestKeyframe(entry.ssrc, .start, now: now) }
            case .senderReport(let report): receiver?.receive(report, now: now)
            case .malformed: output.counters.malformed &+= 1
            case .receiverReport(let report): sender?.receive(report, now: now)
            case .sourceDescription, .bye, .remb, .transportFeedback, .unknown: break
            }
        }
    }

    private func receive(_ message: RelayMessage, now: MediaTime) {
        switch message {
        case .heartbeat: break
        case .demand(let demand): sender?.receive(demand, now: now)
        case .end(let client, let number): sender?.end(client, number: number)
        case .listing(let part): receiver?.receive(part, now: now)
        case .acknowledgement(let confirmed):
            switch confirmed.state {
            case .demand: receiver?.acknowledged(confirmed.client, confirmed.number, now: now)
            case .listing: sender?.acknowledged(confirmed.client, confirmed.number)
            }
        }
    }

    private func noteThinning() {
        let level = sender?.thinning.level ?? 0
        guard level != reportedLevel else { return }
        reportedLevel = level
        report(.thinned(id, layers: level))
    }

    // MARK: Time

    /// Sends the packets that have arrived since the previous flush.
    func forward() { sender?.flush() }

    func flush(now: MediaTime) { receiver?.flush(now: now) }

    func tick(now: MediaTime) {
        carryOut(link.handleTimeout(now: now), now: now)
        if let transport = connection?.transport, let due = transport.nextTimeout, due <= now {
            transport.handleTimeout(now: now, sink: output.sink)
            noteState(now: now)
        }
        guard link.hasConnection, let connection else { return }
        if heartbeatAt.map({ now - $0 >= RelayLink.heartbeat }) ?? true {
            heartbeatAt = now
            connection.send(.heartbeat)
        }
        sender?.tick(now: now)
        noteThinning()
        receiver?.tick(now: now)
    }
}
