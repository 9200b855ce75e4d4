import Wire

/// The state machine of one of the two peer connections with the server (`protocol/README.md` §8): one negotiation at a
/// time, ICE restarts, and a new connection when restarts fail. The client always offers and the server always answers.
/// The answer contains all candidates of the server, and the server needs none from the client.
struct SFUTransport: Sendable {
    /// An event that the state machine handles.
    enum Input: Sendable {
        case add(TransceiverPlan)
        case replace(Int, MediaSource?)
        case activate(Int, [String]?)
        /// Another stream will arrive over the transceiver of this plan.
        case reuse(Int)
        /// An offer with all current transceivers is needed.
        case negotiate
        /// The server's answer to the request with this number.
        case answered(Int, Result<String, ConfabError>)
        case report(PeerReport, connection: Int)
        /// The connection to the server was interrupted and works again, or the network has changed.
        case networkChanged
        /// The connection to the server was interrupted.
        case lineLost
        case endedByServer(ConfabError)
        /// The server no longer keeps this client's connection, and with it has discarded the peer connection.
        case reset
    }

    /// An effect that the state machine's owner carries out.
    enum Effect: Equatable, Sendable {
        case step(PeerStep)
        /// Sends an offer to the server, as the request with this number.
        case request(Int, String)
        /// Requests may use these mids, keyed by the ids of the plans, because an offer that contains them is on its
        /// way or was answered. `isRenewed` is true if the offer begins another connection.
        case mids([Int: String], isRenewed: Bool)
        case state(PeerState)
        case found(mid: String, RemoteTrack)
        case firstFrame(mid: String)
        case failed(ConfabError)
        /// The engine rejected the transceiver of the plan with this number. The plan is dropped.
        case notAdded(Int, ConfabError)
        /// The engine cannot send this source.
        case notSent(MediaSource, ConfabError)
        /// The pending requests for mids fail, because no offer will follow for now.
        case refused(ConfabError)
    }

    /// The step in progress.
    private enum Phase: Equatable, Sendable {
        case closed, opening, idle, offering, asking, accepting
    }
    /// What a timer is for: `attempt` restarts or replaces the connection, `again` repeats an offer that the server
    /// rejected.
    private enum Timer: Hashable, Sendable { case attempt, again }

    /// How long to wait in the state `disconnected`, which often ends without a restart.
    static let disconnectedDelay = Duration.seconds(3)
    /// How long to wait for a restart or a new connection to succeed.
    static let restartPause = Duration.seconds(10)
    /// The longest pause between attempts, which become less frequent as they keep failing.
    static let maxPause = Duration.seconds(60)
    /// After this many failed restarts, the connection is replaced.
    static let maxRestarts = 2
    /// The pause after a rejection if the server does not set one.
    static let retryDelay = Duration.seconds(1)

    /// Whether this is the connection that receives media.
    private let receives: Bool
    private var phase = Phase.closed
    private(set) var plans: [TransceiverPlan] = []
    private(set) var state = PeerState.new
    private var mids: [Int: String] = [:]
    private var found: Set<String> = []
    private var timers = Deadlines<Timer>()
    private var connections = 0
    private var requests = 0
    private var isWanted = false
    private var isNeeded = false
    private var needsRestart = false
    private var hadOffers = false
    /// Whether the server has answered an offer of this connection.
    private var isDescribed = false
    private var isOnline = true
    /// Whether the connection may have failed although its state is `connected`.
    private var isSuspect = false
    private var attempts = 0
    private var attemptedAt: Timestamp?
    /// Whether the mids of the current offer wait for its answer.
    private var holdsMids = false

    init(receives: Bool) { self.receives = receives }

    var nextTimeout: Timestamp? { timers.next }
    var isOpen: Bool { phase != .closed }

