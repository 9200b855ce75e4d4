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
    /// Called for every frame, with the length of its payload.
    func receivedFrame(_ length: Int, on webSocket: WebSocketHandler)
    /// Called when the peer violates RFC 6455 or sends too many control frames. The implementation must close with this code.
    func protocolViolation(_ code: CloseCode, _ reason: String, on webSocket: WebSocketHandler)
    /// Called when the peer sends a close frame. The handler answers it.
    func closedByPeer(_ code: CloseCode, on webSocket: WebSocketHandler)
    /// Called when the connection is closed, whichever side closed it. Always the last call, and only once.
    func disconnected(_ webSocket: WebSocketHandler)
    /// True while too much of this user's data waits for storage, or its address is over its budget. The socket is not read
    /// then.
    var isCongested: Bool { get }
    /// Resumes the reader when the user may no longer be congested.
    func pause(_ reader: any PausedReader)
}

extension WebSocketUser {
    var isCongested: Bool { false }
    func pause(_ reader: any PausedReader) {}
}

/// One WebSocket (RFC 6455): framing, pings, the closing handshake, and a limit for the send queue.
///
/// It does not interpret messages. `FrameHeader` and `FrameReader` parse and validate the frames.
final class WebSocketHandler: ChannelDuplexHandler, PausedReader {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    /// Frames handled per turn of the event loop, so that a flood cannot starve other connections.
    private static let framesPerTurn = 32
    /// Limit for pings, pongs and unfinished fragments per ping interval.
    private static let idleFramesPerInterval = 500

    private let gateway: Gateway
    /// Nil once the connection is closed.
    private var user: (any WebSocketUser)?
    private var reader: FrameReader
    /// An incomplete frame, and frames that wait for the next turn.
    private var unread: ByteBuffer?
    /// True after a protocol violation: the input cannot be parsed any further.
    private var hasFailed = false
    private var needsFlush = false
    /// True while received frames wait for the next turn of the event loop.
    private var isYielding = false
    private var isReadHeld = false
    private var hasInputEnded = false
    private var context: ChannelHandlerContext?
    private var unanswered = 0
    private var idleFrames = 0
    private var hasReceivedClose = false
    private var hasSentClose = false

    /// - Parameter messageSize: Maximum size of a message, in bytes.
    init(gateway: Gateway, user: any WebSocketUser, messageSize: Int) {
        self.gateway = gateway
        self.user = user
        reader = FrameReader(limit: messageSize)
    }

    // MARK: Channel events

