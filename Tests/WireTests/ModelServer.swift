import TestSupport
import Wire

/// A minimal server for numbering and resuming. It consists of a `Link`, a secret and a grace period.
final class ModelServer {
    final class Client {
        let id: ConnectionID
        var link: Link
        var secret: String
        var previousSecret: String?
        var socket: Int
        var told = 0
        /// The time when the most recent frame was received.
        var heardAt: Timestamp

        init(id: ConnectionID, link: Link, secret: String, socket: Int, now: Timestamp) {
            (self.id, self.link, self.secret, self.socket, heardAt) = (id, link, secret, socket, now)
        }
    }

    private static let grace = Duration.seconds(30)

    var bounds = Link.Bounds()
    /// The number of times that each request was executed.
    private(set) var performed: [String: Int] = [:]
    private var clients: [Client] = []
    private var requests: [(Client, UInt64, String)] = []
    private var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    func told(_ id: ConnectionID) -> Int? { clients.first { $0.id == id }?.told }

    func takeRequests() -> [(Client, UInt64, String)] {
        defer { requests = [] }
        return requests
    }

    /// - Returns: the client's fault, if any.
    func receive(
        _ envelope: Envelope<ClientMessage>, on socket: Int, now: Timestamp, send: ([UInt8]) -> Void
    ) -> String? {
        let present = clients.first { $0.socket == socket }
        if case .hello(let hello) = envelope.message {
            if present == nil { greet(hello, on: socket, now, send) }
            return nil
        }
        guard let client = present else { return nil }
        (client.heardAt, client.previousSecret) = (now, nil)
        if let ack = envelope.ack { client.link.acknowledged(upTo: ack) }
        guard let seq = envelope.seq else {
            if envelope.message == .ping { send(ServerMessage.pong.encode(ack: client.link.acknowledge())) }
            return nil
        }
        switch client.link.receive(seq: seq) {
        case .duplicate: return nil
        case .gap: return "request \(seq) came after \(client.link.received)"
        case .deliver: break
        }
        guard case .presence(.appear(let appearance)) = envelope.message, let name = appearance.name else {
            return "a request that was never made: \(envelope)"
        }
        performed[name, default: 0] += 1
        requests.append((client, seq, name))
        return performed[name] == 1 ? nil : "request \(name) was performed twice"
    }

    private func greet(_ hello: Hello, on socket: Int, _ now: Timestamp, _ send: ([UInt8]) -> Void) {
        var welcome = Welcome()
        let secret = "\(random.next())"
        welcome.resume = .init(secret: secret, grace: Self.grace)
        if let claim = hello.resume {
            let client = clients.first { $0.secret == claim.secret || $0.previousSecret == claim.secret }
            if let client, now - client.heardAt < Self.grace, let missing = client.link.replay(after: claim.received) {
                (client.previousSecret, client.secret, client.socket) = (claim.secret, secret, socket)
                client.heardAt = now
                (welcome.connection, welcome.resumed, welcome.received) = (client.id, true, client.link.received)
                send(ServerMessage.welcome(welcome).encode())
                for bytes in missing { send(bytes) }
                return
            }
            client?.socket = -1
            client?.secret = ""
            send(ServerMessage.error(ServerMessage.Failure(WireError(.resumeFailed, "A fresh start."))).encode())
        }
        let id = ConnectionID.random(using: &random)
        clients.append(Client(id: id, link: Link(bounds: bounds), secret: secret, socket: socket, now: now))
        welcome.connection = id
        send(ServerMessage.welcome(welcome).encode())
    }

    func leave(_ socket: Int) { clients.removeAll { $0.socket == socket } }

    func answer(_ client: Client, _ re: UInt64, _ name: String, _ send: (Int, [UInt8]) -> Void) {
        var own = PresenceNotice.Own()
        (own.re, own.name) = (re, name)
        deliver(.presence(.own(own)), to: client, send)
    }

    /// Sends an event to every client.
    func pushAll(_ send: (Int, [UInt8]) -> Void) {
        for client in clients where client.socket >= 0 {
            client.told += 1
            var own = PresenceNotice.Own()
            own.name = "\(client.id)/\(client.told)"
            deliver(.presence(.own(own)), to: client, send)
        }
    }

    private func deliver(_ message: ServerMessage, to client: Client, _ send: (Int, [UInt8]) -> Void) {
        let bytes = client.link.send { message.encode(seq: $0, ack: $1) }
        if client.socket >= 0 { send(client.socket, bytes) }
    }
}
