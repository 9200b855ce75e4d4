import RTC

/// A selective forwarding unit (RFC 7667 §3.7). It receives the datagrams of many clients and forwards each media packet to the
/// stream's subscribers.
///
/// The router consists of parts that know as little of each other as possible. `PeerTable` finds the peer connection
/// that a datagram belongs to. A connection's half handles its media: a `Publisher` belongs to the `Ingress`, which
/// fills feeds, and a `Subscriber` to the `Egress`, which reads them. `Streams` connects the two.
///
/// ```
///  datagrams → PeerTable → Publisher  → Ingress → Feed → Egress → datagrams
///                        ↘ Subscriber ───────────────────↗
/// ```
///
/// Routers of other event loops read the feeds through `Pipes`, those of other nodes through `Relays`.
///
/// The router is owned by one event loop. It has no sockets and no clock. It does not decide what each client may do,
/// because signaling has already decided that. Invariant: a packet reaches a client only through that client's
/// subscription to a publication that forwards it, and everything a client receives was encrypted for that client
/// alone.
///
/// The loop passes all datagrams that have arrived to `receive` and then calls `flush`. The datagrams' memory must stay
/// unchanged until then. Each subscriber then gets a burst in one batch, which is efficient to send.
public final class Router {
    let output: RouterOutput
    let feeds = FeedTable()
    let speakers: Speakers
    let crowds: Crowds
    let ingress: Ingress
    let egress: Egress
    let streams: Streams
    let peers: PeerTable
    let negotiator: Negotiator
    let capacity: CapacityMeter
    let pipes: Pipes
    let relays: Relays
    /// Where recorded streams are written to; nil until one is recorded.
    var recordings: RecordingWriter?
    private var voicesSentAt: MediaTime?
    /// The index in `peers.all` at which the next tick starts. It advances when the egress's budget for waiting packets
    /// is used up, so that all peers get their turn.
    private var firstInTick = 0

    /// - Parameters:
    ///   - pipes: connects the router with those of other event loops; nil if there is only one.
    ///   - loop: the index of the router's event loop.
    public init(
        settings: RouterSettings, certificate: DTLSCertificate, sink: any MediaSink,
        generator: any RandomNumberGenerator, pipes rings: PipeRings? = nil, loop: Int = 0
    ) {
        output = RouterOutput(sink: sink)
        pipes = Pipes(rings, loop: loop, output: output, feeds: feeds)
        speakers = Speakers(output: output)
        crowds = Crowds(limit: settings.loudestStreams)
        ingress = Ingress(settings: settings, output: output, feeds: feeds, speakers: speakers, pipes: pipes)
        egress = Egress(settings: settings, output: output)
        streams = Streams(feeds: feeds, egress: egress, speakers: speakers, crowds: crowds)
        peers = PeerTable(output: output)
        negotiator = Negotiator(settings: settings, certificate: certificate, generator: generator)
        capacity = CapacityMeter(settings: settings, output: output)
        relays = Relays(
            output: output, negotiator: negotiator,
            host: Relay.Host(feeds: feeds, ingress: ingress, streams: streams, loop: loop))
    }

    public var counters: RouterCounters { output.counters }
    /// Whether nothing happens without datagrams or requests, so that ticks can stop.
    public var isIdle: Bool {
        peers.isEmpty && relays.isEmpty && capacity.isSettled && (!pipes.isConnected || speakers.isSettled)
    }
    public var peerCount: Int { peers.all.count }
    /// Whether the bitrate that the server sends has reached `settings.totalBitrate` and has not dropped clearly below
    /// it since. While this is true, new connections should be refused.
    public var isFull: Bool { capacity.isFull }

    /// Returns the events since the previous call and removes them.
    public func takeEvents() -> [RouterEvent] { output.takeEvents() }

    /// Returns whether the client has a peer connection for this side.
    public func hasConnection(_ client: Key, _ side: Side) -> Bool { peers.peer(client, side) != nil }

    /// Returns the bitrate that the connection to a client carries, in bits per second. Returns nil if nothing limits
    /// the bitrate, or if the client sends no feedback from which it can be estimated.
    public func estimate(of client: Key) -> Int? {
        egress.subscriber(client)?.downlink?.control.estimate.map { Int(clamping: $0.bitsPerSecond) }
    }

    // MARK: Datagrams

