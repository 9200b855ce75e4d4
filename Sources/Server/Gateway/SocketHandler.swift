import CoreMetrics
import Logging
import NIOCore
import NIOWebSocket
import Signaling
import Wire

/// One WebSocket of our own protocol: frames in, inputs to the hub; effects out, frames. Everything it decides is about the
/// socket (framing, hello in time, pings, how much may wait to be sent), nothing about what is said on it.
final class SocketHandler: ChannelDuplexHandler, RunnerSocket {
    typealias InboundIn = WebSocketFrame
    typealias OutboundIn = Never
    typealias OutboundOut = WebSocketFrame

    /// Legal next states: `greeting` → `admitting`, `closed`; `admitting` → `open`, `closed`; `open` → `closed`.
    private enum State {
        /// Waiting for the hello.
        case greeting(timeout: Scheduled<Void>)
        /// Storage is asked about somebody; what he says meanwhile waits.
        case admitting(early: [[UInt8]])
        case open(SocketID)
        case closed
    }

    /// Pings, pongs and unfinished fragments taken in one ping interval.
    private static let idleFramesPerInterval = 500
    /// Messages kept while storage answers a hello. A client that says more before its welcome is not one of ours.
    private static let earlyMessages = 32

    let address: IPAddress
    /// Which of the gateway's groups this socket is pinged with.
    var group = 0
    private let origin: String?
    private let gateway: Gateway
    private var reader: FrameReader
    private var state = State.closed
    private var context: ChannelHandlerContext?
    private var unanswered = 0
    private var idleFrames = 0
    /// The close code the other end sent or caused; nil while open, and when the line just broke.
    private var receivedClose: CloseCode?
    private var hasSentClose = false
    private var hasOutlivedClose = false

    init(gateway: Gateway, address: IPAddress, origin: String?) {
        self.gateway = gateway
        self.address = address
        self.origin = origin
        reader = FrameReader(limit: gateway.settings.descriptionSize)
    }

    /// With the socket's number; made when there is something to say, since most sockets never have.
    private var logger: Logger {
        var logger = gateway.logger
        if case .open(let id) = state { logger[metadataKey: "socket"] = "\(id.rawValue)" }
        return logger
    }

