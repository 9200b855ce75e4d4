import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOWebSocket
import ServiceLifecycle
import Wire

/// A connection to the public port: HTTP for the router, or a WebSocket for the hub, told apart by its first request.
struct GatewayChannel: HTTPChannelHandler {
    /// What the first request makes of a connection.
    enum Kind: Sendable {
        case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
        case socket(any Channel)
    }

    /// The kind is known only later: a channel reads nothing before its setup is done.
    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let kind: EventLoopFuture<Kind>
    }

    static let socketPath = "/v1/socket"
    static let subprotocol = "confab.v1"

    let responder: HTTPChannelHandler.Responder
    let gateway: NIOLoopBound<Gateway>
    let settings: Gateway.Settings
    /// For the first request, and between requests.
    let headerTimeout: Duration

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeCompletedFuture {
            var configuration = NIOUpgradableHTTPServerPipelineConfiguration<Kind>(
                upgradeConfiguration: .init(upgraders: [upgrader]) { [gateway] channel in
                    channel.eventLoop.makeCompletedFuture { try http(channel, gateway.value, logger) }
                }
            )
            // HTTP is pipelined by the async channel; bad requests are answered 400 rather than left hanging.
            configuration.enablePipelining = false
            configuration.enableErrorHandling = true
            configuration.decoderConfiguration.maxHeaderFieldSize = 16 * 1024
            configuration.decoderConfiguration.maxHeaderListSize = 64 * 1024
            configuration.decoderConfiguration.maxHeaderFieldCount = 100
            let pipeline = channel.pipeline.syncOperations
            let kind = try pipeline.configureUpgradableHTTPServerPipeline(configuration: configuration)
            let switchover = try pipeline.handler(type: NIOTypedHTTPServerUpgradeHandler<Kind>.self)
            try pipeline.addHandler(FirstRequest(timeout: headerTimeout), position: .before(switchover))
            return Value(channel: channel, kind: kind)
        }
    }

    func handle(value: Value, logger: Logger) async {
        switch try? await value.kind.get() {
        case .http(let channel)?: await handleHTTP(asyncChannel: channel, logger: logger)
        case .socket(let channel)?: await untilClosed(channel)
        case nil: value.channel.close(promise: nil)
        }
    }

    /// Whoever has not answered 1001 by the end of the grace is cut off: a silent client must not keep the server up.
    private func untilClosed(_ channel: any Channel) async {
        await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                try? await channel.closeFuture.get()
            } onGracefulShutdown: {
                channel.close(promise: nil)
            }
        } onCancel: {
            channel.close(promise: nil)
        }
    }

    private func http(_ channel: any Channel, _ gateway: Gateway, _ logger: Logger) throws -> Kind {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(SocketIOHTTPHandler(gateway: gateway, idleTimeout: headerTimeout * 6))
        try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
        try pipeline.addHandler(HTTPConnectionStateHandler(idleTimeout: nil, logger: logger))
        return .http(
            try NIOAsyncChannel(
                wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true)
            )
        )
    }

    private var upgrader: NIOTypedWebSocketServerUpgrader<Kind> {
        NIOTypedWebSocketServerUpgrader(
            maxFrameSize: settings.descriptionSize,
            enableAutomaticErrorHandling: false,
            shouldUpgrade: { channel, head in
                // Socket.IO has none.
                let headers: HTTPHeaders =
                    SocketIORequest.webSocketID(uri: head.uri) == nil
                    ? ["Sec-WebSocket-Protocol": Self.subprotocol] : [:]
                return channel.eventLoop.makeSucceededFuture(headers)
            },
            upgradePipelineHandler: { [gateway] channel, head in
                channel.eventLoop.makeCompletedFuture {
                    let handler = webSocketHandler(gateway.value, channel, head)
                    try channel.pipeline.syncOperations.addHandler(handler)
                    return .socket(channel)
                }
            }
        )
    }
}

extension GatewayChannel {
    /// Our own protocol, or Socket.IO, by the address asked for.
    private func webSocketHandler(
        _ gateway: Gateway, _ channel: any Channel, _ head: HTTPRequestHead
    ) -> WebSocketHandler {
        if let id = SocketIORequest.webSocketID(uri: head.uri) {
            let user: any WebSocketUser = gateway.socketIO.session(id) ?? UnknownSocketIOConnection()
            return WebSocketHandler(gateway: gateway, user: user, messageSize: settings.messageSize)
        }
        let peer = channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) } ?? .unknown
        let address = ForwardedAddress.client(
            peer: peer, headers: head.headers, trusted: settings.trustedProxies
        ).address
        let socket = NativeSocket(gateway: gateway, address: address, origin: head.headers.first(name: "Origin"))
        return WebSocketHandler(gateway: gateway, user: socket, messageSize: settings.descriptionSize)
    }
}

/// Says that there is no such connection, so that the client starts with a handshake, and closes.
private final class UnknownSocketIOConnection: WebSocketUser {
    func opened(_ webSocket: WebSocketHandler) {
        webSocket.send(SocketIOPacket.notHandshaken.encode())
        webSocket.flush()
        webSocket.close(.normal, "")
    }

    func received(_ bytes: [UInt8], on webSocket: WebSocketHandler) {}
    func showedLife(on webSocket: WebSocketHandler) {}
    func violated(_ code: CloseCode, _ reason: String, on webSocket: WebSocketHandler) {}
    func closedByPeer(_ code: CloseCode, on webSocket: WebSocketHandler) {}
    func broke(_ webSocket: WebSocketHandler) {}
}

extension IPAddress {
    /// What a peer without an address (a UNIX socket) counts as.
    static let unknown = IPAddress(bytes: [0, 0, 0, 0])!
}

/// Looks at a connection's first request. NIO's upgrader swallows requests that ask for an upgrade it refuses, so whatever
/// is not a proper upgrade of ours loses its `Upgrade` header here and gets the router's answer. Ends connections that
/// say nothing.
private final class FirstRequest: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private let timeout: Duration
    private var silence: Scheduled<Void>?

    init(timeout: Duration) { self.timeout = timeout }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        silence = context.eventLoop.scheduleTask(in: .nanoseconds(timeout)) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { silence?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        silence?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
        silence?.cancel()
        if !Self.isOurs(head) { head.headers.remove(name: "Upgrade") }
        context.fireChannelRead(wrapInboundOut(.head(head)))
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    private static func isOurs(_ head: HTTPRequestHead) -> Bool {
        let path = head.uri.prefix { $0 != "?" }
        let isSocketIO = SocketIORequest.webSocketID(uri: head.uri) != nil
        return head.method == .GET && (path == GatewayChannel.socketPath || isSocketIO)
            && head.headers[canonicalForm: "upgrade"].contains { $0.lowercased() == "websocket" }
            && head.headers[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
            && head.headers.first(name: "Sec-WebSocket-Version") == "13"
            && isKey(head.headers["Sec-WebSocket-Key"])
            && (isSocketIO
                || head.headers[canonicalForm: "sec-websocket-protocol"].contains { $0 == GatewayChannel.subprotocol })
    }

    /// RFC 6455 §4.1: sixteen bytes in base64.
    private static func isKey(_ values: [String]) -> Bool {
        guard values.count == 1, let key = values.first else { return false }
        return key.utf8.count == 24 && key.hasSuffix("==")
            && key.utf8.dropLast(2).allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
                    true
                default: false
                }
            }
    }
}
