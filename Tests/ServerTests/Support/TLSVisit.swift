import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS

/// What a TLS client saw of a server. It trusts every certificate.
struct TLSVisit: Sendable {
    /// The server's certificate in DER.
    let certificate: [UInt8]
    /// The protocol that the server chose (ALPN); nil for none.
    let chosenProtocol: String?
    /// What the client received after the handshake.
    let received: String

    /// Connects, sends a text, and reads until the same text has arrived or the server has closed the connection.
    ///
    /// - Parameters:
    ///   - name: the server's name (SNI); nil to send none.
    ///   - protocols: the protocols to offer (ALPN).
    ///   - sendsSingleBytes: whether each byte is sent on its own.
    /// - Throws: an error if the handshake fails.
    init(
        port: Int, name: String?, protocols: [String] = [], text: String = "GET / HTTP/1.1\r\n\r\n",
        sendsSingleBytes: Bool = false
    ) async throws {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.certificateVerification = .none
        configuration.applicationProtocols = protocols
        let context = try NIOSSLContext(configuration: configuration)
        let connection = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture { () throws -> Connection in
                    let handshake = channel.eventLoop.makePromise(of: Handshake.self)
                    let pipeline = channel.pipeline.syncOperations
                    if sendsSingleBytes { try pipeline.addHandler(SingleBytes()) }
                    try pipeline.addHandler(NIOSSLClientHandler(context: context, serverHostname: name))
                    try pipeline.addHandler(HandshakeReport(handshake))
                    let wrapped = try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                    return Connection(channel: wrapped, handshake: handshake.futureResult)
                }
            }
        let (handshake, received) = try await connection.channel.executeThenClose { inbound, outbound in
            let handshake = try await connection.handshake.get()
            var received = ""
            do {
                try await outbound.write(ByteBuffer(string: text))
                for try await part in inbound {
                    received += String(buffer: part)
                    if received == text { break }
                }
            } catch {
                // The server has closed the connection.
            }
            return (handshake, received)
        }
        (certificate, chosenProtocol) = (handshake.certificate, handshake.chosenProtocol)
        self.received = received
    }

    private struct Connection: Sendable {
        var channel: NIOAsyncChannel<ByteBuffer, ByteBuffer>
        var handshake: EventLoopFuture<Handshake>
    }

    private struct Handshake: Sendable {
        var certificate: [UInt8]
        var chosenProtocol: String?
    }

    /// Reports the result of the handshake while the TLS handler is still there.
    private final class HandshakeReport: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let promise: EventLoopPromise<Handshake>

        init(_ promise: EventLoopPromise<Handshake>) { self.promise = promise }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case .handshakeCompleted(let chosen)? = event as? TLSUserEvent {
                let certificate = try? context.pipeline.syncOperations.nioSSL_peerCertificate()?.toDERBytes()
                promise.succeed(Handshake(certificate: certificate ?? [], chosenProtocol: chosen))
            }
            context.fireUserInboundEventTriggered(event)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            promise.fail(error)
            context.fireErrorCaught(error)
        }

        func handlerRemoved(context: ChannelHandlerContext) { promise.fail(ChannelError.ioOnClosedChannel) }
    }

    /// Sends each byte on its own.
    private final class SingleBytes: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            var bytes = unwrapOutboundIn(data)
            while bytes.readableBytes > 1, let byte = bytes.readSlice(length: 1) {
                context.writeAndFlush(wrapOutboundOut(byte), promise: nil)
            }
            context.writeAndFlush(wrapOutboundOut(bytes), promise: promise)
        }
    }
}
