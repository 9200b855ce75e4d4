import Signaling
import Wire

/// The WebSocket of one of the hub's clients, which speaks the native protocol or PerchRTC's.
protocol ClientSocket: GatewayConnection, RunnerSocket, WebSocketUser {
    var gateway: Gateway { get }
    /// The WebSocket that carries the messages; nil after it is closed.
    var webSocket: WebSocketHandler? { get set }
    /// The socket's ID in the hub; nil until the client is admitted.
    var socketID: SocketID? { get }
    func end(leaving: Bool)
}

extension ClientSocket {
    // MARK: WebSocket (WebSocketUser)

    func receivedFrame(_ length: Int, on webSocket: WebSocketHandler) {
        if !gateway.countMessage(of: self, bytes: length) {
            expel(.addressOverBudget(retryAfter: .seconds(1)), .tooMany)
        }
    }

    func closedByPeer(_ code: CloseCode, on webSocket: WebSocketHandler) { end(leaving: code.isLeaving) }

    func disconnected(_ webSocket: WebSocketHandler) {
        end(leaving: false)
        self.webSocket = nil
        gateway.release(self)
    }

    // MARK: The gateway (GatewayConnection)

    func tick() { webSocket?.tick(dropAfter: gateway.configuration.connection.missedPings) }

    func goAway(_ code: CloseCode) { close(code, "The server is restarting. Try again in a moment.") }

    // MARK: The runner (RunnerSocket)

    func drop() {
        if let socketID { gateway.runner.discardHeld(for: socketID) }
        webSocket?.drop()
    }

    var queuedBytes: Int {
        let held = socketID.map { gateway.runner.heldBytes(for: $0) } ?? 0
        return held + (webSocket?.bufferedBytes ?? 0)
    }

    func queueChanged() { gateway.queueChanged(self) }

    func write(_ bytes: [UInt8]) { webSocket?.send(bytes) }

    func flush() {
        webSocket?.flush()
        queueChanged()
    }

    func close(_ code: CloseCode, _ reason: String) {
        webSocket?.close(code, reason)
        end(leaving: false)
    }
}
