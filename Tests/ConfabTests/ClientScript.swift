import Foundation
import TestSupport
import Wire

@testable import Confab

/// A `ClientMachine` with a clock and a server's numbering, so that a test is a script of events and expected effects.
struct ClientScript {
    typealias Effect = ClientMachine.Effect

    private(set) var machine: ClientMachine
    private(set) var now = Timestamp(milliseconds: 1_000_000)
    /// The most recent socket that the machine requested, or for which it asked for a token.
    private(set) var socket: ClientMachine.Socket?
    /// When the most recent socket was requested.
    private(set) var openedAt = Timestamp(milliseconds: 0)
    private var seq: UInt64 = 0
    private var requestCount: UInt64 = 0

    init(usesToken: Bool = false) {
        machine = ClientMachine(
            hello: Hello(), usesToken: usesToken, options: SignalClient.Options(), random: SeededGenerator(seed: 1))
    }

    var state: ConfabClient.State { machine.state }

    private mutating func note(_ effects: [Effect]) -> [Effect] {
        for effect in effects {
            switch effect {
            case .open(let socket), .askToken(let socket): (self.socket, openedAt) = (socket, now)
            default: break
            }
        }
        return effects
    }

    @discardableResult mutating func handle(_ input: ClientMachine.Input) -> [Effect] {
        note(machine.handle(input, now: now))
    }

    /// Passes time, and handles each timeout at the time when it is due.
    @discardableResult mutating func wait(_ duration: Duration) -> [Effect] {
        let end = now + duration
        var effects: [Effect] = []
        while let next = machine.nextTimeout, next <= end {
            now = max(now, next)
            effects += note(machine.handleTimeout(now: now))
        }
        now = end
        return effects
    }

    @discardableResult mutating func ask(_ message: ClientMessage = .roulette(.count)) -> [Effect] {
        requestCount += 1
        return handle(.request(SignalClient.RequestID(rawValue: requestCount), message))
    }

    // MARK: The server

    /// Receives a message on the most recent socket.
    @discardableResult mutating func hear(_ message: ServerMessage) -> [Effect] {
        guard let socket else { return [] }
        return handle(.received(message.encode(), on: socket))
    }

    /// Receives a message with the next number.
    @discardableResult mutating func hearNext(_ message: ServerMessage) -> [Effect] {
        guard let socket else { return [] }
        seq += 1
        return handle(.received(message.encode(seq: seq, ack: 0), on: socket))
    }

    @discardableResult mutating func close(_ code: CloseCode = .abnormal) -> [Effect] {
        guard let socket else { return [] }
        return handle(.closed(socket, code))
    }

    /// Ends the most recent socket with an error.
    @discardableResult mutating func refuse(_ error: WireError, _ code: CloseCode) -> [Effect] {
        hear(.error(.init(error)))
        return close(code)
    }

    /// Opens the most recent socket.
    /// - Returns: the hello that the machine sent on it.
    @discardableResult mutating func open() -> Hello? {
        guard let socket, case .hello(let hello)? = handle(.opened(socket)).said.first else { return nil }
        return hello
    }

    @discardableResult mutating func welcome(_ change: (inout Welcome) -> Void = { _ in }) -> [Effect] {
        seq = 0
        return hear(.welcome(Self.welcome(change)))
    }

    /// Opens a connection and handles everything up to the welcome.
    @discardableResult mutating func connect() -> [Effect] {
        let effects = handle(.connect)
        open()
        return effects + welcome()
    }

    /// Joins a session.
    mutating func join(_ session: SessionID) {
        ask(.session(.join(.init(session: session, token: "token"))))
        var joined = SessionNotice.Joined()
        (joined.re, joined.session) = (requestCount, session)
        hearNext(.session(.joined(joined)))
    }

    /// Closes the socket and waits until another one is open.
    /// - Returns: the hello on the new socket.
    @discardableResult mutating func reconnect() -> Hello? {
        close()
        wait(Self.longestBackoff)
        return open()
    }

    static let longestBackoff = Duration.seconds(3)

    static func welcome(_ change: (inout Welcome) -> Void = { _ in }) -> Welcome {
        var welcome = Welcome()
        welcome.connection = ConnectionID(high: 0, low: 1)
        welcome.resume = .init(secret: "first", grace: .seconds(30))
        change(&welcome)
        return welcome
    }
}

extension [ClientMachine.Effect] {
    var states: [ConfabClient.State] { compactMap { if case .state(let state) = $0 { state } else { nil } } }
    var notices: [ConfabClient.Notice] { compactMap { if case .notice(let notice) = $0 { notice } else { nil } } }

    /// The messages that were sent, decoded.
    var said: [ClientMessage] {
        compactMap { effect in
            guard case .send(let bytes, _) = effect else { return nil }
            return try? Envelope<ClientMessage>.decode(bytes).message
        }
    }

    /// The sockets that are opened or closed.
    var opened: [ClientMachine.Socket] { compactMap { if case .open(let socket) = $0 { socket } else { nil } } }
    var closed: [ClientMachine.Socket] { compactMap { if case .close(let socket, _) = $0 { socket } else { nil } } }
    var asksToken: Bool { contains { if case .askToken = $0 { true } else { false } } }

    /// The error codes of the requests that failed, in order.
    var failures: [ConfabError.Code] {
        compactMap { if case .answered(_, .failure(let error)) = $0 { error.code } else { nil } }
    }

    /// What the parts of the client hear, in words.
    var news: [String] {
        compactMap { effect in
            guard case .line(let event) = effect else { return nil }
            return switch event {
            case .message: "message"
            case .connected(_, .first): "first"
            case .connected(_, .resumed): "resumed"
            case .connected(_, .restarted): "restarted"
            case .reconnecting: "reconnecting"
            case .expired: "expired"
            case .ended(let error): "ended \(error?.code.rawValue ?? "by the application")"
            }
        }
    }
}
