#if canImport(NIOCore)
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import Wire

func systemTransport() -> any Transport { NIOTransport() }

/// WebSockets over NIO, which use NIO's shared event loops.
struct NIOTransport: Transport {
    /// The maximum size of a frame and of a message in bytes. It exceeds the longest message from the server, an
    /// answer with 256 KiB of SDP.
    static let maxFrame = 1 << 20

    func open(_ url: URL, _ report: @escaping @Sendable (SocketEvent) -> Void) -> any TransportSocket {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let socket = NIOSocket(loop, report)
        loop.execute { socket.connect(to: url) }
        return socket.handle
    }
}

/// The application's handle to a socket. The channel closes when the handle is released.
private final class NIOSocketHandle: TransportSocket {
    let socket: NIOSocket
    init(_ socket: NIOSocket) { self.socket = socket }
    deinit { close(.normal) }

    func send(_ text: [UInt8]) { socket.loop.execute { [socket] in socket.write(text) } }
    func close(_ code: CloseCode) { socket.loop.execute { [socket] in socket.close(code) } }
}

/// A WebSocket and its handler. It is `@unchecked Sendable` because everything but `loop` is used on the event loop only.
private final class NIOSocket: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    let loop: any EventLoop
    private let report: @Sendable (SocketEvent) -> Void
    private var context: ChannelHandlerContext?
    private var channel: (any Channel)?
    private var isEnded = false
    /// The text of a fragmented message so far; nil between messages.
    private var fragments: [UInt8]?

    init(_ loop: any EventLoop, _ report: @escaping @Sendable (SocketEvent) -> Void) {
        (self.loop, self.report) = (loop, report)
    }

    var handle: NIOSocketHandle { NIOSocketHandle(self) }

    // MARK: Opening

    func connect(to url: URL) {
        let place = HostEndpoint(url)
        guard !isEnded, !place.host.isEmpty else { return end(.abnormal) }
        ClientBootstrap(group: loop)
            .channelOption(.socketOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    self.channel = channel
                    if place.isSecure { try place.addTLS(to: channel) }
                    try self.upgrade(channel, place).whenFailure { _ in self.end(.abnormal) }
                }
            }
            .connect(host: place.host, port: place.port)
            .whenFailure { _ in self.end(.abnormal) }
    }

    private func upgrade(_ channel: any Channel, _ place: HostEndpoint) throws -> EventLoopFuture<Void> {
        let upgrader = NIOTypedWebSocketClientUpgrader<Void>(maxFrameSize: NIOTransport.maxFrame) { channel, _ in
            channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(self) }
        }
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: place.path)
        head.headers.add(name: "Host", value: place.authority)
        head.headers.add(name: "Sec-WebSocket-Protocol", value: "confab.v1")
        var configuration = NIOUpgradableHTTPClientPipelineConfiguration(
            upgradeConfiguration: .init(upgradeRequestHead: head, upgraders: [upgrader]) { channel in
                // The server did not accept the upgrade, so it is not a Confab server.
                channel.close()
            })
        // Keep the bytes after the 101 response, because a server that refuses the client may send its error in the
        // same packet.
        configuration.leftOverBytesStrategy = .forwardBytes
        return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
            configuration: configuration)
    }

    // MARK: Sending and closing

    func write(_ text: [UInt8]) {
        if !isEnded { write(.text, ByteBuffer(bytes: text)) }
    }

    private func write(_ opcode: WebSocketOpcode, _ data: ByteBuffer) {
        guard let context else { return }
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    func close(_ code: CloseCode) {
        guard !isEnded else { return }
        isEnded = true
        var data = ByteBuffer()
        data.writeInteger(code.rawValue)
        write(.connectionClose, data)
        channel?.close(promise: nil)
    }

    private func end(_ code: CloseCode) {
        guard !isEnded else { return }
        isEnded = true
        report(.closed(code))
        channel?.close(promise: nil)
    }

    // MARK: ChannelInboundHandler

    func handlerAdded(context: ChannelHandlerContext) {
        guard !isEnded else { return context.close(promise: nil) }
        self.context = context
        report(.opened)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isEnded else { return }
        let frame = unwrapInboundIn(data)
        switch frame.opcode {
        case .text, .continuation: received(frame)
        case .ping:
            // Do not queue pongs for a server that does not read.
            if context.channel.isWritable { write(.pong, frame.unmaskedData) }
            report(.heard)
        case .connectionClose:
            let code = frame.unmaskedData.getInteger(at: frame.unmaskedData.readerIndex, as: UInt16.self)
            end(code.map { CloseCode(rawValue: $0) } ?? .noStatus)
        default: report(.heard)
        }
    }

    private func received(_ frame: WebSocketFrame) {
        var text = frame.opcode == .text ? [] : fragments ?? []
        // Release the stored array first. Otherwise each of many small fragments would copy it.
        fragments = nil
        text += frame.unmaskedData.readableBytesView
        guard text.count <= NIOTransport.maxFrame else { return end(.abnormal) }
        fragments = frame.fin ? nil : text
        report(frame.fin ? .received(text) : .heard)
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(.abnormal)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end(.abnormal)
        context.close(promise: nil)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        end(.abnormal)
        self.context = nil
    }
}
#endif