    /// Processes a datagram, which is decrypted in place. The datagram's memory must stay valid until `flush`.
    /// - Parameter arrivedAt: when the datagram arrived, if that was before `now`. Publishers' bandwidth estimation
    ///   needs the times between arrivals, not between the iterations of a busy loop.
    public func receive(
        _ datagram: UnsafeMutableRawBufferPointer, on path: Path, now: MediaTime, arrivedAt: MediaTime? = nil
    ) {
        output.counters.datagramsIn &+= 1
        guard !datagram.isEmpty else { return }
        guard let peer = peers.peer(of: datagram, on: path) else {
            if relays.receive(datagram, on: path, now: now, arrivedAt: arrivedAt ?? now) { return }
            output.counters.strayDatagrams &+= 1
            return peers.receiveUnvalidated(datagram, on: path, now: now)
        }
        switch peer.transport.receive(datagram, on: path, now: now, sink: output.sink) {
        case .nothing:
            // Look for changes only after connectivity checks and handshakes. These are rare, and nothing else
            // changes the path or the state.
            note(peer, path)
        case .rtp(let length):
            let bytes = UnsafeRawBufferPointer(rebasing: datagram[..<length])
            peer.half.receiveMedia(bytes, spare: datagram.count - length, now: now, arrivedAt: arrivedAt ?? now)
        case .rtcp(let length):
            receiveControl(UnsafeRawBufferPointer(rebasing: datagram[..<length]), from: peer, now: now)
        }
    }

    /// Records a peer's path, and the changes of its state. A check with a forged source address cannot take over the path of a relay.
    private func note(_ peer: Peer, _ path: Path?) {
        peers.note(peer, path.flatMap { relays.isInUse($0) ? nil : $0 })
    }

    func receiveControl(_ bytes: UnsafeRawBufferPointer, from peer: Peer, now: MediaTime) {
        guard let compound = RTCPCompound(bytes) else {
            output.counters.malformed &+= 1
            return
        }
        peer.heard(now: now)
        for packet in compound {
            if case .malformed = packet { output.counters.malformed &+= 1 }
            peer.half.receiveControl(packet, now: now)
        }
    }

    /// Returns whether this path belongs to a peer. The event loop closes TCP connections for which this is false.
    public func knows(_ path: Path) -> Bool { peers.knows(path) }

    /// Removes the path of a closed TCP connection. The next tick removes it from the peer's transport.
    public func pathClosed(_ path: Path) { peers.pathClosed(path) }

    /// Forwards the packets that have arrived since the previous flush, also those from other event loops. At most
    /// `settings.longestFlush` packets of video are sent. If `hasMore` is true afterwards, the rest follows in the next
    /// flush. In either case, the memory of all datagrams may be reused after the call.
    public func flush(now: MediaTime) {
        output.now = now
        // The other loops can start while this one forwards.
        pipes.commit()
        pipes.receive(streams, now: now) { receive($1, from: $0, now: now) }
        // Relays come first, because their packets take longer to reach subscribers.
        relays.forward()
        egress.flush(now: now)
        // Before keyframes are requested: an encoding that is demanded only now gets its SSRC.
        relays.flush(now: now)
        ingress.sendUrgentRequests(now: now)
        pipes.sendUrgentRequests(now: now)
        pipes.release()
        pipes.commit()
        recordings?.commit()
    }

    /// Whether packets wait for the next flush.
    public var hasMore: Bool { egress.hasMore }

    /// Returns the earliest arrival time of the packets that were forwarded to their first subscriber since the
    /// previous call; nil if there are none. The result shows how long one stream waits for the others, so packets
    /// that waited only for earlier packets of the same encoding do not count.
    public func takeOldestArrival() -> MediaTime? { egress.takeOldestArrival() }

    // MARK: Time

    /// Sets the time of the requests that follow, such as `update`. `flush` and `tick` set it too.
    public func advance(to now: MediaTime) { output.now = now }

    /// The time between ticks, short enough for DTLS retransmissions after 100 ms and NACKs after 20 ms.
    public static let interval = MediaInterval.milliseconds(20)

    /// Performs all work that is due. Must be called every `interval` while the router is not idle.
    public func tick(now: MediaTime) {
        output.now = now
        egress.beginTick()
        let (all, first) = (peers.all, firstInTick)
        for offset in all.indices {
            let index = (first + offset) % all.count
            let hadBudget = egress.waitingBudget > 0
            tick(all[index], now: now)
            if hadBudget, egress.waitingBudget == 0 { firstInTick = (index + 1) % all.count }
        }
        relays.tick(now: now)
        pipes.tick(now: now)
        sendVoices(now: now)
        speakers.update(streams, pipes, now: now)
        crowds.update(streams, now: now)
        capacity.update(egress, streams, pipes, now: now)
        pipes.commit()
    }

    private func tick(_ peer: Peer, now: MediaTime) {
        guard peer.half.idleUntil <= now else { return }
        peer.removeClosedSockets(now: now) { peers.note(peer, nil) }
        if let due = peer.transport.nextTimeout, due <= now {
            peer.transport.handleTimeout(now: now, sink: output.sink)
            note(peer, peer.transport.selectedPath)
        }
        if peer.transport.isWritable { peer.half.tick(now: now) }
    }

