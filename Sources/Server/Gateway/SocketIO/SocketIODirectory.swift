import Signaling
import Wire

/// Stores all Socket.IO connections, keyed by id, and creates new ones. Used only on the gateway's event loop.
final class SocketIODirectory {
    let gateway: Gateway
    private var sessions: [String: SocketIOSession] = [:]
    private var handshakes = PendingHandshakes()

    init(gateway: Gateway) { self.gateway = gateway }

    func session(_ id: String) -> SocketIOSession? { sessions[id] }

    /// Admits a request from a connection's client. If the client is now in another address block, its connection
    /// moves to that block.
    ///
    /// - Parameter moves: false if the request does not show the client's current address.
    /// - Returns: nil if there is no such connection.
    func session(_ id: String, from address: IPAddress, moves: Bool) throws(WireError) -> SocketIOSession? {
        try gateway.admit(address, at: .transport)
        guard moves, let session = sessions[id], session.address.limitingBlock != address.limitingBlock else {
            return sessions[id]
        }
        guard gateway.hasRoom(for: address) else { throw Gateway.AdmissionPoint.transport.tooManyConnections }
        // Move the pending handshake too: a client that has not connected a transport counts as a handshake of its
        // address.
        if !session.hasOpened { handshakes.remove(id, of: session.address) }
        session.move(to: address)
        // Look the connection up again: moving ends it if too much data is queued for the new address.
        guard sessions[id] != nil else { return nil }
        if !session.hasOpened { _ = handshakes.add(id, of: address) }
        return session
    }

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
        let session = SocketIOSession(id: id, address: address, directory: self)
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
