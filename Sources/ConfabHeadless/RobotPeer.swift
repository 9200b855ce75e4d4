import Confab
import Peers
import RTC
import Synchronization

/// A peer connection of a ``FileEngine``.
///
/// If this side makes the first offer, it is the controlling ICE agent and the DTLS client. Otherwise it is ICE-lite
/// and the DTLS server, unless the other peer is ICE-lite. Descriptions contain all candidates.
///
/// The class is `@unchecked Sendable` because only `events` and `thread` are used outside the connection's thread.
final class RobotPeer: MediaPeer, @unchecked Sendable {
    let events: AsyncStream<PeerEvent>
    let event: AsyncStream<PeerEvent>.Continuation
    /// The thread of the connection; nil after `close`.
    private let thread: Mutex<PeerThread?>

    let connection: RobotConnection
    let candidates: [Candidate]
    let source = PeerSource()
    var transceivers: [PeerTransceiver] = []
    /// The mids of all negotiated sections, in the order of the descriptions.
    var order: [String] = []
    /// The mids of the sections of the pending offer.
    var offered: [String] = []
    /// The remote offer to answer; nil if there is none.
    var remoteOffer: String?
    /// The received media of each section, keyed by mid.
    var arrivals: [String: PeerArrival] = [:]
    var state = PeerState.new
    /// The prefix of this side's mids, which makes them different from those of the other peer.
    private let midPrefix: String
    let onFailure: @Sendable (TransportFailure) -> Void
    private var count = 0

    /// The maximum number of transceivers. The server's limit for the sections of a description is the same.
    static let maxTransceivers = SessionDescription.maxSections

    static func open(
        on thread: PeerThread, isIPv6: Bool, onFailure: @escaping @Sendable (TransportFailure) -> Void = { _ in }
    ) async throws -> RobotPeer {
        try await thread.loop.run {
            let connection = try thread.loop.open(ipv6: isIPv6)
            return RobotPeer(connection, thread, onFailure)
        }
    }

    private init(
        _ connection: RobotConnection, _ thread: PeerThread, _ onFailure: @escaping @Sendable (TransportFailure) -> Void
    ) {
        (self.connection, self.onFailure) = (connection, onFailure)
        self.thread = Mutex(thread)
        (events, event) = AsyncStream.makeStream(of: PeerEvent.self)
        // The loop knows only the host's IPv4 addresses, so a connection over IPv6 has no candidates. It must then
        // reach the candidates of the other peer.
        candidates = connection.reachesIPv4 ? thread.loop.hostCandidates(of: connection) : []
        midPrefix = String(UInt16.random(in: 0...UInt16.max, using: &connection.random), radix: 36) + "-"
        connection.fullCandidates = candidates
        connection.handler = self
        connection.source = source
    }

    deinit { end() }

    /// Closes the connection, even if `close` was not called. The thread ends when its last connection releases it.
    private func end() {
        let last = thread.withLock { thread in
            defer { thread = nil }
            return thread
        }
        event.finish()
        guard let last else { return }
        let (connection, source) = (connection, SendableSource(source: source))
        last.loop.perform {
            source.source.endAll()
            last.loop.end(connection)
        }
    }

    /// The loop of the connection; nil after `close`.
    var loop: RobotLoop? { thread.withLock { $0?.loop } }

    /// Runs `body` on the connection's thread.
    private func onThread<Value: Sendable>(
        _ body: @escaping @Sendable (PeerThread) throws -> Value
    ) async throws(ConfabError) -> Value {
        guard let thread = thread.withLock(\.self) else { throw .peerClosed }
        do {
            return try await thread.loop.run {
                let value = try body(thread)
                return value
            }
        } catch {
            throw ConfabError(ofMedia: error)
        }
    }

    // MARK: Transceivers

    func add(_ transceiver: TransceiverSetup) async throws(ConfabError) -> TransceiverHandle {
        let media = try Self.media(of: transceiver.source)
        return try await onThread { [self] _ in
            guard transceivers.count < Self.maxTransceivers else {
                throw ConfabError(
                    .mediaFailed, "A connection has at most \(Self.maxTransceivers) transceivers. Reuse one.")
            }
            count += 1
            let mid = midPrefix + String(count, radix: 36)
            transceivers.append(PeerTransceiver(transceiver, media, number: count, mid: mid, of: connection))
            return TransceiverHandle(number: count)
        }
    }

