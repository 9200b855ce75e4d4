import Wire

/// A client's media connections to the SFU: one peer connection to send and one to receive, shared by all sessions.
/// Pairs of transceivers are kept and reused, so that a later stream usually needs no negotiation. Releasing this
/// object closes both connections.
///
/// Invariant: a pair carries at most one stream at a time.
final class SFUConnections: Sendable {
    /// An audio and a video transceiver, identified by the ids of their plans.
    struct Pair: Hashable, Sendable {
        let side: MediaSide
        let audio: Int
        let video: Int
        func id(_ kind: TrackKind) -> Int { kind == .audio ? audio : video }
    }

    /// An event of the media connections.
    enum Event: Sendable {
        /// The state of the receiving connection changed.
        case state(PeerState)
        /// A connection was replaced. Send the server the new mids of this side.
        case renewed(MediaSide)
        case found(mid: String)
        case firstFrame(mid: String)
        case failed(ConfabError)
        /// The engine cannot send this source.
        case notSent(MediaSource, ConfabError)
    }
    typealias Answer = @Sendable (Result<MediaMids, ConfabError>) -> Void

    /// The state that the lock protects.
    fileprivate struct State: Sendable {
        var pairs: [(pair: Pair, layers: [Layer], isTaken: Bool)] = []
        var planCount = 0
        var mids: [MediaSide: [Int: String]] = [:]
        var tracks: [String: RemoteTrack] = [:]
        var waiting: [(pair: Pair, answer: Answer)] = []
        var users: [(id: Int, user: @Sendable (Event) -> Void)] = []
        var userCount = 0
        var listening: Listening?
    }

    /// The peer connection of one side, and the state machine that controls it.
    private struct Side: Sendable {
        let rules: Runner<SFUTransport>
        let runner: PeerRunner
    }

    /// The maximum number of pairs per side. It stays below the server's limit of media sections.
    static let maxPairs = 100

    private let core: ClientCore
    /// Requests the bitrate that the connection from the server can carry.
    let estimate: DownlinkEstimate
    private let state = LockedValue(State())
    private let sides = LockedValue<[MediaSide: Side]>([:])

    init(core: ClientCore, engine: any MediaEngine) {
        self.core = core
        estimate = DownlinkEstimate(core)
        for side in MediaSide.allCases {
            let runner = PeerRunner(
                engine: engine,
                configure: { [weak core] () async throws(ConfabError) in
                    try await core?.peerConfiguration(isRelayed: false) ?? PeerConfiguration()
                },
                report: { [weak self] in self?.post(.report($0, connection: $1), to: side) })
            let rules = Runner(SFUTransport(receives: side == .receive), clock: core.dependencies.clock)
            rules.onEffect { [weak self] effect in self?.carryOut(effect, of: side) }
            sides.withLock { $0[side] = Side(rules: rules, runner: runner) }
        }
        let listening = core.listen { [weak self] event in self?.hear(event) }
        state.withLock { $0.listening = listening }
    }

    deinit {
        for (side, one) in sides.withLock({ $0 }) where one.rules.read(\.isOpen) {
            core.send(.media(.close(.init(side: side))))
        }
    }

    /// Calls `user` with each event until the returned token is released.
    func attach(_ user: @escaping @Sendable (Event) -> Void) -> Listening {
        let id = state.withLock { state in
            state.userCount += 1
            state.users.append((state.userCount, user))
            return state.userCount
        }
        return Listening { [weak self] in
            let ended = self?.state.withLock { state in
                state.users.firstIndex { $0.id == id }.map { state.users.remove(at: $0).user }
            }
            // Release the closure, and what it holds, outside the lock.
            withExtendedLifetime(ended) {}
        }
    }

    // MARK: Pairs

    /// The state of the receiving connection.
    var receiving: PeerState { side(.receive)?.rules.read(\.state) ?? .new }

    /// Reserves a pair that sends these layers.
    func takeOutgoing(layers: [Layer]) throws(ConfabError) -> Pair { try take(.send, layers) }

    /// Reserves a pair that receives a stream from the server.
    func takeSlot() throws(ConfabError) -> Pair { try take(.receive, []) }

