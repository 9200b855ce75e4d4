import AppModel
import Confab
import Foundation
import WebRTC

/// A WebRTC peer connection. It only translates calls and events: Confab decides when to negotiate.
actor WebRTCPeer: MediaPeer {
    nonisolated let events: AsyncStream<PeerEvent>
    private let continuation: AsyncStream<PeerEvent>.Continuation
    private let connection: RTCPeerConnection
    private typealias Tracks = ReceivedTracks<RTCRtpTransceiver, RTCRtpReceiver, WatchedTrack>
    /// The connection's delegate. Retained here, because WebRTC holds it weakly.
    private let observer: PeerObserver
    private var transceivers: [TransceiverHandle: RTCRtpTransceiver] = [:]
    private var tracks = Tracks()
    private var isClosed = false

    init(connection: RTCPeerConnection, observer: PeerObserver) {
        (self.connection, self.observer) = (connection, observer)
        (events, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(EngineRules.maxUnreadEvents))
        // This task ends when `close` finishes the observer's stream.
        Task { [weak self, observations = observer.observations] in
            for await observation in observations { await self?.handle(observation) }
        }
    }

    // MARK: Transceivers

    func add(_ setup: TransceiverSetup) async throws(ConfabError) -> TransceiverHandle {
        try checkOpen()
        let options = RTCRtpTransceiverInit()
        options.direction = setup.direction.native
        options.streamIds = setup.streamID.map { [$0] } ?? []
        options.sendEncodings = setup.layers.map(\.native)
        let transceiver =
            if let track = try Self.track(of: setup.source, setup.kind) {
                connection.addTransceiver(with: track, init: options)
            } else {
                connection.addTransceiver(of: setup.kind.native, init: options)
            }
        guard let transceiver else { throw .tooManyTracks }
        let handle = TransceiverHandle(number: transceivers.count)
        transceivers[handle] = transceiver
        tracks.own(transceiver, receiver: transceiver.receiver)
        return handle
    }

    private static func track(
        of source: (any LocalMedia)?, _ kind: TrackKind
    ) throws(ConfabError) -> RTCMediaStreamTrack? {
        let media: WebRTCMedia? = try EngineRules.ownMedia(source)
        return media?.captured.track(kind)
    }

    /// Returns the transceiver with this handle. Nil if the connection is closed, because WebRTC must not be called
    /// then.
    private func open(_ transceiver: TransceiverHandle) -> RTCRtpTransceiver? {
        isClosed ? nil : transceivers[transceiver]
    }

    func replace(_ transceiver: TransceiverHandle, with source: (any LocalMedia)?) async throws(ConfabError) {
        guard let native = open(transceiver) else { return }
        native.sender.track = try Self.track(of: source, native.kind)
    }

    func setDirection(_ direction: MediaDirection, of transceiver: TransceiverHandle) async {
        open(transceiver)?.setDirection(direction.native, error: nil)
    }

    func activate(_ rids: [String]?, on transceiver: TransceiverHandle) async {
        guard let sender = open(transceiver)?.sender else { return }
        // The parameters are a copy, which takes effect only when it is assigned back.
        let parameters = sender.parameters
        for encoding in parameters.encodings { encoding.isActive = EngineRules.sends(rid: encoding.rid, of: rids) }
        sender.parameters = parameters
    }

    func mid(of transceiver: TransceiverHandle) async -> String? { transceivers[transceiver]?.knownMid }

    // MARK: Descriptions

    func offer(restartingICE: Bool) async throws(ConfabError) -> PeerDescription {
        try checkOpen()
        if restartingICE { connection.restartIce() }
        let made = await withCheckedContinuation { continuation in
            connection.offer(for: .none) { continuation.resume(returning: Made($0, $1)) }
        }
        return try await setLocal(made, .offer)
    }

    func answer() async throws(ConfabError) -> PeerDescription {
        try checkOpen()
        let made = await withCheckedContinuation { continuation in
            connection.answer(for: .none) { continuation.resume(returning: Made($0, $1)) }
        }
        return try await setLocal(made, .answer)
    }

    func accept(_ description: PeerDescription) async throws(ConfabError) {
        try checkOpen()
        let native = RTCSessionDescription(type: description.kind.native, sdp: description.sdp)
        let failure = await withCheckedContinuation { continuation in
            connection.setRemoteDescription(native) { continuation.resume(returning: $0) }
        }
        try check(failure)
    }

    func rollback() async throws(ConfabError) {
        try checkOpen()
        try check(await setLocal(RTCSessionDescription(type: .rollback, sdp: "")))
    }

    private func setLocal(_ made: Made, _ kind: PeerDescription.Kind) async throws(ConfabError) -> PeerDescription {
        guard let description = made.description else { throw .notNegotiated(made.failure) }
        // The connection may have been closed while the description was being created.
        try checkOpen()
        try check(await setLocal(description))
        return PeerDescription(kind, sdp: description.sdp)
    }

    private func setLocal(_ description: RTCSessionDescription) async -> (any Error)? {
        await withCheckedContinuation { continuation in
            connection.setLocalDescription(description) { continuation.resume(returning: $0) }
        }
    }

    /// Throws if a description could not be set, or if the connection was closed. Otherwise reports the tracks that
    /// have a `mid` now.
    private func check(_ failure: (any Error)?) throws(ConfabError) {
        if let failure { throw .notNegotiated(failure) }
        try checkOpen()
        tell(tracks.described { ($0.knownMid, $0.isStopped) })
    }

    // MARK: ICE

    func addCandidate(_ candidate: PeerCandidate?) async {
        guard !isClosed, let remote = RemoteCandidate(candidate) else { return }
        let native = RTCIceCandidate(sdp: remote.text, sdpMLineIndex: remote.lineIndex, sdpMid: remote.mid)
        await withCheckedContinuation { continuation in
            connection.add(native) { _ in continuation.resume() }
        }
    }

    func setServers(_ servers: [PeerConfiguration.Server], relayOnly: Bool) async {
        guard !isClosed else { return }
        let configuration = connection.configuration
        configuration.use(servers, relayOnly: relayOnly)
        _ = connection.setConfiguration(configuration)
    }

    // MARK: Received media

    func remote(_ mid: String) async -> (any RemoteMedia)? {
        guard let transceiver = tracks.transceiver(of: mid), let track = transceiver.receiver.track else { return nil }
        return WebRTCRemoteMedia(track, kind: transceiver.kind)
    }

    func expectFrame(_ mid: String) async { tracks.watcher(of: mid)?.firstFrame.expectFrame() }

    func statistics() async -> [Statistic] {
        guard !isClosed else { return [] }
        let report = await withCheckedContinuation { continuation in
            connection.statistics { continuation.resume(returning: $0) }
        }
        return report.confabStatistics
    }

    private func checkOpen() throws(ConfabError) { if isClosed { throw .connectionClosed } }

    /// Closes the connection, unless it is closed already: it must not be closed twice. WebRTC has crashed when a
    /// connection was released without being closed.
    func close() async {
        guard !isClosed else { return }
        isClosed = true
        connection.close()
        continuation.yield(.state(.closed))
        continuation.finish()
        observer.finish()
    }

    // MARK: Observations

    private func handle(_ observation: PeerObserver.Observation) {
        guard !isClosed else { return }
        switch observation {
        case .state(let state): continuation.yield(.state(PeerState(state)))
        case .candidate(let candidate): continuation.yield(.candidate(PeerCandidate(candidate)))
        case .negotiationNeeded: continuation.yield(.negotiationNeeded)
        case .receiving(let transceiver):
            tell(tracks.start(transceiver, receiver: transceiver.receiver, mid: transceiver.knownMid))
        case .added(let receiver, let streamID): tell(tracks.add(receiver, streamID: streamID))
        case .firstPacket(let receiver): tell(tracks.firstPacket(on: receiver))
        case .firstFrame(let mid): continuation.yield(.firstFrame(mid: mid))
        }
    }

    private func tell(_ news: [Tracks.Event]) {
        for each in news {
            switch each {
            case .track(let mid, let transceiver, let streamID, let isNew):
                if isNew, let track = transceiver.receiver.track as? RTCVideoTrack {
                    tracks.watch(mid, with: WatchedTrack(track, FirstFrame(mid: mid, observer: observer)))
                }
                continuation.yield(.track(mid: mid, transceiver.kind, streamID: streamID))
            case .firstPacket(let mid): continuation.yield(.firstPacket(mid: mid))
            }
        }
    }
}

/// A track and the observer of its first frame. It retains the track's wrapper, because WebRTC would stop reporting
/// frames if it were released.
private struct WatchedTrack {
    let track: RTCVideoTrack
    let firstFrame: FirstFrame

    init(_ track: RTCVideoTrack, _ firstFrame: FirstFrame) {
        (self.track, self.firstFrame) = (track, firstFrame)
        track.add(firstFrame)
    }
}

/// The result of creating an offer or an answer: a description or an error.
private struct Made: Sendable {
    let description: RTCSessionDescription?
    let failure: (any Error)?

    init(_ description: RTCSessionDescription?, _ failure: (any Error)?) {
        (self.description, self.failure) = (description, failure)
    }
}
