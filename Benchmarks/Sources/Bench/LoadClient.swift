import NIOCore
import NIOPosix
import Wire

/// A `confab.v1` client: a `SignalClient` on a WebSocket. It must use little CPU time, because the load runs on the same cores as
/// the measured server. It therefore encodes frames itself and masks them with zeros, which is allowed and makes no difference
/// to the server.
///
/// The class is `@unchecked Sendable` because it is used only on its event loop.
final class LoadClient: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(description: String) { self.description = description }
        init(_ error: WireError) { description = "\(error.code.rawValue): \(error.message)" }
    }

    private enum State {
        case upgrading, open, closed
    }

    let loop: any EventLoop
    private let port: Int
    private let opened: EventLoopPromise<Void>
    private var state = State.upgrading
    private var context: ChannelHandlerContext?
    private var unread = ByteBuffer()
    private var line: SignalClient
    private var socket: SignalClient.Socket?
    private var requestCount: UInt64 = 0
    /// The requests whose answers were promised.
    private var promised: [UInt64: EventLoopPromise<ServerMessage>] = [:]
    private var welcomed: EventLoopPromise<Welcome>?
    private var timeout: (at: Timestamp, task: Scheduled<Void>)?
    /// Whether messages are only counted, and not read.
    private var isFlooding = false
    /// The number of messages received since `flood`.
    private(set) var floodAnswers = 0
    /// The code with which the server closed, if it did.
    private(set) var closeCode: CloseCode?
    /// Called with the welcome, each response and each event. The running benchmark sets it.
    var onMessage: ((LoadClient, ServerMessage) -> Void)?
    /// Called when the connection ends unexpectedly.
    var onEnd: ((String) -> Void)?
    /// The client's index in the crowd.
    private(set) var tag = 0

    init(port: Int, hello: Hello, on loop: any EventLoop, opened: EventLoopPromise<Void>) {
        self.port = port
        self.loop = loop
        self.opened = opened
        var options = SignalClient.Options()
        (options.reconnects, options.connectTimeout, options.welcomeTimeout) = (false, nil, .seconds(180))
        line = SignalClient(hello: hello, options: options, random: SystemRandomNumberGenerator())
    }

    /// Opens a socket without sending anything.
    ///
    /// - Parameter source: the client's address. By default each client has its own, because a server limits connections per
    ///   address and every address in 127.0.0.0/8 belongs to this computer.
    static func connect(
        port: Int, number: Int, from source: String? = nil, hello: Hello = Hello(), on loop: any EventLoop
    ) -> EventLoopFuture<LoadClient> {
        let opened = loop.makePromise(of: Void.self)
        let client = LoadClient(port: port, hello: hello, on: loop, opened: opened)
        client.tag = number
        let source = source ?? "127.1.\(number / 200 % 200).\(number % 200 + 1)"
        let address = Result { try SocketAddress(ipAddress: source, port: 0) }
        return loop.makeCompletedFuture(address).flatMap { address in
            client.connect(from: address, on: loop)
        }
        .flatMapError { error in
            opened.fail(error)
            return loop.makeFailedFuture(error)
        }
        .flatMap { opened.futureResult }
        .map { client }
    }

    private func connect(from address: SocketAddress, on loop: any EventLoop) -> EventLoopFuture<Void> {
        ClientBootstrap(group: loop)
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(self) }
            }
            .bind(to: address)
            .connect(host: "127.0.0.1", port: port)
            .map { _ in }
    }

    // MARK: SignalClient

    /// Sends `hello`. The welcome is passed to `onMessage`.
    func greet() {
        update { $0.handle(.connect, now: $1) }
        guard let socket else { return }
        update { $0.handle(.opened(socket), now: $1) }
    }

    /// Sends a request. The response is passed to `onMessage`.
    func ask(_ message: ClientMessage) {
        requestCount += 1
        let id = SignalClient.RequestID(rawValue: requestCount)
        update { $0.handle(.request(id, message), now: $1) }
    }

    /// Sends `hello` and returns the welcome. Call it on the loop.
    func welcome() -> EventLoopFuture<Welcome> {
        let promise = loop.makePromise(of: Welcome.self)
        welcomed = promise
        greet()
        return promise.futureResult
    }

    /// Sends a request and returns its answer, which may be an error. Fails if the connection ends first. Call it on the loop.
    func request(_ message: ClientMessage) -> EventLoopFuture<ServerMessage> {
        let promise = loop.makePromise(of: ServerMessage.self)
        guard state == .open else {
            promise.fail(Failure(description: "the connection has ended"))
            return promise.futureResult
        }
        promised[requestCount + 1] = promise
        ask(message)
        return promise.futureResult
    }

    /// Sends messages in one write without keeping them. Afterwards the client only counts what it receives: it does not read
    /// or acknowledge messages, so that a flood costs the sender little.
    ///
    /// - Returns: false if nothing was sent, because the server has not yet read what was sent before.
    func flood(_ messages: [ClientMessage]) -> Bool {
        isFlooding = true
        guard let context, state == .open, context.channel.isWritable else { return false }
        timeout?.task.cancel()
        timeout = nil
        var frames = context.channel.allocator.buffer(capacity: messages.count * 256)
        for message in messages {
            let isUnnumbered = message.isUnnumbered
            if !isUnnumbered { requestCount += 1 }
            let text = Envelope(seq: isUnnumbered ? nil : requestCount, message: message).encode()
            Self.append(frame: 1, text, to: &frames)
        }
        context.writeAndFlush(wrapOutboundOut(frames), promise: nil)
        return true
    }

    private func update(_ body: (inout SignalClient, Timestamp) -> [SignalClient.Effect]) {
        for effect in body(&line, Self.now) {
            switch effect {
            case .open(let socket): self.socket = socket
            case .send(let bytes, _): write(opcode: 1, bytes)
            case .close: context?.close(promise: nil)
            case .connected(let welcome, _):
                welcomed?.succeed(welcome)
                welcomed = nil
                onMessage?(self, .welcome(welcome))
            case .answered(let id, let message):
                if let promise = promised.removeValue(forKey: id.rawValue) {
                    promise.succeed(message)
                } else {
                    onMessage?(self, message)
                }
            case .event(let message): onMessage?(self, message)
            case .failed(let id, let error):
                if let promise = promised.removeValue(forKey: id.rawValue) {
                    promise.fail(Failure(error))
                } else {
                    onEnd?(error.message)
                }
            // A newer server may send events that this client does not know, and `SignalClient` counts them.
            case .unreadable(let message): if message.error.code != .unknownType { onEnd?(message.error.message) }
            case .ended(let ending): ended(ending.error?.message ?? "left")
            case .reconnecting, .expired: break
            }
        }
        schedule()
    }

    private static var now: Timestamp {
        Timestamp(milliseconds: Int64(NIODeadline.now().uptimeNanoseconds / 1_000_000))
    }

    /// Schedules one task for the earliest timeout. A task that runs too early schedules the next one.
    private func schedule() {
        guard state == .open, let next = line.nextTimeout, let loop = context?.eventLoop else {
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

    func end() {
        state = .closed
        timeout?.task.cancel()
        timeout = nil
        context?.close(promise: nil)
    }

    private func write(opcode: UInt8, _ payload: some Collection<UInt8>) {
        guard let context, state != .closed else { return }
        var frame = context.channel.allocator.buffer(capacity: payload.count + 14)
        Self.append(frame: opcode, payload, to: &frame)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    private static func append(frame opcode: UInt8, _ payload: some Collection<UInt8>, to frames: inout ByteBuffer) {
        frames.writeInteger(0x80 | opcode)
        if payload.count < 126 {
            frames.writeInteger(0x80 | UInt8(payload.count))
        } else {
            frames.writeInteger(UInt8(0xFE))
            frames.writeInteger(UInt16(payload.count))
        }
        frames.writeInteger(UInt32(0))
        frames.writeBytes(payload)
    }

    // MARK: ChannelInboundHandler

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        let request = """
            GET /v1/socket HTTP/1.1\r
            Host: 127.0.0.1:\(port)\r
            Connection: Upgrade\r
            Upgrade: websocket\r
            Sec-WebSocket-Version: 13\r
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
            Sec-WebSocket-Protocol: confab.v1\r
            \r

            """
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var data = unwrapInboundIn(data)
        unread.writeBuffer(&data)
        if state == .upgrading, !readUpgrade() { return }
        while state == .open, readFrame() {}
        unread.discardReadBytes()
    }

    func channelInactive(context: ChannelHandlerContext) { ended("the server closed the connection") }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { ended("\(error)") }

    private func ended(_ reason: String) {
        if state == .upgrading { opened.fail(Failure(description: reason)) }
        if state == .open { onEnd?(reason) }
        end()
        context = nil
        // Do this last, because a callback may send again.
        let waiting = promised
        promised = [:]
        for promise in waiting.values { promise.fail(Failure(description: reason)) }
        welcomed?.fail(Failure(description: reason))
        welcomed = nil
    }

    /// Returns whether the server's response is complete and accepts the upgrade.
    private func readUpgrade() -> Bool {
        let bytes = unread.readableBytesView
        guard let end = bytes.indices.first(where: { bytes[$0...].starts(with: "\r\n\r\n".utf8) }) else { return false }
        guard bytes.starts(with: "HTTP/1.1 101".utf8) else {
            ended("no upgrade: \(String(decoding: bytes.prefix(64), as: UTF8.self))")
            return false
        }
        unread.moveReaderIndex(to: end + 4)
        state = .open
        opened.succeed()
        return true
    }

    /// Reads one frame. Returns whether a complete frame was available.
    private func readFrame() -> Bool {
        let start = unread.readerIndex
        guard let opcode = unread.readInteger(as: UInt8.self), let short = unread.readInteger(as: UInt8.self),
            let length = readLength(short),
            let payload = unread.readSlice(length: length)
        else {
            unread.moveReaderIndex(to: start)
            return false
        }
        switch opcode & 0x0F {
        case 1 where isFlooding: floodAnswers += 1
        case 1: report { .received(Array(payload.readableBytesView), on: $0) }
        case 9:
            write(opcode: 10, payload.readableBytesView)
            report { .heard($0) }
        case 8:
            let code = payload.getInteger(at: payload.readerIndex, as: UInt16.self).map { CloseCode(rawValue: $0) }
            closeCode = code ?? .noStatus
            report { .closed($0, code ?? .noStatus) }
            ended("closed: \((code ?? .noStatus).rawValue)")
        default: break
        }
        return true
    }

    /// Returns the length of a frame; nil if its bytes have not all arrived. Servers send frames without a mask.
    private func readLength(_ short: UInt8) -> Int? {
        switch short {
        case 126: unread.readInteger(as: UInt16.self).map { Int($0) }
        case 127: unread.readInteger(as: UInt64.self).map { Int($0) }
        default: Int(short)
        }
    }

    private func report(_ event: (SignalClient.Socket) -> SignalClient.Event) {
        guard let socket else { return }
        update { $0.handle(event(socket), now: $1) }
    }
}
