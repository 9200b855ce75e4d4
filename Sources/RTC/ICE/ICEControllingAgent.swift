/// The controlling ICE agent (RFC 8445 §6, §7, §8.1.1: regular nomination). It does not gather candidates: its owner adds every
/// pair of a socket and a remote candidate. The agent checks them, nominates the best pair that answers, and keeps checking
/// consent (RFC 7675).
///
/// Each check is a separate transaction, retried with a doubling timeout. A response to any of a pair's recent checks counts.
/// The agent answers the remote agent's checks. A check from an unknown address adds a pair (RFC 8445 §7.3.1.3), because a browser
/// hides its addresses behind names that only it can resolve.
public struct ICEControllingAgent {
    /// The maximum number of pairs, enough for IPv4 and IPv6, a few interfaces, and UDP and TCP, times the server's addresses.
    public static let maxPairs = 32
    /// The number of unanswered checks after which a pair fails. Sending them takes about eight seconds.
    public static let maxAttempts = 7
    /// How many recent checks of a pair a response can match.
    private static let maxRecent = 8

    /// A pair's progress: waiting → checking → valid → nominating → selected. A pair can fail while it is checking or
    /// nominating; a late response makes it valid again. After a restart or a loss of consent, all pairs that are kept
    /// return to waiting.
    private enum Stage: Equatable {
        case waiting
        case checking(again: MediaTime)
        case valid
        case nominating(again: MediaTime)
        case selected(again: MediaTime)
        case failed

        var due: MediaTime? {
            switch self {
            case .checking(let again), .nominating(let again), .selected(let again): again
            case .waiting, .valid, .failed: nil
            }
        }
    }

    /// A check that was sent, and whether it nominates its pair.
    private struct Check {
        var transaction: STUNTransaction
        var isNomination: Bool
    }

    /// A local socket and a remote address, with the progress of their checks.
    private struct Pair {
        var path: Path
        var priority: UInt32
        var stage = Stage.waiting
        var recent: [Check] = []
        var unanswered = 0
    }

    public private(set) var local: ICECredentials
    private var remote: ICECredentials?
    private let tieBreaker: UInt64
    /// All pairs, sorted by descending priority.
    private var pairs: [Pair] = []
    /// The earliest time for the initial check of the next waiting pair.
    private var nextFirstCheck: MediaTime
    private var firstValid: MediaTime?
    private var lastConsent: MediaTime?
    /// The path of the nominated pair, which carries media. A restart keeps the old path until another pair is nominated.
    public private(set) var selectedPath: Path?

    public init(local: ICECredentials, using random: inout some RandomNumberGenerator) {
        self.local = local
        tieBreaker = random.next()
        nextFirstCheck = MediaTime(nanoseconds: .min)
    }

    /// Sets the server's credentials. Checks start with the next `handleTimeout`.
    public mutating func setRemote(_ remote: ICECredentials) { self.remote = remote }

    /// Adds a pair of a local socket and a server candidate. If there are already `maxPairs`, it replaces the worst pair that has
    /// failed, and is ignored if none has.
    /// - Parameter priority: the priority of the server's candidate in SDP; larger is better.
    public mutating func add(_ path: Path, priority: UInt32) {
        guard !pairs.contains(where: { $0.path == path }) else { return }
        if pairs.count >= Self.maxPairs {
            guard let failed = pairs.lastIndex(where: { $0.stage == .failed }) else { return }
            pairs.remove(at: failed)
        }
        let place = pairs.firstIndex { $0.priority < priority } ?? pairs.endIndex
        pairs.insert(Pair(path: path, priority: priority), at: place)
    }

    /// Removes the pairs of a closed socket.
    public mutating func remove(socket: UInt32) {
        pairs.removeAll { $0.path.socket == socket }
        if selectedPath?.socket == socket { (selectedPath, lastConsent) = (nil, nil) }
    }

    /// Restarts ICE with new credentials. Removes all pairs except the selected one: a remote agent that changes its
    /// network would otherwise fill the list with addresses that it no longer has. The selected path stays until
    /// another pair is nominated or the path's consent expires. The owner must add the candidates of the new
    /// description.
    public mutating func restart(local: ICECredentials, remote: ICECredentials) {
        (self.local, self.remote) = (local, remote)
        pairs.removeAll { $0.path != selectedPath }
        resetPairs()
    }

