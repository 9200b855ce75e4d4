import DequeModule
import Wire

/// A connection to Redis that is made again whenever it is lost, as a state machine without sockets.
///
/// It owns the commands that wait: those that were sent, in the order in which Redis answers them, and those that wait for
/// a connection. It does not decide where the server is: it asks with `locate`. Invariants: each submitted request is
/// completed exactly once, and the number and bytes of requests that wait are bounded.
///
/// After a loss, requests that were sent fail, because they may have been executed. Those that were not sent wait for the
/// next connection until their deadlines.
package struct RedisConnection: Sendable {
    /// The number of an attempt to connect, and of the connection that results from it. Counted from 1.
    package typealias Attempt = UInt64

    /// Legal next states: `idle` → `locating`; `locating` → `connecting`; `connecting` → `greeting`, `waiting`; `greeting` →
    /// `ready`, `waiting`; `ready` → `waiting`; `waiting` → `locating`, `connecting`. From each, `close` leads to `closed`.
    private enum State {
        case idle
        case locating
        case connecting(Attempt, RedisEndpoint, until: Timestamp)
        /// The version is known when `HELLO` has been answered. Then the answer to `PING` is awaited.
        case greeting(Attempt, RedisEndpoint, until: Timestamp, version: String?)
        case ready(Attempt, RedisEndpoint, since: Timestamp)
        /// The pause before the next attempt.
        case waiting(until: Timestamp, failed: RedisEndpoint?)
        case closed
    }

    private struct Pending {
        let id: UInt64
        let request: RedisRequest
        let deadline: Timestamp
        let onlyOn: Attempt?
        let bytes: Int
        /// Whether to send a script's text, because the server did not have the script.
        var sendsText = false
    }

    private let settings: Settings
    private let greeting: RedisGreeting
    private var random: any RandomNumberGenerator & Sendable
    private var state = State.idle
    private var reported = RedisState.connecting
    private var attempts: Attempt = 0
    private var backoff: Backoff
    private var parser: RESPParser
    /// Requests that were sent, in the order of their answers.
    private var sent: Deque<Pending> = []
    /// Requests that were not sent yet.
    private var waiting: Deque<Pending> = []
    /// Scripts that the server did not have. While there are any, nothing is sent: they are sent again in their order,
    /// before later requests, when all that was sent has been answered.
    private var unknownScripts: Deque<Pending> = []
    private var requestBytes = 0
    /// No deadline of a request is earlier.
    private var earliestDeadline: Timestamp?
    private var now = Timestamp(milliseconds: 0)
    /// The effects that result from the event that is being handled.
    private var effects: [Effect] = []

    package init(settings: Settings, random: some RandomNumberGenerator & Sendable) {
        (self.settings, self.random) = (settings, random)
        greeting = RedisGreeting(
            role: settings.role, credentials: settings.credentials, clientName: settings.clientName)
        backoff = Backoff(longest: settings.longestPause)
        parser = RESPParser(limits: settings.limits)
    }

    /// The number of requests that wait.
    package var requestCount: Int { sent.count + waiting.count + unknownScripts.count }

    /// Handles an event and returns what the shell must do.
    package mutating func handle(_ event: Event, now: Timestamp) -> [Effect] {
        self.now = now
        switch event {
        case .start:
            if case .idle = state { locate(failed: nil) }
        case .located(let endpoint): use(endpoint)
        case .moved(let endpoint): move(to: endpoint)
        case .opened(let attempt): greet(attempt)
        case .received(let attempt, let bytes): receive(bytes, attempt)
        case .closed(let attempt, let reason):
            if attempt == current?.attempt { lose(RedisError(.connectionLost, reason), isOpen: false) }
        case .submit(let id, let request, let deadline, let onlyOn): submit(id, request, deadline, onlyOn)
        case .abandon(let error):
            if case .ready = state { lose(error) }
        case .close: close()
        }
        defer { effects = [] }
        return effects
    }

    // MARK: Time

    /// When to call `handleTimeout`; nil while nothing is limited in time. May be earlier than necessary.
    package var nextTimeout: Timestamp? {
        let deadline = requestCount > 0 ? earliestDeadline : nil
        switch state {
        case .connecting(_, _, let until), .greeting(_, _, let until, _), .waiting(let until, _):
            return deadline.map { min($0, until) } ?? until
        case .idle, .locating, .ready, .closed: return deadline
        }
    }

    /// Carries out what is due: the next attempt, or the end of something that took too long.
    package mutating func handleTimeout(now: Timestamp) -> [Effect] {
        self.now = now
        switch state {
        case .waiting(let until, let failed) where until <= now: locate(failed: failed)
        case .connecting(_, let endpoint, let until) where until <= now,
            .greeting(_, let endpoint, let until, _) where until <= now:
            lose(RedisError(.connectionLost, "\(endpoint) did not answer within \(settings.connectTimeout)."))
        default: break
        }
        if let earliestDeadline, earliestDeadline <= now { expire() }
        defer { effects = [] }
        return effects
    }

    /// Fails requests whose deadline has passed. If one of them was sent, the connection is given up: Redis answers in
    /// order, so all later requests are late as well.
    private mutating func expire() {
        func take(from queue: inout Deque<Pending>) -> [Pending] {
            let late = queue.filter { $0.deadline <= now }
            if !late.isEmpty { queue.removeAll { $0.deadline <= now } }
            return Array(late)
        }
        let unsent = take(from: &unknownScripts) + take(from: &waiting)
        let late = take(from: &sent)
        for pending in unsent {
            finish(pending, .failure(RedisError(.timedOut, "Redis could not be reached in time.")))
        }
        for pending in late {
            finish(pending, .failure(RedisError(.timedOut, "Redis did not answer in time.", mayHaveExecuted: true)))
        }
        earliestDeadline = [sent, waiting, unknownScripts].joined().map(\.deadline).min()
        if late.isEmpty { resume() } else { lose(RedisError(.timedOut, "Redis did not answer in time.")) }
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

    private mutating func use(_ endpoint: RedisEndpoint) {
        switch state {
        case .locating: open(endpoint)
        // Another server than the one that failed is tried without a pause.
        case .waiting(_, let failed) where failed != nil && failed != endpoint: open(endpoint)
        default: break
        }
    }

    private mutating func move(to endpoint: RedisEndpoint) {
        switch state {
        case .idle, .closed: return
        case .locating, .waiting: break
        case .connecting, .greeting, .ready:
            guard current?.endpoint != endpoint else { return }
            lose(RedisError(.notPrimary, "The primary is \(endpoint) now."))
        }
        open(endpoint)
    }

    private mutating func open(_ endpoint: RedisEndpoint) {
        attempts += 1
        state = .connecting(attempts, endpoint, until: now + settings.connectTimeout)
        effects.append(.open(attempts, endpoint))
    }

    private mutating func greet(_ attempt: Attempt) {
        guard case .connecting(attempt, let endpoint, let until) = state else { return }
        state = .greeting(attempt, endpoint, until: until, version: nil)
        var bytes: [UInt8] = []
        for command in greeting.commands { command.encode(into: &bytes) }
        effects.append(.write(attempt, bytes))
    }

    /// Gives up the connection. Requests that were sent fail.
    private mutating func lose(_ error: RedisError, isOpen: Bool = true) {
        guard let (attempt, endpoint) = current else { return }
        if isOpen { effects.append(.disconnect(attempt)) }
        var failed: RedisEndpoint? = endpoint
        if case .ready(_, _, let since) = state {
            failed = nil
            // A server that accepts connections and closes them soon must not be tried without pauses.
            if now - since >= settings.longestPause { backoff = Backoff(longest: settings.longestPause) }
        }
        state = .waiting(until: now + backoff.next(using: &random), failed: failed)
        parser = RESPParser(limits: settings.limits)
        report(.disconnected(error))
        fail(.connectionLost, "The connection to Redis was lost: \(error.message)")
    }

    /// Fails what was sent, and what may be sent only on this connection.
    private mutating func fail(_ code: RedisError.Code, _ message: String) {
        waiting = unknownScripts + waiting
        unknownScripts = []
        let bound = waiting.filter { $0.onlyOn != nil }
        waiting.removeAll { $0.onlyOn != nil }
        let lost = sent
        sent = []
        for pending in lost { finish(pending, .failure(RedisError(code, message, mayHaveExecuted: true))) }
        for pending in bound { finish(pending, .failure(RedisError(code, message))) }
    }

    private mutating func close() {
        if case .closed = state { return }
        if let current { effects.append(.disconnect(current.attempt)) }
        state = .closed
        report(.closed)
        let message = "The connection to Redis was closed."
        fail(.closed, message)
        let rest = waiting
        waiting = []
        for pending in rest { finish(pending, .failure(RedisError(.closed, message))) }
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
        if let error = refusal(bytes, onlyOn) { return effects.append(.complete(id, .failure(error))) }
        requestBytes += bytes
        earliestDeadline = requestCount == 0 ? deadline : earliestDeadline.map { min($0, deadline) } ?? deadline
        waiting.append(Pending(id: id, request: request, deadline: deadline, onlyOn: onlyOn, bytes: bytes))
        flush()
    }

    private func refusal(_ bytes: Int, _ onlyOn: Attempt?) -> RedisError? {
        if case .closed = state { return RedisError(.closed, "The connection to Redis was closed.") }
        if let onlyOn {
            guard case .ready(onlyOn, _, _) = state else {
                return RedisError(.connectionLost, "The connection for which this command was meant is lost.")
            }
        }
        guard requestCount < settings.maxRequests, requestBytes + bytes <= settings.maxRequestBytes else {
            return RedisError(.overloaded, "Too many commands wait for Redis. Try again later.")
        }
        return nil
    }

    /// Sends what waits, if that is possible now.
    private mutating func flush() {
        guard case .ready(let attempt, _, _) = state, unknownScripts.isEmpty, !waiting.isEmpty else { return }
        var bytes: [UInt8] = []
        for pending in waiting {
            pending.request.command(withText: pending.sendsText).encode(into: &bytes)
            sent.append(pending)
        }
        waiting.removeAll()
        effects.append(.write(attempt, bytes))
    }

    private mutating func finish(_ pending: Pending, _ result: Result<RESPValue, RedisError>) {
        requestBytes -= pending.bytes
        effects.append(.complete(pending.id, result))
    }

    // MARK: Answers

    private mutating func receive(_ bytes: [UInt8], _ attempt: Attempt) {
        guard current?.attempt == attempt else { return }
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
        if elements.first?.text == "subscribe", sent.first?.request.isSubscription == true,
            let pending = sent.popFirst()
        {
            finish(pending, .success(.push(elements)))
            resume()
        } else {
            effects.append(.pushed(elements))
        }
    }

    private mutating func answer(_ value: RESPValue) {
        guard var pending = sent.popFirst() else {
            return lose(RedisError(.protocolViolation, "Redis answered a command that was not sent."))
        }
        if let text = value.errorText {
            let error = RedisError(serverText: text)
            if error.serverCode == "NOSCRIPT", pending.request.isScript, !pending.sendsText {
                pending.sendsText = true
                unknownScripts.append(pending)
            } else {
                finish(pending, .failure(error))
                // Sentinel closes the connections to a server that becomes a replica, but perhaps not immediately.
                if error.code == .notPrimary, settings.role == .primary { return lose(error) }
            }
        } else {
            finish(pending, .success(value))
        }
        resume()
    }

    /// Sends scripts again that the server did not know, once everything before them is answered, and then what waits.
    private mutating func resume() {
        if sent.isEmpty, !unknownScripts.isEmpty {
            waiting = unknownScripts + waiting
            unknownScripts = []
        }
        flush()
    }
}
