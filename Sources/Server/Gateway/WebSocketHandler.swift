import CoreMetrics
import Logging
import NIOCore
import NIOWebSocket
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

/// One WebSocket (RFC 6455): frames in, messages out, pings, the closing handshake, and how much may wait to be sent. It
/// decides nothing about what is said on it.
final class WebSocketHandler: ChannelDuplexHandler, PausedReader {
    typealias InboundIn = WebSocketFrame
    typealias OutboundIn = Never
    typealias OutboundOut = WebSocketFrame

    /// Pings, pongs and unfinished fragments taken in one ping interval.
    private static let idleFramesPerInterval = 500

    private let gateway: Gateway
    /// Until the line is gone.
    private var user: (any WebSocketUser)?
    private var reader: FrameReader
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
        unanswered = 0
        let output = reader.read(FrameReader.Frame(unwrapInboundIn(data)))
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
            flush()
        case .close(let code): closedByPeer(CloseCode(rawValue: code))
        case .violation(let code, let reason): user?.violated(CloseCode(rawValue: code), reason, on: self)
        }
    }

    /// Answers a close with the same code (RFC 6455 §5.5.1) and lets the line go.
    private func closedByPeer(_ code: CloseCode) {
        hasReceivedClose = true
        user?.closedByPeer(code, on: self)
        close(code == .noStatus ? .normal : code, "")
    }

    /// Reading stops while the disk is far behind: what is not read waits in the sender's own buffers.
    func read(context: ChannelHandlerContext) {
        if gateway.runner.isCongested { gateway.runner.pause(self) } else { context.read() }
    }

    func resumeReading() { context?.read() }

    /// Frames that say nothing cost us as much as those that do, and no budget of the rules sees them.
    private func countIdleFrame() {
        idleFrames += 1
        guard idleFrames > Self.idleFramesPerInterval else { return }
        user?.violated(.tooMany, "Too many frames that say nothing.", on: self)
    }

    /// The other end sent its last byte without a close frame: nothing more will come, so this is a drop.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case NIOWebSocketError.invalidFrameLength:
            user?.violated(CloseCode(rawValue: 1009), "the frame is too large", on: self)
        case is NIOWebSocketError: user?.violated(CloseCode(rawValue: 1002), "protocol error", on: self)
        default:
            // The line broke; channelInactive tells the user.
            context.close(promise: nil)
        }
    }

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
        context?.flush()
        guard let context, !context.channel.isWritable else { return }
        let waiting = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        guard waiting > gateway.settings.sendQueue else { return }
        // A reader this slow is a drop: it may resume and gets what it lacks, or a fresh start.
        gateway.metrics.droppedForBackpressure.increment()
        gateway.logger.info("Socket closed: \(waiting) bytes wait to be read")
        context.close(promise: nil)
    }

    func close(_ code: CloseCode, _ reason: String) {
        guard let context, !hasSentClose, context.channel.isActive else { return }
        hasSentClose = true
        var buffer = context.channel.allocator.buffer(capacity: 2 + reason.utf8.count)
        buffer.writeInteger(code.rawValue)
        // A control frame holds 125 bytes (RFC 6455 §5.5).
        buffer.writeBytes(reason.utf8.prefix(120))
        context.writeAndFlush(
            wrapOutboundOut(WebSocketFrame(fin: true, opcode: .connectionClose, data: buffer)), promise: nil)
        if hasReceivedClose { return context.close(promise: nil) }
        // Whoever does not answer a close gets one interval.
        let channel = context.channel
        context.eventLoop.scheduleTask(in: .nanoseconds(gateway.settings.pingInterval)) { channel.close(promise: nil) }
    }

    private func send(opcode: WebSocketOpcode, _ bytes: [UInt8]) {
        guard let context, !hasSentClose, context.channel.isActive else { return }
        let buffer = context.channel.allocator.buffer(bytes: bytes)
        context.write(wrapOutboundOut(WebSocketFrame(fin: true, opcode: opcode, data: buffer)), promise: nil)
    }
}

extension FrameReader.Frame {
    init(_ frame: WebSocketFrame) {
        var data = frame.unmaskedData
        let bytes = data.readBytes(length: data.readableBytes) ?? []
        let opcode: FrameReader.Opcode =
            switch frame.opcode {
            case .continuation: .continuation
            case .text: .text
            case .binary: .binary
            case .connectionClose: .close
            case .ping: .ping
            case .pong: .pong
            default: .reserved
            }
        self.init(
            opcode: opcode, isFinal: frame.fin, hasReservedBits: frame.rsv1 || frame.rsv2 || frame.rsv3,
            isMasked: frame.maskKey != nil, payload: bytes
        )
    }
}
