import Signaling
import Wire

/// Stores all Socket.IO connections, keyed by id, and creates new ones. Used only on the gateway's event loop.
final class SocketIODirectory {
    let gateway: Gateway
    private var sessions: [String: SocketIOSession] = [:]
    /// The connections whose state a client can recover, keyed by the secret for it.
    private var recoverable: [String: SocketIOSession] = [:]
    private var handshakes = PendingHandshakes()

    init(gateway: Gateway) { self.gateway = gateway }

    /// Returns a connection of Socket.IO 0.9.
    func session(_ id: String) -> SocketIOSession? { sessions[id].flatMap { $0.engine == nil ? $0 : nil } }

    /// Returns a connection of Engine.IO that uses a transport.
    func engineSession(_ id: String) -> SocketIOSession? {
        sessions[id].flatMap { $0.engine == nil || $0.engine?.acceptsUpgrade == .unknown ? nil : $0 }
    }

    func session(recovering pid: String) -> SocketIOSession? { recoverable[pid] }

    func offerRecovery(_ pid: String, of session: SocketIOSession) { recoverable[pid] = session }

    func forgetRecovery(of session: SocketIOSession) {
        if let pid = session.engine?.pid, recoverable[pid] === session { recoverable[pid] = nil }
    }

    /// Admits a request from a connection's client. If the client is now in another address block, its connection
    /// moves to that block.
    ///
    /// - Parameter moves: false if the request does not show the client's current address.
    /// - Returns: nil if there is no such connection.
    func session(_ id: String, from address: IPAddress, moves: Bool) throws(WireError) -> SocketIOSession? {
        try gateway.admit(address, at: .transport)
        return try moved(session(id), to: moves ? address : nil)
    }

    /// Moves a connection to an address.
    ///
    /// - Parameter address: the client's current address; nil if it is not known.
    /// - Returns: nil if there is no such connection.
    func moved(_ session: SocketIOSession?, to address: IPAddress?) throws(WireError) -> SocketIOSession? {
        guard let address, let session, session.address.limitingBlock != address.limitingBlock else {
            return session
        }
        let id = session.id
        guard gateway.hasRoom(for: address) else { throw Gateway.AdmissionPoint.transport.tooManyConnections }
        // Move the pending handshake too: a client that has not connected a transport counts as a handshake of its
        // address.
        if !session.hasOpened { handshakes.remove(id, of: session.address) }
        session.move(to: address)
        // Look the connection up again: moving ends it if too much data is queued for the new address.
        guard sessions[id] === session else { return nil }
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
        let id = newID()
        add(SocketIOSession(id: id, address: address, directory: self))
        return handshakeBody(id)
    }

    private func newID() -> String {
        var generator = SystemRandomNumberGenerator()
        return gateway.idPrefix + gateway.reception.socketIOID(using: &generator)
    }

    private func add(_ session: SocketIOSession) {
        sessions[session.id] = session
        gateway.register(session)
        if let old = handshakes.add(session.id, of: session.address) { sessions[old]?.goAway(.goingAway) }
    }

    /// Creates a connection of Engine.IO. The caller has admitted the client.
    func open(
        _ version: EngineIOVersion, _ transport: EngineIOConnection.Transport, canRecover: Bool,
        from address: IPAddress
    ) -> SocketIOSession {
        let names = EngineIOConnection.Names(id: newID(), sid: newID(), pid: canRecover ? newID() : nil)
        let connection = EngineIOConnection(
            version, transport, names: names, settings: SocketIOConnection.Settings(gateway.configuration),
            now: gateway.runner.now)
        let session = SocketIOSession(id: names.id, connection, address: address, directory: self)
        add(session)
        return session
    }

    /// Returns the user of a WebSocket whose handshake the endpoint has accepted; nil if the connection has ended since.
    func user(of request: EngineIORequest, from address: IPAddress) -> SocketIOSession? {
        guard case .upgrade(let id, let version) = request.action else { return nil }
        guard let id else { return open(version, .webSocket, canRecover: request.canRecover, from: address) }
        guard let session = engineSession(id), session.engine?.acceptsUpgrade == .accepted else { return nil }
        return session
    }

    /// Returns `id:heartbeat timeout:close timeout:transports`, in whole seconds. The Python client requires both numbers.
    private func handshakeBody(_ id: String) -> String {
        let times = gateway.configuration.socketIO
        let seconds = { (duration: Duration) in max(1, duration.wholeMilliseconds / 1000) }
        let transports = SocketIOConnection.Transport.allCases.map(\.rawValue).joined(separator: ",")
        return "\(id):\(seconds(times.heartbeatTimeout)):\(seconds(times.closeTimeout)):\(transports)"
    }
}
