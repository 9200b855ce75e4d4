import CoreMetrics
import Logging
import NIOCore
import Signaling
import Wire

/// The receiver of a WebSocket's messages and events. Each call passes the WebSocket, because a user may have replaced it with
/// a new one before the old one is closed.
protocol WebSocketUser: AnyObject {
    func opened(_ webSocket: WebSocketHandler)
    /// Called with a text message. It may not be valid UTF-8.
    func received(_ bytes: [UInt8], on webSocket: WebSocketHandler)
    /// Called with a binary message, if `acceptsBinary`.
    func receivedBinary(_ bytes: [UInt8], on webSocket: WebSocketHandler)
    /// Whether binary messages are accepted. If not, they are protocol violations.
    var acceptsBinary: Bool { get }
    /// Called for every frame, with the length of its payload.
    func receivedFrame(_ length: Int, on webSocket: WebSocketHandler)
    /// Called when the peer violates RFC 6455 or sends too many control frames. The implementation must close the
    /// WebSocket with this code.
    func protocolViolation(_ code: CloseCode, _ reason: String, on webSocket: WebSocketHandler)
    /// Called when the peer sends a close frame. Afterwards, the handler answers it.
    func closedByPeer(_ code: CloseCode, on webSocket: WebSocketHandler)
    /// Called when either side has closed the connection. Always the last call, and only once.
    func disconnected(_ webSocket: WebSocketHandler)
    /// True while too much of this user's data waits for storage, or its address exceeds its budget. The socket is then
    /// not read.
    var isCongested: Bool { get }
    /// Registers a reader that has paused, and resumes it when the user may no longer be congested.
    func pause(_ reader: any PausedReader)
}

extension WebSocketUser {
    func receivedBinary(_ bytes: [UInt8], on webSocket: WebSocketHandler) {}
    var acceptsBinary: Bool { false }
    var isCongested: Bool { false }
    func pause(_ reader: any PausedReader) {}
}

/// One WebSocket in a channel. `WebSocketConnection` decides what happens. This handler, its shell, passes messages
/// and events to the user, and frames to the channel.
final class WebSocketHandler: ChannelDuplexHandler, PausedReader {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    /// The channel is not writable while more than `high` bytes are queued. The value is small, because queued bytes
    /// are not counted while the channel is writable (`bufferedBytes`).
    private static let bufferMarks = ChannelOptions.Types.WriteBufferWaterMark(low: 4 << 10, high: 8 << 10)

    private let gateway: Gateway
    /// The receiver of messages and events; nil after the connection is closed.
    private var user: (any WebSocketUser)?
    private var connection: WebSocketConnection
    private var context: ChannelHandlerContext?

    /// The id of the request that opened the WebSocket, for the log.
    let request: TraceID?

    /// - Parameters:
    ///   - messageSize: Maximum size of a message, in bytes.
    ///   - request: the id of the request that opened the WebSocket.
    init(gateway: Gateway, user: any WebSocketUser, messageSize: Int, request: TraceID? = nil) {
        (self.gateway, self.request) = (gateway, request)
        self.user = user
        connection = WebSocketConnection(
            messageSize: messageSize, acceptsBinary: user.acceptsBinary,
            sendQueue: gateway.configuration.limits.sendQueue)
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        try? context.channel.syncOptions?.setOption(.writeBufferWaterMark, value: Self.bufferMarks)
        user?.opened(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) { handle(.inactive) }

    func channelInactive(context: ChannelHandlerContext) {
        handle(.inactive)
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        gateway.doorTraffic.heard &+= 1
        connection.received(unwrapInboundIn(data))
        handleFrames()
        carryOut(connection.finishTurn(isCongested: isCongested))
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        handle(.readComplete)
        context.fireChannelReadComplete()
    }

    func read(context: ChannelHandlerContext) { handle(.read(isCongested: isCongested)) }

    /// Reads again after `pause`.
    func resumeReading() { handle(.read(isCongested: false)) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // Do not pass on the end of the input: the router's handlers may be behind the WebSocket in the pipeline, and
        // this event does not concern them.
        if case ChannelEvent.inputClosed = event { return handle(.inputEnded) }
        context.fireUserInboundEventTriggered(event)
    }

    /// Closes the channel after an error. `channelInactive` then notifies the user.
    func errorCaught(context: ChannelHandlerContext, error: any Error) { handle(.drop) }

    /// Rejects writes of the router's handlers, which may be behind the WebSocket in the pipeline.
    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        promise?.fail(ChannelError.ioOnClosedChannel)
    }

