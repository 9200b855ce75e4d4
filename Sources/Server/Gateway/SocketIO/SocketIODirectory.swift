import DequeModule
import Signaling
import Wire

/// The Socket.IO connections there are, by the id their clients know; makes new ones. On the gateway's event loop only.
final class SocketIODirectory {
    /// Ids given out and not used yet, from everywhere together.
    private static let mostHandshakes = 10_000

    /// Set by the gateway that owns this.
    unowned let gateway: Gateway
    private var sessions: [String: SocketIOSession] = [:]
    /// How many of them were never used.
    private var handshakes = 0
    /// In the order they were made, with some used ones among them.
    private var order: Deque<String> = []

    init(gateway: Gateway) { self.gateway = gateway }

    func session(_ id: String) -> SocketIOSession? { sessions[id] }

    private func forgetOldest() {
        while let id = order.popFirst() {
            if let session = sessions[id], !session.hasOpened { return session.goAway() }
        }
    }

    /// It is a handshake no longer.
    func opened(_ session: SocketIOSession) { handshakes -= 1 }

    func forget(_ session: SocketIOSession, wasHandshake: Bool) {
        if wasHandshake { handshakes -= 1 }
        sessions[session.id] = nil
        while let first = order.first, sessions[first]?.hasOpened ?? true { order.removeFirst() }
        gateway.release(session)
    }

    /// Makes a connection that waits for its first transport.
    ///
    /// - Returns: the handshake's answer.
    func handshake(from address: IPAddress) throws(WireError) -> String {
        try gateway.admit(address, at: .handshake)
        var generator = SystemRandomNumberGenerator()
        let id = gateway.reception.socketIOID(using: &generator)
        let session = SocketIOSession(id: id, address: address, gateway: gateway)
        // Whoever made so many keeps nobody else out: the oldest goes.
        if handshakes >= Self.mostHandshakes { forgetOldest() }
        sessions[id] = session
        order.append(id)
        handshakes += 1
        gateway.register(session)
        return line(id)
    }

    /// `id:heartbeat timeout:close timeout:transports`, in whole seconds. Python's client needs a number in both.
    private func line(_ id: String) -> String {
        let times = gateway.configuration.socketIO
        let seconds = { (duration: Duration) in max(1, duration.wholeMilliseconds / 1000) }
        let transports = SocketIOConnection.Transport.allCases.map(\.rawValue).joined(separator: ",")
        return "\(id):\(seconds(times.heartbeatTimeout)):\(seconds(times.closeTimeout)):\(transports)"
    }
}
