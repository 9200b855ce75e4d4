import Confab

/// An engine that supports several renderers. The app's engine conforms to this protocol.
public protocol RenderingEngine: MediaEngine {
    /// Sets the renderer of video sources created afterwards.
    func use(_ renderer: RendererChoice)
}

/// The app's engine with the ICE candidates, transports and codecs chosen in the settings. A change applies to later
/// connections.
@MainActor final class ConfiguredEngine: MediaEngine {
    private let engine: any MediaEngine
    private var choices = MediaChoices()

    init(_ engine: any MediaEngine) { self.engine = engine }

    func choose(_ settings: DeviceSettings) {
        choices = MediaChoices(settings)
        (engine as? any RenderingEngine)?.use(settings.renderer)
    }

    func makePeer(_ configuration: PeerConfiguration) async throws(ConfabError) -> any MediaPeer {
        let choices = choices
        let chosen = choices.configuration(configuration)
        let peer = try await engine.makePeer(chosen)
        return ChoosingPeer(peer, choices == MediaChoices() ? nil : choices, isRelayed: chosen.relayOnly)
    }

    func capture(_ request: CaptureRequest) async throws(ConfabError) -> any LocalMedia {
        try await engine.capture(request)
    }
}

/// A peer connection that applies the choices to descriptions and candidates, and can send a ``SharedScreen``.
private actor ChoosingPeer: MediaPeer {
    nonisolated let events: AsyncStream<PeerEvent>
    private let peer: any MediaPeer
    /// The choices to apply; nil if they are the defaults, which leave descriptions and candidates unchanged.
    private let choices: MediaChoices?
    private let isRelayed: Bool
    private var kinds: [TransceiverHandle: TrackKind] = [:]

    init(_ peer: any MediaPeer, _ choices: MediaChoices?, isRelayed: Bool) {
        (self.peer, self.choices, self.isRelayed) = (peer, choices, isRelayed)
        guard let choices else {
            events = peer.events
            return
        }
        let (events, event) = AsyncStream.makeStream(
            of: PeerEvent.self, bufferingPolicy: .bufferingOldest(EngineRules.maxUnreadEvents))
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

    // MARK: Filtered by the choices

    func offer(restartingICE: Bool) async throws(ConfabError) -> PeerDescription {
        allowed(try await peer.offer(restartingICE: restartingICE))
    }

    func answer() async throws(ConfabError) -> PeerDescription { allowed(try await peer.answer()) }

    func accept(_ description: PeerDescription) async throws(ConfabError) {
        var chosen = allowed(description)
        if let choices { chosen.sdp = choices.codecsFirst(chosen.sdp) }
        try await peer.accept(chosen)
    }

    func addCandidate(_ candidate: PeerCandidate?) async {
        if let candidate, let choices, !choices.allows(candidate: candidate.candidate, isRelayed: isRelayed) { return }
        await peer.addCandidate(candidate)
    }

    func setServers(_ servers: [PeerConfiguration.Server], relayOnly: Bool) async {
        let wanted = PeerConfiguration(servers: servers, relayOnly: relayOnly)
        let chosen = choices?.configuration(wanted) ?? wanted
        await peer.setServers(chosen.servers, relayOnly: chosen.relayOnly)
    }

    private func allowed(_ description: PeerDescription) -> PeerDescription {
        guard let choices else { return description }
        return PeerDescription(description.kind, sdp: choices.description(description.sdp, isRelayed: isRelayed))
    }

    // MARK: A shared screen

    func add(_ transceiver: TransceiverSetup) async throws(ConfabError) -> TransceiverHandle {
        var setup = transceiver
        setup.source = part(of: transceiver.source, transceiver.kind)
        let handle = try await peer.add(setup)
        kinds[handle] = transceiver.kind
        return handle
    }

    func replace(
        _ transceiver: TransceiverHandle, with source: (any LocalMedia)?
    ) async throws(ConfabError) {
        try await peer.replace(transceiver, with: part(of: source, kinds[transceiver]))
    }

    /// Returns the part of a shared screen for a kind of track, because the engine does not support ``SharedScreen``
    /// itself. Returns any other source unchanged.
    private func part(of source: (any LocalMedia)?, _ kind: TrackKind?) -> (any LocalMedia)? {
        guard let shared = source as? SharedScreen else { return source }
        return kind == .audio ? shared.sound : shared.picture
    }

    // MARK: Passed through

    func setDirection(_ direction: MediaDirection, of transceiver: TransceiverHandle) async {
        await peer.setDirection(direction, of: transceiver)
    }
    func activate(_ rids: [String]?, on transceiver: TransceiverHandle) async {
        await peer.activate(rids, on: transceiver)
    }
    func mid(of transceiver: TransceiverHandle) async -> String? { await peer.mid(of: transceiver) }
    func rollback() async throws(ConfabError) { try await peer.rollback() }
    func remote(_ mid: String) async -> (any RemoteMedia)? { await peer.remote(mid) }
    func expectFrame(_ mid: String) async { await peer.expectFrame(mid) }
    func statistics() async -> [Statistic] { await peer.statistics() }
    func close() async { await peer.close() }
}
