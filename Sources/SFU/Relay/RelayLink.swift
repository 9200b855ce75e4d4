import RTC

/// The connection of a router with the router of one other event loop: a ring in each direction, and the tracks that are
/// relayed over them.
final class RelayLink {
    /// The index of the other loop.
    let loop: Int
    private let bell: RelayBell
    private let writer: RelayRingWriter
    private let reader: RelayRingReader
    private let output: RouterOutput
    /// This router's tracks, by id.
    private var relays: [UInt32: TrackRelay] = [:]
    private var relaysByTrack: [ObjectIdentifier: TrackRelay] = [:]
    /// The other router's tracks, by their ids there.
    private var tracks: [UInt32: RelayedTrack] = [:]
    /// The other router's tracks for which keyframe requests are sent at the end of the flush.
    private var urgent: [RelayedTrack] = []
    private var nextID: UInt32 = 0

    /// The maximum number of records that are read from the ring in one flush, so that other work has its turn. As many
    /// packets fit in a lane (`Fanout.maxPending`).
    private static let maxItems = 256

    /// Returns nil if the two loops are the same.
    init?(from own: Int, to other: Int, in mesh: RelayMesh, output: RouterOutput) {
        guard let outgoing = mesh.ring(from: own, to: other), let incoming = mesh.ring(from: other, to: own) else {
            return nil
        }
        (loop, self.output) = (other, output)
        bell = mesh.bell(of: other)
        writer = RelayRingWriter(outgoing)
        reader = RelayRingReader(incoming)
    }

    /// Whether the routers may share a session: the other one has publishers, or subscribers of this router's.
    var isUsed: Bool { !tracks.isEmpty || relays.values.contains { $0.isWatched } }

    // MARK: Writing

    func send(_ message: RelayMessage) { writer.write(message) }

    /// - Returns: false if the ring is full.
    func send(_ packet: FeedPacket, track: UInt32, feed: Int, arrivedAt: MediaTime) -> Bool {
        writer.write(packet, track: track, feed: feed, arrivedAt: arrivedAt)
    }

    /// Makes everything that was sent visible to the other router, and wakes its loop if it waits.
    func publish() { if writer.publish() { bell.ring() } }

    /// Announces the tracks of one of this router's publishers.
    func announce(_ tracks: [FeedTrack], of client: Key) {
        let ids = tracks.map { track in
            let relay = relaysByTrack[ObjectIdentifier(track)] ?? add(track)
            relay.update()
            return relay.id
        }
        send(.tracks(of: client, ids))
    }

    private func add(_ track: FeedTrack) -> TrackRelay {
        nextID &+= 1
        let relay = TrackRelay(track, id: nextID, link: self, output: output)
        (relays[relay.id], relaysByTrack[ObjectIdentifier(track)]) = (relay, relay)
        track.add(relay)
        return relay
    }

    /// A track has ended.
    func remove(_ relay: TrackRelay) {
        relays[relay.id] = nil
        relaysByTrack[ObjectIdentifier(relay.track)] = nil
        send(.end(relay.id))
    }

    // MARK: Reading

    /// Whether the other router has sent anything that was not read.
    var hasMore: Bool { reader.hasMore }

    /// Reads what the other router has sent. The memory of the packets is valid until `release`.
    /// - Parameter other: handles the messages that do not concern a track of this link.
    func receive(now: MediaTime, _ other: (RelayMessage) -> Void) {
        for _ in 0..<Self.maxItems {
            switch reader.next() {
            case nil: return
            case .packet(let packet): tracks[packet.pointee.track]?.receive(packet, now: now)
            case .message(let message): if !handle(message, now: now) { other(message) }
            }
        }
    }

    func release() { reader.release() }

    /// - Returns: false if the message does not concern a track of this link.
    private func handle(_ message: RelayMessage, now: MediaTime) -> Bool {
        switch message {
        case .track(let id, let mid, let kind, let state):
            let track = tracks[id] ?? RelayedTrack(id: id, mid: mid, kind: kind, link: self)
            tracks[id] = track
            track.receive(state)
        case .restart(let id, let feed): tracks[id]?.restart(feed: feed)
        case .pause(let id): tracks[id]?.feedTrack.pause()
        case .end(let id):
            guard let track = tracks.removeValue(forKey: id) else { return true }
            urgent.removeAll { $0 === track }
            track.feedTrack.end()
        case .demand(let id, let demand): relays[id]?.receive(demand)
        case .keyframe(let id, let feed, let need): relays[id]?.receive(need, feed: feed, now: now)
        case .tracks, .voices, .speakers, .sent: return false
        }
        return true
    }

    /// Returns the other router's tracks with these ids.
    func feedTracks(_ ids: [UInt32]) -> [FeedTrack] { ids.compactMap { tracks[$0]?.feedTrack } }

    // MARK: Time

    func requestKeyframesSoon(of track: RelayedTrack) {
        // Many subscribers may start at once.
        if urgent.last !== track { urgent.append(track) }
    }

    /// Sends the keyframe requests that cannot wait for the next tick.
    func sendUrgentRequests(now: MediaTime) {
        guard !urgent.isEmpty else { return }
        for track in urgent { track.requestKeyframes(now: now) }
        urgent.removeAll(keepingCapacity: true)
    }

    /// - Parameter updates: whether to send the state of tracks that the other router watches, if it has changed.
    func tick(updates: Bool, now: MediaTime) {
        if updates { for relay in relays.values where relay.isWatched { relay.update() } }
        for track in tracks.values {
            track.update()
            track.requestKeyframes(now: now)
        }
    }
}
