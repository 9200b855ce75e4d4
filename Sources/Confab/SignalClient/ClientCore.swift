import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Owns the client's sockets and the ``Runner`` of its state machine. All features of the client (sessions, roulette,
/// calls …) share one core.
///
/// The core is released with the last feature that the application holds: sockets and timers hold it weakly.
final class ClientCore: Sendable {
    typealias Completion = @Sendable (Result<ServerMessage, ConfabError>) -> Void
    typealias Listener = @Sendable (ConnectionEvent) -> Void

    /// The state that the lock protects.
    private struct State: Sendable {
        var requestCount: UInt64 = 0
        var completions: [SignalClient.RequestID: Completion] = [:]
        var listeners: [(id: UInt64, listener: Listener)] = []
        var listenerCount: UInt64 = 0
        var sockets: [ClientMachine.Socket: any TransportSocket] = [:]
        /// The socket that was opened last; nil after it has closed, which can happen before the transport returns it.
        var opening: ClientMachine.Socket?
        /// Pending `connect` calls, keyed by a running number.
        var greetings: [UInt64: Greeting] = [:]
        var greetingCount: UInt64 = 0
    }

    /// A pending `connect` call.
    private struct Greeting: Sendable {
        let answer: @Sendable (Result<Void, ConfabError>) -> Void
        let cancelTimer: @Sendable () -> Void
    }

    /// How much longer than `connectTimeout` a `connect` call waits. If the first connection fails, the client reports
    /// the reason at `connectTimeout`, and that report must arrive first.
    private static let greetingGrace = Duration.milliseconds(100)

    /// The path of the WebSocket below the server's address.
    static let socketPath = "/v1/socket"

    private let state = LockedValue(State())
    private let runner: Runner<ClientMachine>
    private let connectTimeout: Duration
    let dependencies: Dependencies
    /// The URL of the WebSocket; nil if the server's address is unusable.
    let url: URL?
    let credential: ConfabClient.Credential
    let log: @Sendable (LogEntry) -> Void
    let states = EventSource<ConfabClient.State>(state: .idle)
    let notices = EventSource<ConfabClient.Notice>()
    /// The application's media engine; nil for a client without media.
    let media: (any MediaEngine)?
    private let link = LockedValue(WeakLink(link: nil))

    init(
        url: URL?, credential: ConfabClient.Credential, hello: Hello, media: (any MediaEngine)?,
        options: ConfabClient.Options, dependencies: Dependencies
    ) {
        var lineOptions = SignalClient.Options()
        lineOptions.connectTimeout = options.connectTimeout
        connectTimeout = options.connectTimeout
        let usesToken = if case .userToken = credential { true } else { false }
        runner = Runner(
            ClientMachine(hello: hello, usesToken: usesToken, options: lineOptions, random: dependencies.random),
            clock: dependencies.clock)
        (self.url, self.credential, self.media, self.dependencies) = (url, credential, media, dependencies)
        log = options.log ?? { _ in }
        runner.onEffect { [weak self] effect in self?.carryOut(effect) }
    }

    deinit {
        let (sockets, greetings) = state.withLock { ($0.sockets, $0.greetings.values) }
        for greeting in greetings { greeting.cancelTimer() }
        for socket in sockets.values { socket.close(.normal) }
    }

    // MARK: For the client's features

    /// The number of open sockets.
    var socketCount: Int { state.withLock { $0.sockets.count } }

    /// The most recent welcome; nil before the first.
    var welcome: Welcome? { runner.read(\.welcome) }

    /// The state of the connection.
    var connectionState: ConfabClient.State { runner.read(\.state) }

    /// The secret of this person's identity; nil until the server has created one, and with a user token.
    var identity: String? { runner.read(\.identity) }

    /// Sends a request. Requests are sent in the order of the calls.
    ///
    /// - Parameter completion: called once, in sequence with all ``ConnectionEvent``s.
    func send(_ message: ClientMessage, _ completion: @escaping Completion = { _ in }) {
        let id = state.withLock { state in
            state.requestCount += 1
            let id = SignalClient.RequestID(rawValue: state.requestCount)
            state.completions[id] = completion
            return id
        }
        runner.post(.request(id, message))
    }

    /// Sends a request and waits for its answer. Canceling the task ends the wait, but does not revoke the request.
    ///
    /// - Throws: the server's error, or an error of the connection.
    @discardableResult
    func request(_ message: ClientMessage) async throws(ConfabError) -> ServerMessage {
        try await awaitResult { self.send(message, $0) }
    }

