import Wire

@testable import Confab

/// A media engine without media. Its descriptions contain what a peer connection would send, so that two fakes can
/// connect.
final class FakeEngine: MediaEngine {
    private struct State: Sendable {
        var peers: [FakePeer] = []
        var made = 0
        var refusals = 0
        var captured: [FakeMedia] = []
    }
    private let state = LockedValue(State())
    private let level = LockedValue<Double?>(nil)
    private let wrap: @Sendable (FakeRemote) -> any RemoteMedia

    /// - Parameter wrap: returns the object for a track that arrives, each time that the SDK requests it.
    init(wrap: @escaping @Sendable (FakeRemote) -> any RemoteMedia = { $0 }) { self.wrap = wrap }

    /// The connections that are not closed.
    var open: [FakePeer] { state.withLock { $0.peers }.filter { !$0.isClosed } }
    /// Counts the connections that are not closed, without keeping the engine.
    var countOpen: @Sendable () -> Int {
        { [state] in state.withLock { $0.peers }.count { !$0.isClosed } }
    }
    var countMade: @Sendable () -> Int { { [state] in state.withLock { $0.made } } }
    /// How many connections were made.
    var made: Int { state.withLock { $0.made } }
    /// How loud everything is that arrives.
    func setAudioLevel(_ loudness: Double?) { level.withLock { $0 = loudness } }
    /// Makes the next connections fail.
    func refuse(_ count: Int) { state.withLock { $0.refusals = count } }

    func makePeer(_ configuration: PeerConfiguration) async throws(ConfabError) -> any MediaPeer {
        let peer = state.withLock { state -> FakePeer? in
            state.made += 1
            if state.refusals > 0 {
                state.refusals -= 1
                return nil
            }
            let peer = FakePeer(number: state.made, level, wrap)
            state.peers.removeAll { $0.isClosed }
            state.peers.append(peer)
            return peer
        }
        guard let peer else { throw .noPeer }
        return peer
    }

    /// All media that was captured.
    var captured: [FakeMedia] { state.withLock { $0.captured } }

    func capture(_ request: CaptureRequest) async throws(ConfabError) -> any LocalMedia {
        let media = FakeMedia(hasVideo: request != .microphone)
        state.withLock { $0.captured.append(media) }
        return media
    }
}

final class FakePictures: VideoSource {}

/// Media that the fake engine does not send.
final class UnknownMedia: LocalMedia {
    let hasAudio = false
    let video: (any VideoSource)? = FakePictures()
    let size: VideoSize? = nil
    func setEnabled(audio: Bool?, video: Bool?) async {}
    func stop() async {}
}

extension ConfabError {
    static let unknownMedia = ConfabError(.mediaFailed, "The fake engine does not know this media.")
}

final class FakeMedia: LocalMedia {
    let hasAudio = true
    let video: (any VideoSource)?
    let size: VideoSize?
    let layers: [Layer]?
    private let state = LockedValue<(audio: [Bool], video: [Bool], isStopped: Bool)>(([], [], false))

    init(
        hasVideo: Bool = true, size: VideoSize? = VideoSize(width: 1280, height: 720), layers: [Layer]? = nil
    ) {
        (video, self.size, self.layers) = (hasVideo ? FakePictures() : nil, size, layers)
    }

    var isStopped: Bool { state.withLock { $0.isStopped } }
    /// How audio and video were enabled and disabled, in order.
    var switches: (audio: [Bool], video: [Bool]) { state.withLock { ($0.audio, $0.video) } }
    func setEnabled(audio: Bool?, video: Bool?) async {
        state.withLock { state in
            if let audio { state.audio.append(audio) }
            if let video { state.video.append(video) }
        }
    }
    func stop() async { state.withLock { $0.isStopped = true } }
}

final class FakeRemote: RemoteMedia {
    let kind: TrackKind
    let video: (any VideoSource)?
    init(_ kind: TrackKind) { (self.kind, video) = (kind, kind == .video ? FakePictures() : nil) }
    func setEnabled(_ enabled: Bool) async {}
    func setVolume(_ volume: Double) async {}
}

/// A peer connection that is connected as soon as both descriptions are set.
final class FakePeer: MediaPeer {
    private struct Section: Sendable {
        let handle: TransceiverHandle
        let mid: String
        let kind: TrackKind
        var direction: MediaDirection
        var source: MediaSource?
        let streamID: String?
        var isDescribed = false
        var rids: [String] = []
    }
    private struct State: Sendable {
        var sections: [Section] = []
        var remotes: [String: FakeRemote] = [:]
        var isOffering = false
        var isClosed = false
        var remoteOffer: String?
        var calls: [String] = []
        var activations: [[String]?] = []
        var version = 0
    }

    let events: AsyncStream<PeerEvent>
    private let send: AsyncStream<PeerEvent>.Continuation
    private let state = LockedValue(State())
    private let number: Int
    private let level: LockedValue<Double?>
    private let wrap: @Sendable (FakeRemote) -> any RemoteMedia

