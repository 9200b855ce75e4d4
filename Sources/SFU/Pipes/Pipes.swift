import RTC

/// What a router shares with the routers of other event loops: its publishers' tracks, how loud they are, and the bitrate that
/// it sends. A server with one loop has no pipes.
final class Pipes {
    /// The index of the router's loop.
    let loop: Int
    private let bell: PipeBell?
    private let pipes: [RouterPipe]
    private let feeds: FeedTable
    private var updatedAt: MediaTime?
    /// The time between two checks for changes in the tracks' state. Bitrates change once a second. What affects the choice
    /// of layers is sent immediately, when layers are selected.
    private static let updateInterval = MediaInterval.milliseconds(100)

    init(_ rings: PipeRings?, loop: Int, output: RouterOutput, feeds: FeedTable) {
        (self.loop, self.feeds) = (loop, feeds)
        bell = rings?.bell(of: loop)
        pipes = (0..<(rings?.loops ?? 0)).compactMap { other in
            rings.flatMap { RouterPipe(from: loop, to: other, in: $0, output: output) }
        }
    }

    /// Whether there are other loops.
    var isConnected: Bool { !pipes.isEmpty }

    /// Sends a message to all other routers.
    func broadcast(_ message: PipeMessage) { for pipe in pipes { pipe.send(message) } }

    /// Sends how loud this router's publishers are to the routers that may share sessions with it.
    /// - Parameter voices: called only if there are such routers.
    func send(voices: () -> [PipedVoice]) {
        let used = pipes.filter(\.isUsed)
        guard !used.isEmpty else { return }
        let voices = voices()
        if !voices.isEmpty { for pipe in used { pipe.send(.voices(voices)) } }
    }

    /// Sends the active speakers to the routers that may share sessions with this one.
    func send(speakers: [PipedSpeaker]) {
        for pipe in pipes where pipe.isUsed { pipe.send(.speakers(speakers)) }
    }

    /// Announces the tracks of one of this router's publishers.
    func announce(_ tracks: [FeedTrack], of client: Key) { for pipe in pipes { pipe.announce(tracks, of: client) } }

    /// Reads what the other routers have sent. The memory of packets is valid until `release`.
    /// - Parameters:
    ///   - streams: connects tracks that were announced with subscribers.
    ///   - other: handles the messages that do not concern tracks.
    func receive(_ streams: Streams, now: MediaTime, _ other: (_ loop: Int, PipeMessage) -> Void) {
        for pipe in pipes where pipe.hasMore {
            pipe.receive(now: now) { message in
                guard case .tracks(let client, let ids) = message else { return other(pipe.loop, message) }
                feeds.set(pipe.feedTracks(ids), of: client)
                streams.relinkAll(client, .send)
            }
        }
    }

    /// Makes everything that was sent visible to the other routers.
    func commit() { for pipe in pipes { pipe.commit() } }

    /// Lets the other routers reuse the memory of what was read. Called after the packets were forwarded.
    func release() { for pipe in pipes { pipe.release() } }

    func sendUrgentRequests(now: MediaTime) { for pipe in pipes { pipe.sendUrgentRequests(now: now) } }

    func tick(now: MediaTime) {
        let updates = updatedAt.map { now - $0 >= Self.updateInterval } ?? true
        if updates { updatedAt = now }
        for pipe in pipes { pipe.tick(updates: updates, now: now) }
    }

    // MARK: Waiting

    var hasMore: Bool { pipes.contains { $0.hasMore } }

    func beginWait() -> Bool { bell?.beginWait { hasMore } ?? true }

    func endWait() { bell?.endWait() }
}
