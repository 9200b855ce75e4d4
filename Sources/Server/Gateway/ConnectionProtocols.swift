import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import Signaling
import Wire

/// Adds the handlers of a connection's protocols when a request needs them: first the HTTP codec, then the router or a
/// WebSocket.
///
/// Most connections become WebSockets with their first request, and never need the router's handlers. If a connection
/// used the router before, the router's handlers stay behind the WebSocket in the pipeline, where nothing reaches them
/// until the connection closes.
final class ConnectionProtocols {
    /// What a connection becomes with the first request that no endpoint handles: HTTP for the router, or a
    /// WebSocket.
    enum First: Sendable {
        case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
        case socket(any Channel)
    }

    /// Maximum size of one header field of a request, in bytes.
    private static let maxHeaderField = 16 * 1024
    /// Maximum size of all header fields of a request together, in bytes.
    private static let maxHeaders = 64 * 1024
    /// Maximum number of header fields of a request.
    private static let maxHeaderFields = 100

    private let clients: ForeignClients
    private let logger: Logger
    private let encoder = HTTPResponseEncoder()
    private let decoder: ByteToMessageHandler<HTTPRequestDecoder>
    private let validator = NIOHTTPResponseHeadersValidator()
    private let promise: EventLoopPromise<First>
    /// Whether the router's handlers were added to the pipeline.
    private enum Router { case absent, added }
    private var router = Router.absent

    /// Adds the HTTP codec and the gate.
    init(_ channel: any Channel, _ clients: ForeignClients, _ logger: Logger) throws {
        (self.clients, self.logger) = (clients, logger)
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = Self.maxHeaderField
        limits.maxHeaderListSize = Self.maxHeaders
        limits.maxHeaderFieldCount = Self.maxHeaderFields
        // Forward the bytes that were not parsed, because the first frames of a WebSocket may follow its handshake
        // immediately.
        decoder = ByteToMessageHandler(
            HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes, limitConfiguration: limits))
        promise = channel.eventLoop.makePromise()
        let promise = promise
        // Fail the future if the connection closes before a request has decided the protocol. Afterwards, failing it
        // has no effect.
        channel.closeFuture.whenComplete { _ in promise.fail(ChannelError.ioOnClosedChannel) }
        let pipeline = channel.pipeline.syncOperations
        let gate = HTTPGate(clients: clients, protocols: self, peer: IPAddress(peer: channel.remoteAddress))
        try pipeline.addHandlers(encoder, decoder, validator, gate)
    }

    /// Succeeds when a request decides the protocol. Fails if the connection closes first.
    var first: EventLoopFuture<First> { promise.futureResult }

    /// Adds the router's handlers unless they were already added. Returns false if that is not possible.
    func openRouter(_ channel: any Channel) -> Bool {
        guard router == .absent else { return true }
        router = .added
        do {
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
            // `HTTPGate` handles idle connections, because it knows about pending polls.
            try pipeline.addHandler(HTTPConnectionStateHandler(idleTimeout: nil, logger: logger))
            promise.succeed(
                .http(
                    try NIOAsyncChannel(
                        wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
                )
            )
            return true
        } catch {
            logger.error("Could not set up an HTTP connection", metadata: ["error": "\(error)"])
            return false
        }
    }

    /// Replaces the HTTP handlers with a WebSocket. Passes on bytes that arrived after the handshake.
    ///
    /// - Parameters:
    ///   - trace: the request that opens the WebSocket.
    ///   - gate: the gate that wrote the response. It passes everything through until it is removed.
    func openWebSocket(
        _ head: HTTPRequestHead, _ channel: any Channel, _ trace: RequestTrace?, replacing gate: HTTPGate
    ) {
        let pipeline = channel.pipeline.syncOperations
        // The WebSocket handler may write as soon as it is added, so remove the encoder before that. Remove the
        // decoder last, because it passes on the bytes that it has not parsed.
        for handler in [validator, encoder] as [any RemovableChannelHandler] {
            pipeline.removeHandler(handler, promise: nil)
        }
        do {
            try pipeline.addHandler(webSocketHandler(channel, head, trace), position: .after(gate))
        } catch {
            logger.error("Could not open a WebSocket", metadata: ["error": "\(error)"])
            return channel.close(promise: nil)
        }
        promise.succeed(.socket(channel))
        let gate = NIOLoopBound(gate, eventLoop: channel.eventLoop)
        pipeline.removeHandler(decoder).whenSuccess {
            channel.pipeline.syncOperations.removeHandler(gate.value, promise: nil)
        }
    }

    /// Creates the handler for the native protocol, Socket.IO or PerchRTC's protocol, depending on the URL.
    private func webSocketHandler(
        _ channel: any Channel, _ head: HTTPRequestHead, _ trace: RequestTrace?
    ) -> WebSocketHandler {
        let gateway = clients.gateway
        let rules = gateway.configuration.rules
        let address = gateway.configuration.clientAddress(head.headers, from: channel.remoteAddress)
        let (user, messageSize): (any WebSocketUser, Int)
        // An HTTP endpoint has already admitted the clients of Socket.IO and PerchRTC, so only look up the result here.
        // Native clients are admitted later, by `NativeSocket`.
        switch EndpointRequest(handshake: head) {
        case .socketIO(.webSocket(let id)):
            // Report an unknown ID to the client, which then starts with a new handshake.
            let unknown = RefusedWebSocket(SocketIOPacket.notHandshaken.encode(), .normal, "")
            (user, messageSize) = (clients.socketIO.session(id) ?? unknown, rules.messageSize)
        case .socketIO(.engine(let request)):
            // Close the WebSocket if the connection has ended since the handshake.
            let ended = RefusedWebSocket(nil, .normal, "")
            (user, messageSize) = (clients.socketIO.user(of: request, from: address) ?? ended, rules.messageSize)
        case .perch(.webSocket(let token, let envelope)):
            // Refuse the client if another connection has used the token since the handshake.
            let used = RefusedWebSocket(nil, .token, WireError.perchToken.message)
            user = clients.perch.open(token, envelope, from: address) ?? used
            messageSize = rules.descriptionSize
        default:
            user = NativeSocket(
                gateway: gateway, address: address, origin: head.headers.onlyOrigin,
                at: NodeQuery.name(in: head.uri), trace: trace)
            messageSize = rules.descriptionSize
        }
        return WebSocketHandler(gateway: gateway, user: user, messageSize: messageSize, request: trace?.id)
    }
}

/// Closes a WebSocket as soon as it is open, after sending the message, if there is one.
private final class RefusedWebSocket: WebSocketUser {
    private let (message, code, reason): ([UInt8]?, CloseCode, String)

    init(_ message: [UInt8]?, _ code: CloseCode, _ reason: String) {
        (self.message, self.code, self.reason) = (message, code, reason)
    }

    func opened(_ webSocket: WebSocketHandler) {
        if let message { webSocket.send(message) }
        webSocket.flush()
        webSocket.close(code, reason)
    }

    func received(_ bytes: [UInt8], on webSocket: WebSocketHandler) {}
    func receivedFrame(_ length: Int, on webSocket: WebSocketHandler) {}
    func protocolViolation(_ code: CloseCode, _ reason: String, on webSocket: WebSocketHandler) {}
    func closedByPeer(_ code: CloseCode, on webSocket: WebSocketHandler) {}
    func disconnected(_ webSocket: WebSocketHandler) {}
}