    init(number: Int, _ level: LockedValue<Double?>, _ wrap: @escaping @Sendable (FakeRemote) -> any RemoteMedia) {
        (self.number, self.level, self.wrap) = (number, level, wrap)
        (events, send) = AsyncStream.makeStream(of: PeerEvent.self)
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }
    var calls: [String] { state.withLock { $0.calls } }
    /// What was to be activated, in order; nil for all layers.
    var activations: [[String]?] { state.withLock { $0.activations } }
    var activeRIDs: [[String]] { state.withLock { $0.sections.map(\.rids).filter { !$0.isEmpty } } }
    var sources: [MediaSource] { state.withLock { $0.sections.compactMap(\.source) } }
    func emit(_ event: PeerEvent) { send.yield(event) }

    func add(_ setup: TransceiverSetup) async throws(ConfabError) -> TransceiverHandle {
        if setup.source is UnknownMedia { throw .unknownMedia }
        return state.withLock { state in
            let handle = TransceiverHandle(number: state.sections.count)
            state.sections.append(
                Section(
                    handle: handle, mid: "\(number)-\(handle.number)", kind: setup.kind, direction: setup.direction,
                    source: setup.source.map { MediaSource(media: $0) }, streamID: setup.streamID))
            return handle
        }
    }

    func replace(
        _ transceiver: TransceiverHandle, with source: (any LocalMedia)?
    ) async throws(ConfabError) {
        if source is UnknownMedia { throw .unknownMedia }
        state.withLock { $0.sections[transceiver.number].source = source.map { MediaSource(media: $0) } }
    }

    func setDirection(_ direction: MediaDirection, of transceiver: TransceiverHandle) async {
        state.withLock { $0.sections[transceiver.number].direction = direction }
    }

    func activate(_ rids: [String]?, on transceiver: TransceiverHandle) async {
        state.withLock { state in
            state.activations.append(rids)
            state.sections[transceiver.number].rids = rids ?? []
        }
    }

    func mid(of transceiver: TransceiverHandle) async -> String? {
        state.withLock { $0.sections[transceiver.number].isDescribed ? $0.sections[transceiver.number].mid : nil }
    }

    func offer(restartingICE: Bool) async throws(ConfabError) -> PeerDescription {
        PeerDescription(
            .offer,
            sdp: state.withLock { state in
                state.isOffering = true
                state.calls.append(restartingICE ? "restart" : "offer")
                for index in state.sections.indices { state.sections[index].isDescribed = true }
                return describe(&state)
            })
    }

    func answer() async throws(ConfabError) -> PeerDescription {
        PeerDescription(
            .answer,
            sdp: state.withLock { state in
                state.calls.append("answer")
                return describe(&state)
            })
    }

    func accept(_ description: PeerDescription) async throws(ConfabError) {
        let isUsable = state.withLock { state in
            let isFitting = description.kind == (state.isOffering ? .answer : .offer)
            if isFitting { state.isOffering = false }
            return isFitting && !state.isClosed
        }
        guard isUsable else { throw ConfabError(.mediaFailed, "This description does not fit the state.") }
        if description.sdp.contains("a=routed") {
            state.withLock { state in
                for section in state.sections
                where section.direction == .receiveOnly && state.remotes[section.mid] == nil {
                    state.remotes[section.mid] = FakeRemote(section.kind)
                }
            }
        }
        for line in description.sdp.split(separator: "\n") where line.hasPrefix("a=sends ") {
            let parts = line.split(separator: " ").map(String.init)
            guard parts.count == 4, let kind = TrackKind(rawValue: parts[2]) else { continue }
            let isNew = state.withLock { state in
                defer { state.remotes[parts[1]] = state.remotes[parts[1]] ?? FakeRemote(kind) }
                return state.remotes[parts[1]] == nil
            }
            if isNew { emit(.track(mid: parts[1], kind, streamID: parts[3])) }
        }
        emit(.state(.connected))
    }

    func rollback() async throws(ConfabError) {
        state.withLock { state in
            state.isOffering = false
            state.calls.append("rollback")
        }
    }

    func addCandidate(_ candidate: PeerCandidate?) async {}
    func setServers(_ servers: [PeerConfiguration.Server], relayOnly: Bool) async {}
    func remote(_ mid: String) async -> (any RemoteMedia)? { state.withLock { $0.remotes[mid] }.map(wrap) }
    func expectFrame(_ mid: String) async { emit(.firstFrame(mid: mid)) }

    func statistics() async -> [Statistic] {
        let loudness = level.withLock { $0 }
        return state.withLock { state in
            state.sections.map { section in
                let flow: Statistic.Flow = section.direction == .sendOnly ? .sent : .received
                var statistic = Statistic(flow, section.kind, mid: section.mid)
                if flow == .received, section.kind == .audio { statistic.audioLevel = loudness }
                return statistic
            } + state.remotes.map { Statistic(.received, $1.kind, mid: $0) }
        }
    }

    func close() async {
        state.withLock { $0.isClosed = true }
        send.finish()
    }

    private func describe(_ state: inout State) -> String {
        state.version += 1
        let sends = state.sections.filter { $0.isDescribed && $0.direction == .sendOnly && $0.source != nil }
        let lines = sends.map { "a=sends \($0.mid) \($0.kind.rawValue) \($0.streamID ?? "-")" }
        return (["v=0", "o=- \(number) \(state.version)"] + lines).joined(separator: "\n") + "\n"
    }
}
