import Wire

/// A connection to Redis that is made again whenever it is lost, as a state machine without sockets.
///
/// It does not decide where the server is: it asks with `locate`. Invariants: each submitted request is completed exactly
/// once, the number and bytes of requests that wait are bounded, and so is the rate of attempts to connect, whatever
/// `moved` reports.
///
/// After a loss, requests that were sent fail, because they may have been executed. Those that were not sent wait for the
/// next connection until their deadlines.
///
/// A server that sends nothing while an answer is awaited is given up. If nothing is awaited, `PING` is sent from time to
/// time, so that a dead server is noticed also when nothing is requested.
package struct RedisConnection: Sendable {
    /// The number of an attempt to connect, and of the connection that results from it. Counted from 1.
    package typealias Attempt = UInt64

    /// Legal next states: `idle` → `locating`; `locating` → `connecting`; `connecting` → `greeting`, `waiting`; `greeting` →
    /// `ready`, `waiting`; `ready` → `connecting`, `waiting`; `waiting` → `locating`, `connecting`. From each, `close` leads
    /// to `closed`.
    private enum State {
        case idle
        case locating
        case connecting(Attempt, RedisEndpoint, until: Timestamp)
        /// The version is known when `HELLO` has been answered. Then the answer to `PING` is awaited.
        case greeting(Attempt, RedisEndpoint, until: Timestamp, version: String?)
        case ready(Attempt, RedisEndpoint, since: Timestamp)
        /// The pause before the next attempt.
        case waiting(until: Timestamp, Next)
        case closed
    }

    /// What follows a pause.
    private enum Next {
        case locate(failed: RedisEndpoint?)
        case open(RedisEndpoint)
    }

    private let settings: Settings
    private let greeting: RedisGreeting
    private var random: any RandomNumberGenerator & Sendable
    private var state = State.idle
    private var reported = RedisState.connecting
    private var attempts: Attempt = 0
    private var lastAttempt: Timestamp?
    private var backoff: Backoff
    private var parser: RESPParser
    private var requests = RedisRequests()
    /// When the server last sent something, and since when an answer is awaited without interruption.
    private var heard = Timestamp(milliseconds: 0)
    private var awaited = Timestamp(milliseconds: 0)
    private var now = Timestamp(milliseconds: 0)
    /// The effects that result from the event that is being handled.
    private var effects: [Effect] = []

    package init(settings: Settings, random: some RandomNumberGenerator & Sendable) {
        (self.settings, self.random) = (settings, random)
        greeting = RedisGreeting(role: settings.role, clientName: settings.clientName)
        backoff = Backoff(longest: settings.longestPause)
        parser = RESPParser(limits: settings.limits)
    }

    /// The number of requests that wait.
    package var requestCount: Int { requests.count }

    /// Handles an event and returns what the shell must do.
    package mutating func handle(_ event: Event, now: Timestamp) -> [Effect] {
        self.now = now
        switch event {
        case .start:
            if case .idle = state { locate(failed: nil) }
        case .located(let endpoint):
            if case .locating = state { open(endpoint) }
        case .moved(let endpoint): move(to: endpoint)
        case .opened(let attempt): greet(attempt)
        case .received(let attempt, let bytes): receive(bytes, attempt)
        case .closed(let attempt, let reason):
            if attempt == current?.attempt { lose(RedisError(.connectionLost, reason), isOpen: false) }
        case .submit(let id, let request, let deadline, let onlyOn): submit(id, request, deadline, onlyOn)
        case .abandon(let error): lose(error)
        case .close: close()
        }
        defer { effects = [] }
        return effects
    }

    // MARK: Time

    /// When to call `handleTimeout`; nil while nothing is limited in time. May be earlier than necessary.
    package var nextTimeout: Timestamp? {
        let deadline = requests.earliestDeadline
        switch state {
        case .connecting(_, _, let until), .greeting(_, _, let until, _), .waiting(let until, _):
            return deadline.map { min($0, until) } ?? until
        case .ready: return deadline.map { min($0, silenceLimit) } ?? silenceLimit
        case .idle, .locating, .closed: return deadline
        }
    }

    /// When a ready server has been silent for too long.
    private var silenceLimit: Timestamp {
        requests.sent.isEmpty ? heard + settings.idleTime : max(heard, awaited) + settings.longestSilence
    }

    /// Carries out what is due: the next attempt, a check, or the end of something that took too long.
    package mutating func handleTimeout(now: Timestamp) -> [Effect] {
        self.now = now
        for pending in requests.takeExpired(at: now) {
            finish(pending, .failure(RedisError(.timedOut, "Redis could not be reached in time.")))
        }
        switch state {
        case .waiting(let until, .locate(let failed)) where until <= now: locate(failed: failed)
        case .waiting(let until, .open(let endpoint)) where until <= now: open(endpoint)
        case .connecting(_, let endpoint, let until) where until <= now,
            .greeting(_, let endpoint, let until, _) where until <= now:
            lose(RedisError(.connectionLost, "\(endpoint) did not answer within \(settings.connectTimeout)."))
        case .ready(let attempt, let endpoint, _): check(attempt, endpoint)
        default: break
        }
        defer { effects = [] }
        return effects
    }

    /// Gives up a server that is late or silent, and sends `PING` to one from which nothing is awaited.
    private mutating func check(_ attempt: Attempt, _ endpoint: RedisEndpoint) {
        // Redis answers in order, so all later requests are late as well.
        if requests.isAnswerLate(at: now) { return lose(RedisError(.timedOut, "Redis did not answer in time.")) }
        resume()
        guard silenceLimit <= now else { return }
        guard requests.sent.isEmpty else {
            return lose(RedisError(.timedOut, "\(endpoint) sent nothing for \(settings.longestSilence)."))
        }
        add(nil, .command(RedisCommand("PING")), now + settings.longestSilence, onlyOn: attempt, bytes: 0)
    }

    // MARK: Connecting

    /// The connection that is open or being opened.
    private var current: (attempt: Attempt, endpoint: RedisEndpoint)? {
        switch state {
        case .connecting(let attempt, let endpoint, _), .greeting(let attempt, let endpoint, _, _),
            .ready(let attempt, let endpoint, _):
            (attempt, endpoint)
        case .idle, .locating, .waiting, .closed: nil
        }
    }

    private mutating func locate(failed: RedisEndpoint?) {
        state = .locating
        effects.append(.locate(failed: failed))
    }

    private mutating func move(to endpoint: RedisEndpoint) {
        switch state {
        case .idle, .closed: return
        case .locating: return open(endpoint)
        case .waiting: break
        case .connecting, .greeting, .ready:
            guard current?.endpoint != endpoint else { return }
            lose(RedisError(.notPrimary, "The primary is \(endpoint) now."))
        }
        guard case .waiting(let until, _) = state else { return }
        // The sender of these messages could send many, so an attempt that follows another one soon has to wait.
        if let lastAttempt, now - lastAttempt < settings.longestPause {
            state = .waiting(until: until, .open(endpoint))
        } else {
            open(endpoint)
        }
    }

    private mutating func open(_ endpoint: RedisEndpoint) {
        attempts += 1
        lastAttempt = now
        state = .connecting(attempts, endpoint, until: now + settings.connectTimeout)
        effects.append(.open(attempts, endpoint))
    }

    private mutating func greet(_ attempt: Attempt) {
        guard case .connecting(attempt, let endpoint, let until) = state else { return }
        state = .greeting(attempt, endpoint, until: until, version: nil)
        var bytes: [UInt8] = []
        for command in greeting.commands(settings.credentials.of(endpoint)) { command.encode(into: &bytes) }
        effects.append(.write(attempt, bytes))
    }

    /// Gives up the connection. Requests that were sent fail.
    ///
    /// - Parameter answered: a request that Redis answered with this error.
    private mutating func lose(
        _ error: RedisError, isOpen: Bool = true, answered: RedisRequests.Pending? = nil
    ) {
        guard let (attempt, endpoint) = current else { return }
        if isOpen { effects.append(.disconnect(attempt)) }
        var failed: RedisEndpoint? = endpoint
        if case .ready(_, _, let since) = state {
            failed = nil
            // A server that accepts connections and closes them soon must not be tried without pauses.
            if now - since >= settings.longestPause { backoff = Backoff(longest: settings.longestPause) }
        }
        state = .waiting(until: now + backoff.next(using: &random), .locate(failed: failed))
        parser = RESPParser(limits: settings.limits)
        report(.disconnected(error))
        if let answered { finish(answered, .failure(error)) }
        fail(.connectionLost, "The connection to Redis was lost: \(error.message)")
    }

    /// Fails what was sent, and what may be sent only on this connection.
    private mutating func fail(_ code: RedisError.Code, _ message: String) {
        let (lost, bound) = requests.takeLost()
        for pending in lost {
            let error =
                pending.deadline <= now
                ? RedisError(.timedOut, "Redis did not answer in time.", mayHaveExecuted: true)
                : RedisError(code, message, mayHaveExecuted: true)
            finish(pending, .failure(error))
        }
        for pending in bound { finish(pending, .failure(RedisError(code, message))) }
    }

    private mutating func close() {
        if case .closed = state { return }
        if let current { effects.append(.disconnect(current.attempt)) }
        state = .closed
        report(.closed)
        let message = "The connection to Redis was closed."
        fail(.closed, message)
        for pending in requests.takeWaiting() { finish(pending, .failure(RedisError(.closed, message))) }
    }

    private mutating func report(_ state: RedisState) {
        guard state != reported else { return }
        reported = state
        effects.append(.changed(state))
    }

    // MARK: Requests

    private mutating func submit(
        _ id: UInt64, _ request: RedisRequest, _ deadline: Timestamp, _ onlyOn: Attempt?
    ) {
        let bytes = request.byteCount
        if let error = refusal(bytes, deadline, onlyOn) { return effects.append(.complete(id, .failure(error))) }
        add(id, request, deadline, onlyOn: onlyOn, bytes: bytes)
    }

    private func refusal(_ bytes: Int, _ deadline: Timestamp, _ onlyOn: Attempt?) -> RedisError? {
        if case .closed = state { return RedisError(.closed, "The connection to Redis was closed.") }
        // If it were sent, its answer would be late, and the connection be given up.
        guard deadline > now else { return RedisError(.timedOut, "There was no time left for this command.") }
        if let onlyOn {
            guard case .ready(onlyOn, _, _) = state else {
                return RedisError(.connectionLost, "The connection for which this command was meant is lost.")
            }
        }
        guard requestCount < settings.maxRequests, requests.bytes + bytes <= settings.maxRequestBytes else {
            return RedisError(.overloaded, "Too many commands wait for Redis. Try again later.")
        }
        return nil
    }

    private mutating func add(
        _ id: UInt64?, _ request: RedisRequest, _ deadline: Timestamp, onlyOn: Attempt?, bytes: Int
    ) {
        requests.add(.init(id: id, request: request, deadline: deadline, onlyOn: onlyOn, bytes: bytes))
        flush()
    }

    /// Sends what waits, if that is possible now.
    private mutating func flush() {
        guard case .ready(let attempt, _, _) = state else { return }
        let wasIdle = requests.sent.isEmpty
        guard let bytes = requests.send() else { return }
        if wasIdle { awaited = now }
        effects.append(.write(attempt, bytes))
    }

    private mutating func finish(_ pending: RedisRequests.Pending, _ result: Result<RESPValue, RedisError>) {
        if let id = pending.id { effects.append(.complete(id, result)) }
    }

    // MARK: Answers

    private mutating func receive(_ bytes: [UInt8], _ attempt: Attempt) {
        guard current?.attempt == attempt else { return }
        heard = now
        parser.append(bytes)
        // A value can end the connection. What follows it is ignored then.
        while let current, current.attempt == attempt {
            do {
                guard let value = try parser.next() else { return }
                take(value.content, current.endpoint)
            } catch {
                lose(RedisError(.protocolViolation, "\(current.endpoint) sent something that is not RESP3 (\(error))."))
            }
        }
    }

    private mutating func take(_ value: RESPValue, _ endpoint: RedisEndpoint) {
        switch (value, state) {
        case (.push(let elements), .ready): push(elements)
        case (.push, _): break
        case (_, .greeting(let attempt, _, let until, let version)):
            do throws(RedisError) {
                if let version {
                    try greeting.check(ping: value, from: endpoint)
                    state = .ready(attempt, endpoint, since: now)
                    report(.ready(RedisServer(connection: attempt, endpoint: endpoint, version: version)))
                    flush()
                } else {
                    let version = try greeting.check(hello: value, from: endpoint)
                    state = .greeting(attempt, endpoint, until: until, version: version)
                }
            } catch {
                lose(error)
            }
        case (_, .ready): answer(value)
        // The server may speak only after the greeting.
        default: lose(RedisError(.protocolViolation, "\(endpoint) sent something before the greeting."))
        }
    }

    private mutating func push(_ elements: [RESPValue]) {
        guard let kind = elements.first?.text, kind == requests.sent.first?.request.confirmation,
            let pending = requests.takeAnswered()
        else { return effects.append(.pushed(elements)) }
        finish(pending, .success(.push(elements)))
        resume()
    }

    private mutating func answer(_ value: RESPValue) {
        guard let pending = requests.takeAnswered() else {
            return lose(RedisError(.protocolViolation, "Redis answered a command that was not sent."))
        }
        guard let text = value.errorText else {
            finish(pending, .success(value))
            return resume()
        }
        let error = RedisError(serverText: text)
        if error.serverCode == "NOSCRIPT", pending.request.isScript, !pending.sendsText {
            requests.sendAgain(pending)
        } else if error.code == .notPrimary, settings.role == .primary, pending.id != nil {
            // Sentinel closes the connections to a server that becomes a replica, but perhaps not immediately.
            return lose(error, answered: pending)
        } else {
            finish(pending, .failure(error))
        }
        resume()
    }

    /// Sends scripts again that the server did not know, once everything before them is answered, and then what waits.
    private mutating func resume() {
        requests.resume()
        flush()
    }
}
