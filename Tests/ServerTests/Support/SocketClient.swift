import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import Synchronization
import Wire

/// A client of our WebSocket protocol for tests: says what it is told, remembers what it hears, and waits for a message with
/// a reason why it has not come yet.
actor SocketClient {
    struct TimedOut: Error, CustomStringConvertible {
        let description: String
    }

    enum Heard: Sendable {
        case message(Envelope<ServerMessage>)
        /// The server's close frame, or 1006 when the line ended without one.
        case closed(UInt16)
    }

    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    private let channel: any Channel
    private let incoming: Inbox
    private var seq: UInt64 = 0
    private(set) var received: UInt64 = 0
    private(set) var heard: [ServerMessage] = []
    private(set) var closeCode: UInt16?

    private init(_ channel: any Channel, _ incoming: Inbox) {
        self.channel = channel
        self.incoming = incoming
    }

    /// Opens a WebSocket; says nothing yet.
    ///
    /// - Parameter answersClose: false leaves the connection open when the server closes, until `drop`.
    static func connect(
        port: Int, headers: [(String, String)] = [], answersClose: Bool = true
    ) async throws -> SocketClient {
        let inbox = Inbox()
        let channel = try await ClientBootstrap(group: group)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
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
                    // A server that refuses at the door says so in the same packet as its 101.
                    configuration.leftOverBytesStrategy = .forwardBytes
                    return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
                        configuration: configuration
                    ).map { channel }
                }
            }
        return SocketClient(try await channel.get(), inbox)
    }

    // MARK: Saying

    /// Sends a message with the next number, or unnumbered; returns the number.
    @discardableResult
    func say(_ message: ClientMessage) async throws -> UInt64 {
        if message.isUnnumbered {
            try await send(text: Envelope(message: message).encode())
            return 0
        }
        seq += 1
        try await send(text: Envelope(seq: seq, ack: received, message: message).encode())
        return seq
    }

    func send(text: [UInt8]) async throws { try await send(opcode: .text, text) }

    private func send(opcode: WebSocketOpcode, _ bytes: [UInt8]) async throws {
        let frame = WebSocketFrame(
            fin: true, opcode: opcode, maskKey: .random(), data: channel.allocator.buffer(bytes: bytes)
        )
        try await channel.writeAndFlush(frame)
    }

    /// Closes with a close frame: leaving.
    func close(_ code: UInt16 = 1000) async throws {
        try await send(opcode: .connectionClose, [UInt8(code >> 8), UInt8(code & 0xFF)])
    }

    /// Cuts the line: a drop.
    func drop() { channel.close(promise: nil) }

    // MARK: Hearing

    /// The next message for which `pick` returns something; others are kept in `heard`.
    func hear<T: Sendable>(
        _ what: String, within limit: Duration = .seconds(20), _ pick: @Sendable (ServerMessage) -> T?
    ) async throws -> T {
        let deadline = ContinuousClock.now + limit
        let guardian = Task { [channel] in
            try await Task.sleep(until: deadline)
            channel.close(promise: nil)
        }
        defer { guardian.cancel() }
        while let event = await incoming.next() {
            switch event {
            case .message(let envelope):
                if let seq = envelope.seq { received = max(received, seq) }
                heard.append(envelope.message)
                if let picked = pick(envelope.message) { return picked }
            case .closed(let code):
                closeCode = code
                throw TimedOut(description: "no \(what): closed with \(code) after \(heard.map(\.type))")
            }
        }
        throw TimedOut(description: "no \(what): the line is closed; heard \(heard.map(\.type))")
    }

    /// Waits until the server has closed, and says with which code.
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

    /// Says hello and waits for the welcome.
    @discardableResult
    func greet(
        identity: String? = nil, token: String? = nil, resume: Hello.Resume? = nil
    ) async throws -> Welcome {
        var hello = Hello()
        hello.identity = identity
        hello.token = token
        hello.resume = resume
        try await say(.hello(hello))
        return try await hear("welcome") { if case .welcome(let welcome) = $0 { welcome } else { nil } }
    }

    /// Presses Start and waits for a match.
    func meet(_ start: RouletteVerb.Start = RouletteVerb.Start()) async throws -> RouletteNotice.Matched {
        try await say(.roulette(.start(start)))
        return try await hear("match") { if case .roulette(.matched(let matched)) = $0 { matched } else { nil } }
    }

    /// Joins the session that a match named.
    func join(_ admission: Admission) async throws -> SessionNotice.Joined {
        try await say(.session(.join(.init(session: admission.session, token: admission.token))))
        return try await hear("session.joined") { if case .session(.joined(let joined)) = $0 { joined } else { nil } }
    }
}

/// What has arrived and was not yet asked for. `nil` is the end.
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
                    // The end stays: whoever asks again is told again.
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
            if let envelope = try? Envelope<ServerMessage>.decode(bytes) { inbox.put(.message(envelope)) }
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
