import CoreMetrics
import Logging
import NIOCore
import Signaling
import Wire

/// One WebSocket of our own protocol: messages in, inputs to the hub; effects out, messages. What it decides is who is let
/// in and by when the hello is due, nothing about what is said afterwards.
final class NativeSocket: GatewayConnection, RunnerSocket, WebSocketUser {
    /// Legal next states: `greeting` → `admitting`, `closed`; `admitting` → `open`, `closed`; `open` → `closed`.
    private enum State {
        /// Waiting for the hello.
        case greeting(timeout: Scheduled<Void>)
        /// Storage is asked about somebody; what he says meanwhile waits.
        case admitting(early: [[UInt8]])
        case open(SocketID)
        case closed
    }

    /// Messages kept while storage answers a hello. A client that says more before its welcome is not one of ours.
    private static let earlyMessages = 32

    let address: IPAddress
    /// Which of the gateway's groups this socket is pinged with.
    var group = 0
    private let origin: String?
    private let gateway: Gateway
    private var state = State.closed
    /// Until the line is gone.
    private var webSocket: WebSocketHandler?

    init(gateway: Gateway, address: IPAddress, origin: String?) {
        self.gateway = gateway
        self.address = address
        self.origin = origin
    }

    /// With the socket's number; made when there is something to say, since most sockets never have.
    private var logger: Logger {
        var logger = gateway.logger
        if case .open(let id) = state { logger[metadataKey: "socket"] = "\(id.rawValue)" }
        return logger
    }

    // MARK: WebSocket (WebSocketUser)

    func opened(_ webSocket: WebSocketHandler) {
        self.webSocket = webSocket
        let socket = NIOLoopBound(self, eventLoop: gateway.eventLoop)
        let timeout = gateway.eventLoop.scheduleTask(in: .nanoseconds(gateway.configuration.limits.handshakeTimeout)) {
            socket.value.fail(WireError(.helloTimeout, "Say hello first.", retryable: true), .timeout)
        }
        state = .greeting(timeout: timeout)
        let refusal = refusal(at: .upgrade)
        // A refused socket counts for its address until it is closed.
        gateway.register(self)
        if let refusal { refuse(refusal) }
    }

    func received(_ bytes: [UInt8], on webSocket: WebSocketHandler) { receive(bytes) }

    func showedLife(on webSocket: WebSocketHandler) {}

    /// It is gone at once rather than dropped.
    func violated(_ code: CloseCode, _ reason: String, on webSocket: WebSocketHandler) {
        let errorCode: WireError.Code =
            switch code {
            case .tooMany: .rateLimited
            case CloseCode(rawValue: 1009): .messageTooLarge
            default: .malformed
            }
        if case .open(let id) = state {
            let error = WireError(errorCode, reason, retryable: errorCode == .rateLimited)
            gateway.runner.submit(.expel(id, error, code))
        } else {
            close(code, reason)
        }
    }

    func closedByPeer(_ code: CloseCode, on webSocket: WebSocketHandler) { end(leaving: code.isLeaving) }

    func broke(_ webSocket: WebSocketHandler) {
        end(leaving: false)
        self.webSocket = nil
        gateway.release(self)
    }

    private func end(leaving: Bool) {
        switch state {
        case .greeting(let timeout): timeout.cancel()
        case .open(let id): gateway.runner.unregister(id, leaving: leaving)
        case .admitting, .closed: break
        }
        state = .closed
    }

    // MARK: Admission

    /// Why the address may not come in now; nil if it may.
    private func refusal(at door: Gateway.Door) -> WireError? {
        do throws(WireError) {
            try gateway.admit(address, at: door, origin: origin)
            return nil
        } catch {
            return error
        }
    }

    /// Clients reconnect after 1001 on their own: a restarting server needs no message.
    private func refuse(_ error: WireError) {
        switch error.code {
        case .draining: close(.goingAway, error.message)
        case .rateLimited, .tooManyConnections: fail(error, .tooMany)
        default: fail(error, .forbidden)
        }
    }

    private func greet(_ hello: Hello) {
        if case .greeting(let timeout) = state { timeout.cancel() }
        if let refusal = refusal(at: .hello) { return refuse(refusal) }
        var generator = SystemRandomNumberGenerator()
        let guest: Reception.Guest
        do throws(WireError) {
            guest = try gateway.reception.admit(hello, now: gateway.runner.now, using: &generator)
        } catch {
            gateway.metrics.refusedHellos.increment()
            return fail(error, error.code.isToken ? .token : .malformed)
        }
        state = .admitting(early: [])
        if guest.newSecret == nil { lookUp(guest) } else { admit(guest, PersonRecord()) }
    }