    private var isCongested: Bool { user?.isCongested ?? false }

    private var metadata: Logger.Metadata { request.map { ["request": "\($0)"] } ?? [:] }

    // MARK: The state machine

    private func handle(_ input: WebSocketConnection.Input) { carryOut(connection.handle(input)) }

    private func carryOut(_ outputs: [WebSocketConnection.Output]) {
        for output in outputs { carryOut(output) }
    }

    private func carryOut(_ output: WebSocketConnection.Output) {
        switch output {
        case .send(let opcode, let payload): write(opcode, payload)
        case .flush: context?.flush()
        case .read: context?.read()
        case .pause: user?.pause(self)
        case .nextTurn:
            gateway.runner.laterTurns.run { self.nextTurn() }
        case .closeLater:
            guard let channel = context?.channel else { return }
            channel.eventLoop.scheduleTask(in: .nanoseconds(gateway.configuration.rules.pingInterval)) {
                channel.close(promise: nil)
            }
        case .close: context?.close(promise: nil)
        case .noAnswer(let pings):
            gateway.logger.debug("Socket dropped: no answer to \(pings) pings", metadata: metadata)
        case .tooSlow(let unsent):
            // Nothing is lost: the client may resume, and then gets the missing messages or a snapshot.
            gateway.metrics.droppedForBackpressure.increment()
            gateway.logger.info(
                "Socket closed: the client reads too slowly (\(unsent) bytes queued)", metadata: metadata)
        case .disconnected:
            let user = user
            (context, self.user) = (nil, nil)
            user?.disconnected(self)
        }
    }

    /// Handles the frames that waited for this turn of the event loop.
    private func nextTurn() {
        handle(.turn)
        handleFrames()
        handle(.readComplete)
        context?.fireChannelReadComplete()
        carryOut(connection.finishTurn(isCongested: isCongested))
    }

    private func handleFrames() {
        while let event = connection.next() {
            switch event {
            case .text(let bytes):
                user?.receivedFrame(connection.frameLength, on: self)
                user?.received(bytes, on: self)
            case .binary(let bytes):
                user?.receivedFrame(connection.frameLength, on: self)
                user?.receivedBinary(bytes, on: self)
            case .noMessage: user?.receivedFrame(connection.frameLength, on: self)
            case .ping(let payload):
                user?.receivedFrame(connection.frameLength, on: self)
                if connection.canSend { write(.pong, payload) }
            case .violation(let code, let reason): user?.protocolViolation(code, reason, on: self)
            case .closed(let code, let answer):
                user?.receivedFrame(connection.frameLength, on: self)
                user?.closedByPeer(code, on: self)
                close(answer, "")
            case .closeAnswered: handle(.drop)
            }
        }
    }

    // MARK: Sending

    func send(_ text: [UInt8]) { if connection.canSend { write(.text, text) } }

    func flush() {
        context?.flush()
        let unsent = bufferedBytes
        if unsent > 0 { handle(.unsent(unsent)) }
    }

    /// The number of bytes waiting to be sent; 0 if there are so few that the channel is writable.
    var bufferedBytes: Int {
        // Read the option only if the channel is not writable, because reading it is slow and most sockets have
        // nothing to send.
        guard let context, !context.channel.isWritable else { return 0 }
        return (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    /// Sends a ping. The gateway's timer calls this once per ping interval.
    ///
    /// - Parameter missed: Closes the connection if this many pings were sent since the last frame from the peer. Nil
    ///   if the user has its own timeout.
    func tick(dropAfter missed: Int?) { handle(.tick(dropAfter: missed, isCongested: isCongested)) }

    func close(_ code: CloseCode, _ reason: String) { handle(.close(code, reason)) }

    /// Closes the connection without a close frame.
    func drop() { handle(.drop) }

    private func write(_ opcode: FrameReader.Opcode, _ payload: [UInt8]) {
        guard let context, context.channel.isActive else { return }
        let header = FrameHeader.bytes(of: opcode, length: payload.count)
        var frame = context.channel.allocator.buffer(capacity: header.count + payload.count)
        frame.writeBytes(header)
        frame.writeBytes(payload)
        context.write(wrapOutboundOut(frame), promise: nil)
    }
}
