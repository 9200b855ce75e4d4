import CoreMetrics
import NIOCore
import NIOHTTP1
import Signaling
import Wire

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Answers what is asked under `/socket.io/` over HTTP; everything else goes on to the router.
///
/// It stands before the router because a poll needs what the router hides: to know at once that the connection broke while
/// the answer was awaited, and whether an answer already given was still received. It also closes connections that idle.
/// One request at a time: what a client sends before it has its answer waits.
final class SocketIOHTTPHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Legal next states: `idle` → `passing`, `reading`; `passing` → `idle`; `reading` → `answering`, `idle`; `answering` →
    /// `idle`.
    private enum State {
        case idle
        /// The router's request.
        case passing(requestEnded: Bool, responseEnded: Bool)
        case reading(HTTPRequestHead, SocketIORequest, body: [UInt8])
        /// With the poll that is awaited, if it is one.
        case answering(HTTPRequestHead, poll: Poll?)
    }

    private struct Poll {
        var session: SocketIOSession
        var id: SocketIOConnection.PollID
    }

    /// Parts that may wait behind an unfinished request; clients of browsers' kind send none.
    private static let mostWaiting = 64

    private let gateway: Gateway
    private let idleTimeout: Duration
    private var state = State.idle
    private var waiting: [HTTPServerRequestPart] = []
    private var context: ChannelHandlerContext?
    /// Answered, and not known to be received.
    private var unconfirmed: Poll?
    private var isQuiescing = false
    private var lastActive: NIODeadline = .now()
    private var idleCheck: Scheduled<Void>?

    init(gateway: Gateway, idleTimeout: Duration) {
        self.gateway = gateway
        self.idleTimeout = idleTimeout
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
        abandonPoll()
        // A broken line was reported as an error before; a line that ended in order had all bytes read.
        unconfirmed = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        abandonPoll()
        loseAnswer()
        context.fireErrorCaught(error)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed:
            abandonPoll()
            checkReceipt(context)
        case is ChannelShouldQuiesceEvent: isQuiescing = true
        default: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        lastActive = .now()
        let part = unwrapInboundIn(data)
        guard waiting.isEmpty, take(part, context) else {
            waiting.append(part)
            if waiting.count > Self.mostWaiting { context.close(promise: nil) }
            return
        }
    }

    /// - Returns: whether it was this part's turn.
    private func take(_ part: HTTPServerRequestPart, _ context: ChannelHandlerContext) -> Bool {
        switch (part, state) {
        case (.head(let head), .idle):
            unconfirmed = nil
            if let request = SocketIORequest(method: head.method, uri: head.uri) {
                state = .reading(head, request, body: [])
            } else {
                state = .passing(requestEnded: false, responseEnded: false)
                context.fireChannelRead(wrapInboundOut(part))
            }
        case (_, .passing(requestEnded: false, let responseEnded)):
            if case .end = part {
                state = responseEnded ? .idle : .passing(requestEnded: true, responseEnded: false)
            }
            context.fireChannelRead(wrapInboundOut(part))
        case (.body(var buffer), .reading(let head, let request, var body)):
            body += buffer.readBytes(length: buffer.readableBytes) ?? []
            guard body.count <= gateway.settings.messageSize else { return tooLarge(head) }
            state = .reading(head, request, body: body)
        case (.end, .reading(let head, let request, let body)):
            state = .answering(head, poll: nil)
            perform(request, head, body)
        default: return false
        }
        return true
    }

    private func takeWaiting() {
        guard !waiting.isEmpty else { return }
        while let context, let part = waiting.first, take(part, context) { waiting.removeFirst() }
        context?.fireChannelReadComplete()
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        lastActive = .now()
        context.write(data, promise: promise)
        guard case .end = unwrapOutboundIn(data), case .passing(let requestEnded, _) = state else { return }
        state = requestEnded ? .idle : .passing(requestEnded: false, responseEnded: true)
        takeWaiting()
    }

    // MARK: Idleness

    private func checkIdleness() {
        guard let context else { return }
        let limit = TimeAmount.nanoseconds(idleTimeout)
        if case .answering(_, .some) = state { lastActive = .now() }
        if case .passing(requestEnded: true, _) = state { lastActive = .now() }
        guard NIODeadline.now() - lastActive < limit else { return context.close(promise: nil) }
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        idleCheck = context.eventLoop.scheduleTask(deadline: lastActive + limit) { handler.value.checkIdleness() }
    }

    // MARK: Broken lines

    private func abandonPoll() {
        guard case .answering(let head, let poll?) = state else { return }
        state = .answering(head, poll: nil)
        poll.session.lost(poll.id)
    }

    private func loseAnswer() {
        guard let poll = unconfirmed else { return }
        unconfirmed = nil
        poll.session.lost(poll.id)
    }

    /// The client closed. If bytes of our answer are not acknowledged by then, it did so before they came; if they met a
    /// closed socket there, its reset has ended the connection by now. In order, ours would be the side to close.
    private func checkReceipt(_ context: ChannelHandlerContext) {
        guard unconfirmed != nil else { return }
        #if os(Linux)
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        (context.channel as? any SocketOptionProvider)?.getTCPInfo()
            .whenSuccess { info in
                let isInOrder = info.tcpi_state == UInt8(TCP_CLOSE_WAIT) && info.tcpi_unacked == 0
                if !isInOrder { handler.value.loseAnswer() }
            }
        #endif
    }

    // MARK: Requests

    private func perform(_ request: SocketIORequest, _ head: HTTPRequestHead, _ body: [UInt8]) {
        guard isAllowed(head) else {
            return answer(403, "forbidden_origin: This page may not use this server.\n")
        }
        switch request {
        case .greeting: answer(200, "This is where clients of Socket.IO 0.9 connect.\n")
        case .preflight: answer(204, "")
        case .wrongMethod: answer(405, "Use GET or POST.\n")
        case .wrongProtocol: answer(500, "Only protocol 1 of Socket.IO (version 0.9) is spoken here.\n")
        // Reason 0, transport not supported.
        case .wrongTransport(let script): answer([SocketIOPacket(.error, data: "0".utf8).encode()], script: script)
        case .handshake(let script): handshake(head, script: script)
        case .disconnect(let id):
            gateway.socketIO.session(id)?.disconnect()
            answer(200, "")
        case .poll(let id, let transport, let number):
            poll(id, script: transport == .jsonpPolling ? number : nil, head)
        case .post(let id, let transport, let number):
            post(id, body, script: transport == .jsonpPolling ? number : nil)
        }
    }

    /// A browser names the page's origin; others, and scripts of the same origin, name none.
    private func isAllowed(_ head: HTTPRequestHead) -> Bool {
        guard !gateway.settings.allowedOrigins.isEmpty, let origin = head.headers.first(name: "Origin") else {
            return true
        }
        return gateway.settings.allowedOrigins.contains(origin.lowercased())
    }

    private func handshake(_ head: HTTPRequestHead, script: Int?) {
        let peer = context?.remoteAddress?.ipAddress.flatMap { IPAddress($0) } ?? .unknown
        let address = ForwardedAddress.client(
            peer: peer, headers: head.headers, trusted: gateway.settings.trustedProxies
        ).address
        switch gateway.socketIO.handshake(from: address) {
        case .accepted(let line):
            if let script {
                answer(200, SocketIOScript.call(script, Array(line.utf8)), .script)
            } else {
                answer(200, line)
            }
        case .refused(let status, let error):
            gateway.metrics.refusedHellos.increment()
            let text = "\(error.code.rawValue): \(error.message)"
            guard let script else { return answer(status, text + "\n", retryAfter: error.retryAfter) }
            // A script that is not loaded with 200 is not run, and then the page would never hear of it.
            answer(200, Array("io.j[\(script)](new Error(\"\(text)\"));".utf8), .script)
        }
    }

    private func poll(_ id: String, script: Int?, _ head: HTTPRequestHead) {
        guard let session = gateway.socketIO.session(id) else {
            return answer([SocketIOPacket.notHandshaken.encode()], script: script)
        }
        let poll = Poll(session: session, id: session.nextPoll())
        state = .answering(head, poll: poll)
        session.poll(poll.id) { [weak self] packets in self?.answer(packets, script: script) }
    }

    private func post(_ id: String, _ body: [UInt8], script: Int?) {
        guard let session = gateway.socketIO.session(id) else {
            return answer([SocketIOPacket.notHandshaken.encode()], script: nil)
        }
        do throws(WireError) {
            session.posted(script == nil ? body : try SocketIOScript.payload(form: body))
            answer(200, "1")
        } catch {
            answer(400, "\(error.code.rawValue): \(error.message)\n")
        }
    }

    private func tooLarge(_ head: HTTPRequestHead) -> Bool {
        var closing = head
        closing.headers.replaceOrAdd(name: "Connection", value: "close")
        state = .answering(closing, poll: nil)
        answer(413, "\(WireError.Code.messageTooLarge.rawValue): Send at most \(gateway.settings.messageSize) bytes.\n")
        return true
    }

    // MARK: Answers

    private enum ContentType: String {
        case text = "text/plain; charset=utf-8"
        case script = "application/javascript; charset=utf-8"
    }

    private func answer(_ packets: [[UInt8]], script: Int?) {
        let payload = SocketIOPayload.encode(packets)
        if let script {
            answer(200, SocketIOScript.call(script, payload), .script)
        } else {
            answer(200, payload, .text)
        }
    }

    private func answer(_ status: Int, _ text: String, retryAfter: Duration? = nil) {
        answer(status, Array(text.utf8), .text, retryAfter: retryAfter)
    }

    private func answer(_ status: Int, _ body: [UInt8], _ type: ContentType, retryAfter: Duration? = nil) {
        guard let context, case .answering(let request, let poll) = state else { return }
        lastActive = .now()
        unconfirmed = poll
        state = .idle
        let keepsAlive = request.isKeepAlive && !isQuiescing
        var headers = headers(for: request, type)
        headers.add(name: "Content-Length", value: "\(body.count)")
        headers.add(name: "Connection", value: keepsAlive ? "keep-alive" : "close")
        if let retryAfter { headers.add(name: "Retry-After", value: "\((retryAfter.wholeMilliseconds + 999) / 1000)") }
        let head = HTTPResponseHead(version: request.version, status: .init(statusCode: status), headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(context.channel.allocator.buffer(bytes: body)))), promise: nil)
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        let sent = context.eventLoop.makePromise(of: Void.self)
        sent.futureResult.whenFailure { _ in handler.value.loseAnswer() }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: sent)
        guard keepsAlive else { return context.close(promise: nil) }
        takeWaiting()
    }

    private func headers(for request: HTTPRequestHead, _ type: ContentType) -> HTTPHeaders {
        var headers = HTTPHeaders([
            ("Content-Type", type.rawValue), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
        ])
        // There is no ambient authority here: a connection's id is all that counts, and it must be known.
        if let origin = request.headers.first(name: "Origin"), isAllowed(request) {
            headers.add(name: "Access-Control-Allow-Origin", value: origin)
            headers.add(name: "Access-Control-Allow-Credentials", value: "true")
            headers.add(name: "Vary", value: "Origin")
        }
        if request.method == .OPTIONS {
            headers.add(name: "Access-Control-Allow-Methods", value: "GET, POST")
            headers.add(name: "Access-Control-Allow-Headers", value: "Content-Type")
        }
        return headers
    }
}
