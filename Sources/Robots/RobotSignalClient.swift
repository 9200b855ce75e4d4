import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import Peers
import Synchronization
import Wire

/// The WebSocket of a `RobotClient`. It carries out the effects of a `SignalClient`.
///
/// The class is `@unchecked Sendable` because everything except `ended` is used only on the channel's event loop.
final class RobotSignalClient: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame
    private typealias Waiting<Answer> = CheckedContinuation<Answer, any Error>

    /// The maximum size of a WebSocket frame in bytes. It is larger than the longest message from the server, an answer with
    /// 256 KiB of SDP.
    private static let maxFrame = 1 << 20
    /// How long to wait for `welcome`. A server to which many robots connect at once may be this slow.
    private static let welcomeTimeout = Duration.seconds(20)

    private let ended = Mutex<String?>(nil)
    private var context: ChannelHandlerContext?
    private var channel: (any Channel)?
    private var line: SignalClient
    private var socket: SignalClient.Socket?
    private var greeting: Waiting<Welcome>?
    private var waiting: [SignalClient.RequestID: Waiting<ServerMessage>] = [:]
    private var requestCount: UInt64 = 0
    /// The effects to carry out. Carrying out an effect can cause events that add more effects.
    private var effects: [SignalClient.Effect] = []
    private var isCarryingOut = false
    private var timeout: (at: Timestamp, task: Scheduled<Void>)?
    /// The error that closed the channel.
    private var fault: (any Error)?

    init(_ hello: Hello) {
        var options = SignalClient.Options()
        (options.reconnects, options.connectTimeout, options.welcomeTimeout) = (false, nil, Self.welcomeTimeout)
        line = SignalClient(hello: hello, options: options, random: SystemRandomNumberGenerator())
    }

    /// Why the connection ended; nil while it is open.
    private var ending: String? { ended.withLock { $0 } }

    // MARK: Opening

    func open(_ place: HostEndpoint, from source: String?, on loop: any EventLoop) async throws {
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

    private func upgrade(_ channel: any Channel, _ place: HostEndpoint) throws -> EventLoopFuture<any Channel> {
        let upgrader = NIOTypedWebSocketClientUpgrader<Void>(maxFrameSize: Self.maxFrame) { channel, _ in
            channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(self) }
        }
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: place.path)
        head.headers.add(name: "Host", value: place.authority)
        head.headers.add(name: "Sec-WebSocket-Protocol", value: "confab.v1")
        var configuration = NIOUpgradableHTTPClientPipelineConfiguration(
            upgradeConfiguration: .init(upgradeRequestHead: head, upgraders: [upgrader]) { channel in
                channel.close().flatMapThrowing {
                    throw RobotError("The server at \(place.authority) is not a Confab server.")
                }
            }
        )
        // Keep the bytes after the 101 response, because a server that rejects the client may send its error in the
        // same packet.
        configuration.leftOverBytesStrategy = .forwardBytes
        return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(configuration: configuration)
            .map { channel }
    }

    /// Sends `hello` and waits for `welcome`.
    func greet() async throws {
        _ = try await onLoop { (waiting: Waiting<Welcome>) in
            if let ending = self.line.ending { return waiting.resume(throwing: Self.error(ending)) }
            self.greeting = waiting
            if let socket = self.socket { self.report(.opened(socket)) }
        }
    }

    private static func error(_ ending: SignalClient.Ending) -> any Error { ending.error ?? RobotError(left) }
    private static let left = "This client has left."

    // MARK: Requests

    func ask(_ message: ClientMessage) async throws -> ServerMessage {
        try await onLoop { (waiting: Waiting<ServerMessage>) in
            if let ending = self.ending { return waiting.resume(throwing: RobotError(ending)) }
            self.requestCount += 1
            let id = SignalClient.RequestID(rawValue: self.requestCount)
            self.waiting[id] = waiting
            self.report(.request(id, message))
        }
    }

    private func onLoop<Answer: Sendable>(_ body: @escaping @Sendable (Waiting<Answer>) -> Void) async throws -> Answer
    {
        guard let channel else { throw RobotError("The connection is not open. Connect first.") }
        return try await withCheckedThrowingContinuation { continuation in
            channel.eventLoop.execute { body(continuation) }
        }
    }

    func leave() async {
        guard let channel else { return }
        channel.eventLoop.execute {
            self.report(.leave)
            channel.close(promise: nil)
        }
        try? await channel.closeFuture.get()
    }

    // MARK: SignalClient

    private func report(_ event: SignalClient.Event) { update { $0.handle(event, now: $1) } }

    private func update(_ body: (inout SignalClient, Timestamp) -> [SignalClient.Effect]) {
        effects += body(&line, Self.now)
        guard !isCarryingOut else { return }
        isCarryingOut = true
        while !effects.isEmpty {
            let batch = effects
            effects = []
            for effect in batch { carryOut(effect) }
        }
        isCarryingOut = false
        schedule()
    }

    private static var now: Timestamp {
        Timestamp(milliseconds: Int64(NIODeadline.now().uptimeNanoseconds / 1_000_000))
    }

    private func carryOut(_ effect: SignalClient.Effect) {
        switch effect {
        case .open(let socket): self.socket = socket
        case .send(let bytes, _): write(.text, ByteBuffer(bytes: bytes))
        // No close frame is needed after `bye`.
        case .close: context?.close(promise: nil)
        case .connected(let welcome, _):
            greeting?.resume(returning: welcome)
            greeting = nil
        case .answered(let id, .error(let error)): waiting.removeValue(forKey: id)?.resume(throwing: error.error)
        case .answered(let id, let message): waiting.removeValue(forKey: id)?.resume(returning: message)
        case .failed(let id, let error): waiting.removeValue(forKey: id)?.resume(throwing: RobotError(error.message))
        case .ended(let ending): finish(ending)
        // A load test does not use events, and does not reconnect.
        case .event, .unreadable, .reconnecting, .expired: break
        }
    }

    private func finish(_ ending: SignalClient.Ending) {
        let reason = ending.error?.message ?? Self.left
        ended.withLock { $0 = fault.map { "\(reason) (\($0))" } ?? reason }
        greeting?.resume(throwing: Self.error(ending))
        greeting = nil
        context?.close(promise: nil)
    }

    /// Schedules one task for the earliest timeout. If the task runs too early, it schedules the next one.
    private func schedule() {
        guard let next = line.nextTimeout, let loop = context?.eventLoop else {
            timeout?.task.cancel()
            return timeout = nil
        }
        if let timeout, timeout.at <= next { return }
        timeout?.task.cancel()
        let delay = TimeAmount.milliseconds(max(0, (next - Self.now).wholeMilliseconds))
        let task = loop.scheduleTask(in: delay) {
            self.timeout = nil
            self.update { $0.handleTimeout(now: $1) }
        }
        timeout = (next, task)
    }

    // MARK: ChannelInboundHandler

    private func write(_ opcode: WebSocketOpcode, _ data: ByteBuffer) {
        guard let context else { return }
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        report(.connect)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        guard let socket else { return }
        switch frame.opcode {
        case .text: report(.received(Array(frame.unmaskedData.readableBytesView), on: socket))
        case .ping:
            write(.pong, frame.unmaskedData)
            report(.heard(socket))
        case .connectionClose:
            let code = frame.unmaskedData.getInteger(at: frame.unmaskedData.readerIndex, as: UInt16.self)
            report(.closed(socket, code.map { CloseCode(rawValue: $0) } ?? .noStatus))
            context.close(promise: nil)
        default: report(.heard(socket))
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        disconnected()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fault = error
        disconnected()
        context.close(promise: nil)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        disconnected()
        self.context = nil
    }

    private func disconnected() {
        if let socket { report(.closed(socket, .abnormal)) }
    }
}

extension HostEndpoint {
    var authority: String { URLAuthority(host: host, port: port).description }
    /// The server name for TLS. Nil for an IP address, which SNI does not allow.
    var serverName: String? {
        let isAddress = host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." }
        return isAddress ? nil : host
    }
}
