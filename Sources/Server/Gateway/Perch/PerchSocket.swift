import CoreMetrics
import Logging
import NIOCore
import Signaling
import Wire

/// One WebSocket of PerchRTC's protocol. It turns messages into inputs for the hub and sends the hub's messages.
final class PerchSocket: ClientSocket {
    /// Legal next states: `new` → `open`; `open` → `expelled`, `closed`; `expelled` → `closed`.
    private enum State {
        case new
        case open(SocketID)
        /// The hub was asked to remove the client. The hub then closes the socket.
        case expelled(SocketID)
        case closed
    }

    let address: IPAddress
    /// The number of the group in which this connection is pinged. Set by `Gateway.register`.
    var group = 0
    var slot: AddressBudgets.Slot?
    var excess: Budget?
    let gateway: Gateway
    private let place: PerchPlace
    private var state = State.new
    var webSocket: WebSocketHandler?

    init(gateway: Gateway, address: IPAddress, place: PerchPlace) {
        (self.gateway, self.address, self.place) = (gateway, address, place)
    }

    var socketID: SocketID? {
        switch state {
        case .open(let id), .expelled(let id): id
        case .new, .closed: nil
        }
    }

    // MARK: WebSocket (WebSocketUser)

    func opened(_ webSocket: WebSocketHandler) {
        self.webSocket = webSocket
        gateway.register(self)
        let id = gateway.runner.register(self)
        state = .open(id)
        gateway.logger.debug(
            "PerchRTC socket open",
            metadata: [
                "socket": "\(id.rawValue)", "address": "\(address)",
                "request": "\(webSocket.request.map(\.description) ?? "-")",
            ])
        gateway.runner.submit(
            .perchArrived(PerchArrival(socket: id, address: gateway.limitingText(address), place: place)))
    }

    func received(_ bytes: [UInt8], on webSocket: WebSocketHandler) {
        gateway.metrics.received.increment()
        guard case .open(let id) = state else { return }
        guard String(validating: bytes, as: UTF8.self) != nil else {
            return protocolViolation(CloseCode(rawValue: 1007), "The message is not valid UTF-8.", on: webSocket)
        }
        var request = PerchRequest.unreadable
        do throws(WireError) {
            request = try PerchRequest(parsing: bytes, place.envelope)
        } catch {
            gateway.metrics.malformed.increment()
        }
        let limit = gateway.configuration.rules.messageSize
        guard bytes.count <= limit || request.isDescription else {
            let error = WireError(.messageTooLarge, "The message is too large. Send at most \(limit) bytes.")
            return expel(error, .tooLarge)
        }
        gateway.runner.submit(.perch(id, request))
    }

    func protocolViolation(_ code: CloseCode, _ reason: String, on webSocket: WebSocketHandler) {
        close(code, reason)
    }

    func end(leaving: Bool) {
        if let socketID { gateway.runner.unregister(socketID, leaving: leaving) }
        state = .closed
    }

    // MARK: The gateway (GatewayConnection)

    func expel(_ error: WireError, _ code: CloseCode) {
        guard case .open(let id) = state else { return }
        state = .expelled(id)
        gateway.runner.submit(.expel(id, error, code))
    }

    var isCongested: Bool { gateway.isOverBudget(self) }

    func pause(_ reader: any PausedReader) { gateway.pause(reader, of: self) }
}

extension PerchRequest {
    /// Whether this message may be as large as a session description.
    fileprivate var isDescription: Bool {
        guard case .signal(let signal, to: _) = self else { return false }
        switch signal.content {
        case .offer, .answer: return true
        case .candidate, .bye: return false
        }
    }
}
