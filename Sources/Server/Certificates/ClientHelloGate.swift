import NIOCore
import NIOSSL
import NIOTLS

/// Reads the ClientHello of a connection, adds the TLS handler that it requires, passes it the bytes, and removes itself.
///
/// An authority that verifies a domain gets the certificate of the challenge, and all other clients the server's certificate.
/// NIOSSL can choose a certificate by the name (SNI) only, so browsers would also get the challenge's certificate. Only
/// connections that begin while a challenge is pending have this handler. The time limits are those of the handler behind it,
/// `HTTPGate`, which also limits the handshake.
final class ClientHelloGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let contexts: TLSContexts
    private var reader = ClientHelloReader()
    /// What was read, which the TLS handler needs too. At most ``ClientHelloReader/maxSize`` bytes and the last read.
    private var received = ByteBuffer()
    /// Whether the TLS handler was added. It writes its part of the handshake before this handler is removed.
    private var hasHandler = false

    init(_ contexts: TLSContexts) { self.contexts = contexts }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        let progress = reader.read(bytes.readableBytesView)
        received.writeBuffer(&bytes)
        switch progress {
        case .incomplete: break
        // The TLS handler responds with the right alert.
        case .unreadable: open(context, contexts.server, .service)
        case .complete(let hello):
            let chosen = contexts.context(for: hello)
            open(context, chosen.context, chosen.purpose)
        }
    }

    private func open(_ context: ChannelHandlerContext, _ tls: NIOSSLContext, _ purpose: TLSContexts.Purpose) {
        let pipeline = context.pipeline.syncOperations
        do {
            if purpose == .verification { try pipeline.addHandler(HandshakeOnly(), position: .after(self)) }
            try pipeline.addHandler(NIOSSLServerHandler(context: tls), position: .after(self))
            hasHandler = true
        } catch {
            return context.close(promise: nil)
        }
        context.fireChannelRead(wrapInboundOut(received))
        pipeline.removeHandler(context: context, promise: nil)
    }

    /// Refuses what the HTTP handlers write before there is a TLS handler, because it would be sent without encryption.
    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if hasHandler {
            context.write(data, promise: promise)
        } else {
            promise?.fail(ChannelError.ioOnClosedChannel)
        }
    }
}

/// Closes a connection after the TLS handshake, and passes nothing on that the client sends (RFC 8737 §3).
private final class HandshakeOnly: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {}

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent { context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }
}
