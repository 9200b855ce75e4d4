import Foundation
import Wire

/// A `confab.v1` client that sends the test's messages and stores all messages that it receives. If an expected message
/// does not arrive, the error names that message. The client has no lock, because only one thread at a time uses it.
final class Person: @unchecked Sendable {
    let line: RawWebSocket
    private(set) var welcome = Welcome()
    /// The highest message number received. All messages with lower numbers were received too.
    private(set) var received: UInt64 = 0
    private(set) var heard: [ServerMessage] = []
    private var seq: UInt64 = 0

    private init(_ line: RawWebSocket) { self.line = line }

    /// Opens a socket without sending anything.
    static func connect(
        port: Int, headers: [(String, String)] = [], from source: String? = nil
    ) throws -> Person {
        Person(try RawWebSocket.open(port: port, headers: headers, from: source))
    }

    /// Connects over an existing connection.
    static func connect(on socket: RawSocket) throws -> Person {
        try socket.send(RawWebSocket.request())
        return Person(try RawWebSocket.accept(on: socket))
    }

    /// Opens a socket, sends `hello` and waits for the welcome.
    static func arrive(
        port: Int, identity: String? = nil, token: String? = nil, headers: [(String, String)] = [],
        name: String? = nil, resume: Hello.Resume? = nil, from source: String? = nil
    ) throws -> Person {
        let person = try connect(port: port, headers: headers, from: source)
        var hello = Hello()
        (hello.identity, hello.token, hello.name, hello.resume) = (identity, token, name, resume)
        try person.greet(hello)
        return person
    }

    @discardableResult
    func greet(_ hello: Hello = Hello()) throws -> Welcome {
        try say(.hello(hello))
        welcome = try hear("welcome") { if case .welcome(let welcome) = $0 { welcome } else { nil } }
        return welcome
    }

    /// The server's close code, or 1006 if there was none; nil while it is open.
    var closeCode: UInt16? { line.closeCode }
    /// The errors received so far.
    var errors: [WireError] { heard.compactMap { if case .error(let message) = $0 { message.error } else { nil } } }

    // MARK: Sending

    /// Sends a message and returns its number. The number is the next one, or 0 for a message without a number.
    @discardableResult
    func say(_ message: ClientMessage) throws -> UInt64 {
        guard !message.isUnnumbered else {
            let ack: UInt64? = if case .ack = message { received } else { nil }
            try line.send(text: Envelope(ack: ack, message: message).encode())
            return 0
        }
        seq += 1
        try line.send(text: Envelope(seq: seq, ack: received, message: message).encode())
        return seq
    }

    /// Sends a message with arbitrary JSON members.
    @discardableResult
    func say(_ type: String, members: String) throws -> UInt64 {
        seq += 1
        let separator = members.isEmpty ? "" : ","
        try line.send(text: #"{"type":"\#(type)","seq":\#(seq),"ack":\#(received)\#(separator)\#(members)}"#)
        return seq
    }

    // MARK: Receiving

    /// Waits for the next message for which `pick` returns a value. Other messages are kept in `heard`.
    @discardableResult
    func hear<T>(
        _ what: String, within limit: Duration = .seconds(50), _ pick: (ServerMessage) throws -> T?
    ) throws -> T {
        let deadline = ContinuousClock.now + limit
        do {
            while let message = try next(until: deadline) {
                if let picked = try pick(message) { return picked }
            }
        } catch let late as TimedOut {
            throw TimedOut("no \(what): \(late); heard \(heard.suffix(20).map(\.type))")
        }
        throw TimedOut("no \(what): closed with \(closeCode ?? 1006) after \(heard.suffix(20)) ")
    }

    /// Answers pings and returns the next message, or nil when the server closes.
    func next(until deadline: ContinuousClock.Instant) throws -> ServerMessage? {
        guard let text = try line.readText(within: max(.zero, deadline - ContinuousClock.now)) else { return nil }
        let envelope: Envelope<ServerMessage>
        do {
            envelope = try Envelope<ServerMessage>.decode(Array(text.utf8))
        } catch {
            throw TimedOut("the server sent an unreadable message: \(text.prefix(200))")
        }
        if let number = envelope.seq {
            guard number == received + 1 else { throw TimedOut("number \(number) came after \(received)") }
            received = number
        }
        heard.append(envelope.message)
        return envelope.message
    }

    /// Reads the message whose first bytes have arrived. Returns nil at the end of the connection, and for a ping,
    /// which it answers. For callers that must not block after a ping.
    func nextUnlessPing(within limit: Duration = .seconds(5)) throws -> ServerMessage? {
        guard let frame = try line.read(within: limit) else { return nil }
        if frame.opcode == 9 { line.socket.sendWhatGoes(RawFrame.pong(frame.payload).bytes) }
        guard frame.opcode < 8 else { return nil }
        line.socket.putBack(RawFrame(opcode: frame.opcode, payload: frame.payload, masked: false).bytes)
        return try next(until: .now + limit)
    }

    /// Discards the stored messages, for clients that receive many.
    func forget() { heard.removeAll(keepingCapacity: true) }

    /// Waits until the server has closed and returns the code; 1006 if there was none.
    @discardableResult
    func hearClose(within limit: Duration = .seconds(50)) throws -> UInt16 {
        let deadline = ContinuousClock.now + limit
        while closeCode == nil, try next(until: deadline) != nil {}
        return closeCode ?? 1006
    }

    /// Waits for the answer to that request and returns its error; nil for `ok`.
    func hearAnswer(to seq: UInt64, within limit: Duration = .seconds(50)) throws -> WireError? {
        try hear("answer to \(seq)", within: limit) { message -> WireError?? in
            switch message {
            case .ok(let answer) where answer.re == seq: .some(nil)
            case .error(let error) where error.re == seq: .some(error.error)
            default: nil
            }
        }
    }

    // MARK: Matches

    /// Starts a search and waits for a match.
    func meet(_ start: RouletteVerb.Start = RouletteVerb.Start(), within limit: Duration = .seconds(50)) throws
        -> RouletteNotice.Matched
    {
        try say(.roulette(.start(start)))
        return try hear("match", within: limit) {
            if case .roulette(.matched(let matched)) = $0 { matched } else { nil }
        }
    }

    /// Joins the session of a match.
    func join(_ admission: Admission) throws -> SessionNotice.Joined {
        try say(.session(.join(.init(session: admission.session, token: admission.token))))
        return try hear("session.joined") { if case .session(.joined(let joined)) = $0 { joined } else { nil } }
    }

    // MARK: Disconnecting

    /// Closes the connection with a close frame.
    func close(_ code: UInt16 = 1000) throws { try line.close(code) }

    /// Drops the connection without a close frame.
    func drop() { line.socket.close() }
}
