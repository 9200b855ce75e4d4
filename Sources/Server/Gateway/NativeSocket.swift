import CoreMetrics
import Logging
import NIOCore
import Signaling
import Wire

/// One WebSocket of the native protocol. It turns messages into inputs for the hub and sends the hub's messages.
///
/// It enforces admission and the deadline for `hello`. The hub handles everything after that.
final class NativeSocket: ClientSocket {
    /// Legal next states: `awaitingHello` → `admitting`, `closed`; `admitting` → `open`, `closed`; `open` → `expelled`, `closed`;
    /// `expelled` → `closed`.
    private enum State {
        /// Waiting for the hello.
        case awaitingHello(timeout: Scheduled<Void>)
        /// Storage is looking up the identity. Messages received before the result wait in `early`.
        case admitting(early: [[UInt8]])
        case open(SocketID)
        /// The hub was asked to remove the client. The hub closes the socket after all earlier messages are
        /// committed. Until then, the client's messages are ignored.
        case expelled(SocketID)
        case closed
    }

    /// Maximum number of messages held while a hello is looked up. Well-behaved clients wait for `welcome`.
    private static let earlyMessages = 32

    let address: IPAddress
    /// The number of the group in which this connection is pinged. Set by `Gateway.register`.
    var group = 0
    var slot: AddressBudgets.Slot?
    var excess: Budget?
    private let origin: String?
    /// The name of the node of a cluster that the client asked for; nil if it asked for none.
    private let at: String?
    /// The request that opened the WebSocket.
    private let trace: RequestTrace?
    let gateway: Gateway
    private var state = State.closed
    var webSocket: WebSocketHandler?

    /// - Parameter trace: the request that opened the WebSocket.
    init(gateway: Gateway, address: IPAddress, origin: String?, at: String?, trace: RequestTrace? = nil) {
        (self.at, self.trace) = (at, trace)
        self.gateway = gateway
        self.address = address
        self.origin = origin
    }

    var socketID: SocketID? {
        switch state {
        case .open(let id), .expelled(let id): id
        case .awaitingHello, .admitting, .closed: nil
        }
    }

    /// A logger with the IDs of the socket and of the request that opened it. Created on demand, because most sockets
    /// never log anything.
    private var logger: Logger {
        var logger = gateway.logger
        if let trace { logger[metadataKey: "request"] = "\(trace.id)" }
        if let socketID { logger[metadataKey: "socket"] = "\(socketID.rawValue)" }
        return logger
    }

    // MARK: WebSocket (WebSocketUser)

    func opened(_ webSocket: WebSocketHandler) {
        self.webSocket = webSocket
        let socket = NIOLoopBound(self, eventLoop: gateway.eventLoop)
        let timeout = gateway.eventLoop.scheduleTask(in: .nanoseconds(gateway.configuration.limits.handshakeTimeout)) {
            let error = WireError(
                .helloTimeout, "No hello arrived in time. Send hello as soon as the connection opens.", retryable: true)
            socket.value.fail(error, .timeout)
        }
        state = .awaitingHello(timeout: timeout)
        let refusal = refusal(at: .upgrade)
        // Register even a refused socket, so that it counts against its address's limit until it is closed.
        gateway.register(self)
        if let refusal { refuse(refusal) }
    }

    func received(_ bytes: [UInt8], on webSocket: WebSocketHandler) { receive(bytes) }

    /// Closes the WebSocket with this code. A client that was admitted is removed immediately, without the grace
    /// period for resuming.
    func protocolViolation(_ code: CloseCode, _ reason: String, on webSocket: WebSocketHandler) {
        let errorCode: WireError.Code =
            switch code {
            case .tooMany: .rateLimited
            case CloseCode(rawValue: 1009): .messageTooLarge
            default: .malformed
            }
        if socketID != nil {
            expel(WireError(errorCode, reason, retryable: errorCode == .rateLimited), code)
        } else {
            close(code, reason)
        }
    }

    func end(leaving: Bool) {
        switch state {
        case .awaitingHello(let timeout): timeout.cancel()
        case .open(let id), .expelled(let id): gateway.runner.unregister(id, leaving: leaving)
        case .admitting, .closed: break
        }
        state = .closed
    }