    private func take(_ side: MediaSide, _ layers: [Layer]) throws(ConfabError) -> Pair {
        let (pair, plans) = state.withLock { state -> (Pair?, [TransceiverPlan]) in
            // Take the pair that has been free the longest, because the others may still receive packets of their
            // previous streams.
            let index = state.pairs.firstIndex { !$0.isTaken && $0.pair.side == side && $0.layers == layers }
            if let index {
                var one = state.pairs.remove(at: index)
                one.isTaken = true
                state.pairs.append(one)
                return (one.pair, [])
            }
            guard state.pairs.count(where: { $0.pair.side == side }) < Self.maxPairs else { return (nil, []) }
            state.planCount += 2
            let pair = Pair(side: side, audio: state.planCount - 1, video: state.planCount)
            state.pairs.append((pair, layers, true))
            let direction: MediaDirection = side == .send ? .sendOnly : .receiveOnly
            let plans = TrackKind.allCases.map { kind in
                var plan = TransceiverPlan(id: pair.id(kind), kind: kind, direction: direction)
                if kind == .video, !layers.isEmpty { (plan.layers, plan.rids) = (layers, Layer.initial) }
                return plan
            }
            return (pair, plans)
        }
        guard let pair else { throw .tooManyStreams }
        for plan in plans { post(.add(plan), to: side) }
        if plans.isEmpty, side == .send { want(layers.isEmpty ? nil : Layer.initial, on: pair) }
        if plans.isEmpty, side == .receive { post(.reuse(pair.video), to: side) }
        return pair
    }

    /// Releases a pair, so that it can be reused. Until then, the pair sends nothing.
    func release(_ pair: Pair) {
        if pair.side == .send { for kind in TrackKind.allCases { send(nil, kind, on: pair) } }
        state.withLock { state in
            // Move the pair to the end, so that it is reused last.
            guard let index = state.pairs.firstIndex(where: { $0.pair == pair }) else { return }
            var one = state.pairs.remove(at: index)
            one.isTaken = false
            state.pairs.append(one)
        }
    }

    func send(_ source: MediaSource?, _ kind: TrackKind, on pair: Pair) {
        post(.replace(pair.id(kind), source), to: .send)
    }
    /// Sends exactly the layers of a video with these RIDs; nil for all.
    func want(_ rids: [String]?, on pair: Pair) { post(.activate(pair.video, rids), to: .send) }

    /// Returns the mids of a pair. If requests may not use them yet, negotiates, and waits until an offer that
    /// contains them is on its way or was answered.
    func mids(_ pair: Pair) async throws(ConfabError) -> MediaMids {
        try await awaitResult { (answer: @escaping Answer) in
            let known = state.withLock { state -> Result<MediaMids, ConfabError>? in
                if let known = state.known(pair) { return .success(known) }
                guard state.pairs.contains(where: { $0.pair == pair }) else { return .failure(.mediaReplaced) }
                state.waiting.append((pair, answer))
                return nil
            }
            if let known { return answer(known) }
            post(.negotiate, to: pair.side)
        }
    }

    /// Returns the track that arrives over a pair; nil until it has been negotiated and found.
    func track(_ kind: TrackKind, on pair: Pair) -> RemoteTrack? {
        state.withLock { state in state.mids[.receive]?[pair.id(kind)].flatMap { state.tracks[$0] } }
    }

    /// Whether a mid of the receiving connection belongs to this pair.
    func uses(_ pair: Pair, mid: String) -> Bool {
        state.withLock { $0.known(pair) }.map { $0.audio == mid || $0.video == mid } ?? false
    }

    func statistics(_ pair: Pair) async -> [Statistic] {
        guard let mids = state.withLock({ $0.known(pair) }) else { return [] }
        let all = await side(pair.side)?.runner.statistics() ?? []
        return all.filter { $0.mid == mids.audio || $0.mid == mids.video }
    }

    // MARK: The two sides

    /// Notifies both sides that the network has changed. Connections that are in use restart ICE.
    func networkChanged() { postAll(.networkChanged) }

    private func side(_ side: MediaSide) -> Side? { sides.withLock { $0[side] } }
    private func post(_ input: SFUTransport.Input, to one: MediaSide) { side(one)?.rules.post(input) }
    private func postAll(_ input: SFUTransport.Input) { for side in MediaSide.allCases { post(input, to: side) } }

    private func hear(_ event: ConnectionEvent) {
        switch event {
        case .message(.media(.closed(let closed))):
            let error = ConfabError(WireError(closed.code, closed.message, retryable: true))
            post(.endedByServer(error), to: closed.side)
        case .connected(_, .resumed): postAll(.networkChanged)
        case .reconnecting: postAll(.lineLost)
        case .connected(_, .restarted), .expired, .ended: reset()
        case .message, .connected: break
        }
    }

    /// Resets both sides, because the server has discarded both connections.
    private func reset() {
        let ended = state.withLock { state in
            defer { (state.pairs, state.mids, state.tracks) = ([], [:], [:]) }
            return state.tracks
        }
        postAll(.reset)
        // Release the tracks outside the lock.
        withExtendedLifetime(ended) {}
    }

