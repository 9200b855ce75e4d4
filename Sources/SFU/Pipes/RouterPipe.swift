import RTC

/// The connection of a router with the router of one other event loop: a ring in each direction, and the tracks that are
/// piped over them.
final class RouterPipe {
    /// The index of the other loop.
    let loop: Int
    private let bell: PipeBell
    private let writer: PipeRingWriter
    private let reader: PipeRingReader
    private let output: RouterOutput
    /// This router's tracks, by id.
    private var outgoing: [UInt32: TrackPipe] = [:]
    private var outgoingByTrack: [ObjectIdentifier: TrackPipe] = [:]
    /// The other router's tracks, by their ids there.
    private var tracks: [UInt32: PipedTrack] = [:]
    /// The other router's tracks for which keyframe requests are sent at the end of the flush.
    private var urgent: [PipedTrack] = []
    private var nextID: UInt32 = 0

    /// The maximum number of records that are read from the ring in one flush, so that other work has its turn. As many
    /// packets fit in a lane (`Fanout.maxPending`).
    private static let maxItems = 256

    /// Returns nil if the two loops are the same.
    init?(from own: Int, to other: Int, in rings: PipeRings, output: RouterOutput) {
        guard let writing = rings.ring(from: own, to: other), let reading = rings.ring(from: other, to: own) else {
            return nil
        }
        (loop, self.output) = (other, output)
        bell = rings.bell(of: other)
        writer = PipeRingWriter(writing)
        reader = PipeRingReader(reading)
    }

    /// Whether the routers may share a session: the other one has publishers, or subscribers of this router's.
    var isUsed: Bool { !tracks.isEmpty || outgoing.values.contains { $0.isWatched } }

    // MARK: Writing

    func send(_ message: PipeMessage) { writer.write(message) }

    /// - Returns: false if the ring is full.
    func send(_ packet: FeedPacket, track: UInt32, feed: Int, arrivedAt: MediaTime) -> Bool {
        writer.write(packet, track: track, feed: feed, arrivedAt: arrivedAt)
    }

    /// Makes everything that was sent visible to the other router, and wakes its loop if it waits.
    func commit() { if writer.commit() { bell.ring() } }

    /// Announces the tracks of one of this router's publishers.
    func announce(_ tracks: [FeedTrack], of client: Key) {
        let ids = tracks.map { track in
            let pipe = outgoingByTrack[ObjectIdentifier(track)] ?? add(track)
            pipe.update()
            return pipe.id
        }
        send(.tracks(of: client, ids))
    }

    private func add(_ track: FeedTrack) -> TrackPipe {
        nextID &+= 1
        let pipe = TrackPipe(track, id: nextID, pipe: self, output: output)
        (outgoing[pipe.id], outgoingByTrack[ObjectIdentifier(track)]) = (pipe, pipe)
        track.add(pipe)
        return pipe
    }

    /// A track has ended.
    func remove(_ pipe: TrackPipe) {
        outgoing[pipe.id] = nil
        outgoingByTrack[ObjectIdentifier(pipe.track)] = nil
        send(.end(pipe.id))
    }

    // MARK: Reading

    /// Whether the other router has sent anything that was not read.
    var hasMore: Bool { reader.hasMore }

    /// Reads what the other router has sent. The memory of the packets is valid until `release`.
    /// - Parameter other: handles the messages that do not concern a track of this pipe.
    func receive(now: MediaTime, _ other: (PipeMessage) -> Void) {
        for _ in 0..<Self.maxItems {
            switch reader.next() {
            case nil: return
            case .packet(let packet): tracks[packet.pointee.track]?.receive(packet, now: now)
            case .message(let message): if !handle(message, now: now) { other(message) }
            }
        }
    }

    func release() { reader.release() }

    /// - Returns: false if the message does not concern a track of this pipe.
    private func handle(_ message: PipeMessage, now: MediaTime) -> Bool {
        switch message {
        case .track(let id, let mid, let kind, let state):
            let track = tracks[id] ?? PipedTrack(id: id, mid: mid, kind: kind, pipe: self)
            tracks[id] = track
            track.receive(state)
        case .restart(let id, let feed): tracks[id]?.restart(feed: feed)
        case .pause(let id): tracks[id]?.feedTrack.pause()
        case .end(let id):
            guard let track = tracks.removeValue(forKey: id) else { return true }
            urgent.removeAll { $0 === track }
            track.feedTrack.end()
        case .demand(let id, let demand): outgoing[id]?.receive(demand)
        case .keyframe(let id, let feed, let need): outgoing[id]?.receive(need, feed: feed, now: now)
        case .tracks, .voices, .speakers, .sent, .recorded: return false
        }
        return true
    }

    /// Returns the other router's tracks with these ids.
    func feedTracks(_ ids: [UInt32]) -> [FeedTrack] { ids.compactMap { tracks[$0]?.feedTrack } }

    // MARK: Time

    func requestKeyframesSoon(of track: PipedTrack) {
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
        if updates { for pipe in outgoing.values where pipe.isWatched { pipe.update() } }
        for track in tracks.values {
            track.update()
            track.requestKeyframes(now: now)
        }
    }
}
