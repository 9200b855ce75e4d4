import Foundation
import TestSupport
import Wire

@testable import Confab

/// A network, a clock and a model of a server in simulated time. One seed determines everything. Sockets break, frames are
/// delayed and duplicated, the whole network fails for a while, and the server restarts.
///
/// Clients may use several threads, but then a seed no longer determines everything: their order is the scheduler's choice. One
/// thread at a time runs the network. It is `@unchecked Sendable` because of its lock, under which no client is called.
final class SimulatedNetwork: Transport, SignalClock, @unchecked Sendable {
    private enum Happening {
        case timer(Int)
        case opened(Int)
        case noticed(Int)
        case toServer(Int, [UInt8])
        case toClient(Int, [UInt8])
        case restart
        case outage(until: Timestamp)
        case work(() -> Void)
    }

    final class Socket: TransportSocket, @unchecked Sendable {
        let number: Int
        let network: SimulatedNetwork
        let report: @Sendable (SocketEvent) -> Void
        var isBroken = false
        var isClosed = false
        var lastArrival: (atServer: Timestamp, atClient: Timestamp)

        init(_ number: Int, _ network: SimulatedNetwork, _ report: @escaping @Sendable (SocketEvent) -> Void) {
            (self.number, self.network, self.report) = (number, network, report)
            lastArrival = (network.now, network.now)
        }

        func send(_ text: [UInt8]) { network.transmit(text, from: self) }
        func close(_ code: CloseCode) {
            network.lock.withLock {
                isClosed = true
                if code == .normal { network.server.leave(number) }
            }
        }
    }

