import Confab

/// The engine of the app, with the ways and codecs that the person has chosen. A change holds for later connections.
@MainActor final class ChoosingEngine: MediaEngine {
    private let engine: any MediaEngine
    private var choices = MediaChoices()

    init(_ engine: any MediaEngine) { self.engine = engine }

    func choose(_ choices: MediaChoices) { self.choices = choices }

    func makePeer(_ configuration: PeerConfiguration) async throws(ConfabError) -> any MediaPeer {
        let choices = choices
        let chosen = choices.configuration(configuration)
        let peer = try await engine.makePeer(chosen)
        return choices == MediaChoices() ? peer : ChoosingPeer(peer, choices, isRelayed: chosen.relayOnly)
    }

    func capture(_ request: CaptureRequest) async throws(ConfabError) -> any LocalMedia {
        try await engine.capture(request)
    }
}

/// A peer connection whose descriptions and candidates follow the choices.
private final class ChoosingPeer: MediaPeer {
    let events: AsyncStream<PeerEvent>
    private let peer: any MediaPeer
    private let choices: MediaChoices
    private let isRelayed: Bool

    init(_ peer: any MediaPeer, _ choices: MediaChoices, isRelayed: Bool) {
        (self.peer, self.choices, self.isRelayed) = (peer, choices, isRelayed)
        let (events, event) = AsyncStream.makeStream(of: PeerEvent.self)
        self.events = events
        let own = peer.events
        let reading = Task {
            for await each in own {
                if case .candidate(let candidate?) = each,
                    !choices.allows(candidate: candidate.candidate, isRelayed: isRelayed)
                {
                    continue
                }
                event.yield(each)
            }
            event.finish()
        }
        event.onTermination = { _ in reading.cancel() }
    }

    // MARK: What the choices change

    func offer(restartingICE: Bool) async throws(ConfabError) -> PeerDescription {
        allowed(try await peer.offer(restartingICE: restartingICE))
    }

    func answer() async throws(ConfabError) -> PeerDescription { allowed(try await peer.answer()) }

    func accept(_ description: PeerDescription) async throws(ConfabError) {
        var chosen = allowed(description)
        chosen.sdp = choices.codecsFirst(chosen.sdp)
        try await peer.accept(chosen)
    }

    func addCandidate(_ candidate: PeerCandidate?) async {
        guard candidate.map({ choices.allows(candidate: $0.candidate, isRelayed: isRelayed) }) ?? true else { return }
        await peer.addCandidate(candidate)
    }

    func setServers(_ servers: [PeerConfiguration.Server], relayOnly: Bool) async {
        let chosen = choices.configuration(PeerConfiguration(servers: servers, relayOnly: relayOnly))
        await peer.setServers(chosen.servers, relayOnly: chosen.relayOnly)
    }

    private func allowed(_ description: PeerDescription) -> PeerDescription {
        PeerDescription(description.kind, sdp: choices.description(description.sdp, isRelayed: isRelayed))
    }

    // MARK: What they do not

    func add(_ transceiver: TransceiverSetup) async throws(ConfabError) -> TransceiverHandle {
        try await peer.add(transceiver)
    }
    func replace(_ transceiver: TransceiverHandle, with source: (any LocalMedia)?) async {
        await peer.replace(transceiver, with: source)
    }
    func setDirection(_ direction: MediaDirection, of transceiver: TransceiverHandle) async {
        await peer.setDirection(direction, of: transceiver)
    }
    func activate(_ rids: [String], on transceiver: TransceiverHandle) async {
        await peer.activate(rids, on: transceiver)
    }
    func mid(of transceiver: TransceiverHandle) async -> String? { await peer.mid(of: transceiver) }
    func rollback() async throws(ConfabError) { try await peer.rollback() }
    func remote(_ mid: String) async -> (any RemoteMedia)? { await peer.remote(mid) }
    func expectFrame(_ mid: String) async { await peer.expectFrame(mid) }
    func statistics() async -> [Statistic] { await peer.statistics() }
    func close() async { await peer.close() }
}
