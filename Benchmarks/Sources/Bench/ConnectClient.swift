import NIOCore
import NIOPosix

/// A Socket.IO client that connects over one transport until the server has sent its session. After that it stays idle. A polling
/// client waits in a poll.
///
/// The class is `@unchecked Sendable` because it is used only on its event loop.
final class ConnectClient: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Transport: String, CaseIterable {
        /// The other protocol, with a `LoadClient`.
        case native = "confab.v1"
        case webSocket = "websocket"
        case xhrPolling = "xhr-polling"
        case jsonpPolling = "jsonp-polling"
        /// The WebSocket of Socket.IO 4, which needs no handshake before it.
        case engine = "socket.io-4"
    }

    /// The next expected event.
    private enum Step {
        case handshake, upgrade, greeting, poll, done
    }

    private let port: Int
    private let transport: Transport
    private let address: SocketAddress
    private let connected: EventLoopPromise<Void>
    private var step = Step.handshake
    private var id = ""
    private var context: ChannelHandlerContext?
    private var unread: [UInt8] = []

    private init(port: Int, transport: Transport, address: SocketAddress, connected: EventLoopPromise<Void>) {
        self.port = port
        self.transport = transport
        self.address = address
        self.connected = connected
    }

    /// Connects from the client's own source address, because servers limit connections per address.
    static func connect(
        port: Int, transport: Transport, number: Int, on loop: any EventLoop
    ) -> EventLoopFuture<ConnectClient> {
        let connected = loop.makePromise(of: Void.self)
        do {
            let address = try SocketAddress(ipAddress: "127.2.\(number / 200 % 200).\(number % 200 + 1)", port: 0)
            let client = ConnectClient(port: port, transport: transport, address: address, connected: connected)
            client.open(on: loop)
            return connected.futureResult.map { client }
        } catch {
            connected.fail(error)
            return connected.futureResult.flatMapThrowing { throw error }
        }
    }

    private func open(on loop: any EventLoop) {
        ClientBootstrap(group: loop)
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(self) }
            }
            .bind(to: address)
            .connect(host: "127.0.0.1", port: port)
            .whenFailure { self.connected.fail($0) }
    }

    func end() {
        step = .done
        context?.close(promise: nil)
    }

    // MARK: Channel events

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        unread = []
        switch step {
        case .handshake where transport == .engine:
            step = .upgrade
            upgrade("/socket.io/?EIO=4&transport=websocket")
        case .handshake: get("/socket.io/1/?t=1")
        case .upgrade: upgrade("/socket.io/1/websocket/\(id)")
        case .greeting, .poll, .done: break
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        unread += Array(buffer: unwrapInboundIn(data))
        while read() {}
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        guard step != .done, step != .upgrade else { return }
        connected.fail(LoadClient.Failure(description: "the server closed the connection during \(step)"))
    }

    private func get(_ path: String, _ headers: String = "") {
        write(Array("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n\(headers)\r\n".utf8))
    }

    private func upgrade(_ path: String) {
        get(
            path,
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
    }

    /// Sends a short text frame. Its mask is zero.
    private func send(_ text: String) {
        write([0x81, 0x80 | UInt8(text.utf8.count), 0, 0, 0, 0] + Array(text.utf8))
    }

    private func write(_ bytes: [UInt8]) {
        guard let context else { return }
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: nil)
    }

    // MARK: Steps

    /// Returns whether a complete message was available.
    private func read() -> Bool {
        switch step {
        case .handshake:
            guard let answer = readAnswer() else { return false }
            id = String(decoding: answer.prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self)
            if transport == .webSocket {
                // Only the first request of a connection can be upgraded.
                step = .upgrade
                let loop = context?.eventLoop
                context?.close(promise: nil)
                if let loop { open(on: loop) }
                return false
            }
            step = .poll
            poll()
        case .upgrade:
            guard let end = unread.firstRange(of: Array("\r\n\r\n".utf8)) else { return false }
            unread.removeFirst(end.upperBound)
            step = .greeting
            // Opens the namespace. The server's first frame may still be on its way.
            if transport == .engine { send("40") }
        case .greeting:
            guard let text = readText() else { return false }
            if text.contains(Array("\"initial\"".utf8)) { finish() }
        case .poll:
            guard let answer = readAnswer() else { return false }
            poll()
            if answer.contains(Array("initial".utf8)) { finish() }
        case .done:
            // Answer the pings of the server.
            guard transport == .engine, let text = readText() else { return false }
            if text == Array("2".utf8) { send("3") }
        }
        return true
    }

    private func finish() {
        step = .done
        connected.succeed()
    }

    private func poll() { get("/socket.io/1/\(transport.rawValue)/\(id)?t=1&i=0") }

    // MARK: Bytes

    /// Returns the body of one response if it is complete.
    private func readAnswer() -> [UInt8]? {
        guard let end = unread.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let head = String(decoding: unread[..<end.lowerBound], as: UTF8.self).lowercased()
        guard head.hasPrefix("http/1.1 200") else {
            connected.fail(LoadClient.Failure(description: String(head.prefix(80))))
            return nil
        }
        let length = head.split(separator: "\r\n").compactMap { line in
            line.hasPrefix("content-length: ") ? Int(line.dropFirst(16)) : nil
        }.first
        guard let length, unread.count >= end.upperBound + length else { return nil }
        defer { unread.removeFirst(end.upperBound + length) }
        return Array(unread[end.upperBound..<end.upperBound + length])
    }

    /// Returns the text of one frame if the frame is complete. Servers send frames without a mask.
    private func readText() -> [UInt8]? {
        guard unread.count >= 2 else { return nil }
        let isLong = unread[1] == 126
        guard !isLong || unread.count >= 4 else { return nil }
        let length = isLong ? Int(unread[2]) << 8 | Int(unread[3]) : Int(unread[1])
        let start = isLong ? 4 : 2
        guard unread.count >= start + length else { return nil }
        defer { unread.removeFirst(start + length) }
        return Array(unread[start..<start + length])
    }
}