    fileprivate let lock = NSRecursiveLock()
    private var time = Timestamp(milliseconds: 1_000_000)
    var now: Timestamp { lock.withLock { time } }
    private var agenda: [(at: Timestamp, happening: Happening)] = []
    private var timers: [Int: @Sendable () -> Void] = [:]
    private var timerCount = 0
    private var sockets: [Socket] = []
    private(set) var server: SimulatedServer
    private var random: SeededGenerator
    /// Per thousand frames.
    var breaks = 15
    var duplicates = 20
    private(set) var restarts = 0
    private var outageEnd = Timestamp(milliseconds: 0)
    private(set) var cuts = 0

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        server = SimulatedServer(seed: random.next())
    }

    var dependencies: Dependencies {
        lock.withLock { Dependencies(transport: self, clock: self, random: SeededGenerator(seed: random.next())) }
    }

    // MARK: Time

    func schedule(at time: Timestamp, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        lock.withLock {
            timerCount += 1
            let number = timerCount
            timers[number] = body
            plan(.timer(number), at: max(time, now))
            return { self.lock.withLock { self.timers[number] = nil } }
        }
    }

    func perform(in range: ClosedRange<Int>, _ work: @escaping () -> Void) { plan(.work(work), at: later(range)) }

    func restartServer(in range: ClosedRange<Int>) { plan(.restart, at: later(range)) }

    /// Plans a time during which no frame arrives and no socket opens.
    func fail(in range: ClosedRange<Int>, for length: ClosedRange<Int>) {
        lock.withLock {
            let start = later(range)
            plan(.outage(until: start + .milliseconds(Int.random(in: length, using: &random))), at: start)
        }
    }

    func run(for duration: Duration) {
        let end = now + duration
        while let happening = next(until: end) { happen(happening) }
        lock.withLock { time = max(time, end) }
    }

    private func next(until end: Timestamp) -> Happening? {
        lock.withLock {
            guard let first = agenda.first, first.at <= end else { return nil }
            time = max(time, first.at)
            return agenda.removeFirst().happening
        }
    }

    private func later(_ range: ClosedRange<Int>) -> Timestamp {
        lock.withLock { time + .milliseconds(Int.random(in: range, using: &random)) }
    }

    private func plan(_ happening: Happening, at time: Timestamp) {
        lock.withLock {
            let place = agenda.lastIndex { $0.at <= time }.map { $0 + 1 } ?? 0
            agenda.insert((time, happening), at: place)
        }
    }

    func isOneOf(_ perThousand: Int) -> Bool {
        lock.withLock { Int.random(in: 0..<1000, using: &random) < perThousand }
    }

    // MARK: Documents

    /// What the next downloads get, and what they asked for.
    var answer: Result<HTTPResponse, any Error> = .success(HTTPResponse(status: 404, body: []))
    private(set) var downloads: [String] = []

    func run(
        _ transfer: HTTPTransfer, _ done: @escaping @Sendable (Result<HTTPResponse, any Error>) -> Void
    ) -> @Sendable () -> Void {
        downloads.append("\(transfer.url.absoluteString) \(transfer.bearer)")
        done(answer)
        return {}
    }

    // MARK: Frames

    func open(_ url: URL, _ report: @escaping @Sendable (SocketEvent) -> Void) -> any TransportSocket {
        lock.withLock {
            let socket = Socket(sockets.count, self, report)
            sockets.append(socket)
            plan(.opened(socket.number), at: later(1...200))
            if now < outageEnd || isOneOf(breaks * 5) { cut(socket) }
            return socket
        }
    }

    fileprivate func transmit(_ text: [UInt8], from socket: Socket) {
        lock.withLock {
            if isOneOf(breaks) { cut(socket) }
            let time = max(socket.lastArrival.atServer, later(1...120))
            socket.lastArrival.atServer = time
            plan(.toServer(socket.number, text), at: time)
            if isOneOf(duplicates) { plan(.toServer(socket.number, text), at: time) }
        }
    }

    private func deliver(_ text: [UInt8], to number: Int) {
        let socket = sockets[number]
        if isOneOf(breaks) { cut(socket) }
        let time = max(socket.lastArrival.atClient, later(1...120))
        socket.lastArrival.atClient = time
        plan(.toClient(number, text), at: time)
        if isOneOf(duplicates) { plan(.toClient(number, text), at: time) }
    }

    /// Breaks a socket. The client may notice at once, or only because the server is silent.
    private func cut(_ socket: Socket) {
        guard !socket.isBroken else { return }
        socket.isBroken = true
        cuts += 1
        if isOneOf(700) { plan(.noticed(socket.number), at: later(0...5000)) }
    }

    private func happen(_ happening: Happening) {
        switch happening {
        case .timer(let number): lock.withLock { timers.removeValue(forKey: number) }?()
        case .work(let work): work()
        case .opened(let number): usable(number)?.report(.opened)
        case .noticed(let number): close(number, .abnormal)
        case .toServer(let number, let text):
            lock.withLock {
                guard usable(number) != nil else { return }
                server.receive(text, on: number, now: now) { self.deliver($1, to: $0) }
            }
        case .toClient(let number, let text): usable(number)?.report(.received(text))
        case .outage(let end):
            lock.withLock {
                outageEnd = end
                for socket in sockets where usable(socket.number) != nil { cut(socket) }
            }
        case .restart:
            let open = lock.withLock {
                restarts += 1
                server.restart()
                return sockets.map(\.number).filter { usable($0) != nil }
            }
            for number in open { close(number, .serviceRestart) }
        }
    }

    /// The socket, unless it is broken or closed.
    private func usable(_ number: Int) -> Socket? {
        lock.withLock { sockets[number].isBroken || sockets[number].isClosed ? nil : sockets[number] }
    }

    private func close(_ number: Int, _ code: CloseCode) {
        let socket = lock.withLock { () -> Socket? in
            defer { sockets[number].isClosed = true }
            return sockets[number].isClosed ? nil : sockets[number]
        }
        socket?.report(.closed(code))
    }
}

/// A model of the server: greetings, one session, and signals for everyone.
final class SimulatedServer {
    final class Client {
        let id: ConnectionID
        var link = Link()
        var secret: String
        var previousSecret: String?
        var socket: Int
        var heardAt: Timestamp
        var isJoined = false

        init(_ id: ConnectionID, _ secret: String, _ socket: Int, _ now: Timestamp) {
            (self.id, self.secret, self.socket, heardAt) = (id, secret, socket, now)
        }
    }

    private var clients: [Client] = []
    private var random: SeededGenerator
    /// How often each signal was carried out.
    private(set) var performed: [String: Int] = [:]
    /// The signals that were sent to each connection, in order, for each time that it joined.
    private(set) var reported: [ConnectionID: [[String]]] = [:]
    private(set) var faults: [String] = []
    /// Whether the server knows more than one session.
    var knowsFeatures = false
    private var features = SimulatedFeatures()

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    func restart() {
        clients = []
        features.restart()
    }
    func leave(_ socket: Int) { clients.removeAll { $0.socket == socket } }