    private static func media(of source: (any LocalMedia)?) throws(ConfabError) -> (any PeerMedia)? {
        guard let source else { return nil }
        guard let media = source as? any PeerMedia else {
            throw ConfabError(
                .mediaFailed, "This engine sends only FileMedia, from a capture, and EncodedMedia. Use one of them.")
        }
        return media
    }

    func replace(
        _ transceiver: TransceiverHandle, with source: (any LocalMedia)?
    ) async throws(ConfabError) {
        let media = try Self.media(of: source)
        await change(transceiver) { $0.media = media }
    }

    func setDirection(_ direction: Confab.MediaDirection, of transceiver: TransceiverHandle) async {
        await change(transceiver) { $0.direction = direction }
    }

    func activate(_ rids: [String]?, on transceiver: TransceiverHandle) async {
        await change(transceiver) { $0.activeRIDs = rids.map { Set($0) } }
    }

    private func change(
        _ handle: TransceiverHandle, _ body: @escaping @Sendable (inout PeerTransceiver) -> Void
    ) async {
        _ = try? await onThread { [self] thread in
            guard let index = transceivers.firstIndex(where: { $0.handle == handle }) else { return }
            body(&transceivers[index])
            updateFeeds(on: thread)
        }
    }

    func mid(of transceiver: TransceiverHandle) async -> String? {
        try? await onThread { [self] _ in
            transceivers.first { $0.handle == transceiver && $0.isDescribed }?.mid
        }
    }

    // MARK: Negotiation

    func offer(restartingICE: Bool) async throws(ConfabError) -> PeerDescription {
        PeerDescription(.offer, sdp: try await onThread { [self] _ in makeOffer(restartingICE: restartingICE) })
    }

    func answer() async throws(ConfabError) -> PeerDescription {
        PeerDescription(.answer, sdp: try await onThread { [self] thread in try makeAnswer(on: thread) })
    }

    func accept(_ description: PeerDescription) async throws(ConfabError) {
        try await onThread { [self] thread in
            switch description.kind {
            case .offer:
                // Reject a malformed offer now, not only when the answer is created.
                _ = try SessionDescription(parsing: description.sdp)
                remoteOffer = description.sdp
            case .answer:
                try connection.accept(answer: description.sdp, now: thread.loop.now)
                order = offered
                settle(on: thread)
            }
        }
    }

    func rollback() async throws(ConfabError) {
        try await onThread { [self] _ in
            connection.rollback()
            offered = []
        }
    }

    func addCandidate(_ candidate: PeerCandidate?) async {
        guard let text = candidate?.candidate, !text.isEmpty else { return }
        _ = try? await onThread { [self] thread in connection.add(candidate: text, now: thread.loop.now) }
    }

    // Does nothing, because the engine uses neither STUN nor TURN.
    func setServers(_ servers: [PeerConfiguration.Server], relayOnly: Bool) async {}

    // MARK: Receiving

    func remote(_ mid: String) async -> (any RemoteMedia)? {
        try? await onThread { [self] _ in arrivals[mid]?.track }
    }

    func expectFrame(_ mid: String) async { _ = try? await onThread { [self] _ in arrivals[mid]?.hasFrame = false } }

    func statistics() async -> [Statistic] {
        (try? await onThread { [self] thread in statistics(at: thread.loop.now) }) ?? []
    }

    func close() async {
        // Wait for the thread, so that no event and no packet follows.
        try? await onThread { [self] thread in
            source.endAll()
            for mid in arrivals.keys { finish(mid, now: thread.loop.now) }
            connection.handler = nil
            thread.loop.end(connection)
            event.yield(.state(.closed))
        }
        end()
    }

    private func finish(_ mid: String, now: MediaTime) {
        guard var arrival = arrivals.removeValue(forKey: mid) else { return }
        for frame in arrival.receiver.finish(at: now) { arrival.track.yield(frame) }
        arrival.track.source.finish()
    }

    /// Requests a keyframe for a new reader, or for one that lost frames.
    func requestKeyframe(_ mid: String) {
        guard let loop else { return }
        loop.perform { [weak self] in
            guard let self, let reception = connection.reception(mid) else { return }
            connection.requestKeyframe(of: reception, now: loop.now)
        }
    }
}

/// Passes the feeds of a peer that is being released to the connection's thread, which ends them.
private struct SendableSource: @unchecked Sendable {
    let source: PeerSource
}

extension PeerSource {
    func endAll() {
        for feed in feeds { feed.end() }
        feeds = []
    }
}