    /// Asks storage who comes with this secret.
    private func lookUp(_ guest: Reception.Guest) {
        let socket = NIOLoopBound(self, eventLoop: gateway.eventLoop)
        let (storage, now, eventLoop, logger) = (gateway.storage, gateway.runner.now, gateway.eventLoop, logger)
        let asked = gateway.runner.identityChanges.number
        Task {
            do {
                let found = try await storage.visitor(guest.device, isVouched: guest.hello.token != nil, at: now)
                eventLoop.execute { socket.value.lookedUp(guest, found, asked: asked) }
            } catch {
                logger.error("A person could not be loaded", metadata: ["error": "\(error)"])
                let sorry = WireError(.internalError, "The server has a problem; try again soon.", retryable: true)
                eventLoop.execute { socket.value.fail(sorry, CloseCode(rawValue: 1011)) }
            }
        }
    }

    private func lookedUp(_ guest: Reception.Guest, _ found: FoundRecord?, asked: UInt64) {
        guard case .admitting = state else { return }
        let concerned = [guest.device] + (found.map { [$0.identity] } ?? [])
        if gateway.runner.identityChanges.concern(concerned, since: asked) { return lookUp(guest) }
        guard let found else {
            var generator = SystemRandomNumberGenerator()
            return admit(gateway.reception.newcomer(guest.hello, using: &generator), PersonRecord())
        }
        var guest = guest
        guest.identity = Identity(id: found.identity, name: guest.identity.name)
        admit(guest, found.record, asked: asked)
    }

    /// - Parameter asked: when storage was, in changes; nothing is asked about newcomers.
    private func admit(_ guest: Reception.Guest, _ record: PersonRecord, asked: UInt64 = .max) {
        guard case .admitting(let early) = state else { return }
        if let refusal = refusal(at: .welcome) { return refuse(refusal) }
        let ban = record.ban ?? gateway.ban(of: guest.identity.id) ?? gateway.ban(of: guest.device)
        if let ban, ban.isActive(at: gateway.runner.now) {
            gateway.metrics.refusedHellos.increment()
            return fail(.banned(ban, now: gateway.runner.now), .forbidden)
        }
        let id = gateway.runner.register(self)
        state = .open(id)
        logger.debug("Socket open", metadata: ["address": "\(address)", "client": "\(guest.hello.client ?? "-")"])
        gateway.runner.submit(
            Arrival(
                socket: id, identity: guest.identity, newIdentitySecret: guest.newSecret, record: record,
                resume: guest.hello.resume, address: gateway.limitingText(address), name: guest.hello.name,
                device: guest.device
            ),
            asked: asked
        )
        for bytes in early { receive(bytes) }
    }

    // MARK: Messages

    private func receive(_ bytes: [UInt8]) {
        gateway.metrics.received.increment()
        if case .admitting(var early) = state {
            let waiting = early.reduce(bytes.count) { $0 + $1.count }
            guard early.count < Self.earlyMessages, waiting <= gateway.configuration.rules.messageSize else {
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
        if bytes.count > gateway.configuration.rules.messageSize, !envelope.message.isDescription { return tooLarge() }
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
            return webSocket.map { violated(CloseCode(rawValue: 1007), "the message is not UTF-8", on: $0) } ?? ()
        }
        if bytes.count > gateway.configuration.rules.messageSize { return tooLarge() }
        switch state {
        case .greeting:
            let error = message.error.code == .malformed ? message.error : WireError(.helloExpected, "Say hello first.")
            fail(error, .malformed)
        case .open(let id): gateway.runner.submit(.unreadable(id, message))
        case .admitting, .closed: break
        }
    }

    private func tooLarge() {
        let most = gateway.configuration.rules.messageSize
        expel(WireError(.messageTooLarge, "A message has at most \(most) bytes; send less."), .tooLarge)
    }

    /// Out, with a reason; whoever said hello is gone from everywhere else as well.
    func expel(_ error: WireError, _ code: CloseCode) {
        guard case .open(let id) = state else { return fail(error, code) }
        gateway.runner.submit(.expel(id, error, code))
    }

    func tick() { webSocket?.tick(dropAfter: gateway.configuration.connection.missedPings) }

    func goAway() { close(.goingAway, "The server is restarting.") }

    // MARK: The runner (RunnerSocket)

    func write(_ bytes: [UInt8]) { webSocket?.send(bytes) }

    func flush() { webSocket?.flush() }

    func close(_ code: CloseCode, _ reason: String) {
        webSocket?.close(code, reason)
        end(leaving: false)
    }

    /// Says why, then closes.
    private func fail(_ error: WireError, _ code: CloseCode) {
        webSocket?.send(ServerMessage.error(.init(error)).encode())
        close(code, error.code.rawValue)
    }
}

extension ClientMessage {
    /// Whether this message may have the size of a session description.
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