    func receive(_ text: [UInt8], on socket: Int, now: Timestamp, _ send: (Int, [UInt8]) -> Void) {
        guard let envelope = try? Envelope<ClientMessage>.decode(text) else { return faults.append("unreadable") }
        let present = clients.first { $0.socket == socket }
        if case .hello(let hello) = envelope.message {
            if present == nil { greet(hello, on: socket, now, send) }
            return
        }
        guard let client = present else { return }
        (client.heardAt, client.previousSecret) = (now, nil)
        if let ack = envelope.ack { client.link.acknowledged(upTo: ack) }
        guard let seq = envelope.seq else {
            if envelope.message == .ping { send(socket, ServerMessage.pong.encode(ack: client.link.acknowledge())) }
            if envelope.message == .bye { leave(socket) }
            return
        }
        switch client.link.receive(seq: seq) {
        case .duplicate: return
        case .gap: return faults.append("request \(seq) came after \(client.link.received)")
        case .deliver: perform(envelope.message, of: client, re: seq, send)
        }
    }

    private func perform(
        _ message: ClientMessage, of client: Client, re: UInt64, _ send: (Int, [UInt8]) -> Void
    ) {
        switch message {
        case .session(.join(let join)):
            client.isJoined = true
            reported[client.id, default: []].append([])
            var joined = SessionNotice.Joined()
            (joined.re, joined.session, joined.connection.id) = (re, join.session, client.id)
            joined.capabilities.publish = true
            joined.capabilities.subscribe = true
            joined.capabilities.signal = true
            let reported = knowsFeatures ? features.media.join(client, &joined, among: clients) : []
            deliver(.session(.joined(joined)), to: client, send)
            for (person, notice) in reported { deliver(notice, to: person, send) }
        case .session(.leave(let leave)):
            client.isJoined = false
            deliver(.ok(.init(re: re)), to: client, send)
            let reported = knowsFeatures ? features.media.leave(leave.session, client, among: clients) : []
            for (person, notice) in reported { deliver(notice, to: person, send) }
        case .session(.signal(let signal)):
            guard client.isJoined else {
                let error = WireError(.notJoined, "Join first.")
                return deliver(.error(.init(error, re: re)), to: client, send)
            }
            let data = signal.data ?? ""
            performed[data, default: 0] += 1
            for member in clients where member.isJoined {
                if let membership = reported[member.id]?.indices.last { reported[member.id]?[membership].append(data) }
                let notice = SessionNotice.Signal(session: signal.session, from: client.id, type: nil, data: data)
                deliver(.session(.signal(notice)), to: member, send)
            }
            deliver(.ok(.init(re: re)), to: client, send)
        default:
            guard knowsFeatures else { return faults.append("an unknown request: \(message)") }
            for (person, answer) in features.perform(message, of: client, re: re, among: clients) {
                deliver(answer, to: person, send)
            }
        }
    }

    private func deliver(_ message: ServerMessage, to client: Client, _ send: (Int, [UInt8]) -> Void) {
        let bytes = client.link.send { message.encode(seq: $0, ack: $1) }
        if client.socket >= 0 { send(client.socket, bytes) }
    }

    private func greet(_ hello: Hello, on socket: Int, _ now: Timestamp, _ send: (Int, [UInt8]) -> Void) {
        var welcome = Welcome()
        let secret = "\(random.next())"
        welcome.resume = .init(secret: secret, grace: .seconds(30))
        if let claim = hello.resume {
            let client = clients.first { $0.secret == claim.secret || $0.previousSecret == claim.secret }
            if let client, now - client.heardAt < .seconds(30), let missing = client.link.replay(after: claim.received)
            {
                (client.previousSecret, client.secret, client.socket) = (claim.secret, secret, socket)
                client.heardAt = now
                (welcome.connection, welcome.resumed, welcome.received) = (client.id, true, client.link.received)
                send(socket, ServerMessage.welcome(welcome).encode())
                for bytes in missing { send(socket, bytes) }
                return
            }
            clients.removeAll { $0 === client }
            send(socket, ServerMessage.error(.init(WireError(.resumeFailed, "A fresh start."))).encode())
        }
        let client = Client(ConnectionID.random(using: &random), secret, socket, now)
        clients.append(client)
        welcome.connection = client.id
        if hello.identity == nil { welcome.identity = "secret-\(client.id)" }
        send(socket, ServerMessage.welcome(welcome).encode())
    }
}