    // MARK: Admission

    /// Returns the reason to refuse the address, or nil to admit it.
    private func refusal(at point: Gateway.AdmissionPoint) -> WireError? {
        do throws(WireError) {
            try gateway.admit(address, at: point, origin: origin)
            return nil
        } catch {
            return error
        }
    }

    /// Closes the socket with the error. A draining server sends no error message, only close code 1001, after which
    /// clients reconnect.
    private func refuse(_ error: WireError) {
        let code = Gateway.AdmissionPoint.closeCode(for: error)
        if code == .goingAway { close(code, error.message) } else { fail(error, code) }
    }

    private func handleHello(_ hello: Hello) {
        if case .awaitingHello(let timeout) = state { timeout.cancel() }
        if let refusal = refusal(at: .hello) { return refuse(refusal) }
        var generator = SystemRandomNumberGenerator()
        let guest: HelloValidator.Guest
        do throws(WireError) {
            guest = try gateway.reception.admit(hello, now: gateway.runner.wallNow, using: &generator)
        } catch {
            gateway.metrics.refusedHellos.increment()
            return fail(error, error.code.isToken ? .token : .malformed)
        }
        state = .admitting(early: [])
        if guest.newSecret == nil { lookUp(guest) } else { admit(guest, PersonRecord()) }
    }

    /// Looks up the person to whom the device's secret belongs.
    private func lookUp(_ guest: HelloValidator.Guest) {
        let socket = NIOLoopBound(self, eventLoop: gateway.eventLoop)
        let (storage, now, eventLoop, logger) = (gateway.storage, gateway.runner.wallNow, gateway.eventLoop, logger)
        let lookupStart = gateway.runner.lookupStart
        Task {
            do {
                let found = try await storage.visitor(guest.device, isVouched: guest.hello.token != nil, at: now)
                eventLoop.execute { socket.value.lookedUp(guest, found, lookupStart: lookupStart) }
            } catch {
                logger.error("Could not load a person", metadata: ["error": "\(error)"])
                eventLoop.execute { socket.value.fail(.internalError, CloseCode(rawValue: 1011)) }
            }
        }
    }

    private func lookUpAgain(_ guest: HelloValidator.Guest) {
        if case .admitting = state { lookUp(guest) }
    }

    private func lookedUp(_ guest: HelloValidator.Guest, _ found: FoundRecord?, lookupStart: LookupStart) {
        guard case .admitting = state else { return }
        let concerned = [guest.device] + (found.map { [$0.identity] } ?? [])
        if gateway.runner.isOutdated(concerned, since: lookupStart) {
            let socket = NIOLoopBound(self, eventLoop: gateway.eventLoop)
            return gateway.runner.afterCommit { socket.value.lookUpAgain(guest) }
        }
        guard let found else {
            var generator = SystemRandomNumberGenerator()
            return admit(gateway.reception.newcomer(guest.hello, using: &generator), PersonRecord())
        }
        var guest = guest
        guest.identity = Identity(id: found.identity, name: guest.identity.name)
        admit(guest, found.record, lookupStart: lookupStart)
    }

    /// Admits the client to the hub, unless its address is refused or the person or device is banned.
    ///
    /// - Parameter lookupStart: `HubRunner.lookupStart` before the lookup. The default is for newcomers, who are not
    ///   looked up.
    private func admit(_ guest: HelloValidator.Guest, _ record: PersonRecord, lookupStart: LookupStart = .init()) {
        guard case .admitting(let early) = state else { return }
        if let refusal = refusal(at: .welcome) { return refuse(refusal) }
        if let error = gateway.banError(of: guest, record) {
            gateway.metrics.refusedHellos.increment()
            return refuse(error)
        }
        let id = gateway.runner.register(self)
        state = .open(id)
        let traced = gateway.runner.traces?.opened(id, by: trace, continuing: guest.hello.traceparent)
        logger.debug("Socket open", metadata: metadata(of: guest.hello, traced))
        gateway.runner.submit(
            Arrival(
                socket: id, identity: guest.identity, newIdentitySecret: guest.newSecret, record: record,
                resume: guest.hello.resume, address: gateway.limitingText(address), name: guest.hello.name,
                device: guest.device, at: at, showsWarnings: guest.hello.warnings ?? false
            ),
            lookupStart: lookupStart
        )
        for bytes in early { receive(bytes) }
    }