    // MARK: Channel events

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        let timeout = context.eventLoop.scheduleTask(in: .nanoseconds(gateway.settings.helloTimeout)) {
            handler.value.fail(WireError(.helloTimeout, "Say hello first.", retryable: true), .timeout)
        }
        state = .greeting(timeout: timeout)
        refuseAtTheDoor()
    }

    func handlerRemoved(context: ChannelHandlerContext) { end() }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        unanswered = 0
        let output = reader.read(FrameReader.Frame(unwrapInboundIn(data)))
        // Once we have closed, only the other end's close is of interest.
        if hasSentClose {
            if case .close(let code) = output { closedByPeer(CloseCode(rawValue: code)) }
            return
        }
        switch output {
        case .text(let bytes): receive(bytes)
        case .nothing, .pong: countIdleFrame()
        case .ping(let payload):
            countIdleFrame()
            send(opcode: .pong, payload)
            flush()
        case .close(let code): closedByPeer(CloseCode(rawValue: code))
        case .violation(let code, let reason): violated(CloseCode(rawValue: code), reason)
        }
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
        expel(WireError(.rateLimited, "Too many frames that say nothing.", retryable: true), .tooMany)
    }

    /// The other end sent its last byte without a close frame: nothing more will come, so this is a drop.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case NIOWebSocketError.invalidFrameLength: violated(CloseCode(rawValue: 1009), "the frame is too large")
        case is NIOWebSocketError: violated(CloseCode(rawValue: 1002), "protocol error")
        default:
            // The line broke; channelInactive tells the hub.
            context.close(promise: nil)
        }
    }

    // MARK: The door

    private func refuseAtTheDoor() {
        guard gateway.admit(self) else {
            let error = WireError(
                .tooManyConnections, "Too many connections from your network; close some tabs.", retryable: true,
                retryAfter: .seconds(10)
            )
            return fail(error, .tooMany)
        }
        if !gateway.settings.allowedOrigins.isEmpty {
            guard let origin, gateway.settings.allowedOrigins.contains(origin.lowercased()) else {
                return fail(WireError("forbidden_origin", "This page may not use this server."), .forbidden)
            }
        }
        _ = isWelcome()
    }

    /// Whether the server takes anybody, and this address: asked at the door and again when the hello is answered.
    private func isWelcome() -> Bool {
        if gateway.isDraining {
            close(.goingAway, "The server is restarting.")
            return false
        }
        if let ban = gateway.ban(of: address) {
            fail(.banned(ban, now: gateway.runner.now), .forbidden)
            return false
        }
        return true
    }

    private func greet(_ hello: Hello) {
        if case .greeting(let timeout) = state { timeout.cancel() }
        if let wait = gateway.isGreetingTooOften(address) {
            let error = WireError(
                .rateLimited, "Too many visits from your network; wait a little.", retryable: true, retryAfter: wait
            )
            return fail(error, .tooMany)
        }
        var generator = SystemRandomNumberGenerator()
        let guest: Reception.Guest
        do throws(WireError) {
            guest = try gateway.reception.admit(hello, now: gateway.runner.now, using: &generator)
        } catch {
            gateway.metrics.refusedHellos.increment()
            return fail(error, error.code.isToken ? .token : .malformed)
        }
        state = .admitting(early: [])
        guard guest.newSecret == nil else { return admit(guest, PersonRecord()) }
        let handler = NIOLoopBound(self, eventLoop: gateway.eventLoop)
        let (storage, now, eventLoop, logger) = (gateway.storage, gateway.runner.now, gateway.eventLoop, logger)
        Task {
            do {
                let record = try await storage.person(guest.identity.id, at: now)
                eventLoop.execute { handler.value.admit(guest, record) }
            } catch {
                logger.error("A person could not be loaded", metadata: ["error": "\(error)"])
                let sorry = WireError(.internalError, "The server has a problem; try again soon.", retryable: true)
                eventLoop.execute { handler.value.fail(sorry, CloseCode(rawValue: 1011)) }
            }
        }
    }

    private func admit(_ guest: Reception.Guest, _ record: PersonRecord) {
        guard case .admitting(let early) = state, isWelcome() else { return }
        if let ban = record.ban ?? gateway.ban(of: guest.identity.id), ban.isActive(at: gateway.runner.now) {
            gateway.metrics.refusedHellos.increment()
            return fail(.banned(ban, now: gateway.runner.now), .forbidden)
        }
        let id = gateway.runner.register(self)
        state = .open(id)
        logger.debug("Socket open", metadata: ["address": "\(address)", "client": "\(guest.hello.client ?? "-")"])
        gateway.runner.submit(
            .arrived(
                Arrival(
                    socket: id, identity: guest.identity, newIdentitySecret: guest.newSecret, record: record,
                    resume: guest.hello.resume, address: gateway.limitingText(address), name: guest.hello.name
                )
            )
        )
        for bytes in early { receive(bytes) }
    }

    // MARK: Messages

    private func receive(_ bytes: [UInt8]) {
        gateway.metrics.received.increment()
        if case .admitting(var early) = state {
            let waiting = early.reduce(bytes.count) { $0 + $1.count }
            guard early.count < Self.earlyMessages, waiting <= gateway.settings.messageSize else {
                return fail(WireError(.rateLimited, "Wait for the welcome.", retryable: true), .tooMany)
            }
            early.append(bytes)
            return state = .admitting(early: early)
        }
        let envelope: Envelope<ClientMessage>
        do throws(UnreadableMessage) {
            envelope = try Envelope<ClientMessage>.decode(bytes)
        } catch {
            return unreadable(error, bytes)
        }
        if bytes.count > gateway.settings.messageSize, !envelope.message.isDescription { return tooLarge() }
        switch state {
        case .greeting:
            guard case .hello(let hello) = envelope.message else {
                return fail(WireError(.helloExpected, "Say hello first."), .malformed)
            }
            greet(hello)
        case .open(let id): gateway.runner.submit(.message(id, envelope))
        case .admitting, .closed: break
        }
    }

    private func unreadable(_ message: UnreadableMessage, _ bytes: [UInt8]) {
        gateway.metrics.malformed.increment()
        guard String(validating: bytes, as: UTF8.self) != nil else {
            return violated(CloseCode(rawValue: 1007), "the message is not UTF-8")
        }
        if bytes.count > gateway.settings.messageSize { return tooLarge() }
        switch state {
        case .greeting:
            let error = message.error.code == .malformed ? message.error : WireError(.helloExpected, "Say hello first.")
            fail(error, .malformed)
        case .open(let id): gateway.runner.submit(.unreadable(id, message))
        case .admitting, .closed: break
        }
    }

    private func tooLarge() {
        let most = gateway.settings.messageSize
        expel(WireError(.messageTooLarge, "A message has at most \(most) bytes; send less."), .tooLarge)
    }

    /// The other end broke RFC 6455: nothing it says can be trusted any more, so it is gone at once rather than dropped.
    private func violated(_ code: CloseCode, _ reason: String) {
        guard case .open(let id) = state else { return close(code, reason) }
        let error = WireError(code == CloseCode(rawValue: 1009) ? .messageTooLarge : .malformed, reason)
        gateway.runner.submit(.expel(id, error, code))
    }

    /// Out, with a reason; whoever said hello is gone from everywhere else as well.
    func expel(_ error: WireError, _ code: CloseCode) {
        guard case .open(let id) = state else { return fail(error, code) }
        gateway.runner.submit(.expel(id, error, code))
    }

    // MARK: Liveness

    /// Once in each ping interval, by the gateway's one timer.
    func tick() {
        guard !hasSentClose else {
            // The other end did not answer our close: it gets one interval, and what is left of this one.
            if hasOutlivedClose { context?.close(promise: nil) }
            hasOutlivedClose = true
            return
        }
        guard unanswered < gateway.settings.missedPings else {
            logger.debug("Socket dropped: no answer to \(unanswered) pings")
            context?.close(promise: nil)
            return
        }
        unanswered += 1
        idleFrames = 0
        send(opcode: .ping, [])
        context?.flush()
    }

    // MARK: Sending (RunnerSocket)

    func write(_ bytes: [UInt8]) { send(opcode: .text, bytes) }

    func flush() {
        context?.flush()
        guard let context, !context.channel.isWritable else { return }
        let waiting = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
        guard waiting > gateway.settings.sendQueue else { return }
        // A reader this slow is a drop: it may resume and gets what it lacks, or a fresh start.
        gateway.metrics.droppedForBackpressure.increment()
        logger.info("Socket closed: \(waiting) bytes wait to be read")
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
        if case .greeting(let timeout) = state { timeout.cancel() }
        if case .open(let id) = state {
            state = .closed
            gateway.runner.unregister(id, leaving: false)
        }
        state = .closed
        if receivedClose != nil { context.close(promise: nil) }
    }

    private func send(opcode: WebSocketOpcode, _ bytes: [UInt8]) {
        guard let context, !hasSentClose, context.channel.isActive else { return }
        let buffer = context.channel.allocator.buffer(bytes: bytes)
        context.write(wrapOutboundOut(WebSocketFrame(fin: true, opcode: opcode, data: buffer)), promise: nil)
    }

    /// Says why, then closes.
    private func fail(_ error: WireError, _ code: CloseCode) {
        send(opcode: .text, ServerMessage.error(ErrorMessage(error)).encode())
        close(code, error.code.rawValue)
    }

    // MARK: The end

    /// Answers a close with the same code (RFC 6455 §5.5.1) and lets the line go.
    private func closedByPeer(_ code: CloseCode) {
        receivedClose = code
        if case .open(let id) = state {
            state = .closed
            gateway.runner.unregister(id, leaving: code.isLeaving)
        }
        if hasSentClose {
            context?.close(promise: nil)
        } else {
            close(code == .noStatus ? .normal : code, "")
        }
    }

    private func end() {
        guard context != nil else { return }
        if case .greeting(let timeout) = state { timeout.cancel() }
        if case .open(let id) = state { gateway.runner.unregister(id, leaving: false) }
        state = .closed
        context = nil
        gateway.release(self)
    }
}

extension ClientMessage {
    /// Whether this message may have the size of a session description.
    fileprivate var isDescription: Bool {
        if case .negotiate(let negotiate) = self { negotiate.description != nil } else { false }
    }
}

extension TimeAmount {
    static func nanoseconds(_ duration: Duration) -> TimeAmount {
        .milliseconds(Swift.max(1, duration.wholeMilliseconds))
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
