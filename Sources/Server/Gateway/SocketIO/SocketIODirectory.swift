import DequeModule
import Signaling
import Wire

/// The Socket.IO connections there are, by the id their clients know; makes new ones. On the gateway's event loop only.
final class SocketIODirectory {
    enum Handshake {
        case accepted(String)
        /// With an HTTP status, and a sentence.
        case refused(Int, WireError)
    }

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

    /// A place for one more connection, or why not.
    func handshake(from address: IPAddress) -> Handshake {
        if gateway.isDraining {
            return .refused(503, WireError("draining", "The server is restarting; try again.", retryable: true))
        }
        if let ban = gateway.ban(of: address) { return .refused(403, .banned(ban, now: gateway.runner.now)) }
        if let wait = gateway.isGreetingTooOften(address) {
            let error = WireError(
                .rateLimited, "Too many visits from your network; wait a little.", retryable: true, retryAfter: wait
            )
            return .refused(503, error)
        }
        guard gateway.hasRoom(for: address) else {
            return .refused(
                503, WireError(.tooManyConnections, "Too many connections; close some tabs.", retryable: true))
        }
        var generator = SystemRandomNumberGenerator()
        let id = gateway.reception.socketIOID(using: &generator)
        let session = SocketIOSession(id: id, address: address, gateway: gateway)
        // Whoever made so many keeps nobody else out: the oldest goes.
        if handshakes >= Self.mostHandshakes { forgetOldest() }
        sessions[id] = session
        order.append(id)
        handshakes += 1
        gateway.register(session)
        return .accepted(line(id))
    }

    /// `id:heartbeat timeout:close timeout:transports`, in whole seconds. Python's client needs a number in both.
    private func line(_ id: String) -> String {
        let settings = gateway.settings.socketIO
        let seconds = { (duration: Duration) in max(1, duration.wholeMilliseconds / 1000) }
        let transports = SocketIOConnection.Transport.allCases.map(\.rawValue).joined(separator: ",")
        return "\(id):\(seconds(settings.heartbeatTimeout)):\(seconds(settings.closeTimeout)):\(transports)"
    }
}
