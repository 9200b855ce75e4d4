#if canImport(NIOCore)
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Wire

extension NIOTransport {
    func run(
        _ transfer: HTTPTransfer, _ done: @escaping @Sendable (Result<HTTPResponse, any Error>) -> Void
    ) -> @Sendable () -> Void {
        let place = HostEndpoint(transfer.url)
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let promise = loop.makePromise(of: HTTPResponse.self)
        promise.futureResult.whenComplete(done)
        let handler = NIOTransfer(place, transfer, promise)
        ClientBootstrap(group: loop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if place.isSecure { try place.addTLS(to: channel) }
                    try channel.pipeline.syncOperations.addHTTPClientHandlers()
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .connect(host: place.host, port: place.port)
            .whenFailure { handler.end(.failure($0)) }
        return { loop.execute { handler.end(.failure(CancellationError())) } }
    }
}

/// The host, port and path of a URL.
package struct HostEndpoint: Sendable {
    /// The host, without brackets.
    package let host: String
    /// The port; the scheme's default port if the URL has none.
    package let port: Int
    let isSecure: Bool
    /// The percent-encoded path and query for the request line; `/` if the URL has none.
    let target: String
    /// The text for the `Host` header.
    package var authority: String { URLAuthority(host: host, port: port).description }

    package init(_ url: URL) {
        host = URLAuthority(host: url.host ?? "").host
        isSecure = url.scheme == "wss" || url.scheme == "https"
        port = url.port ?? (isSecure ? 443 : 80)
        let path = url.path(percentEncoded: true)
        target = (path.isEmpty ? "/" : path) + (url.query(percentEncoded: true).map { "?\($0)" } ?? "")
    }

    func addTLS(to channel: any Channel, _ context: NIOSSLContext? = nil) throws {
        let context = try context ?? NIOSSLContext(configuration: .makeClientConfiguration())
        // Pass no host name for an IP address, because SNI does not allow one.
        let isAddress = host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." }
        let handler = try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : host)
        try channel.pipeline.syncOperations.addHandler(handler)
    }
}

/// Sends one request and collects its response. The promise is completed exactly once: a second result has no effect.
/// The class is `@unchecked Sendable` because it is used only on the event loop.
private final class NIOTransfer: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    private let head: HTTPRequestHead
    private let transfer: HTTPTransfer
    private var promise: EventLoopPromise<HTTPResponse>?
    private var context: ChannelHandlerContext?
    private var receiver: HTTPReceiver
    private var sent = 0
    private var timeout: Scheduled<Void>?

    init(_ place: HostEndpoint, _ transfer: HTTPTransfer, _ promise: EventLoopPromise<HTTPResponse>) {
        var head = HTTPRequestHead(version: .http1_1, method: transfer.upload == nil ? .GET : .PUT, uri: place.target)
        head.headers.add(name: "Host", value: place.authority)
        head.headers.add(name: "Authorization", value: "Bearer \(transfer.bearer)")
        head.headers.add(name: "Connection", value: "close")
        if let size = transfer.upload?.size {
            head.headers.add(name: "Content-Type", value: "application/octet-stream")
            head.headers.add(name: "Content-Length", value: "\(size)")
        }
        (self.head, self.transfer, self.promise, receiver) = (head, transfer, promise, HTTPReceiver(transfer))
    }

    func channelActive(context: ChannelHandlerContext) {
        guard promise != nil else { return context.close(promise: nil) }
        self.context = context
        progressed()
        context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
        send()
    }

    /// Sends the next part of the file when the previous one has been written, so that memory holds only one part.
    ///
    /// Files are read and written on the event loop, because that takes less time than encrypting the same bytes.
    private func send() {
        guard let context, promise != nil else { return }
        guard let file = transfer.upload, sent < file.size else {
            return context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
        do {
            let wanted = min(HTTPTransfer.partSize, file.size - sent)
            guard let part = try file.handle.read(upToCount: wanted), !part.isEmpty else {
                throw HTTPReceiver.Failure.otherSize
            }
            let written = context.eventLoop.makePromise(of: Void.self)
            written.futureResult.whenSuccess { [self] in
                sent += part.count
                progressed()
                transfer.progress(sent)
                send()
            }
            context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: part)))), promise: written)
        } catch {
            end(.failure(error))
        }
    }

    /// Restarts the timeout after progress. A document has a single timeout for the whole request.
    private func progressed() {
        guard let context, timeout == nil || transfer.isFile else { return }
        timeout?.cancel()
        timeout = context.eventLoop.scheduleTask(in: TimeAmount(HTTPResponse.timeout)) { [weak self] in
            self?.end(.failure(HTTPReceiver.Failure.ended))
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard promise != nil else { return }
        do {
            switch unwrapInboundIn(data) {
            case .head(let head): receiver.begin(status: Int(head.status.code))
            case .body(let part):
                progressed()
                try receiver.take(part.readableBytesView)
            // An interim response, such as 103, has its own end, which is ignored.
            case .end: if receiver.answer.status >= 200 { end(.success(try receiver.end())) }
            }
        } catch {
            end(.failure(error))
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(.failure(HTTPReceiver.Failure.ended))
        self.context = nil
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { end(.failure(error)) }

    func end(_ result: Result<HTTPResponse, any Error>) {
        promise?.completeWith(result)
        promise = nil
        timeout?.cancel()
        context?.close(promise: nil)
    }
}
#endif