    /// The channel reports that it is not writable if more than `high` bytes wait. A small number, because `bufferedBytes` counts
    /// only from there.
    private static let bufferMarks = ChannelOptions.Types.WriteBufferWaterMark(low: 4 << 10, high: 8 << 10)

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        try? context.channel.syncOptions?.setOption(.writeBufferWaterMark, value: Self.bufferMarks)
        user?.opened(self)
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    private func end() {
        context = nil
        let user = user
        self.user = nil
        user?.disconnected(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasFailed else { return }
        var bytes = unwrapInboundIn(data)
        if var earlier = unread {
            // Drop the second reference to the buffer first. Otherwise, writing would copy the buffer.
            unread = nil
            earlier.writeBuffer(&bytes)
            bytes = earlier
        }
        var frames = 0
        while !hasFailed, frames < Self.framesPerTurn, let frame = readFrame(&bytes) {
            receive(frame, context)
            frames += 1
        }
        guard !hasFailed, bytes.readableBytes > 0 else { return }
        if frames == Self.framesPerTurn { continueLater(context) }
        // A slice would keep the whole read buffer alive, so copy a small remainder.
        unread = bytes.readableBytes < bytes.storageCapacity / 2 ? ByteBuffer(bytes: bytes.readableBytesView) : bytes
    }

    /// Handles the remaining frames in the event loop's next turn. Nothing more is read until then.
    private func continueLater(_ context: ChannelHandlerContext) {
        isYielding = true
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.execute { handler.value.continueReading() }
    }

    private func continueReading() {
        guard let context, isYielding else { return }
        isYielding = false
        channelRead(context: context, data: wrapInboundOut(ByteBuffer()))
        channelReadComplete(context: context)
        if isYielding { return }
        if hasInputEnded { return context.close(promise: nil) }
        guard isReadHeld else { return }
        isReadHeld = false
        // The frames just handled may have made the user congested.
        read(context: context)
    }

    /// Returns the next frame, or nil if it is incomplete.
    private func readFrame(_ bytes: inout ByteBuffer) -> FrameReader.Frame? {
        let header: FrameHeader
        switch FrameHeader.parse(bytes.readableBytesView, maxLength: reader.limit) {
        case .incomplete: return nil
        case .violation(let code, let reason):
            fail(CloseCode(rawValue: code), reason)
            return nil
        case .header(let found): header = found
        }
        guard bytes.readableBytes >= header.size + header.length else { return nil }
        bytes.moveReaderIndex(forwardBy: header.size)
        var payload = bytes.readBytes(length: header.length) ?? []
        if let mask = header.mask { for index in payload.indices { payload[index] ^= mask[index & 3] } }
        return FrameReader.Frame(
            opcode: header.opcode, isFinal: header.isFinal, hasReservedBits: false, isMasked: header.mask != nil,
            payload: payload
        )
    }

    private func fail(_ code: CloseCode, _ reason: String) {
        hasFailed = true
        unread = nil
        if !hasSentClose { user?.protocolViolation(code, reason, on: self) }
    }

    private func receive(_ frame: FrameReader.Frame, _ context: ChannelHandlerContext) {
        // Only a complete frame counts as an answer to a ping.
        unanswered = 0
        let output = reader.read(frame)
        // After our close frame, only the peer's close frame matters.
        if hasSentClose {
            if case .close = output { context.close(promise: nil) }
            return
        }
        user?.receivedFrame(frame.payload.count, on: self)
        switch output {
        case .text(let bytes): user?.received(bytes, on: self)
        case .nothing, .pong: countIdleFrame()
        case .ping(let payload):
            countIdleFrame()
            send(opcode: .pong, payload)
            needsFlush = true
        case .close(let code): closedByPeer(CloseCode(rawValue: code))
        case .violation(let code, let reason): fail(CloseCode(rawValue: code), reason)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if needsFlush { flush() }
        context.fireChannelReadComplete()
    }

    /// Answers a close frame with the same code (RFC 6455 §5.5.1) and closes the connection.
    private func closedByPeer(_ code: CloseCode) {
        hasReceivedClose = true
        user?.closedByPeer(code, on: self)
        close(code == .noStatus ? .normal : code, "")
    }

    /// Pauses reading while storage is far behind. Unread data then stays in the sender's buffers.
    func read(context: ChannelHandlerContext) {
        if isYielding {
            isReadHeld = true
        } else if user?.isCongested ?? false {
            user?.pause(self)
        } else {
            context.read()
        }
    }

    func resumeReading() {
        isReadHeld = false
        context?.read()
    }

    /// Counts a frame that carries no message. Such frames cost as much as messages, but the rate limits in the rules do not
    /// count them.
    private func countIdleFrame() {
        idleFrames += 1
        guard idleFrames > Self.idleFramesPerInterval else { return }
        user?.protocolViolation(.tooMany, "Too many control frames and fragments.", on: self)
    }

    /// Treats the end of input without a close frame as a dropped connection.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event {
            hasInputEnded = true
            if !isYielding { context.close(promise: nil) }
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// Closes the channel after an error. `channelInactive` then notifies the user.
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    // MARK: Liveness

    /// Sends a ping. The gateway's timer calls this once per ping interval.
    ///
    /// - Parameter missed: Closes the connection after this many pings in a row without a frame in between. Nil if the user
    ///   has its own timeout.
    func tick(dropAfter missed: Int?) {
        guard !hasSentClose else { return }
        // While the socket is not read, its pongs are not seen.
        if user?.isCongested ?? false { unanswered = 0 }
        if let missed, unanswered >= missed {
            gateway.logger.debug("Socket dropped: no answer to \(unanswered) pings")
            context?.close(promise: nil)
            return
        }
        unanswered += 1
        idleFrames = 0
        send(opcode: .ping, [])
        context?.flush()
    }

    // MARK: Sending

    func send(_ text: [UInt8]) { send(opcode: .text, text) }

    /// Closes the connection without a close frame.
    func drop() { context?.close(promise: nil) }

    /// The bytes that wait to be sent; 0 if they are few.
    var bufferedBytes: Int {
        // Asking for the option is slow, and most sockets have nothing to send.
        guard let context, !context.channel.isWritable else { return 0 }
        return (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    func flush() {
        needsFlush = false
        context?.flush()
        let waiting = bufferedBytes
        guard let context, waiting > gateway.configuration.limits.sendQueue else { return }
        // Treat a client that reads too slowly as dropped. It may resume, and then gets the missing messages or a snapshot.
        gateway.metrics.droppedForBackpressure.increment()
        gateway.logger.info("Socket closed: the client reads too slowly, \(waiting) bytes are queued")
        context.close(promise: nil)
    }

    func close(_ code: CloseCode, _ reason: String) {
        guard let context, !hasSentClose, context.channel.isActive else { return }
        hasSentClose = true
        // A control frame carries at most 125 bytes (RFC 6455 §5.5).
        write(.close, [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)] + reason.utf8.prefix(120), context)
        context.flush()
        if hasReceivedClose { return context.close(promise: nil) }
        // The peer has one ping interval to answer the close frame.
        let channel = context.channel
        context.eventLoop.scheduleTask(in: .nanoseconds(gateway.configuration.rules.pingInterval)) {
            channel.close(promise: nil)
        }
    }

    private func send(opcode: FrameReader.Opcode, _ bytes: [UInt8]) {
        guard let context, !hasSentClose, context.channel.isActive else { return }
        write(opcode, bytes, context)
    }

    private func write(_ opcode: FrameReader.Opcode, _ payload: [UInt8], _ context: ChannelHandlerContext) {
        let header = FrameHeader.bytes(of: opcode, length: payload.count)
        var frame = context.channel.allocator.buffer(capacity: header.count + payload.count)
        frame.writeBytes(header)
        frame.writeBytes(payload)
        context.write(wrapOutboundOut(frame), promise: nil)
    }
}
