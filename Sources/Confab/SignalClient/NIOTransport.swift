#if canImport(NIOCore)
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import Wire

func systemTransport() -> any Transport { NIOTransport() }

/// A transport that uses SwiftNIO, on NIO's shared event loops.
struct NIOTransport: Transport {
    /// The maximum size of a frame and of a message in bytes. It exceeds the longest message from the server, an
    /// answer with 256 KiB of SDP.
    static let maxFrame = 1 << 20

    func open(_ url: URL, _ report: @escaping @Sendable (SocketEvent) -> Void) -> any TransportSocket {
        let socket = NIOSocket(report: report)
        Task { try await socket.connect(to: HostEndpoint(url)) }
        return NIOSocketHandle(socket)
    }
}

/// The application's handle to a socket. The channel closes when the handle is released.
private final class NIOSocketHandle: TransportSocket {
    let socket: NIOSocket
    init(_ socket: NIOSocket) { self.socket = socket }
    deinit { close(.normal) }

    func send(_ text: [UInt8]) { socket.send(text) }
    func close(_ code: CloseCode) { socket.close(code) }
}

/// A WebSocket with the subprotocol `confab.v1`, for the SDK, for load tests, and for tests of the server. It is
/// `@unchecked Sendable` because everything but `loop` is used on the event loop only.
package final class NIOSocket: ChannelInboundHandler, @unchecked Sendable {
    /// Frames from the server.
    package typealias InboundIn = WebSocketFrame
    /// Frames to the server.
    package typealias OutboundOut = WebSocketFrame

    /// Settings that only tests and load tests change.
    package struct Options: Sendable {
        /// Additional headers of the handshake request.
        package var headers: [(String, String)] = []
        /// The local IP address to connect from; nil for any.
        package var source: String?
        /// The TLS context; nil for one that trusts the system's certificates.
        package var tls: NIOSSLContext?
        /// Whether the channel closes after a close frame from the server.
        package var answersClose = true
        package init() {}
    }

    /// The server did not accept the upgrade, so it is not a Confab server.
    package struct NotConfab: Error, CustomStringConvertible {
        package let description: String
    }

    private let loop: any EventLoop
    private let options: Options
    private let report: @Sendable (SocketEvent) -> Void
    private var context: ChannelHandlerContext?
    /// The channels of all connection attempts. A host name with several addresses can need several.
    private var channels: [any Channel] = []
    private var isEnded = false
    /// The error that ended the socket, if any. Read it on the event loop.
    package private(set) var fault: (any Error)?
    /// The text of a fragmented message so far; nil between messages.
    private var fragments: [UInt8]?

    /// - Parameter report: called with each event, on the event loop.
    package init(
        _ options: Options = Options(), on loop: (any EventLoop)? = nil,
        report: @escaping @Sendable (SocketEvent) -> Void
    ) {
        (self.options, self.report) = (options, report)
        self.loop = loop ?? MultiThreadedEventLoopGroup.singleton.next()
    }

    // MARK: Opening

    /// Opens the socket.
    ///
    /// - Returns: the channel. It stays open if this object is released.
    /// - Throws: ``NotConfab``, or an error that says why the server cannot be reached. The event `closed` is reported
    ///   too.
    @discardableResult
    package func connect(to place: HostEndpoint) async throws -> any Channel {
        do {
            var bootstrap = ClientBootstrap(group: loop).channelOption(.socketOption(.tcp_nodelay), value: 1)
            if let source = options.source {
                bootstrap = bootstrap.bind(to: try SocketAddress(ipAddress: source, port: 0))
            }
            let upgraded = try await bootstrap.connect(host: place.host, port: place.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard !self.isEnded else { throw ChannelError.alreadyClosed }
                    self.channels.append(channel)
                    if place.isSecure { try place.addTLS(to: channel, self.options.tls) }
                    return try self.upgrade(channel, place)
                }
            }
            return try await upgraded.get()
        } catch {
            loop.execute { self.end(.abnormal) }
            throw error
        }
    }

    private func upgrade(_ channel: any Channel, _ place: HostEndpoint) throws -> EventLoopFuture<any Channel> {
        let upgrader = NIOTypedWebSocketClientUpgrader<Void>(maxFrameSize: NIOTransport.maxFrame) { channel, _ in
            channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(self) }
        }
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: place.target)
        head.headers.add(name: "Host", value: place.authority)
        head.headers.add(name: "Sec-WebSocket-Protocol", value: "confab.v1")
        head.headers.add(contentsOf: HTTPHeaders(options.headers))
        var configuration = NIOUpgradableHTTPClientPipelineConfiguration(
            upgradeConfiguration: .init(upgradeRequestHead: head, upgraders: [upgrader]) { channel in
                channel.close().flatMapThrowing {
                    throw NotConfab(description: "The server at \(place.authority) is not a Confab server.")
                }
            })
        // Keep the bytes after the 101 response, because a server that refuses the client may send its error in the
        // same packet.
        configuration.leftOverBytesStrategy = .forwardBytes
        return try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(configuration: configuration)
            .map { channel }
    }

    // MARK: Sending and closing

    /// Sends a text message.
    package func send(_ text: [UInt8]) {
        loop.execute { if !self.isEnded { self.write(.text, ByteBuffer(bytes: text)) } }
    }

    /// Sends a close frame and closes the channel. No event follows.
    package func close(_ code: CloseCode) {
        loop.execute {
            guard !self.isEnded else { return }
            self.isEnded = true
            self.write(.connectionClose, ByteBuffer(integer: code.rawValue))
            self.closeChannels()
        }
    }

    private func write(_ opcode: WebSocketOpcode, _ data: ByteBuffer) {
        guard let context else { return }
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    private func end(_ code: CloseCode) {
        guard !isEnded else { return }
        isEnded = true
        report(.closed(code))
        if options.answersClose { closeChannels() }
    }

    private func closeChannels() {
        for channel in channels { channel.close(promise: nil) }
        channels = []
    }

    // MARK: ChannelInboundHandler

    /// Reports that the socket is open.
    package func handlerAdded(context: ChannelHandlerContext) {
        guard !isEnded else { return context.close(promise: nil) }
        self.context = context
        report(.opened)
    }

    /// Reports a message, answers a ping, or ends the socket after a close frame.
    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
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

    /// Ends the socket with code 1006, because the connection ended without a close frame.
    package func channelInactive(context: ChannelHandlerContext) {
        end(.abnormal)
        context.fireChannelInactive()
    }

    /// Ends the socket with code 1006, and keeps the error in ``fault``.
    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fault = error
        end(.abnormal)
        context.close(promise: nil)
    }

    /// Ends the socket with code 1006, because no more frames arrive.
    package func handlerRemoved(context: ChannelHandlerContext) {
        end(.abnormal)
        self.context = nil
    }
}
#endif