    private mutating func resetPairs() {
        firstValid = nil
        for index in pairs.indices {
            (pairs[index].stage, pairs[index].unanswered) = (.waiting, 0)
            pairs[index].recent.removeAll()
        }
    }

    public func isValidated(_ path: Path) -> Bool {
        path == selectedPath || pairs.contains { $0.path == path && isGood($0.stage) }
    }

    /// The selected path, or else the path with the highest priority that has answered; nil if none has.
    public var validatedPath: Path? { selectedPath ?? pairs.first { isGood($0.stage) }?.path }

    private func isGood(_ stage: Stage) -> Bool {
        switch stage {
        case .valid, .nominating, .selected: true
        case .waiting, .checking, .failed: false
        }
    }

    /// Whether all pairs have failed, so that there is no path. False while there are no pairs. A restart, an
    /// additional pair or a late response can change this to false.
    public var hasFailed: Bool { !pairs.isEmpty && selectedPath == nil && pairs.allSatisfy { $0.stage == .failed } }

    // MARK: Responses

    /// Processes a datagram whose first byte identifies STUN.
    public mutating func handle(
        _ datagram: UnsafeRawBufferPointer, on path: Path, now: MediaTime, sink: any DatagramSink,
        using random: inout some RandomNumberGenerator
    ) -> ICEOutcome {
        guard let message = STUNMessage(datagram), message.method == STUN.binding, let remote else {
            return .dropped(.malformed)
        }
        if message.class == .request { return answer(message, from: remote, on: path, sink) }
        guard message.class == .success, message.mappedAddress != nil else { return .dropped(.malformed) }
        // RFC 8445 §7.2.5.2.1: a response must arrive on the path of its request.
        guard let index = pairs.firstIndex(where: { $0.path == path }),
            let check = pairs[index].recent.first(where: { $0.transaction == message.transaction })
        else { return .dropped(.unsolicited) }
        guard message.isAuthentic(Array(remote.password.utf8)) else { return .dropped(.unauthenticated) }
        let outcome = answered(index, check, now, &random)
        decide(now, sink, &random)
        return outcome
    }

    private mutating func answer(
        _ request: STUNMessage, from remote: ICECredentials, on path: Path, _ sink: any DatagramSink
    ) -> ICEOutcome {
        guard request.isAddressed(to: Array("\(local.ufrag):\(remote.ufrag)".utf8)) else {
            return .dropped(.unknownName)
        }
        let key = Array(local.password.utf8)
        guard request.isAuthentic(key) else { return .dropped(.unauthenticated) }
        var writer = STUNWriter(sink.prepare(STUN.maxBytes), .success, transaction: request.transaction)
        writer.xorMappedAddress(path.remote)
        if let length = writer.finish(key: key) { sink.send(length, on: path) }
        // Add the path if it is not known yet. Its priority is the lowest, because a path to one of the server's
        // candidates is better.
        add(path, priority: 0)
        return .refreshed
    }

    private mutating func answered(
        _ index: Int, _ check: Check, _ now: MediaTime, _ random: inout some RandomNumberGenerator
    ) -> ICEOutcome {
        pairs[index].unanswered = 0
        switch pairs[index].stage {
        case .checking, .waiting, .failed:
            pairs[index].stage = .valid
            if firstValid == nil { firstValid = now }
            return .validated
        case .nominating where check.isNomination:
            let isAnother = selectedPath != pairs[index].path
            (selectedPath, lastConsent) = (pairs[index].path, now)
            pairs[index].stage = .selected(again: now + jittered(&random))
            return isAnother ? .selected : .refreshed
        case .selected:
            lastConsent = now
            pairs[index].stage = .selected(again: now + jittered(&random))
            return .refreshed
        case .valid, .nominating: return .refreshed
        }
    }

    /// Returns the time to the next consent check: 0.8 to 1.2 times the period (RFC 7675 §5.1).
    private func jittered(_ random: inout some RandomNumberGenerator) -> MediaInterval {
        let fifth = ICETimes.consentCheck.nanoseconds / 5
        return MediaInterval(
            nanoseconds: ICETimes.consentCheck.nanoseconds + Int64.random(in: -fifth...fifth, using: &random))
    }