    private func carryOut(_ effect: SFUTransport.Effect, of side: MediaSide) {
        switch effect {
        case .step(let step):
            switch step {
            case .open, .close: forget(side)
            default: break
            }
            self.side(side)?.runner.run(step)
        case .request(let number, let sdp):
            core.send(.media(.offer(.init(side: side, sdp: sdp)))) { [weak self] result in
                self?.post(.answered(number, result.flatMap(Self.answer)), to: side)
            }
        case .mids(let mids, let isRenewed):
            let due = state.withLock { state -> [(Answer, MediaMids)] in
                state.mids[side] = mids
                let waiting = state.waiting
                state.waiting = waiting.filter { state.known($0.pair) == nil }
                return waiting.compactMap { one in state.known(one.pair).map { (one.answer, $0) } }
            }
            for (answer, mids) in due { answer(.success(mids)) }
            if isRenewed { tell(.renewed(side)) }
        case .found(let mid, let track):
            state.withLock { $0.tracks[mid] = track }
            tell(.found(mid: mid))
        case .state(let next): if side == .receive { tell(.state(next)) }
        case .firstFrame(let mid): tell(.firstFrame(mid: mid))
        case .failed(let error): tell(.failed(error))
        case .notSent(let source, let error): tell(.notSent(source, error))
        case .notAdded(let id, let error):
            state.withLock { $0.pairs.removeAll { $0.pair.audio == id || $0.pair.video == id } }
            refuse(error) { $0.audio == id || $0.video == id }
            tell(.failed(error))
        case .refused(let error): refuse(error) { $0.side == side }
        }
    }

    /// Fails the pending requests for the mids of the pairs that `isMeant` selects.
    private func refuse(_ error: ConfabError, _ isMeant: @Sendable (Pair) -> Bool) {
        let refused = state.withLock { state in
            let waiting = state.waiting
            state.waiting = waiting.filter { !isMeant($0.pair) }
            return waiting.filter { isMeant($0.pair) }
        }
        for (_, answer) in refused { answer(.failure(error)) }
    }

    private func forget(_ side: MediaSide) {
        let ended = state.withLock { state -> [String: RemoteTrack] in
            state.mids[side] = nil
            guard side == .receive else { return [:] }
            defer { state.tracks = [:] }
            return state.tracks
        }
        // Release the tracks outside the lock.
        withExtendedLifetime(ended) {}
    }

    private func tell(_ event: Event) { for (_, user) in state.withLock({ $0.users }) { user(event) } }

    @Sendable private static func answer(_ message: ServerMessage) -> Result<String, ConfabError> {
        if case .media(.answer(let answer)) = message { return .success(answer.sdp) }
        return .failure(.unexpected(message, for: "media.offer"))
    }
}

extension SFUConnections.State {
    fileprivate func known(_ pair: SFUConnections.Pair) -> MediaMids? {
        guard let audio = mids[pair.side]?[pair.audio], let video = mids[pair.side]?[pair.video] else { return nil }
        return MediaMids(audio: audio, video: video)
    }
}

extension Layer {
    /// The RIDs of the layers that are sent until the server requests others.
    static let initial = ["f"]

    /// Returns the layers for a video of this size; empty for one encoding, also if the size is unknown.
    static func simulcast(of size: VideoSize?) -> [Layer] {
        guard let size, min(size.width, size.height) >= 480 else { return [] }
        let full = Layer(rid: "f", scale: 1, maxBitrate: 1_500_000)
        // Use two layers, because WebRTC encodes at most two layers of a video below this size.
        guard size.width * size.height >= 490_000 else {
            return [full, Layer(rid: "h", scale: 2, maxBitrate: 300_000)]
        }
        return [full, Layer(rid: "h", scale: 2, maxBitrate: 500_000), Layer(rid: "q", scale: 4, maxBitrate: 150_000)]
    }
}

extension ClientCore {
    /// Returns the configuration of a peer connection. Requests new ICE servers if the known credentials are about to
    /// expire.
    ///
    /// - Parameter isRelayed: whether media goes directly to another client. Only then is the server's setting to hide
    ///   this device's IP address applied.
    func peerConfiguration(isRelayed: Bool) async throws(ConfabError) -> PeerConfiguration {
        var ice = welcome?.ice ?? ICEConfiguration()
        let deadline = (dependencies.clock.now + .seconds(30)).milliseconds
        if let expiresAt = ice.expiresAt, expiresAt < deadline {
            let answer = try await request(.iceServers)
            guard case .iceServers(let fresh) = answer else { throw .unexpected(answer, for: "ice.servers") }
            ice = fresh.ice
        }
        let servers = ice.servers.map {
            PeerConfiguration.Server(urls: $0.urls ?? [], username: $0.username, credential: $0.credential)
        }
        return PeerConfiguration(servers: servers, relayOnly: isRelayed && ice.relayOnly)
    }
}

extension ConfabError {
    static let tooManyStreams = ConfabError(
        .mediaFailed,
        "A connection carries at most \(SFUConnections.maxPairs) streams in each direction. End some of them.")
}
