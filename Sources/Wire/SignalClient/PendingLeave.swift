/// Notifies the server that the client has left while its connection was down: resumes the connection on a new
/// socket, only to send `bye`. Otherwise the server would keep the connection for the grace period, and other clients
/// would wait for one that has left.
///
/// Invariant: a pending leave has at most one socket, and ends when the server can no longer keep the connection.
struct PendingLeave: Sendable {
    /// The progress of sending `bye`.
    ///
    /// Legal transitions: `waiting` → `opening`, `over`; `opening` → `greeting`, `waiting`, `over`; `greeting` →
    /// `waiting`, `over`.
    enum State: Equatable, Sendable {
        case waiting(until: Timestamp)
        case opening(SignalClient.Socket, until: Timestamp)
        case greeting(SignalClient.Socket, until: Timestamp)
        case over
    }

    /// The hello that resumes the connection.
    let hello: Hello
    /// When the server gives up the connection.
    let deadline: Timestamp
    let welcomeTimeout: Duration
    /// The node that keeps the connection; nil if the server has no nodes.
    let node: String?
    private(set) var state: State
    /// The number of the newest socket.
    private var socketCount: UInt64
    private var backoff = Backoff()

    init(
        _ state: State, hello: Hello, deadline: Timestamp, welcomeTimeout: Duration, node: String?,
        socketCount: UInt64
    ) {
        (self.state, self.hello, self.deadline, self.node) = (state, hello, deadline, node)
        (self.welcomeTimeout, self.socketCount) = (welcomeTimeout, socketCount)
    }

    var nextTimeout: Timestamp? {
        switch state {
        case .waiting(let until), .opening(_, let until), .greeting(_, let until): min(until, deadline)
        case .over: nil
        }
    }

    mutating func handle(
        _ event: SignalClient.Event, now: Timestamp, using random: inout some RandomNumberGenerator
    ) -> [SignalClient.Effect] {
        switch (event, state) {
        case (.opened(let opened), .opening(let socket, let until)) where opened == socket:
            state = .greeting(socket, until: until)
            return [send(.hello(hello), on: socket)]
        case (.received(let bytes, let on), .greeting(let socket, _)) where on == socket:
            guard case .welcome? = try? Envelope<ServerMessage>.decode(bytes).message else { return [] }
            // Send `bye` even after a welcome that does not resume: the server has created another connection, which
            // is not wanted either.
            state = .over
            return [send(.bye, on: socket), .close(socket, .normal)]
        case (.closed(let closed, let code), .opening(let socket, _)) where closed == socket,
            (.closed(let closed, let code), .greeting(let socket, _)) where closed == socket:
            // Stop if the server refuses this hello: it then keeps no connection that could be ended.
            if code.isRetried { wait(code, now, &random) } else { state = .over }
            return []
        case (.networkChanged, .waiting): return open(now)
        default: return []
        }
    }

    mutating func handleTimeout(
        now: Timestamp, using random: inout some RandomNumberGenerator
    ) -> [SignalClient.Effect] {
        guard let due = nextTimeout, due <= now else { return [] }
        switch state {
        case .waiting:
            if deadline > now { return open(now) }
            state = .over
            return []
        case .opening(let socket, _), .greeting(let socket, _):
            if deadline > now { wait(.abnormal, now, &random) } else { state = .over }
            return [.close(socket, .dropped)]
        case .over: return []
        }
    }

    private mutating func open(_ now: Timestamp) -> [SignalClient.Effect] {
        socketCount += 1
        let socket = SignalClient.Socket(number: socketCount, node: node)
        state = .opening(socket, until: now + welcomeTimeout)
        return [.open(socket)]
    }

    private mutating func wait(_ code: CloseCode, _ now: Timestamp, _ random: inout some RandomNumberGenerator) {
        let pause = code.requestsPause ? SignalClient.defaultPause : .zero
        state = .waiting(until: now + max(pause, backoff.next(using: &random)))
    }

    private func send(_ message: ClientMessage, on socket: SignalClient.Socket) -> SignalClient.Effect {
        .send(Envelope(message: message).encode(), on: socket)
    }
}
