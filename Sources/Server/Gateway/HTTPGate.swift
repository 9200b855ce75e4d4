import DequeModule
import NIOCore
import NIOHTTP1
import Signaling

/// An answer that needs no router.
struct HTTPReply {
    var status: Int
    var headers = HTTPHeaders()
    var body: [UInt8] = []

    /// A code and a sentence.
    static func refusal(_ status: Int, _ text: String) -> HTTPReply {
        let headers = HTTPHeaders([("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")])
        return HTTPReply(status: status, headers: headers, body: Array((text + "\n").utf8))
    }
}

/// The first to see a connection's requests, and the last to see its answers.
///
/// It owns what must hold of every connection: one request at a time, each with one answer and in order; requests that
/// are small and come in time; a line that does not idle. It answers what breaks that, hands what is asked under
/// `/socket.io/`, `/whip/` and `/whep/` to their endpoints and everything else to the router behind it, and steps aside for
/// a WebSocket. What a client sends before it has its answer waits, and meanwhile nothing more is read.
final class HTTPGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Legal next states: `idle` → `routed`, `reading`, `closing`; `routed` → `idle`, `closing`; `reading` → `answering`,
    /// `closing`; `answering` → `idle`, `closing`.
    private enum State {
        case idle
        /// The router's request.
        case routed(Routed)
        /// An endpoint's, whose body is not complete.
        case reading(HTTPRequestHead, EndpointRequest)
        case answering(HTTPRequestHead)
        /// The last answer was given; whatever comes now is thrown away.
        case closing
    }

    private struct Routed {
        var bodyBytes = 0
        var requestEnded = false
        var responseStarted = false
        var responseEnded = false
    }

    /// Of an API's request; what is said over Socket.IO is smaller.
    private static let mostBodyBytes = 1 << 20
    /// So long a client may read its last answer while it still sends: closing at once could destroy the answer.
    private static let lingering = TimeAmount.seconds(1)

    private let gateway: Gateway
    private let headerTimeout: Duration
    private let idleTimeout: Duration
    private var endpoint: SocketIOEndpoint?
    private var whip: WHIPEndpoint?
    private var state = State.idle
    /// Of the request being read; apart from the state, which would copy it for each part.
    private var body: [UInt8] = []
    /// What came before its turn.
    private var waiting: Deque<HTTPServerRequestPart> = []
    private var isTaking = false
    private var isResting = false
    private var isReadHeld = false
    private var isFirst = true
    /// It asked for an upgrade, which ends the parser's work: what follows is never read.
    private var isLast = false
    /// What followed cannot be read: refused when all before it has its answer.
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
            endpoint?.lineBroke()
            whip?.ended()
            return context.fireErrorCaught(error)
        }
        let reply: HTTPReply =
            error == .headerOverflow
            ? .refusal(431, "Send fewer or shorter headers.") : .refusal(400, "This is not HTTP/1.1.")
        if waiting.isEmpty, isBetweenAnswers { refuse(reply) } else { refusal = reply }
    }

    /// Whether what is read now is the next to be answered.
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

    /// A client that does not read its answers is not asked for more requests.
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

    /// - Returns: whether it was this part's turn.
    private func take(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) -> Bool {
        switch (part, state) {
        case (.head(let head), .idle):
            guard context.channel.isWritable, !isResting else { return false }
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
        // The whole request must be here in the time that an idle line has; its parts do not add to it.
        lastActive = .now()
        endpoint?.nextRequest()
        let wasFirst = isFirst
        isFirst = false
        if head.version == .http1_1, head.headers["Host"].count != 1 {
            return refuse(.refusal(400, "A request of HTTP/1.1 has one Host."))
        }
        let request = EndpointRequest(head)
        if let size = head.headers.first(name: "Content-Length").flatMap({ Int($0) }) {
            if let request, let refusal = tooLarge(head, request, size) { return refuse(refusal) }
            if size > Self.mostBodyBytes { return refuse(tooLarge(Self.mostBodyBytes)) }
        }
        if wasFirst, WebSocketUpgrade.isOurs(head) {
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
        // What NIO's upgrader refuses it swallows, and what it does not refuse it upgrades: it sees nothing of either kind.
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
        guard routed.bodyBytes <= Self.mostBodyBytes else { return refuse(tooLarge(Self.mostBodyBytes)) }
        context.fireChannelRead(wrapInboundOut(part))
    }

    /// The next request is taken in the loop's next turn: a flood of them then costs others a moment at a time.
    private func rest() {
        guard let context else { return }
        isResting = true
        let gate = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.execute {
            gate.value.isResting = false
            gate.value.takeWaiting()
        }
    }

    private func takeWaiting() {
        // Taking a part may answer a request, and an answer lets the next part be taken: by the loop that is at it.
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

    // MARK: Answers

    /// The router's.
    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .routed(var routed) = state else {
            // Its request was refused while it was at it.
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        lastActive = .now()
        routed.responseStarted = true
        var part = unwrapOutboundIn(data)
        if case .head(var head) = part, isLast {
            head.headers.replaceOrAdd(name: "Connection", value: "close")
            part = .head(head)
        }
        if case .end = part { routed.responseEnded = true }
        state = .routed(routed)
        context.write(wrapOutboundOut(part), promise: promise)
        guard routed.responseEnded, routed.requestEnded else { return }
        state = .idle
        if isLast { linger() } else { rest() }
    }

    /// The endpoint's, to the request it was last given.
    func answer(_ reply: HTTPReply) {
        guard case .answering(let request) = state else { return }
        let keepsAlive = request.isKeepAlive && !isQuiescing && !isLast
        state = keepsAlive ? .idle : .closing
        send(reply, to: request, keepsAlive: keepsAlive)
        if keepsAlive { rest() }
    }

    /// Refuses what was just read, as soon as what came before it has its answer, and closes.
    private func refuse(_ reply: HTTPReply) {
        switch state {
        case .closing: return
        // The answer to this very request is under way: there is no other.
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
        context.eventLoop.scheduleTask(in: Self.lingering) { channel.close(promise: nil) }
        // What waited is thrown away as well.
        rest()
    }

    /// The answer to a body of so many bytes, if that is too many.
    private func tooLarge(_ head: HTTPRequestHead, _ request: EndpointRequest, _ size: Int) -> HTTPReply? {
        switch request {
        case .socketIO:
            let most = gateway.configuration.rules.messageSize
            return size > most ? tooLarge(most) : nil
        case .whip(let request):
            guard size > WHIPEndpoint.mostBodyBytes(request, gateway.configuration) else { return nil }
            return WHIPEndpoint.tooLarge(head, request, gateway.configuration)
        }
    }

    private func tooLarge(_ most: Int) -> HTTPReply {
        .refusal(413, "message_too_large: Send at most \(most) bytes.")
    }

    /// - Parameter request: nil where it could not be read.
    private func send(_ reply: HTTPReply, to request: HTTPRequestHead?, keepsAlive: Bool) {
        guard let context else { return }
        lastActive = .now()
        var headers = reply.headers
        headers.add(name: "Content-Length", value: "\(reply.body.count)")
        headers.add(name: "Connection", value: keepsAlive ? "keep-alive" : "close")
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
            if case .failure = result { gate.value.endpoint?.lineBroke() }
            // Not before: closing throws away what the kernel has not taken.
            if isLastAnswer { channel.close(promise: nil) }
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: sent)
    }

    // MARK: Idleness

    /// Closes a line on which a request does not begin, or is not complete, or whose answer is not read, in time.
    private func checkIdleness() {
        guard let context else { return }
        let limit = TimeAmount.nanoseconds(isFirst ? headerTimeout : idleTimeout)
        if isAtWork(context) { lastActive = .now() }
        guard NIODeadline.now() - lastActive < limit else { return context.close(promise: nil) }
        let gate = NIOLoopBound(self, eventLoop: context.eventLoop)
        idleCheck = context.eventLoop.scheduleTask(deadline: lastActive + limit) { gate.value.checkIdleness() }
    }

    /// Whether it is ours to go on.
    private func isAtWork(_ context: ChannelHandlerContext) -> Bool {
        switch state {
        case .answering: true
        case .routed(let routed): routed.requestEnded && context.channel.isWritable
        case .idle, .reading, .closing: false
        }
    }
}