    // MARK: Other event loops

    /// Whether packets or messages of other event loops have arrived. The next flush takes them.
    public var hasPiped: Bool { pipes.hasMore }

    /// Must be called before the event loop waits. From then until `endWait`, other loops wake this one when they send
    /// something.
    /// - Returns: false if something has arrived already, so that the loop must not wait.
    public func beginWait() -> Bool { pipes.beginWait() }

    /// Must be called after the event loop has waited.
    public func endWait() { pipes.endWait() }

    private func receive(_ message: PipeMessage, from loop: Int, now: MediaTime) {
        switch message {
        case .voices(let voices): streams.hear(voices, now: now)
        case .speakers(let active): speakers.follow(active, streams)
        case .sent(let sent): capacity.receive(sent, from: loop, now: now)
        // `Pipes` and `RouterPipe` handle these, and routers do not send each other what is recorded.
        case .track, .tracks, .restart, .pause, .end, .demand, .keyframe, .recorded: break
        }
    }

    /// Sends the other routers how loud this router's publishers are, so that all of them choose the active speaker and
    /// the loudest audio from the same voices.
    private func sendVoices(now: MediaTime) {
        guard pipes.isConnected, voicesSentAt.map({ now - $0 >= LoudestAudio.interval }) ?? true else { return }
        voicesSentAt = now
        pipes.send(voices: streams.voices)
    }

    // MARK: Connections

    /// Handles a client's offer for one of its two peer connections. The offer creates a new connection, changes the
    /// transceivers, or restarts ICE (RFC 8829 §5.1 to §5.3).
    /// - Returns: the answer as SDP. Throws if the offer is malformed or cannot be answered.
    public func offer(_ client: Key, _ side: Side, sdp: String, now: MediaTime) throws(SDPError) -> String {
        let offer = try SessionDescription(parsing: sdp)
        let present = peers.peer(client, side)
        if let present, present.originSessionID == "\(offer.origin.sessionID)", !present.isOver {
            let answer = try negotiator.answer(offer, to: present, peers)
            present.half.enter()
            relink(present)
            return answer
        }
        // Store the peer only if the offer can be answered.
        let peer = negotiator.makePeer(client, side, for: offer) { link in
            side == .send
                ? Publisher(link: link, ingress: ingress) as any PeerHalf : Subscriber(link: link, egress: egress)
        }
        let answer = try negotiator.answer(offer, to: peer, peers)
        if let present { end(present) }
        peers.add(peer)
        peer.half.enter()
        relink(peer)
        return answer
    }

    private func relink(_ peer: Peer) { streams.relinkAll(peer.client, peer.side) }

    /// Closes one of the client's two peer connections.
    public func close(_ client: Key, _ side: Side) {
        if let peer = peers.peer(client, side) { end(peer) }
    }

    private func end(_ peer: Peer) {
        peers.end(peer)
        crowds.audioChanged()
    }

    /// Removes a client with all its streams, subscriptions and connections.
    public func leave(_ client: Key) {
        streams.leave(client)
        close(client, .send)
        close(client, .receive)
    }

    // MARK: Streams

    /// Publishes a stream, or changes the transceivers and kinds of media of a stream that is already published.
    /// Ignored if another client has published the stream.
    /// - Parameter alwaysHeard: whether the audio arrives over a relay even while nobody subscribes to it, because this node
    ///   chooses the session's active speaker.
    public func publish(
        _ stream: Key, session: String, client: Key, mids: Mids, audio: Bool, video: Bool, alwaysHeard: Bool = false
    ) {
        streams.publish(
            stream, session: session, client: client, mids: mids, audio: audio, video: video, alwaysHeard: alwaysHeard)
    }

    /// Changes whether the audio and video of a stream are forwarded.
    public func update(_ stream: Key, audio: Bool, video: Bool) { streams.update(stream, audio: audio, video: video) }

    public func unpublish(_ stream: Key) { streams.unpublish(stream) }

    /// Subscribes to a stream, or changes the transceivers and kinds of media of an existing subscription. Ignored if
    /// the stream is not published.
    /// - Parameters:
    ///   - audio: whether the client receives the stream's audio.
    ///   - video: whether the client receives the stream's video.
    ///   - preference: selects the encoding if the publisher sends several.
    public func subscribe(
        _ stream: Key, client: Key, mids: Mids, audio: Bool, video: Bool,
        preferring preference: VideoPreference = VideoPreference()
    ) {
        streams.subscribe(stream, client: client, mids: mids, audio: audio, video: video, preferring: preference)
    }

    public func unsubscribe(_ stream: Key, client: Key) { streams.unsubscribe(stream, client: client) }
}