    mutating func handle(_ input: Input, now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        switch input {
        case .add(let plan):
            plans.append(plan)
            if phase != .closed { effects.append(.step(.add(plan))) }
        case .replace(let id, let source): replace(id, source, &effects)
        case .activate(let id, let rids): activate(id, rids, &effects)
        case .reuse(let id):
            if phase != .closed, let mid = mids[id] { effects.append(.step(.expectFrame(mid: mid))) }
        case .negotiate: (isWanted, isNeeded) = (true, true)
        case .answered(let number, let result):
            if number == requests, phase == .asking { answered(result, now, &effects) }
        case .report(let report, let connection):
            if connection == connections, phase != .closed { handle(report, now, &effects) }
        case .networkChanged:
            (isOnline, attempts) = (true, 0)
            if isWanted {
                isSuspect = true
                attempt(after: .zero, now)
            }
        case .lineLost: isOnline = false
        case .endedByServer(let error): ended(error, now, &effects)
        case .reset: reset(&effects)
        }
        advance(&effects)
        return effects
    }

    mutating func handleTimeout(now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        for timer in timers.take(now: now) {
            switch timer {
            case .again: isNeeded = isWanted
            case .attempt: attempt(now, &effects)
            }
        }
        advance(&effects)
        return effects
    }

    // MARK: Transceivers

    private mutating func replace(_ id: Int, _ source: MediaSource?, _ effects: inout [Effect]) {
        guard let index = plans.firstIndex(where: { $0.id == id }), plans[index].source != source else { return }
        plans[index].source = source
        if phase != .closed { effects.append(.step(.replace(id, source))) }
    }

    private mutating func activate(_ id: Int, _ rids: [String]?, _ effects: inout [Effect]) {
        guard let index = plans.firstIndex(where: { $0.id == id }), plans[index].rids != rids else { return }
        plans[index].rids = rids
        if phase != .closed { effects.append(.step(.activate(id, rids))) }
    }

    // MARK: Negotiation

    private mutating func advance(_ effects: inout [Effect]) {
        guard isWanted, isNeeded else { return }
        switch phase {
        case .closed:
            connections += 1
            (phase, mids, found, needsRestart) = (.opening, [:], [], false)
            isDescribed = false
            effects.append(.step(.open(plans)))
        case .idle:
            isNeeded = false
            phase = .offering
            if needsRestart { effects.append(.step(.refreshServers)) }
            effects.append(.step(.offer(restartingICE: needsRestart)))
            needsRestart = false
        case .opening, .offering, .asking, .accepting: break
        }
    }

    private mutating func handle(_ report: PeerReport, _ now: Timestamp, _ effects: inout [Effect]) {
        switch (report, phase) {
        case (.opened, .opening): phase = .idle
        case (.offered(let sdp, let offered), .offering):
            let isRenewed = mids.isEmpty && hadOffers
            (phase, mids, hadOffers) = (.asking, offered, true)
            requests += 1
            effects.append(.request(requests, sdp))
            // Over a connection in use, media for new transceivers could arrive before the answer, and WebRTC would
            // then drop its first keyframe. So hold the mids until the answer is applied.
            holdsMids = receives && isDescribed
            if !holdsMids { effects.append(.mids(offered, isRenewed: isRenewed)) }
        case (.accepted, .accepting):
            (phase, isDescribed) = (.idle, true)
            if holdsMids { effects.append(.mids(mids, isRenewed: false)) }
            holdsMids = false
            for plan in plans where plan.direction == .receiveOnly {
                if let mid = mids[plan.id], !found.contains(mid) { effects.append(.step(.find(mid: mid))) }
            }
            if state != .connected, timers[.attempt] == nil { attempt(after: Self.restartPause, now) }
        case (.failed(let error), _):
            // The engine failed. Skip the restarts, because only a new connection can help.
            attempts = max(attempts, Self.maxRestarts)
            phase = phase == .opening ? .closed : .idle
            effects.append(.failed(error))
            effects.append(.refused(error))
            isNeeded = false
            attempt(after: Self.restartPause, now)
        case (.notAdded(let id, let error), _):
            plans.removeAll { $0.id == id }
            effects.append(.notAdded(id, error))
        case (.notReplaced(let source, let error), _):
            for index in plans.indices where plans[index].source == source { plans[index].source = nil }
            effects.append(.notSent(source, error))
        case (.found(let mid, let track), _):
            if found.insert(mid).inserted { effects.append(.found(mid: mid, track)) }
        case (.event(.state(let next)), _): changed(next, now, &effects)
        case (.event(.firstFrame(let mid)), _): effects.append(.firstFrame(mid: mid))
        default: break
        }
    }

