import Signaling
import Wire

/// All Socket.IO connections, by id. It also creates new ones. Used only on the gateway's event loop.
final class SocketIODirectory {
    /// The owner of this directory.
    unowned let gateway: Gateway
    private var sessions: [String: SocketIOSession] = [:]
    private var handshakes = PendingHandshakes()

    init(gateway: Gateway) { self.gateway = gateway }

    func session(_ id: String) -> SocketIOSession? { sessions[id] }

    /// Called when a session gets its first transport.
    func opened(_ session: SocketIOSession) { handshakes.remove(session.id, of: session.address) }

    func forget(_ session: SocketIOSession) {
        handshakes.remove(session.id, of: session.address)
        sessions[session.id] = nil
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
        sessions[id] = session
        gateway.register(session)
        if let old = handshakes.add(id, of: address) { sessions[old]?.goAway() }
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
