import CoreMetrics
import Logging
import NIOCore
import Signaling
import Wire

/// What is said over a WebSocket: gets whole messages and the end, never frames. Told which socket it was, for somebody may
/// have a second one before the first is gone.
protocol WebSocketUser: AnyObject {
    func opened(_ webSocket: WebSocketHandler)
    /// A text message, not yet known to be UTF-8.
    func received(_ bytes: [UInt8], on webSocket: WebSocketHandler)
    /// Any frame.
    func showedLife(on webSocket: WebSocketHandler)
    /// The other end broke RFC 6455 or sent too much that says nothing: nothing it says can be trusted any more. The user
    /// closes with this code.
    func violated(_ code: CloseCode, _ reason: String, on webSocket: WebSocketHandler)
    /// The other end closes; it is answered by the handler.
    func closedByPeer(_ code: CloseCode, on webSocket: WebSocketHandler)
    /// The line is gone, by whoever's doing. Always last, and once.
    func broke(_ webSocket: WebSocketHandler)
}

/// One WebSocket (RFC 6455): bytes in, messages out, pings, the closing handshake, and how much may wait to be sent. It
/// decides nothing about what is said on it; `FrameHeader` and `FrameReader` judge the bytes.
final class WebSocketHandler: ChannelDuplexHandler, PausedReader {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = Never
    typealias OutboundOut = ByteBuffer

    /// Handled before others have their turn: a flood then costs everybody else a moment at a time.
    private static let framesPerTurn = 32
    /// Pings, pongs and unfinished fragments taken in one ping interval.
    private static let idleFramesPerInterval = 500

    private let gateway: Gateway
    /// Until the line is gone.
    private var user: (any WebSocketUser)?
    private var reader: FrameReader
    /// The beginning of a frame whose end has not come, and frames that wait for the next turn.
    private var unread: ByteBuffer?
    /// The bytes cannot be told apart into frames any more.
    private var isLost = false
    private var needsFlush = false
    /// More frames are here and wait for the next turn of the loop.
    private var isYielding = false
    private var isReadHeld = false
    private var hasInputEnded = false
    private var context: ChannelHandlerContext?
    private var unanswered = 0
    private var idleFrames = 0
    private var hasReceivedClose = false
    private var hasSentClose = false

    /// - Parameter messageSize: of the largest message, in bytes.
    init(gateway: Gateway, user: any WebSocketUser, messageSize: Int) {
        self.gateway = gateway
        self.user = user
        reader = FrameReader(limit: messageSize)
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
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
        user?.broke(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isLost else { return }
        var bytes = unwrapInboundIn(data)
        if var earlier = unread {
            // First, or writing would copy it.
            unread = nil
            earlier.writeBuffer(&bytes)
            bytes = earlier
        }
        var frames = 0
        while !isLost, frames < Self.framesPerTurn, let frame = readFrame(&bytes) {
            receive(frame, context)
            frames += 1
        }
        guard !isLost, bytes.readableBytes > 0 else { return }
        if frames == Self.framesPerTurn { goOnLater(context) }
        // A slice would keep all that was read alive.
        unread = bytes.readableBytes < bytes.storageCapacity / 2 ? ByteBuffer(bytes: bytes.readableBytesView) : bytes
    }

    /// Everybody else's turn comes first; meanwhile nothing more is read.
    private func goOnLater(_ context: ChannelHandlerContext) {
        isYielding = true
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.execute { handler.value.goOn() }
    }

    private func goOn() {
        guard let context, isYielding else { return }
        isYielding = false
        channelRead(context: context, data: wrapInboundOut(ByteBuffer()))
        channelReadComplete(context: context)
        if isYielding { return }
        if hasInputEnded { context.close(promise: nil) } else if isReadHeld { resumeReading() }
    }

    /// A frame if all of it is here.
    private func readFrame(_ bytes: inout ByteBuffer) -> FrameReader.Frame? {
        let header: FrameHeader
        switch FrameHeader.parse(bytes.readableBytesView, most: reader.limit) {
        case .incomplete: return nil
        case .violation(let code, let reason):
            lose(CloseCode(rawValue: code), reason)
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

    private func lose(_ code: CloseCode, _ reason: String) {
        isLost = true
        unread = nil
        if !hasSentClose { user?.violated(code, reason, on: self) }
    }

    private func receive(_ frame: FrameReader.Frame, _ context: ChannelHandlerContext) {
        // Bytes are no answer, frames are.
        unanswered = 0
        let output = reader.read(frame)
        // Once we have closed, only the other end's close is of interest.
        if hasSentClose {
            if case .close = output { context.close(promise: nil) }
            return
        }
        user?.showedLife(on: self)
        switch output {
        case .text(let bytes): user?.received(bytes, on: self)
        case .nothing, .pong: countIdleFrame()
        case .ping(let payload):
            countIdleFrame()
            send(opcode: .pong, payload)
            needsFlush = true
        case .close(let code): closedByPeer(CloseCode(rawValue: code))
        case .violation(let code, let reason): lose(CloseCode(rawValue: code), reason)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if needsFlush { flush() }
        context.fireChannelReadComplete()
    }

    /// Answers a close with the same code (RFC 6455 §5.5.1) and lets the line go.
    private func closedByPeer(_ code: CloseCode) {
        hasReceivedClose = true
        user?.closedByPeer(code, on: self)
        close(code == .noStatus ? .normal : code, "")
    }

    /// Reading stops while the disk is far behind: what is not read waits in the sender's own buffers.
    func read(context: ChannelHandlerContext) {
        if isYielding {
            isReadHeld = true
        } else if gateway.runner.isCongested {
            gateway.runner.pause(self)
        } else {
            context.read()
        }
    }

    func resumeReading() {
        isReadHeld = false
        context?.read()
    }

    /// Frames that say nothing cost us as much as those that do, and no budget of the rules sees them.
    private func countIdleFrame() {
        idleFrames += 1
        guard idleFrames > Self.idleFramesPerInterval else { return }
        user?.violated(.tooMany, "Too many frames that say nothing.", on: self)
    }

    /// The other end sent its last byte without a close frame: nothing more will come, so this is a drop.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event {
            hasInputEnded = true
            if !isYielding { context.close(promise: nil) }
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// The line broke; channelInactive tells the user.
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    // MARK: Liveness

    /// Once in each ping interval, by the gateway's one timer.
    ///
    /// - Parameter missed: pings in a row without any frame after which the line counts as broken; nil if its user keeps
    ///   a time of its own.
    func tick(dropAfter missed: Int?) {
        guard !hasSentClose else { return }
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

    func flush() {
        needsFlush = false
        context?.flush()
        guard let context, !context.channel.isWritable else { return }
        let waiting = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        guard waiting > gateway.configuration.limits.sendQueue else { return }
        // A reader this slow is a drop: it may resume and gets what it lacks, or a fresh start.
        gateway.metrics.droppedForBackpressure.increment()
        gateway.logger.info("Socket closed: \(waiting) bytes wait to be read")
        context.close(promise: nil)
    }

    func close(_ code: CloseCode, _ reason: String) {
        guard let context, !hasSentClose, context.channel.isActive else { return }
        hasSentClose = true
        // A control frame holds 125 bytes (RFC 6455 §5.5).
        write(.close, [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)] + reason.utf8.prefix(120), context)
        context.flush()
        if hasReceivedClose { return context.close(promise: nil) }
        // Whoever does not answer a close gets one interval.
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
