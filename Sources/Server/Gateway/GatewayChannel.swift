import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import ServiceLifecycle
import Signaling
import Wire

/// A connection to the public port. Its first request decides whether it is HTTP for the router or a WebSocket for the hub.
struct GatewayChannel: HTTPChannelHandler {
    /// The protocol of a connection after its first request.
    enum Kind: Sendable {
        case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
        case socket(any Channel)
    }

    /// `kind` is a future because a channel reads nothing before its setup is done, and the first request decides the kind.
    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let kind: EventLoopFuture<Kind>
    }

    static let socketPath = "/v1/socket"
    static let subprotocol = "confab.v1"
    private static let bytesPerTurn = 8 * 1024

    let responder: HTTPChannelHandler.Responder
    let gateway: NIOLoopBound<Gateway>

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        guard gateway.value.admitConnection(channel) else {
            // Do not let the setup fail, which would be an error of the whole server. Close this connection instead.
            channel.close(promise: nil)
            let refused: EventLoopFuture<Kind> = channel.eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
            return channel.eventLoop.makeSucceededFuture(Value(channel: channel, kind: refused))
        }
        return channel.eventLoop.makeCompletedFuture {
            var configuration = NIOUpgradableHTTPServerPipelineConfiguration<Kind>(
                upgradeConfiguration: .init(upgraders: [upgrader]) { channel in
                    channel.eventLoop.makeCompletedFuture { try Self.http(channel, logger) }
                }
            )
            // `HTTPGate` handles pipelining and errors.
            configuration.enablePipelining = false
            configuration.enableErrorHandling = false
            configuration.decoderConfiguration.maxHeaderFieldSize = 16 * 1024
            configuration.decoderConfiguration.maxHeaderListSize = 64 * 1024
            configuration.decoderConfiguration.maxHeaderFieldCount = 100
            // Limit what is read per turn of the loop, so that one busy sender cannot starve the others. A channel keeps
            // the buffer of its last read, so buffers start small.
            try channel.syncOptions?.setOption(.maxMessagesPerRead, value: 1)
            let buffers = AdaptiveRecvByteBufferAllocator(minimum: 1024, initial: 2048, maximum: Self.bytesPerTurn)
            try channel.syncOptions?.setOption(.recvAllocator, value: buffers)
            let pipeline = channel.pipeline.syncOperations
            let kind = try pipeline.configureUpgradableHTTPServerPipeline(configuration: configuration)
            let switchover = try pipeline.handler(type: NIOTypedHTTPServerUpgradeHandler<Kind>.self)
            let gateway = gateway.value
            // This timeout applies to the first request. `HTTPGate` allows more time between requests.
            let headerTimeout = gateway.configuration.limits.requestHeaderTimeout
            let gate = HTTPGate(gateway: gateway, headerTimeout: headerTimeout)
            try pipeline.addHandler(gate, position: .before(switchover))
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

    /// Waits until the connection closes. Shutdown closes the channel, so a silent client cannot keep the server running.
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

    private static func http(_ channel: any Channel, _ logger: Logger) throws -> Kind {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
        // `HTTPGate` handles idle connections, because it knows about pending polls.
        try pipeline.addHandler(HTTPConnectionStateHandler(idleTimeout: nil, logger: logger))
        return .http(
            try NIOAsyncChannel(
                wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true)
            )
        )
    }

    private var upgrader: WebSocketUpgrade<Kind> {
        WebSocketUpgrade { [gateway] channel, head in
            let handler = webSocketHandler(gateway.value, channel, head)
            try channel.pipeline.syncOperations.addHandler(handler)
            return .socket(channel)
        }
    }
}

extension GatewayChannel {
    /// Makes the handler for the native protocol or for Socket.IO, depending on the URL.
    private func webSocketHandler(
        _ gateway: Gateway, _ channel: any Channel, _ head: HTTPRequestHead
    ) -> WebSocketHandler {
        if let id = SocketIORequest.webSocketID(uri: head.uri) {
            let user: any WebSocketUser = gateway.socketIO.session(id) ?? UnknownSocketIOConnection()
            return WebSocketHandler(gateway: gateway, user: user, messageSize: gateway.configuration.rules.messageSize)
        }
        let address = gateway.configuration.clientAddress(head.headers, from: channel.remoteAddress)
        let socket = NativeSocket(gateway: gateway, address: address, origin: head.headers.onlyOrigin)
        return WebSocketHandler(
            gateway: gateway, user: socket, messageSize: gateway.configuration.rules.descriptionSize)
    }
}

/// A WebSocket with an unknown Socket.IO id. It sends "not handshaken" and closes, so the client starts with a new handshake.
private final class UnknownSocketIOConnection: WebSocketUser {
    func opened(_ webSocket: WebSocketHandler) {
        webSocket.send(SocketIOPacket.notHandshaken.encode())
        webSocket.flush()
        webSocket.close(.normal, "")
    }

    func received(_ bytes: [UInt8], on webSocket: WebSocketHandler) {}
    func receivedFrame(_ length: Int, on webSocket: WebSocketHandler) {}
    func protocolViolation(_ code: CloseCode, _ reason: String, on webSocket: WebSocketHandler) {}
    func closedByPeer(_ code: CloseCode, on webSocket: WebSocketHandler) {}
    func disconnected(_ webSocket: WebSocketHandler) {}
}

extension HTTPHeaders {
    /// The value of the `Origin` header. Nil if there is none, or more than one.
    var onlyOrigin: String? {
        let origins = self["Origin"]
        return origins.count == 1 ? origins[0] : nil
    }
}