    /// What is logged about a socket that opens. Called only if the line is logged.
    ///
    /// - Parameter traced: the trace to which the socket belongs; nil if that is not recorded.
    private func metadata(of hello: Hello, _ traced: TraceID?) -> Logger.Metadata {
        var metadata: Logger.Metadata = ["address": "\(address)", "client": "\(hello.client ?? "-")"]
        if let traced, traced != trace?.id { metadata["trace"] = "\(traced)" }
        return metadata
    }

    // MARK: Messages

    private func receive(_ bytes: [UInt8]) {
        gateway.metrics.received.increment()
        if case .admitting(var early) = state {
            let waiting = early.reduce(bytes.count) { $0 + $1.count }
            guard early.count < Self.earlyMessages, waiting <= gateway.configuration.rules.messageSize else {
                let error = WireError(
                    .rateLimited, "Too many messages before welcome. Wait for it, then send more.", retryable: true)
                return fail(error, .tooMany)
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
        if bytes.count > gateway.configuration.rules.messageSize, !envelope.message.isDescription { return tooLarge() }
        switch state {
        case .awaitingHello:
            guard case .hello(let hello) = envelope.message else {
                return fail(WireError(.helloExpected, "Send hello first."), .malformed)
            }
            handleHello(hello)
        case .open(let id): gateway.runner.submit(.message(id, envelope))
        case .admitting, .expelled, .closed: break
        }
    }

    private func unreadable(_ message: UnreadableMessage, _ bytes: [UInt8]) {
        gateway.metrics.malformed.increment()
        guard String(validating: bytes, as: UTF8.self) != nil else {
            guard let webSocket else { return }
            return protocolViolation(CloseCode(rawValue: 1007), "The message is not valid UTF-8.", on: webSocket)
        }
        if bytes.count > gateway.configuration.rules.messageSize { return tooLarge() }
        switch state {
        case .awaitingHello:
            let isMalformed = message.error.code == .malformed
            let error = isMalformed ? message.error : WireError(.helloExpected, "Send hello first.")
            fail(error, .malformed)
        case .open(let id): gateway.runner.submit(.unreadable(id, message))
        case .admitting, .expelled, .closed: break
        }
    }

    private func tooLarge() {
        let limit = gateway.configuration.rules.messageSize
        expel(WireError(.messageTooLarge, "The message is too large. Send at most \(limit) bytes."), .tooLarge)
    }

    /// Closes the socket with a reason. If the client was admitted, it also leaves its sessions, match and calls.
    func expel(_ error: WireError, _ code: CloseCode) {
        switch state {
        case .open(let id):
            state = .expelled(id)
            gateway.runner.submit(.expel(id, error, code))
        case .expelled: break
        case .awaitingHello, .admitting, .closed: fail(error, code)
        }
    }

    private var isStorageCongested: Bool {
        socketID.map { gateway.runner.isCongested($0) } ?? false
    }

    var isCongested: Bool { isStorageCongested || gateway.isOverBudget(self) }

    func pause(_ reader: any PausedReader) {
        if isStorageCongested { gateway.runner.pause(reader) } else { gateway.pause(reader, of: self) }
    }

    /// Sends the error, then closes.
    private func fail(_ error: WireError, _ code: CloseCode) {
        webSocket?.send(ServerMessage.error(.init(error)).encode())
        close(code, error.code.rawValue)
    }
}

extension ClientMessage {
    /// True if this message may be as large as a session description.
    fileprivate var isDescription: Bool {
        switch self {
        case .session(.negotiate(let negotiate)): negotiate.description != nil
        case .media(.offer): true
        default: false
        }
    }
}

extension TimeAmount {
    static func nanoseconds(_ duration: Duration) -> TimeAmount {
        .milliseconds(Swift.max(1, duration.wholeMilliseconds))
    }
}
