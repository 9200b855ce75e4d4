import Wire

/// The state machine of relayed media with one other member of the session (`protocol/README.md` §4): perfect
/// negotiation, resends, ICE restarts, and a new peer connection when restarts fail.
///
/// Invariants: at most one negotiation step is in progress. Messages that arrive during a step wait for its end. One
/// of the two peers is polite: if offers cross, the polite peer rolls back its own.
struct RelayedPeer: Sendable {
    /// An event that the state machine handles.
    enum Input: Sendable {
        /// Sends a stream, or changes which of its media is sent.
        case send(StreamID, Outgoing)
        case stopSending(StreamID)
        /// Media from the other peer is expected, so the first offer should request it.
        case expect
        case received(Message)
        /// A report about the connection with this number; connections are counted from 1.
        case report(PeerReport, connection: Int)
        /// The connection to the server works again.
        case resumed
        /// The server rejected a message.
        case refused(Message, ConfabError)
    }

    /// An effect that the state machine's owner carries out.
    enum Effect: Equatable, Sendable {
        case step(PeerStep)
        case post(Message)
        case state(PeerState)
        case arrived(String, mid: String, RemoteTrack)
        case firstFrame(mid: String)
        case failed(ConfabError)
        /// The engine cannot send this source.
        case notSent(MediaSource, ConfabError)
    }

    /// The media of a stream to send.
    struct Outgoing: Equatable, Sendable {
        /// The audio and the video. Each is nil if the stream does not have it or the subscriber does not want it.
        var audio: MediaSource?
        var video: MediaSource?
        func source(_ kind: TrackKind) -> MediaSource? { kind == .audio ? audio : video }
    }

    /// The content of a `session.negotiate` message.
    struct Message: Hashable, Sendable {
        /// A description or a candidate. A nil candidate means the end of candidates.
        enum Content: Hashable, Sendable {
            case description(PeerDescription)
            case candidate(PeerCandidate?)
        }
        var content: Content
        var label = Negotiation.Label()
        /// Maps the media stream ids (msid) in the description to Confab's stream ids, if they differ.
        var names: [String: String] = [:]
    }

    /// The negotiation step in progress.
    enum Phase: Equatable, Sendable {
        case closed
        case opening
        case idle
        case offering(Negotiation.Label)
        case answering(Message, isRepeated: Bool)
        case accepting
    }

    /// What a timer is for.
    enum Timer: Hashable, Sendable {
        case firstOffer, answer, connect, restart
        case post(Int)
    }

    var phase = Phase.closed
    var negotiation: Negotiation
    var plans: [TransceiverPlan] = []
    var timers = Deadlines<Timer>()
    var random: any RandomNumberGenerator & Sendable
    var planCount = 0
    var connections = 0
    var state = PeerState.new
    /// Messages that wait for the current step.
    var inbox: [Message] = []
    /// Candidates that arrived before their description.
    var early: [Message] = []
    /// Messages to resend because the server rejected them for a rate limit, keyed by the number of their timer.
    var refused: [Int: Message] = [:]
    var refusals = 0
    /// The local offer or answer that was sent last; nil before the first.
    var sent: PeerDescription?
    /// How often the pending offer was resent.
    var repeats = 0
    var needsOffer = false
    var needsRestart = false
    var needsRenewal = false
    /// Whether the engine failed to negotiate on this connection, so that a new one is needed.
    var isBroken = false
    var isExpecting = false
    /// The session id of the remote descriptions; nil before the first.
    var origin: String?
    /// Maps the media stream ids (msid) in the remote descriptions to Confab's stream ids.
    var names: [String: String] = [:]
    /// Maps each mid to the id of the stream that arrives over it.
    var arrivals: [String: String] = [:]
    /// Mids whose track has already been reported.
    var found: Set<String> = []
    /// Mids whose first frame arrived before their track was found. The frame is reported with the track.
    var earlyFrames: Set<String> = []
    /// The number of remote candidates handled since the last description was applied.
    var candidates = 0
    /// The answer that is being applied; nil if there is none.
    var accepting: Message?
    /// The offer that is retried on a new connection; nil if there is none.
    var retried: Message?
    var restartedAt: Timestamp?
    /// The number of restarts since media last worked.
    var restarts = 0

    /// When the polite peer makes its first offer if it has not received one; nil if this is not scheduled.
    var firstOfferAt: Timestamp?

    static let firstOfferDelay = Duration.seconds(3)
    /// The maximum number of waiting messages and candidates. No engine gathers this many candidates.
    static let maxWaiting = 100
    /// The maximum number of candidates between two descriptions.
    static let maxCandidates = 1000

    init(isPolite: Bool, random: any RandomNumberGenerator & Sendable) {
        (negotiation, self.random) = (Negotiation(isPolite: isPolite), random)
    }

    var isPolite: Bool { negotiation.isPolite }
    var nextTimeout: Timestamp? { timers.next }
    /// Whether this peer has anything to offer. If not, this peer cannot start a connection.
    var canOffer: Bool { plans.contains { $0.source != nil } || (isExpecting && !isPolite) }

    mutating func handle(_ input: Input, now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        switch input {
        case .send(let stream, let outgoing): send(stream, outgoing, &effects)
        case .stopSending(let stream): stop(stream, &effects)
        case .expect: expect(&effects)
        case .received(let message):
            if inbox.count < Self.maxWaiting { inbox.append(message) }
        case .report(let report, let connection):
            if connection == connections, phase != .closed { handle(report, now, &effects) }
        case .resumed: if phase != .closed, state != .connected { restart(after: .zero, now) }
        case .refused(let message, let error): refuse(message, error, now)
        }
        advance(now, &effects)
        return effects
    }