    /// Calls a listener with each event until the returned token is released. Listeners are called in order and must
    /// not block. A listener must hold its owner weakly.
    func listen(_ listener: @escaping Listener) -> Listening {
        state.withLock { state in
            state.listenerCount += 1
            let id = state.listenerCount
            state.listeners.append((id, listener))
            return Listening { [weak self] in
                let ended = self?.state.withLock { state in
                    state.listeners.firstIndex { $0.id == id }.map { state.listeners.remove(at: $0).listener }
                }
                // Release the listener outside the lock: it may indirectly hold the last reference to a session, which removes its
                // own listener when it is released.
                withExtendedLifetime(ended) {}
            }
        }
    }

    /// Returns the client's media connections to the SFU. They are created on the first call, and close when the last
    /// feature releases them.
    ///
    /// - Throws: `no_media_engine`.
    func sfuConnections() throws(ConfabError) -> SFUConnections {
        guard let media else { throw .noMediaEngine }
        if let present = link.withLock({ $0.link }) { return present }
        let made = SFUConnections(core: self, engine: media)
        return link.withLock { link in
            if let present = link.link { return present }
            link = WeakLink(link: made)
            return made
        }
    }

    // MARK: Connecting

    func connect() async throws(ConfabError) {
        guard url != nil else { throw .invalidServerURL }
        if case .anonymous(let store) = credential { try load(store) }
        try await awaitResult { (answer: @escaping @Sendable (Result<Void, ConfabError>) -> Void) in
            state.withLock { state in
                state.greetingCount += 1
                let number = state.greetingCount
                // A client that was connected before keeps trying, but each `connect` call times out.
                let time = dependencies.clock.now + connectTimeout + Self.greetingGrace
                let cancel = dependencies.clock.schedule(at: time) { [weak self] in self?.giveUp(number) }
                state.greetings[number] = Greeting(answer: answer, cancelTimer: cancel)
            }
            connectNow()
            settleGreetings()
        }
    }

    private func giveUp(_ number: UInt64) {
        state.withLock { $0.greetings.removeValue(forKey: number) }?.answer(.failure(.unreachable()))
    }

    /// Connects without waiting for the result.
    func connectNow() { runner.post(.connect) }

    /// Reads the identity from its store, unless it is already loaded.
    func load(_ store: any IdentityStore) throws(ConfabError) {
        guard identity == nil else { return }
        do {
            let secret = try store.load()
            runner.update { machine, _ in
                machine.identity = secret
                return []
            }
        } catch {
            throw ConfabError(
                .identityStoreFailed, "The identity cannot be read from its store. Check the store and try again.",
                isRetryable: true, cause: error)
        }
    }

    /// Completes the pending `connect` calls, with success if the client is connected and with an error if it is
    /// closed.
    private func settleGreetings() {
        switch connectionState {
        case .online, .reconnecting: endGreetings(.success(()))
        case .closed(let error): endGreetings(.failure(error ?? .closed))
        default: break
        }
    }

    private func endGreetings(_ result: Result<Void, ConfabError>) {
        let greetings = state.withLock { state in
            defer { state.greetings = [:] }
            return state.greetings.sorted { $0.key < $1.key }.map(\.value)
        }
        for greeting in greetings {
            greeting.cancelTimer()
            greeting.answer(result)
        }
    }

    func leave() {
        runner.post(.leave)
        // Without a connection, the client notifies the server later that it has left. Keep the core until then, even
        // if the application releases the client.
        guard let deadline = runner.read(\.line.leaveDeadline) else { return }
        _ = dependencies.clock.schedule(at: deadline) { [self] in withExtendedLifetime(self) {} }
    }

    func networkChanged(isAvailable: Bool) {
        runner.post(.networkChanged(isAvailable: isAvailable))
        if isAvailable, case .online = connectionState { link.withLock { $0.link }?.networkChanged() }
    }

    // MARK: Effects