    // MARK: Time

    public var nextTimeout: MediaTime? {
        guard remote != nil else { return nil }
        var next = lastConsent.map { $0 + ICETimes.consent }
        func consider(_ time: MediaTime?) {
            if let time { next = min(next ?? time, time) }
        }
        for pair in pairs { consider(pair.stage.due) }
        if pairs.contains(where: { $0.stage == .waiting }) { consider(nextFirstCheck) }
        if !isDecided, let firstValid, pairs.contains(where: { $0.stage == .valid }) {
            consider(firstValid + ICETimes.nominationDelay)
        }
        return next
    }

    public mutating func handleTimeout(
        now: MediaTime, sink: any DatagramSink, using random: inout some RandomNumberGenerator
    ) {
        guard remote != nil else { return }
        if let lastConsent, lastConsent + ICETimes.consent <= now {
            (selectedPath, self.lastConsent) = (nil, nil)
            resetPairs()
        }
        for index in pairs.indices {
            guard let due = pairs[index].stage.due, due <= now else { continue }
            check(index, now, sink, &random)
        }
        if nextFirstCheck <= now, let index = pairs.firstIndex(where: { $0.stage == .waiting }) {
            pairs[index].stage = .checking(again: now)
            check(index, now, sink, &random)
            nextFirstCheck = now + ICETimes.pacing
        }
        decide(now, sink, &random)
    }

    private var isDecided: Bool {
        pairs.contains {
            switch $0.stage {
            case .nominating, .selected: true
            default: false
            }
        }
    }

    /// Nominates the best valid pair once no better pair can become valid, or after `nominationDelay`. RFC 8445 §8.1.1 lets the
    /// controlling agent choose the criteria.
    private mutating func decide(_ now: MediaTime, _ sink: any DatagramSink, _ random: inout some RandomNumberGenerator)
    {
        guard !isDecided, let firstValid, let best = pairs.firstIndex(where: { $0.stage == .valid }) else { return }
        let isBetterPending = pairs[..<best].contains { $0.stage != .failed }
        guard !isBetterPending || firstValid + ICETimes.nominationDelay <= now else { return }
        pairs[best].unanswered = 0
        pairs[best].stage = .nominating(again: now)
        check(best, now, sink, &random)
    }

    /// Sends a check and schedules the next, or marks the pair as failed.
    private mutating func check(
        _ index: Int, _ now: MediaTime, _ sink: any DatagramSink, _ random: inout some RandomNumberGenerator
    ) {
        let unanswered = pairs[index].unanswered
        let wait = min(
            ICETimes.firstRetransmission * (1 << Int64(min(unanswered, 8))), ICETimes.longestRetransmission)
        switch pairs[index].stage {
        case .selected: pairs[index].stage = .selected(again: now + ICETimes.consentRetry)
        case .checking where unanswered < Self.maxAttempts: pairs[index].stage = .checking(again: now + wait)
        case .nominating where unanswered < Self.maxAttempts: pairs[index].stage = .nominating(again: now + wait)
        default:
            pairs[index].stage = .failed
            return
        }
        pairs[index].unanswered = unanswered &+ 1
        send(index, sink, &random)
    }

    private mutating func send(
        _ index: Int, _ sink: any DatagramSink, _ random: inout some RandomNumberGenerator
    ) {
        guard let remote else { return }
        let isNomination: Bool
        // Nominate the selected path again with each check, so that a lite agent gets the new address if a NAT changes
        // it.
        if case .checking = pairs[index].stage { isNomination = false } else { isNomination = true }
        let transaction = STUNTransaction(using: &random)
        var writer = STUNWriter(sink.prepare(STUN.maxBytes), .request, transaction: transaction)
        writer.username(Array("\(remote.ufrag):\(local.ufrag)".utf8))
        writer.priority(pairs[index].priority)
        writer.controlling(tieBreaker: tieBreaker)
        if isNomination { writer.useCandidate() }
        guard let length = writer.finish(key: Array(remote.password.utf8)) else { return }
        pairs[index].recent.append(Check(transaction: transaction, isNomination: isNomination))
        if pairs[index].recent.count > Self.maxRecent { pairs[index].recent.removeFirst() }
        sink.send(length, on: pairs[index].path)
    }
}
