import DequeModule
import Signaling
import Wire

/// All Socket.IO connections, by id. It also creates new ones. Used only on the gateway's event loop.
final class SocketIODirectory {
    /// Maximum number of unused handshakes, over all addresses.
    private static let maxHandshakes = 10_000

    /// The owner of this directory.
    unowned let gateway: Gateway
    private var sessions: [String: SocketIOSession] = [:]
    /// Number of handshakes whose clients have not connected a transport yet.
    private var handshakes = 0
    /// Ids of handshakes in order of creation. Some may already have a transport or be gone.
    private var order: Deque<String> = []

    init(gateway: Gateway) { self.gateway = gateway }

    func session(_ id: String) -> SocketIOSession? { sessions[id] }

    private func removeOldestHandshake() {
        while let id = order.popFirst() {
            if let session = sessions[id], !session.hasOpened { return session.goAway() }
        }
    }

    /// Called when a session gets its first transport.
    func opened(_ session: SocketIOSession) { handshakes -= 1 }

    func forget(_ session: SocketIOSession, wasHandshake: Bool) {
        if wasHandshake { handshakes -= 1 }
        sessions[session.id] = nil
        while let first = order.first, sessions[first]?.hasOpened ?? true { order.removeFirst() }
        gateway.release(session)
    }

    /// Creates a connection that waits for its first transport.
    ///
    /// - Returns: The body of the handshake's response.
    func handshake(from address: IPAddress) throws(WireError) -> String {
        try gateway.admit(address, at: .handshake)
        var generator = SystemRandomNumberGenerator()
        let id = gateway.reception.socketIOID(using: &generator)
        let session = SocketIOSession(id: id, address: address, gateway: gateway)
        // Remove the oldest handshake, so that a flood of them cannot lock out other clients.
        if handshakes >= Self.maxHandshakes { removeOldestHandshake() }
        sessions[id] = session
        order.append(id)
        handshakes += 1
        gateway.register(session)
        return handshakeBody(id)
    }

    /// Returns `id:heartbeat timeout:close timeout:transports`, in whole seconds. The Python client requires both numbers.
    private func handshakeBody(_ id: String) -> String {
        let times = gateway.configuration.socketIO
        let seconds = { (duration: Duration) in max(1, duration.wholeMilliseconds / 1000) }
        let transports = SocketIOConnection.Transport.allCases.map(\.rawValue).joined(separator: ",")
        return "\(id):\(seconds(times.heartbeatTimeout)):\(seconds(times.closeTimeout)):\(transports)"
    }
}
