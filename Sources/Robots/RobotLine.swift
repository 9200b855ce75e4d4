import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import Synchronization
import Wire

/// The WebSocket of a `RobotClient`: numbers what is said, and finds who waits for what is heard.
///
/// Unchecked: all but `state` is used on the channel's event loop alone.
final class RobotLine: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame
    private typealias Waiting = CheckedContinuation<ServerMessage, any Error>

    /// Above the longest that the server sends, an answer with 256 KiB of SDP.
    private static let mostFrame = 1 << 20
    /// Messages heard before it says how far it got (`protocol/README.md` §1: 32).
    private static let mostUnacknowledged = 16
    /// Of silence before it asks whether the server is still there, and again before it takes the line for broken.
    private static let silence = TimeAmount.seconds(10)
    private static let acknowledgement = TimeAmount.seconds(2)

    private struct State {
        var ending: String?
    }

    private let state = Mutex(State())
    private let events: AsyncStream<ServerMessage>.Continuation
    private var context: ChannelHandlerContext?
    private var channel: (any Channel)?
    private var greeting: Waiting?
    private var waiting: [UInt64: Waiting] = [:]
    private var sent: UInt64 = 0
    private var received: UInt64 = 0
    private var unacknowledged = 0
    private var heardAt = NIODeadline.now()
    private var hasPinged = false
    private var heartbeat: RepeatedTask?

    init(_ events: AsyncStream<ServerMessage>.Continuation) { self.events = events }

    var ending: String? { state.withLock { $0.ending } }

    // MARK: Opening

    func open(_ place: RobotPlace, from source: String?, on loop: any EventLoop) async throws {
        let tls = place.isSecure ? try NIOSSLContext(configuration: .makeClientConfiguration()) : nil
        var bootstrap = ClientBootstrap(group: loop).channelOption(.socketOption(.tcp_nodelay), value: 1)
        if let source { bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: source, port: 0)) }
        let upgraded = try await bootstrap.connect(host: place.host, port: place.port) { channel in
            channel.eventLoop.makeCompletedFuture {
                if let tls {
                    let handler = try NIOSSLClientHandler(context: tls, serverHostname: place.serverName)
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
                return try self.upgrade(channel, place)
            }
        }
        channel = try await upgraded.get()
    }

    private func upgrade(_ channel: any Channel, _ place: RobotPlace) throws -> EventLoopFuture<any Channel> {
        let upgrader = NIOTypedWebSocketClientUpgrader<Void>(maxFrameSize: Self.mostFrame) { channel, _ in
            channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(self) }
        }
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: place.path)
        head.headers.add(name: "Host", value: place.authority)
        head.headers.add(name: "Sec-WebSocket-Protocol", value: "confab.v1")
        var configuration = NIOUpgradableHTTPClientPipelineConfiguration(
            upgradeConfiguration: .init(upgradeRequestHead: head, upgraders: [upgrader]) { channel in
                channel.close().flatMapThrowing {
                    throw RobotError("There is a server at \(place.authority), but it is no Confab.")
                }
            }
        )
        // A server that refuses at the door says so in the same packet as its 101.
        configuration.leftOverBytesStrategy = .forwardBytes
        return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(configuration: configuration)
            .map { channel }
    }

    func greet(_ hello: Hello) async throws -> Welcome {
        let answer = try await onLoop { (waiting: Waiting) in
            self.greeting = waiting
            self.write(text: Envelope(message: ClientMessage.hello(hello)).encode())
        }
        guard case .welcome(let welcome) = answer else { throw RobotError.unexpected }
        return welcome
    }

    // MARK: Saying

    func ask(_ message: ClientMessage) async throws -> ServerMessage {
        try await onLoop { (waiting: Waiting) in
            self.sent += 1
            self.unacknowledged = 0
            self.waiting[self.sent] = waiting
            self.write(text: Envelope(seq: self.sent, ack: self.received, message: message).encode())
        }
    }

    private func onLoop(_ body: @escaping @Sendable (Waiting) -> Void) async throws -> ServerMessage {
        guard let channel else { throw RobotError("The line is not open.") }
        return try await withCheckedThrowingContinuation { continuation in
            channel.eventLoop.execute {
                if let ending = self.ending { return continuation.resume(throwing: RobotError(ending)) }
                body(continuation)
            }
        }
    }

    func leave() async {
        guard let channel else { return }
        channel.eventLoop.execute {
            guard self.ending == nil else { return }
            self.write(text: Envelope(message: ClientMessage.bye).encode())
            self.finish("The robot has left.")
            channel.close(promise: nil)
        }
        try? await channel.closeFuture.get()
    }

    private func write(text: [UInt8]) { write(.text, ByteBuffer(bytes: text)) }

    private func write(_ opcode: WebSocketOpcode, _ data: ByteBuffer) {
        guard let context else { return }
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    // MARK: Hearing

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let line = NIOLoopBound(self, eventLoop: context.eventLoop)
        heartbeat = context.eventLoop.scheduleRepeatedTask(
            initialDelay: Self.acknowledgement, delay: Self.acknowledgement
        ) { _ in line.value.beat() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        (heardAt, hasPinged) = (.now(), false)
        switch frame.opcode {
        case .text: hear(frame.unmaskedData.readableBytesView)
        case .ping: write(.pong, frame.unmaskedData)
        case .connectionClose:
            let code = frame.unmaskedData.getInteger(at: frame.unmaskedData.readerIndex, as: UInt16.self)
            finish("The server closed the line (\(code ?? 1005)).")
            context.close(promise: nil)
        default: break
        }
    }

    private func hear(_ bytes: ByteBufferView) {
        // What this version does not know is numbered too.
        let (seq, message): (UInt64?, ServerMessage?)
        do throws(UnreadableMessage) {
            let envelope = try Envelope<ServerMessage>.decode(bytes)
            (seq, message) = (envelope.seq, envelope.message)
        } catch {
            (seq, message) = (error.seq, nil)
        }
        if let seq {
            received = max(received, seq)
            unacknowledged += 1
            if unacknowledged >= Self.mostUnacknowledged { acknowledge() }
        }
        if let message { deliver(message) }
    }

    private func deliver(_ message: ServerMessage) {
        if let greeting {
            self.greeting = nil
            return answer(greeting, message)
        }
        if let request = message.re, let asker = waiting.removeValue(forKey: request) {
            return answer(asker, message)
        }
        events.yield(message)
    }

    private func answer(_ waiting: Waiting, _ message: ServerMessage) {
        if case .error(let error) = message {
            waiting.resume(throwing: error.error)
        } else {
            waiting.resume(returning: message)
        }
    }

    // MARK: Time and the end

    private func acknowledge() {
        unacknowledged = 0
        write(text: Envelope(ack: received, message: ClientMessage.ack).encode())
    }

    private func beat() {
        if unacknowledged > 0 { acknowledge() }
        let silent = NIODeadline.now() - heardAt
        if silent > Self.silence * 2 {
            finish("The server says nothing any more.")
            context?.close(promise: nil)
        } else if silent > Self.silence, !hasPinged {
            hasPinged = true
            write(text: Envelope(message: ClientMessage.ping).encode())
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish("The line to the server broke.")
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        finish("The line to the server broke: \(error)")
        context.close(promise: nil)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        finish("The line to the server broke.")
        self.context = nil
    }

    private func finish(_ reason: String) {
        let isFirst = state.withLock { state in
            defer { state.ending = state.ending ?? reason }
            return state.ending == nil
        }
        guard isFirst else { return }
        heartbeat?.cancel()
        greeting?.resume(throwing: RobotError(reason))
        for asker in waiting.values { asker.resume(throwing: RobotError(reason)) }
        (greeting, waiting) = (nil, [:])
        events.finish()
    }
}

extension RobotPlace {
    var authority: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
    /// TLS names no addresses.
    var serverName: String? {
        let isAddress = host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." }
        return isAddress ? nil : host
    }
}
