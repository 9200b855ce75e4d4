import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOSSL
import ServiceLifecycle
import Signaling

/// A connection to the public port, with TLS if the server has a certificate. Each request is handled by the router or
/// by one of the server's endpoints, or turns the connection into a WebSocket for the hub.
struct GatewayChannel: HTTPChannelHandler {
    /// A connection that was set up, and what it will become. `first` is a future, because the first request decides
    /// the protocol, and a channel does not read before its setup is complete.
    struct Value: ServerChildChannelValue {
        let channel: any Channel
        let first: EventLoopFuture<ConnectionProtocols.First>
    }

    private static let bytesPerTurn = 8 * 1024

    let responder: HTTPChannelHandler.Responder
    let clients: NIOLoopBound<ForeignClients>
    /// The certificate for HTTPS; nil if connections do not use TLS.
    let certificates: TLSCertificates?
    /// Runs the router, so that its handlers use the gateway without changing threads.
    let executor: EventLoopExecutor

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        guard clients.value.gateway.admitConnection(channel) else {
            // Do not let the setup fail, because that would count as an error of the whole server. Close this
            // connection instead.
            channel.close(promise: nil)
            let refused: EventLoopFuture<ConnectionProtocols.First> =
                channel.eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
            return channel.eventLoop.makeSucceededFuture(Value(channel: channel, first: refused))
        }
        return channel.eventLoop.makeCompletedFuture {
            // Limit the data read per turn of the loop, so that one busy sender cannot starve the others. A channel
            // keeps the buffer of its last read, so start with small buffers.
            try channel.syncOptions?.setOption(.maxMessagesPerRead, value: 1)
            let buffers = AdaptiveRecvByteBufferAllocator(minimum: 1024, initial: 2048, maximum: Self.bytesPerTurn)
            try channel.syncOptions?.setOption(.recvAllocator, value: buffers)
            if let certificates {
                let contexts = certificates.contexts
                let handler: any ChannelHandler =
                    contexts.challenges.isEmpty
                    ? NIOSSLServerHandler(context: contexts.server) : ClientHelloGate(contexts)
                try channel.pipeline.syncOperations.addHandler(handler)
            }
            let protocols = try ConnectionProtocols(channel, clients.value, logger)
            return Value(channel: channel, first: protocols.first)
        }
    }

    func handle(value: Value, logger: Logger) async {
        switch try? await value.first.get() {
        case .http(let channel)?:
            await withTaskExecutorPreference(executor) { await handleHTTP(asyncChannel: channel, logger: logger) }
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
}