    private mutating func answered(
        _ result: Result<String, ConfabError>, _ now: Timestamp, _ effects: inout [Effect]
    ) {
        switch result {
        case .success(let sdp):
            phase = .accepting
            effects.append(.step(.accept(answer: sdp)))
        case .failure(let error):
            phase = .idle
            if error.isRetryable, error.code != .connectionRestarted {
                timers[.again] = now + (error.retryAfter ?? Self.retryDelay)
                return
            }
            effects.append(.refused(error))
            effects.append(.failed(error))
            if error.code == .mediaUnavailable { isWanted = false }
        }
    }

    // MARK: The connection

    private mutating func changed(_ next: PeerState, _ now: Timestamp, _ effects: inout [Effect]) {
        guard next != state, next != .closed else { return }
        state = next
        effects.append(.state(next))
        switch next {
        case .connected: (timers[.attempt], attempts, isSuspect) = (nil, 0, false)
        case .disconnected: attempt(after: Self.disconnectedDelay, now)
        case .failed: attempt(after: .zero, now)
        case .new, .connecting, .closed: break
        }
    }

    private mutating func attempt(after delay: Duration, _ now: Timestamp) {
        let doubling = min(max(0, attempts - Self.maxRestarts), 8)
        let pause = min(Self.maxPause, Self.restartPause * (1 << doubling))
        timers[.attempt] = max(now + delay, attemptedAt.map { $0 + pause } ?? now)
    }

    private mutating func attempt(_ now: Timestamp, _ effects: inout [Effect]) {
        // While the client is disconnected from the server, attempt nothing. `networkChanged` resumes the attempts.
        guard isWanted, isOnline else { return }
        if state == .connected, !isSuspect {
            attempts = 0
            return
        }
        isSuspect = false
        attempts += 1
        attemptedAt = now
        attempt(after: .zero, now)
        if phase != .closed {
            if attempts <= Self.maxRestarts { needsRestart = true } else { shut(&effects) }
        }
        isNeeded = true
    }

    private mutating func ended(_ error: ConfabError, _ now: Timestamp, _ effects: inout [Effect]) {
        // Ignore the message until the first offer of a new connection is answered. Until then it is about the
        // previous connection.
        guard phase != .closed, isDescribed else { return }
        effects.append(.failed(error))
        shut(&effects)
        // The server has discarded the connection, so a restart cannot help.
        attempts = max(attempts, Self.maxRestarts)
        attempt(after: .zero, now)
    }

    private mutating func shut(_ effects: inout [Effect]) {
        guard phase != .closed else { return }
        (phase, mids, found, isSuspect) = (.closed, [:], [], false)
        effects.append(.step(.close))
        let next: PeerState = hadOffers ? .disconnected : .connecting
        if state != next {
            state = next
            effects.append(.state(next))
        }
    }

    private mutating func reset(_ effects: inout [Effect]) {
        effects.append(.refused(.mediaReplaced))
        if phase != .closed { effects.append(.step(.close)) }
        let kept = connections
        let asked = requests
        self = SFUTransport(receives: receives)
        (connections, requests) = (kept, asked)
    }
}

extension ConfabError {
    static let mediaReplaced = ConfabError(
        .connectionRestarted, "The media connection was replaced. Try again.", isRetryable: true)
}