    private func carryOut(_ effect: ClientMachine.Effect) {
        switch effect {
        case .askToken(let socket): askToken(socket)
        case .open(let socket): open(socket)
        case .send(let bytes, let socket): state.withLock { $0.sockets[socket] }?.send(bytes)
        case .close(let socket, let code): state.withLock { $0.sockets.removeValue(forKey: socket) }?.close(code)
        case .saveIdentity(let secret): save(secret)
        case .answered(let id, let result): state.withLock { $0.completions.removeValue(forKey: id) }?(result)
        case .state(let state):
            states.send(state)
            settleGreetings()
            if case .closed = state {
                states.finish()
                notices.finish()
            }
        case .notice(let notice): notices.send(notice)
        case .line(let event):
            // If the client has stopped trying to connect, pending `connect` calls fail.
            if case .ended(let error) = event { endGreetings(.failure(error ?? .closed)) }
            for (_, listener) in state.withLock({ $0.listeners }) { listener(event) }
        case .log(let entry): log(entry)
        }
    }

    private func open(_ socket: ClientMachine.Socket) {
        guard let url = url.map({ Self.address($0, of: socket.socket.node) }) else { return }
        state.withLock { $0.opening = socket }
        let opened = dependencies.transport.open(url) { [weak self] event in self?.report(event, on: socket) }
        // Do not keep a socket that has already closed: it would never be removed.
        state.withLock { if $0.opening == socket { $0.sockets[socket] = opened } }
    }

    /// Returns the URL of the socket of one node of a cluster (`protocol/README.md` §3.1).
    private static func address(_ url: URL, of node: String?) -> URL {
        guard let node, var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return url }
        parts.queryItems = (parts.queryItems ?? []).filter { $0.name != "at" } + [URLQueryItem(name: "at", value: node)]
        return parts.url ?? url
    }

    private func report(_ event: SocketEvent, on socket: ClientMachine.Socket) {
        switch event {
        case .opened: runner.post(.opened(socket))
        case .received(let bytes): runner.post(.received(bytes, on: socket))
        case .heard: runner.post(.heard(socket))
        case .closed(let code):
            let closed = state.withLock { state in
                if state.opening == socket { state.opening = nil }
                return state.sockets.removeValue(forKey: socket)
            }
            withExtendedLifetime(closed) {}
            runner.post(.closed(socket, code))
        }
    }

    private func askToken(_ socket: ClientMachine.Socket) {
        guard case .userToken(let ask) = credential else { return }
        Task { [weak self] in
            let token: Result<String, ConfabError>
            do throws(ConfabError) {
                token = .success(try await ConfabClient.Credential.token(from: ask))
            } catch {
                token = .failure(error)
            }
            self?.runner.post(.token(token, for: socket))
        }
    }

    private func save(_ secret: String) {
        guard case .anonymous(let store) = credential else { return }
        do {
            try store.save(secret)
        } catch {
            log(LogEntry(.error, "The identity could not be saved, so the next launch gets a new one: \(error)"))
        }
    }
}

/// A weak reference to the client's media connections to the SFU.
private struct WeakLink: Sendable {
    weak let link: SFUConnections?
}

/// A token that keeps a registration, such as that of a listener, until the token is released.
final class Listening: Sendable {
    private let end: @Sendable () -> Void
    init(_ end: @escaping @Sendable () -> Void) { self.end = end }
    deinit { end() }
}

/// Starts an operation that calls back once, and waits for the callback or for the cancellation of the task.
func awaitResult<Value: Sendable>(
    _ start: @Sendable (@escaping @Sendable (Result<Value, ConfabError>) -> Void) -> Void
) async throws(ConfabError) -> Value {
    let once = LockedValue<Answer<Value>>(.none)
    let result: Result<Value, ConfabError> = await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
            let isCancelled = once.withLock { answer in
                if case .given = answer { return true }
                answer = .awaited(continuation)
                return false
            }
            if isCancelled { return continuation.resume(returning: .failure(.cancelled)) }
            start { once.give($0) }
        }
    } onCancel: {
        once.give(.failure(.cancelled))
    }
    return try result.get()
}

/// The state of a result that is given once and awaited once.
private enum Answer<Value: Sendable>: Sendable {
    case none
    case awaited(CheckedContinuation<Result<Value, ConfabError>, Never>)
    case given
}

extension LockedValue {
    fileprivate func give<Answered: Sendable>(_ result: Result<Answered, ConfabError>) where Value == Answer<Answered> {
        let waiting = withLock { answer -> CheckedContinuation<Result<Answered, ConfabError>, Never>? in
            defer { answer = .given }
            if case .awaited(let continuation) = answer { return continuation }
            return nil
        }
        waiting?.resume(returning: result)
    }
}

extension ConfabError {
    static let cancelled = ConfabError(
        .cancelled, "The task was canceled before the server answered. The request may still have been carried out.")
}
