import DequeModule
import NIOCore
import NIOHTTP1
import Signaling

/// A complete HTTP response that bypasses the router.
struct HTTPReply {
    var status: Int
    var headers = HTTPHeaders()
    var body: [UInt8] = []

    /// Returns a plain-text error response.
    static func refusal(_ status: Int, _ text: String) -> HTTPReply {
        let headers = HTTPHeaders([("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")])
        return HTTPReply(status: status, headers: headers, body: Array((text + "\n").utf8))
    }
}

/// The channel handler closest to the client: it sees every request first and every response last.
///
/// It enforces the rules for every connection: one request at a time, responses in order, limits on the size and duration
/// of a request, and no idle connections. It answers violations itself, passes requests under `/socket.io/`, `/whip/` and
/// `/whep/` to their endpoints and all others to the router, and removes itself for a WebSocket. Pipelined requests wait
/// for their turn, and meanwhile nothing more is read.
final class HTTPGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Legal next states: `idle` → `routed`, `reading`, `closing`; `routed` → `idle`, `closing`; `reading` → `answering`,
    /// `closing`; `answering` → `idle`, `closing`.
    private enum State {
        case idle
        /// The router is handling a request.
        case routed(Routed)
        /// The body of a request for an endpoint is being read.
        case reading(HTTPRequestHead, EndpointRequest)
        case answering(HTTPRequestHead)
        /// The last response was sent. All further input is discarded.
        case closing
    }

    private struct Routed {
        var bodyBytes = 0
        var requestEnded = false
        var responseStarted = false
        var responseEnded = false
    }

    /// Limit for requests to the router. Endpoints have their own limits.
    private static let maxBodyBytes = 1 << 20
    /// How long to keep a connection open after its last response while the client is still sending. Closing earlier could
    /// reset the connection and destroy the response.
    private static let lingerTime = TimeAmount.seconds(1)

    private let gateway: Gateway
    private let headerTimeout: Duration
    private let idleTimeout: Duration
    private var endpoint: SocketIOEndpoint?
    private var whip: WHIPEndpoint?
    private var state = State.idle
    /// Body of the request being read. It is not part of `state`, because changing `state` would copy the body for every part.
    private var body: [UInt8] = []
    /// Parts of pipelined requests that wait for their turn.
    private var waiting: Deque<HTTPServerRequestPart> = []
    private var isTaking = false
    private var isYielding = false
    private var isReadHeld = false
    private var isFirst = true
    /// True after a request for an upgrade: the HTTP parser stops there and reads nothing that follows.
    private var isLast = false
    /// Response to unparsable input, held until all earlier requests have their responses.
    private var refusal: HTTPReply?
    private var isQuiescing = false
    private var context: ChannelHandlerContext?
    private var lastActive: NIODeadline = .now()
    private var idleCheck: Scheduled<Void>?

    init(gateway: Gateway, headerTimeout: Duration) {
        self.gateway = gateway
        self.headerTimeout = headerTimeout
        idleTimeout = headerTimeout * 6
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        checkIdleness()
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    private func end() {
        idleCheck?.cancel()
        context = nil
        endpoint?.ended()
        whip?.ended()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? HTTPParserError else {
            endpoint?.connectionFailed()
            whip?.ended()
            return context.fireErrorCaught(error)
        }
        let reply: HTTPReply =
            error == .headerOverflow
            ? .refusal(431, "The request headers are too large. Send fewer or shorter ones.")
            : .refusal(400, "This is not a valid HTTP/1.1 request.")
        if waiting.isEmpty, isBetweenAnswers { refuse(reply) } else { refusal = reply }
    }

    /// True if an error in the input can be answered now, because no earlier response is outstanding.
    private var isBetweenAnswers: Bool {
        switch state {
        case .idle, .reading, .closing: true
        case .routed(let routed): !routed.requestEnded
        case .answering: false
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed:
            endpoint?.inputClosed(context.channel)
            whip?.ended()
        case is ChannelShouldQuiesceEvent: isQuiescing = true
        default: break
        }
        context.fireUserInboundEventTriggered(event)
        if isQuiescing, case .idle = state, waiting.isEmpty { context.close(promise: nil) }
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        if waiting.isEmpty, take(part, context) { return }
        waiting.append(part)
    }

    /// True if nothing may be read now. A client that does not read its responses gets no further requests handled.
    private func mustWait(_ context: ChannelHandlerContext) -> Bool {
        !waiting.isEmpty || isLast || !context.channel.isWritable
    }

    func read(context: ChannelHandlerContext) {
        if mustWait(context) { isReadHeld = true } else { context.read() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        takeWaiting()
        context.fireChannelWritabilityChanged()
    }

    /// Handles a part of a request. Returns false if the part must wait for its turn.
    private func take(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) -> Bool {
        switch (part, state) {
        case (.head(let head), .idle):
            guard context.channel.isWritable, !isYielding else { return false }
            begin(head, context)
        case (_, .routed(let routed)) where !routed.requestEnded: pass(part, routed, context)
        case (.body(let buffer), .reading(let head, let request)):
            body += buffer.readableBytesView
            if let refusal = tooLarge(head, request, body.count) { refuse(refusal) }
        case (.end, .reading(let head, let request)): perform(request, head, context)
        case (_, .closing): break
        default: return false
        }
        return true
    }

    private func perform(_ request: EndpointRequest, _ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        state = .answering(head)
        let body = body
        self.body = []
        switch request {
        case .socketIO(let request):
            let endpoint = endpoint ?? SocketIOEndpoint(gateway: gateway, gate: self, peer: context.remoteAddress)
            self.endpoint = endpoint
            endpoint.perform(request, head, body)
        case .whip(let request):
            let endpoint = whip ?? WHIPEndpoint(gateway: gateway, gate: self, peer: context.remoteAddress)
            whip = endpoint
            endpoint.perform(request, head, body)
        }
    }

    private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        // The whole request must arrive within the idle timeout. Its parts do not extend it.
        lastActive = .now()
        endpoint?.nextRequest()
        let wasFirst = isFirst
        isFirst = false
        if head.version == .http1_1, head.headers["Host"].count != 1 {
            return refuse(.refusal(400, "Send exactly one Host header."))
        }
        let request = EndpointRequest(head, allowsSocketIO: gateway.configuration.socketIO.isEnabled)
        if let size = head.headers.first(name: "Content-Length").flatMap({ Int($0) }) {
            if let request, let refusal = tooLarge(head, request, size) { return refuse(refusal) }
            if size > Self.maxBodyBytes { return refuse(tooLarge(Self.maxBodyBytes)) }
        }
        if wasFirst, WebSocketUpgrade.isOurs(head, allowsSocketIO: gateway.configuration.socketIO.isEnabled) {
            state = .routed(Routed())
            context.fireChannelRead(wrapInboundOut(.head(head)))
            return context.pipeline.syncOperations.removeHandler(self, promise: nil)
        }
        isLast = head.method == .CONNECT || head.headers.contains(name: "Upgrade")
        if let request {
            state = .reading(head, request)
            if head.headers[canonicalForm: "expect"].contains("100-continue") {
                let head = HTTPResponseHead(version: head.version, status: .continue)
                context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
            }
            return
        }
        state = .routed(Routed())
        // NIO's upgrader swallows the upgrades that it rejects and performs all others, so remove the `Upgrade` header.
        var plain = head
        plain.headers.remove(name: "Upgrade")
        context.fireChannelRead(wrapInboundOut(.head(plain)))
    }

    private func pass(_ part: HTTPServerRequestPart, _ before: Routed, _ context: ChannelHandlerContext) {
        var routed = before
        switch part {
        case .body(let buffer): routed.bodyBytes += buffer.readableBytes
        case .end: routed.requestEnded = true
        case .head: break
        }
        state = routed.requestEnded && routed.responseEnded ? .idle : .routed(routed)
        guard routed.bodyBytes <= Self.maxBodyBytes else { return refuse(tooLarge(Self.maxBodyBytes)) }
        context.fireChannelRead(wrapInboundOut(part))
    }

    /// Defers the next request to the event loop's next turn, so that a flood of requests cannot starve other connections.
    private func yieldTurn() {
        guard let context else { return }
        isYielding = true
        let gate = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.execute {
            gate.value.isYielding = false
            gate.value.takeWaiting()
        }
    }

    private func takeWaiting() {
        // Handling a part may send a response, which calls this function again. The loop of the outer call does the work.
        guard !isTaking else { return }
        if !waiting.isEmpty {
            isTaking = true
            while let context, let part = waiting.first, take(part, context) { waiting.removeFirst() }
            isTaking = false
            context?.fireChannelReadComplete()
        }
        if waiting.isEmpty, case .idle = state, let reply = refusal {
            refusal = nil
            return refuse(reply)
        }
        guard isReadHeld, let context, !mustWait(context) else { return }
        isReadHeld = false
        context.read()
    }

    // MARK: Responses

    /// Writes a part of the router's response.
    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .routed(var routed) = state else {
            // The request was refused while the router was handling it.
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        lastActive = .now()
        routed.responseStarted = true
        var part = unwrapOutboundIn(data)
        if case .head(var head) = part {
            if isLast { head.headers.replaceOrAdd(name: "Connection", value: "close") }
            addStrictTransport(to: &head.headers)
            part = .head(head)
        }
        if case .end = part { routed.responseEnded = true }
        state = .routed(routed)
        context.write(wrapOutboundOut(part), promise: promise)
        guard routed.responseEnded, routed.requestEnded else { return }
        state = .idle
        if isLast { linger() } else { yieldTurn() }
    }

    /// Sends an endpoint's response to its current request.
    func answer(_ reply: HTTPReply) {
        guard case .answering(let request) = state else { return }
        let keepsAlive = request.isKeepAlive && !isQuiescing && !isLast
        state = keepsAlive ? .idle : .closing
        send(reply, to: request, keepsAlive: keepsAlive)
        if keepsAlive { yieldTurn() }
    }

    /// Sends an error response to the input just read, then closes the connection.
    private func refuse(_ reply: HTTPReply) {
        switch state {
        case .closing: return
        // The response to this request has already started, so an error response is not possible.
        case .routed(let routed) where routed.responseStarted && !routed.requestEnded: return linger()
        case .idle, .routed, .reading, .answering: break
        }
        state = .closing
        body = []
        send(reply, to: nil, keepsAlive: false)
        linger()
    }

    private func linger() {
        guard let context else { return }
        state = .closing
        let channel = context.channel
        context.eventLoop.scheduleTask(in: Self.lingerTime) { channel.close(promise: nil) }
        // This also discards the pipelined requests.
        yieldTurn()
    }

    /// Returns the error response if a body of `size` bytes is too large for this request.
    private func tooLarge(_ head: HTTPRequestHead, _ request: EndpointRequest, _ size: Int) -> HTTPReply? {
        switch request {
        case .socketIO:
            let limit = gateway.configuration.rules.messageSize
            return size > limit ? tooLarge(limit) : nil
        case .whip(let request):
            guard size > WHIPEndpoint.maxBodyBytes(request, gateway.configuration) else { return nil }
            return WHIPEndpoint.tooLarge(head, request, gateway.configuration)
        }
    }

    private func tooLarge(_ limit: Int) -> HTTPReply {
        .refusal(413, "message_too_large: The request body is too large. Send at most \(limit) bytes.")
    }

    /// - Parameter request: The request being answered. Nil if it could not be parsed.
    private func send(_ reply: HTTPReply, to request: HTTPRequestHead?, keepsAlive: Bool) {
        guard let context else { return }
        lastActive = .now()
        var headers = reply.headers
        headers.add(name: "Content-Length", value: "\(reply.body.count)")
        headers.add(name: "Connection", value: keepsAlive ? "keep-alive" : "close")
        addStrictTransport(to: &headers)
        let head = HTTPResponseHead(
            version: request?.version ?? .http1_1, status: .init(statusCode: reply.status), headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if request?.method != .HEAD {
            let body = context.channel.allocator.buffer(bytes: reply.body)
            context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        }
        let gate = NIOLoopBound(self, eventLoop: context.eventLoop)
        let sent = context.eventLoop.makePromise(of: Void.self)
        let channel = context.channel
        let isLastAnswer = !keepsAlive && request != nil
        sent.futureResult.whenComplete { result in
            if case .failure = result { gate.value.endpoint?.connectionFailed() }
            // Close only after the write: closing discards whatever the kernel has not accepted.
            if isLastAnswer { channel.close(promise: nil) }
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: sent)
    }

    private func addStrictTransport(to headers: inout HTTPHeaders) {
        if let value = gateway.strictTransport { headers.replaceOrAdd(name: "Strict-Transport-Security", value: value) }
    }

    // MARK: Idleness

    /// Closes the connection if the client is too slow to start a request, to complete it, or to read the response.
    private func checkIdleness() {
        guard let context else { return }
        let limit = TimeAmount.nanoseconds(isFirst ? headerTimeout : idleTimeout)
        if isServerBusy(context) { lastActive = .now() }
        guard NIODeadline.now() - lastActive < limit else { return context.close(promise: nil) }
        let gate = NIOLoopBound(self, eventLoop: context.eventLoop)
        idleCheck = context.eventLoop.scheduleTask(deadline: lastActive + limit) { gate.value.checkIdleness() }
    }

    /// True if the client is waiting for the server.
    private func isServerBusy(_ context: ChannelHandlerContext) -> Bool {
        switch state {
        case .answering: true
        case .routed(let routed): routed.requestEnded && context.channel.isWritable
        case .idle, .reading, .closing: false
        }
    }
}
