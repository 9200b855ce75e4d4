import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import Synchronization
import Wire

/// A `SignalClient` on a real socket, for tests. It stores received messages and can wait for specific ones. Before its
/// hello, it can also send messages that a client must not send.
actor SocketClient {
    struct TimedOut: Error, CustomStringConvertible {
        let description: String
    }

    enum Heard: Sendable {
        case text([UInt8])
        /// The code of the server's close frame, or 1006 if the connection ended without one.
        case closed(UInt16)
    }

    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    private let port: Int
    private let headers: [(String, String)]
    private let tls: NIOSSLContext?
    private var channel: any Channel
    private var incoming: Inbox
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
        port: Int, headers: [(String, String)], _ tls: NIOSSLContext?, _ channel: any Channel, _ incoming: Inbox
    ) {
        (self.port, self.headers, self.channel, self.incoming) = (port, headers, channel, incoming)
        self.tls = tls
        line = SignalClient(hello: Hello(), random: SystemRandomNumberGenerator())
        for case .open(let socket) in line.handle(.connect, now: Self.now) { self.socket = socket }
    }

    /// The time for `SignalClient`. It is constant, because no test lasts long enough for the timeouts of `SignalClient`.
    private static let now = Timestamp(milliseconds: 0)

    /// Opens a WebSocket and sends nothing yet.
    ///
    /// - Parameters:
    ///   - tls: nil for a server without HTTPS.
    ///   - answersClose: if false, the connection stays open after the server's close frame until `drop`.
    static func connect(
        port: Int, headers: [(String, String)] = [], tls: NIOSSLContext? = nil, answersClose: Bool = true
    ) async throws -> SocketClient {
        let (channel, inbox) = try await open(port: port, headers: headers, tls, answersClose: answersClose)
        return SocketClient(port: port, headers: headers, tls, channel, inbox)
    }

    private static func open(
        port: Int, headers: [(String, String)], _ tls: NIOSSLContext?, answersClose: Bool = true
    ) async throws -> (any Channel, Inbox) {
        let inbox = Inbox()
        let channel = try await ClientBootstrap(group: group)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls {
                        let handler = try NIOSSLClientHandler(context: tls, serverHostname: nil)
                        try channel.pipeline.syncOperations.addHandler(handler)
                    }
                    let upgrader = NIOTypedWebSocketClientUpgrader<Void>(maxFrameSize: 1 << 20) { channel, _ in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHandler(Listener(inbox, answersClose: answersClose))
                        }
                    }
                    var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/v1/socket")
                    head.headers.add(name: "Host", value: "127.0.0.1:\(port)")
                    head.headers.add(name: "Sec-WebSocket-Protocol", value: "confab.v1")
                    for (name, value) in headers { head.headers.add(name: name, value: value) }
                    var configuration = NIOUpgradableHTTPClientPipelineConfiguration(
                        upgradeConfiguration: .init(upgradeRequestHead: head, upgraders: [upgrader]) { channel in
                            channel.close().flatMapThrowing { throw ChannelError.eof }
                        }
                    )
                    // A server that rejects the client may send the error in the same packet as its 101 response.
                    configuration.leftOverBytesStrategy = .forwardBytes
                    return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
                        configuration: configuration
                    ).map { channel }
                }
            }
        return (try await channel.get(), inbox)
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
        (channel, incoming) = try await Self.open(port: port, headers: headers, tls)
        return try await sayHello()
    }

    private func sayHello() async throws -> Welcome {
        if let socket { try await report(.opened(socket)) }
        return try await hear("welcome") { if case .welcome(let welcome) = $0 { welcome } else { nil } }
    }

    // MARK: Receiving

    /// Returns the next message for which `pick` returns a value. Stores other messages in `heard`.
    func hear<T: Sendable>(
        _ what: String, within limit: Duration = .seconds(20), _ pick: @Sendable (ServerMessage) -> T?
    ) async throws -> T {
        // Ends the wait for a message that does not come.
        let timeout = channel.eventLoop.scheduleTask(in: TimeAmount(limit)) { [channel] in channel.close(promise: nil) }
        defer { timeout.cancel() }
        while true {
            while let message = unread.popFirst() {
                heard.append(message)
                if let picked = pick(message) { return picked }
            }
            guard let event = await incoming.next(), let socket else { break }
            switch event {
            case .text(let bytes):
                if case .error(let failure)? = try? Envelope<ServerMessage>.decode(bytes).message, failure.re == nil {
                    refusal = failure.error
                }
                try await report(.received(bytes, on: socket))
            case .closed(let code):
                closeCode = code
                try await report(.closed(socket, CloseCode(rawValue: code)))
                throw TimedOut(description: "no \(what): closed with \(code) after \(heard.map(\.type))")
            }
        }
        throw TimedOut(description: "no \(what): the connection is closed; received \(heard.map(\.type))")
    }

    /// Waits until the server closes the connection, and returns the close code.
    func hearClose(within limit: Duration = .seconds(20)) async throws -> UInt16 {
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
    func greet(identity: String? = nil, token: String? = nil) async throws -> Welcome {
        (line.hello.identity, line.hello.token) = (identity, token)
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

/// A queue of received events. `nil` is the end.
private final class Inbox: Sendable {
    private struct Contents {
        var events: [SocketClient.Heard?] = []
        var waiting: CheckedContinuation<SocketClient.Heard?, Never>?
    }

    private let contents = Mutex(Contents())

    func put(_ event: SocketClient.Heard?) {
        let waiting = contents.withLock { contents in
            guard let waiting = contents.waiting else {
                contents.events.append(event)
                return nil as CheckedContinuation<SocketClient.Heard?, Never>?
            }
            contents.waiting = nil
            return waiting
        }
        waiting?.resume(returning: event)
    }

    func next() async -> SocketClient.Heard? {
        await withCheckedContinuation { continuation in
            let event = contents.withLock { contents -> SocketClient.Heard?? in
                if let last = contents.events.first {
                    // Keep the end in the queue, so that later calls return it too.
                    if case .some = last { contents.events.removeFirst() }
                    return .some(last)
                }
                contents.waiting = continuation
                return nil
            }
            if let event { continuation.resume(returning: event) }
        }
    }
}

private final class Listener: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame

    private let inbox: Inbox
    private let answersClose: Bool
    private var isClosed = false

    init(_ inbox: Inbox, answersClose: Bool) { (self.inbox, self.answersClose) = (inbox, answersClose) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch frame.opcode {
        case .text:
            var data = frame.unmaskedData
            let bytes = data.readBytes(length: data.readableBytes) ?? []
            inbox.put(.text(bytes))
        case .connectionClose:
            var data = frame.unmaskedData
            finish(data.readInteger(as: UInt16.self) ?? 1005)
            if answersClose { context.close(promise: nil) }
        case .ping:
            let pong = WebSocketFrame(fin: true, opcode: .pong, maskKey: .random(), data: frame.unmaskedData)
            context.channel.writeAndFlush(pong, promise: nil)
        default: break
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(1006)
        context.fireChannelInactive()
    }

    private func finish(_ code: UInt16) {
        guard !isClosed else { return }
        isClosed = true
        inbox.put(.closed(code))
        inbox.put(nil)
    }
}