    mutating func handleTimeout(now: Timestamp) -> [Effect] {
        var effects: [Effect] = []
        for timer in timers.take(now: now) {
            switch timer {
            case .firstOffer: break
            case .answer: repeatOffer(now, &effects)
            case .connect: if state != .connected, timers[.restart] == nil { restart(after: .zero, now) }
            case .restart: attempt(now, &effects)
            case .post(let number):
                if let message = refused.removeValue(forKey: number), isCurrent(message) {
                    effects.append(.post(message))
                }
            }
        }
        advance(now, &effects)
        return effects
    }

    // MARK: Transceivers

    private mutating func send(_ stream: StreamID, _ outgoing: Outgoing, _ effects: inout [Effect]) {
        for kind in TrackKind.allCases {
            let source = outgoing.source(kind)
            if let index = plans.firstIndex(where: { $0.streamID == "\(stream)" && $0.kind == kind }) {
                if plans[index].source != source { change(index, to: source, &effects) }
            } else if source != nil {
                add(kind, .sendOnly, source, stream, &effects)
            }
        }
    }

    private mutating func stop(_ stream: StreamID, _ effects: inout [Effect]) {
        for index in plans.indices where plans[index].streamID == "\(stream)" && plans[index].source != nil {
            change(index, to: nil, &effects)
            plans[index].direction = .inactive
            effects.append(.step(.setDirection(plans[index].id, .inactive)))
            needsOffer = phase != .closed
        }
    }

    private mutating func change(_ index: Int, to source: MediaSource?, _ effects: inout [Effect]) {
        plans[index].source = source
        effects.append(.step(.replace(plans[index].id, source)))
        guard source != nil, plans[index].direction == .inactive else { return }
        plans[index].direction = .sendOnly
        effects.append(.step(.setDirection(plans[index].id, .sendOnly)))
        needsOffer = true
    }

    private mutating func add(
        _ kind: TrackKind, _ direction: MediaDirection, _ source: MediaSource?, _ stream: StreamID?,
        _ effects: inout [Effect]
    ) {
        planCount += 1
        var plan = TransceiverPlan(id: planCount, kind: kind, direction: direction, source: source)
        plan.streamID = stream.map { "\($0)" }
        plans.append(plan)
        if phase != .closed { effects.append(.step(.add(plan))) }
        needsOffer = true
    }

    private mutating func expect(_ effects: inout [Effect]) {
        guard !isExpecting else { return }
        isExpecting = true
        if origin == nil { askForMedia(&effects) }
    }

    /// If media is expected, adds receiving transceivers on the impolite peer, so that its first offer requests media
    /// even if it has nothing to send.
    private mutating func askForMedia(_ effects: inout [Effect]) {
        guard isExpecting, !isPolite else { return }
        for kind in TrackKind.allCases
        where !plans.contains(where: { $0.kind == kind && $0.direction == .receiveOnly }) {
            add(kind, .receiveOnly, nil, nil, &effects)
        }
    }

    // MARK: Progress

    /// Starts the next step if none is in progress.
    private mutating func advance(_ now: Timestamp, _ effects: inout [Effect]) {
        while true {
            switch phase {
            case .closed:
                // If opening has failed, wait for the restart timer.
                guard timers[.restart] == nil else { return }
                open(&effects)
            case .idle:
                if needsRenewal {
                    renew(&effects)
                } else if let message = inbox.first {
                    inbox.removeFirst()
                    take(message, now, &effects)
                } else if !offer(now, &effects) {
                    return
                }
            case .opening, .offering, .answering, .accepting: return
            }
        }
    }

    private mutating func open(_ effects: inout [Effect]) {
        connections += 1
        plans.removeAll { $0.direction == .inactive }
        phase = .closed
        askForMedia(&effects)
        phase = .opening
        needsOffer = !plans.isEmpty
        effects.append(.step(.open(plans)))
    }

    mutating func renew(_ effects: inout [Effect]) {
        (needsRenewal, needsRestart, isBroken) = (false, false, false)
        negotiation.reset()
        (arrivals, found, earlyFrames) = ([:], [], [])
        (origin, sent, firstOfferAt) = (nil, nil, nil)
        for timer in [Timer.firstOffer, .answer, .connect] { timers[timer] = nil }
        open(&effects)
        if state != .new { changeState(.connecting, &effects) }
    }

    /// Starts an offer if one is due.
    ///
    /// - Returns: whether an offer was started.
    private mutating func offer(_ now: Timestamp, _ effects: inout [Effect]) -> Bool {
        guard needsOffer || needsRestart, !negotiation.isOffering, mayOffer(now) else { return false }
        begin(restartingICE: needsRestart, &effects)
        return true
    }

    /// Whether this peer may offer now. The polite peer waits before its first offer, because not all engines recover
    /// when first offers cross.
    private mutating func mayOffer(_ now: Timestamp) -> Bool {
        guard isPolite, origin == nil else { return true }
        let due = firstOfferAt ?? now + Self.firstOfferDelay
        firstOfferAt = due
        if due <= now { return true }
        timers[.firstOffer] = due
        return false
    }

    mutating func begin(restartingICE: Bool, _ effects: inout [Effect]) {
        (needsOffer, needsRestart, repeats) = (false, false, 0)
        let label = negotiation.offer(using: &random)
        phase = .offering(label)
        if restartingICE { effects.append(.step(.refreshServers)) }
        effects.append(.step(.offer(restartingICE: restartingICE)))
    }
}
