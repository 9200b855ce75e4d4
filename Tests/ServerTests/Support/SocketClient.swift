import Confab
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import NIOWebSocket
import Testing
import Wire

/// A `SignalClient` on a real socket, for tests. It stores received messages and can wait for specific ones. Before its
/// hello, it can also send messages that a client must not send.
actor SocketClient {
    struct TimedOut: Error, CustomStringConvertible {
        let description: String
    }

    /// How long to wait for a message. Shorter than the time limits of tests, whose failures do not name the message.
    static let longestWait = Duration.seconds(100)

    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    private let port: Int
    private let query: String
    private let options: NIOSocket.Options
    private var channel: any Channel
    private var incoming: AsyncStream<SocketEvent>
    private var line: SignalClient
    private var socket: SignalClient.Socket?
    private var requestCount: UInt64 = 0
    /// Received messages that no test has consumed yet.
    private var unread: ArraySlice<ServerMessage> = []
    private(set) var heard: [ServerMessage] = []
    private(set) var closeCode: UInt16?
    /// The most recent error that does not answer a request. `SignalClient` does not report errors before its hello, nor
    /// errors after which it reconnects.
    private(set) var refusal: WireError?

    private init(
        port: Int, query: String, _ options: NIOSocket.Options,
        _ connected: (channel: any Channel, incoming: AsyncStream<SocketEvent>)
    ) {
        (self.port, self.query, self.options) = (port, query, options)
        (channel, incoming) = (connected.channel, connected.incoming)
        line = SignalClient(hello: Hello(), random: SystemRandomNumberGenerator())
        for case .open(let socket) in line.handle(.connect, now: Self.now) { self.socket = socket }
    }

    /// The time for `SignalClient`. It is constant, because no test lasts long enough for the timeouts of `SignalClient`.
    private static let now = Timestamp(milliseconds: 0)

    /// Opens a WebSocket and sends nothing yet.
    ///
    /// - Parameters:
    ///   - query: what follows the path of the URL, such as `?at=n2`.
    ///   - tls: nil for a server without HTTPS.
    ///   - answersClose: if false, the connection stays open after the server's close frame until `drop`.
    static func connect(
        port: Int, query: String = "", headers: [(String, String)] = [], tls: NIOSSLContext? = nil,
        answersClose: Bool = true
    ) async throws -> SocketClient {
        var options = NIOSocket.Options()
        (options.headers, options.tls, options.answersClose) = (headers, tls, answersClose)
        return SocketClient(port: port, query: query, options, try await open(port: port, query: query, options))
    }

    private static func open(
        port: Int, query: String, _ options: NIOSocket.Options
    ) async throws -> (channel: any Channel, incoming: AsyncStream<SocketEvent>) {
        let (incoming, events) = AsyncStream.makeStream(of: SocketEvent.self)
        let socket = NIOSocket(options, on: group.next()) { event in
            events.yield(event)
            if case .closed = event { events.finish() }
        }
        let scheme = options.tls == nil ? "ws" : "wss"
        let url = try #require(URL(string: "\(scheme)://127.0.0.1:\(port)/v1/socket\(query)"))
        return (try await socket.connect(to: HostEndpoint(url)), incoming)
    }

    /// The server's certificate. Nil without HTTPS.
    var certificate: NIOSSLCertificate? {
        get async throws { try await channel.nioSSL_peerCertificate().get() }
    }

    // MARK: Sending

    /// Sends a request. Before the welcome, the message is sent unchanged.
    ///
    /// - Returns: the number of the message.
    @discardableResult
    func say(_ message: ClientMessage) async throws -> UInt64 {
        guard line.isConnected else {
            let seq: UInt64? = message.isUnnumbered ? nil : 1
            try await send(opcode: .text, Envelope(seq: seq, message: message).encode())
            return seq ?? 0
        }
        requestCount += 1
        try await report(.request(.init(rawValue: requestCount), message))
        return requestCount
    }

    private func report(_ event: SignalClient.Event) async throws {
        try await carryOut(line.handle(event, now: Self.now))
    }

    private func carryOut(_ effects: [SignalClient.Effect]) async throws {
        for effect in effects {
            switch effect {
            case .open(let socket): self.socket = socket
            case .send(let bytes, _):
                do {
                    try await send(opcode: .text, bytes)
                } catch ChannelError.ioOnClosedChannel {
                    // The server has closed the socket meanwhile. The close is handled next.
                }
            case .connected(let welcome, _): unread.append(.welcome(welcome))
            case .answered(_, let message), .event(let message): unread.append(message)
            case .ended(let ending): if let error = ending.error { heard.append(.error(ServerMessage.Failure(error))) }
            case .close, .reconnecting, .expired, .failed, .unreadable: break
            }
        }
    }

    /// Sends a text frame that the client's own line would refuse.
    func sendRaw(_ text: [UInt8]) async throws { try await send(opcode: .text, text) }

    private func send(opcode: WebSocketOpcode, _ bytes: [UInt8]) async throws {
        let frame = WebSocketFrame(
            fin: true, opcode: opcode, maskKey: .random(), data: channel.allocator.buffer(bytes: bytes)
        )
        try await channel.writeAndFlush(frame)
    }

    /// Closes the connection with a close frame.
    func close(_ code: UInt16 = 1000) async throws {
        try await send(opcode: .connectionClose, [UInt8(code >> 8), UInt8(code & 0xFF)])
    }

    /// Drops the connection without a close frame.
    func drop() { channel.close(promise: nil) }

    /// Opens a new socket after a drop and waits for the welcome.
    func reconnect() async throws -> Welcome {
        guard let socket else { throw TimedOut(description: "no socket to replace") }
        try await report(.closed(socket, .abnormal))
        // Connect at once, without waiting for the backoff.
        if let next = line.nextTimeout { try await carryOut(line.handleTimeout(now: next)) }
        (channel, incoming) = try await Self.open(port: port, query: query, options)
        return try await sayHello()
    }

    private func sayHello() async throws -> Welcome {
        if let socket { try await report(.opened(socket)) }
        return try await hear("welcome") { if case .welcome(let welcome) = $0 { welcome } else { nil } }
    }

    // MARK: Receiving

    /// Returns the next message for which `pick` returns a value. Stores other messages in `heard`.
    func hear<T: Sendable>(
        _ what: String, within limit: Duration = SocketClient.longestWait, _ pick: @Sendable (ServerMessage) -> T?
    ) async throws -> T {
        // Ends the wait for a message that does not come.
        let timeout = channel.eventLoop.scheduleTask(in: TimeAmount(limit)) { [channel] in channel.close(promise: nil) }
        defer { timeout.cancel() }
        while true {
            while let message = unread.popFirst() {
                heard.append(message)
                if let picked = pick(message) { return picked }
            }
            var events = incoming.makeAsyncIterator()
            guard let event = await events.next(), let socket else { break }
            switch event {
            case .received(let bytes):
                if case .error(let failure)? = try? Envelope<ServerMessage>.decode(bytes).message, failure.re == nil {
                    refusal = failure.error
                }
                try await report(.received(bytes, on: socket))
            case .opened, .heard: break
            case .closed(let code):
                closeCode = code.rawValue
                try await report(.closed(socket, code))
                throw TimedOut(description: "no \(what): closed with \(code.rawValue) after \(heard.map(\.type))")
            }
        }
        throw TimedOut(description: "no \(what): the connection is closed; received \(heard.map(\.type))")
    }

    /// Sends a request and waits for its answer, which must not be an error.
    @discardableResult
    func ask(_ message: ClientMessage) async throws -> ServerMessage {
        let re = try await say(message)
        let answer = try await hear("an answer to \(message.type)") { $0.re == re ? $0 : nil }
        if case .error(let failure) = answer { throw failure.error }
        return answer
    }

    /// Waits until the server closes the connection, and returns the close code.
    func hearClose(within limit: Duration = SocketClient.longestWait) async throws -> UInt16 {
        if let closeCode { return closeCode }
        do {
            _ = try await hear("close", within: limit) { _ -> Bool? in nil }
        } catch {
            if let closeCode { return closeCode }
            throw error
        }
        return 1006
    }

    /// Sends hello and waits for the welcome.
    @discardableResult
    func greet(
        identity: String? = nil, token: String? = nil, traceparent: String? = nil, showsWarnings: Bool = false
    ) async throws -> Welcome {
        (line.hello.identity, line.hello.token, line.hello.traceparent) = (identity, token, traceparent)
        line.hello.warnings = showsWarnings ? true : nil
        return try await sayHello()
    }

    /// Starts searching and waits for a match.
    func meet(_ start: RouletteVerb.Start = RouletteVerb.Start()) async throws -> RouletteNotice.Matched {
        try await say(.roulette(.start(start)))
        return try await hear("match") { if case .roulette(.matched(let matched)) = $0 { matched } else { nil } }
    }

    /// Joins the session of a match.
    func join(_ admission: Admission) async throws -> SessionNotice.Joined {
        try await say(.session(.join(.init(session: admission.session, token: admission.token))))
        return try await hear("session.joined") { if case .session(.joined(let joined)) = $0 { joined } else { nil } }
    }
}

extension TestServer {
    /// Connects a client, which says hello and waits for the welcome.
    func client(identity: String? = nil, token: String? = nil) async throws -> SocketClient {
        let client = try await SocketClient.connect(port: port)
        try await client.greet(identity: identity, token: token)
        return client
    }
}
