import DequeModule
import Logging
import NIOCore
import NIOHTTP1
import Signaling
import Wire

/// The channel handler closest to the client: it sees every request first and every response last.
///
/// `HTTPConnection` decides what happens. This handler passes it the channel's events and carries out its outputs: it
/// passes requests under `/socket.io/`, `/whip/`, `/whep/` and `/xirsys/` to their endpoints and all others to the
/// router. For a WebSocket it changes the pipeline and removes itself.
final class HTTPGate: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// How long to keep a connection open after its last response while the client is still sending. Closing earlier could
    /// reset the connection and destroy the response.
    private static let lingerTime = TimeAmount.seconds(1)

    private let clients: ForeignClients
    private var gateway: Gateway { clients.gateway }
    private let protocols: ConnectionProtocols
    private let peer: IPAddress
    private var connection: HTTPConnection
    /// Outputs that are not carried out yet. Carrying one out can cause further inputs.
    private var outputs: Deque<HTTPConnection.Output> = []
    private var isCarryingOut = false
    /// For each part of a response that the router wrote and that was not passed on yet, the promise of the write; nil
    /// for a write without a promise.
    private var writes: Deque<EventLoopPromise<Void>?> = []
    private var endpoint: SocketIOEndpoint?
    /// The task that runs an endpoint's handler for the current request. Canceled if the client is gone.
    private var task: Task<Void, Never>?
    /// The request that is being answered; nil between requests.
    private var exchange: HTTPExchange?
    private var context: ChannelHandlerContext?
    private var idleCheck: Scheduled<Void>?

    /// - Parameter peer: the remote address of the connection.
    init(clients: ForeignClients, protocols: ConnectionProtocols, peer: IPAddress) {
        self.clients = clients
        self.protocols = protocols
        self.peer = peer
        let settings = HTTPConnection.Settings(clients.gateway.configuration, peer: peer)
        connection = HTTPConnection(settings: settings, now: .now())
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        scheduleTimeout(context)
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    private func end() {
        idleCheck?.cancel()
        context = nil
        outputs = []
        while let promise = writes.popFirst() { promise?.fail(ChannelError.ioOnClosedChannel) }
        endpoint?.ended()
        task?.cancel()
        finishExchange()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let error = error as? HTTPParserError {
            return handle(.unparsable(error == .headerOverflow ? .headersTooLarge : .notHTTP))
        }
        endpoint?.connectionFailed()
        task?.cancel()
        context.fireErrorCaught(error)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed:
            endpoint?.inputClosed(context.channel)
            task?.cancel()
            handle(.inputClosed)
        case is ChannelShouldQuiesceEvent: handle(.quiesce)
        default: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // After an upgrade, pass the bytes on: the HTTP decoder returns the bytes that followed the WebSocket
        // handshake when it is removed.
        if connection.isUpgraded { return context.fireChannelRead(data) }
        let part = unwrapInboundIn(data)
        if case .head(let head) = part {
            gateway.doorTraffic.request(head.uri)
            connection.settings = HTTPConnection.Settings(gateway.configuration, peer: peer)
        }
        handle(.received(part))
    }

    func read(context: ChannelHandlerContext) {
        if connection.isUpgraded { context.read() } else { handle(.read) }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        handle(.writable(context.channel.isWritable))
        context.fireChannelWritabilityChanged()
    }

    /// Writes a part of the router's response, or a frame of the WebSocket.
    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if connection.isUpgraded { return context.write(data, promise: promise) }
        writes.append(promise)
        handle(.responded(unwrapOutboundIn(data)))
    }

    /// An event that a router's handler triggers when it is ready to read the file in its request.
    enum RouterEvent { case bodyWanted }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        guard event is RouterEvent else { return context.triggerUserOutboundEvent(event, promise: promise) }
        handle(.bodyWanted)
        promise?.succeed()
    }

    /// Sends an endpoint's response to its current request.
    func answer(_ reply: GateResponse) { handle(.answered(reply)) }

    /// Opens the WebSocket that an endpoint has admitted.
    func accept() { handle(.accepted) }

    // MARK: The state machine

    private func handle(_ input: HTTPConnection.Input) {
        outputs.append(contentsOf: connection.handle(input, now: .now()))
        guard !isCarryingOut else { return }
        isCarryingOut = true
        defer { isCarryingOut = false }
        while let context, let output = outputs.popFirst() { carryOut(output, context) }
    }

    private func carryOut(_ output: HTTPConnection.Output, _ context: ChannelHandlerContext) {
        switch output {
        case .read: context.read()
        case .began(let head):
            let routes = gateway.routes
            exchange = gateway.runner.traces?.begin(head, routes) ?? HTTPExchange(head, routes)
            endpoint?.nextRequest()
        case .route(let part):
            if case .head = part, !protocols.openRouter(context.channel) { return context.close(promise: nil) }
            context.fireChannelRead(wrapInboundOut(withRequestID(part)))
        case .routeComplete: context.fireChannelReadComplete()
        case .perform(let request, let head, let body): perform(request, head, body, context)
        case .sendContinue(let version):
            let head = HTTPResponseHead(version: version, status: .continue)
            context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
        case .write(let part):
            context.write(wrapOutboundOut(withCommonHeaders(part)), promise: nextWrite())
            if case .end = part { finishExchange() }
        case .dropResponse: nextWrite()?.fail(ChannelError.ioOnClosedChannel)
        case .answer(let reply, let head, let keepsAlive): send(reply, to: head, keepsAlive: keepsAlive, context)
        case .refuse(let refusal):
            if refusal == .forwardingContradictory { gateway.logContradiction() }
            send(refusal.response(gateway.configuration), to: nil, keepsAlive: false, context)
        case .upgrade(let head): upgrade(head, context)
        case .nextTurn:
            gateway.runner.laterTurns.run { self.handle(.turn) }
        case .earlierTimeout:
            idleCheck?.cancel()
            scheduleTimeout(context)
        case .linger:
            let channel = context.channel
            context.eventLoop.scheduleTask(in: Self.lingerTime) { channel.close(promise: nil) }
        case .close: context.close(promise: nil)
        }
    }

    private func nextWrite() -> EventLoopPromise<Void>? { writes.popFirst() ?? nil }

    private func perform(
        _ request: EndpointRequest, _ head: HTTPRequestHead, _ body: [UInt8], _ context: ChannelHandlerContext
    ) {
        let call = GateRequest(
            method: head.method, headers: head.headers,
            address: gateway.configuration.clientAddress(head.headers, from: context.remoteAddress), body: body,
            trace: exchange?.trace)
        switch request {
        case .socketIO(let request):
            let endpoint = endpoint ?? SocketIOEndpoint(directory: clients.socketIO, gate: self)
            self.endpoint = endpoint
            endpoint.perform(request, call)
        case .whip(let request):
            respond(to: call, .whip(request)) { clients, call async throws(WireError) in
                try await clients.whip.respond(to: request, call)
            }
        case .perch(let request):
            respond(to: call, PerchDirectory.layers) { clients, call async throws(WireError) in
                try await clients.perch.respond(to: request, call)
            }
        }
    }

    private func respond(
        to request: GateRequest, _ layers: EndpointLayers,
        _ handler: @escaping @Sendable (ForeignClients, GateRequest) async throws(WireError) -> GateResponse?
    ) {
        let gate = NIOLoopBound(self, eventLoop: gateway.eventLoop)
        task = Task(executorPreference: gateway.executor) {
            let clients = gate.value.clients
            let response = await clients.gateway.respond(to: request, layers) {
                _, request async throws(WireError) in
                try await handler(clients, request)
            }
            if let response { gate.value.answer(response) } else { gate.value.accept() }
        }
    }

    private func upgrade(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let answer = HTTPResponseHead(
            version: .http1_1, status: .switchingProtocols, headers: WebSocketUpgrade.answer(to: head))
        let trace = exchange?.trace
        context.writeAndFlush(wrapOutboundOut(withCommonHeaders(.head(answer))), promise: nil)
        finishExchange()
        protocols.openWebSocket(head, context.channel, trace, replacing: self)
    }

    // MARK: Responses

    /// Writes a complete response, and closes the connection after the last one.
    ///
    /// - Parameter request: The request being answered. Nil if the input is refused; the connection then closes after
    ///   `lingerTime`.
    private func send(
        _ reply: GateResponse, to request: HTTPRequestHead?, keepsAlive: Bool, _ context: ChannelHandlerContext
    ) {
        var headers = reply.headers
        headers.add(name: "Content-Length", value: "\(reply.body.count)")
        headers.add(name: "Connection", value: keepsAlive ? "keep-alive" : "close")
        let head = HTTPResponseHead(
            version: request?.version ?? .http1_1, status: .init(statusCode: reply.status), headers: headers)
        context.write(wrapOutboundOut(withCommonHeaders(.head(head))), promise: nil)
        finishExchange()
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

    /// Adds the headers of every response: the request's id, and HSTS.
    private func withCommonHeaders(_ part: HTTPServerResponsePart) -> HTTPServerResponsePart {
        guard case .head(var head) = part else { return part }
        if let value = gateway.strictTransport {
            head.headers.replaceOrAdd(name: "Strict-Transport-Security", value: value)
        }
        if let exchange {
            head.headers.replaceOrAdd(name: HTTPExchange.header, value: exchange.id.description)
            self.exchange?.status = Int(head.status.code)
        }
        return .head(head)
    }

    /// Adds the request's id, which the router's handlers log. Replaces what the client sent under this name.
    private func withRequestID(_ part: HTTPServerRequestPart) -> HTTPServerRequestPart {
        guard case .head(var head) = part, let exchange else { return part }
        head.headers.replaceOrAdd(name: HTTPExchange.header, value: exchange.id.description)
        return .head(head)
    }

    /// The request has its response, or gets none, because the connection has ended.
    private func finishExchange() {
        guard let exchange else { return }
        self.exchange = nil
        exchange.end()
        gateway.logger.debug(
            "Request",
            metadata: [
                "request": "\(exchange.id)", "method": "\(exchange.method.rawValue)", "route": "\(exchange.route)",
                "status": "\(exchange.status.map(String.init) ?? "-")",
            ])
    }

    // MARK: Time

    private func scheduleTimeout(_ context: ChannelHandlerContext) {
        guard let deadline = connection.nextTimeout else { return }
        let gate = NIOLoopBound(self, eventLoop: context.eventLoop)
        idleCheck = context.eventLoop.scheduleTask(deadline: deadline) { gate.value.timedOut() }
    }

    private func timedOut() {
        guard let context else { return }
        for output in connection.handleTimeout(now: .now()) { carryOut(output, context) }
        if self.context != nil { scheduleTimeout(context) }
    }
}
