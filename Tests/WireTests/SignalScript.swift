import TestSupport
import Testing
import Wire

/// A `SignalClient` with a clock and a server's numbering, so that a test is a script of events and expected effects.
struct SignalScript {
    typealias Effect = SignalClient.Effect
    typealias RequestID = SignalClient.RequestID

    var line: SignalClient
    var now = Timestamp(milliseconds: 1_000_000)
    /// The most recent socket that the line requested.
    private(set) var socket: SignalClient.Socket?
    /// The server's most recent sequence number.
    private(set) var seq: UInt64 = 0
    private var requestCount: UInt64 = 0

    init(hello: Hello = Hello(), seed: UInt64 = 1, _ change: (inout SignalClient.Options) -> Void = { _ in }) {
        var options = SignalClient.Options()
        change(&options)
        line = SignalClient(hello: hello, options: options, random: SeededGenerator(seed: seed))
    }

    private mutating func note(_ effects: [Effect]) -> [Effect] {
        for case .open(let socket) in effects { self.socket = socket }
        return effects
    }

    @discardableResult mutating func handle(_ event: SignalClient.Event) -> [Effect] {
        note(line.handle(event, now: now))
    }

    /// Passes time, and handles each timeout at the time when it is due.
    @discardableResult mutating func wait(_ duration: Duration) -> [Effect] {
        let end = now + duration
        var effects: [Effect] = []
        while let next = line.nextTimeout, next <= end {
            now = max(now, next)
            effects += note(line.handleTimeout(now: now))
        }
        now = end
        return effects
    }

    // MARK: The server

    @discardableResult mutating func hear(_ message: ServerMessage, seq: UInt64? = nil, ack: UInt64? = nil) -> [Effect]
    {
        hear(Envelope(seq: seq, ack: ack, message: message).encode())
    }

    @discardableResult mutating func hear(_ bytes: [UInt8]) -> [Effect] {
        guard let socket else { return [] }
        return handle(.received(bytes, on: socket))
    }

    /// Receives a message with the next number.
    @discardableResult mutating func hearNext(_ message: ServerMessage, ack: UInt64? = nil) -> [Effect] {
        seq += 1
        return hear(message, seq: seq, ack: ack)
    }

    @discardableResult mutating func close(_ code: CloseCode = .abnormal) -> [Effect] {
        guard let socket else { return [] }
        return handle(.closed(socket, code))
    }

    /// Opens the requested socket.
    /// - Returns: the hello that the line sent on it.
    @discardableResult mutating func open() -> Hello? {
        guard let socket, case .hello(let hello)? = handle(.opened(socket)).said.first?.message else { return nil }
        return hello
    }

    /// Opens a connection and handles everything up to the welcome.
    @discardableResult mutating func connect(_ change: (inout Welcome) -> Void = { _ in }) -> [Effect] {
        handle(.connect)
        open()
        return hear(.welcome(Self.welcome(change)))
    }

    /// Closes the socket and waits until another one is open.
    /// - Returns: the hello on the new socket.
    @discardableResult mutating func reconnect() -> Hello? {
        close()
        wait(Self.longestBackoff)
        return open()
    }

    /// Restarts the server's numbering at 1.
    mutating func restartNumbers() { seq = 0 }

    static let longestBackoff = Duration.seconds(3)

    static func welcome(_ change: (inout Welcome) -> Void = { _ in }) -> Welcome {
        var welcome = Welcome()
        welcome.connection = ConnectionID(high: 0, low: 1)
        welcome.resume = .init(secret: "first", grace: .seconds(30))
        change(&welcome)
        return welcome
    }

    /// A welcome that resumes the same connection.
    static func resumed(received: UInt64, secret: String = "second") -> ServerMessage {
        .welcome(
            welcome {
                ($0.resumed, $0.received) = (true, received)
                $0.resume.secret = secret
            })
    }

    // MARK: Requests

    /// - Returns: the request's id and the line's effects.
    mutating func request(_ message: ClientMessage) -> (id: RequestID, effects: [Effect]) {
        requestCount += 1
        let id = RequestID(rawValue: requestCount)
        return (id, handle(.request(id, message)))
    }

    @discardableResult mutating func ask() -> RequestID { request(.roulette(.count)).id }
}

extension [SignalClient.Effect] {
    /// The messages that were sent, decoded.
    var said: [Envelope<ClientMessage>] {
        compactMap { if case .send(let bytes, _) = $0 { try? .decode(bytes) } else { nil } }
    }

    /// The numbers of the requests that were sent.
    var numbers: [UInt64] { said.compactMap(\.seq) }

    var failures: [SignalClient.RequestID: WireError.Code] {
        var failures: [SignalClient.RequestID: WireError.Code] = [:]
        for case .failed(let id, let error) in self { failures[id] = error.code }
        return failures
    }

    var start: SignalClient.Start? {
        for case .connected(_, let start) in self { return start }
        return nil
    }

    var ending: SignalClient.Ending? {
        for case .ended(let ending) in self { return ending }
        return nil
    }

    var hasOpen: Bool { contains { if case .open = $0 { true } else { false } } }

    func closes(_ code: CloseCode) -> Bool {
        contains { if case .close(_, code) = $0 { true } else { false } }
    }
}

/// A message that is not an answer.
let someEvent = ServerMessage.presence(.unlinked)

func ok(_ re: UInt64) -> ServerMessage { .ok(ServerMessage.OK(re: re)) }
