import TestSupport
import Wire

/// A `SignalClient` and a minimal server based on `Link`, on a transport that can be cut at any moment, in simulated
/// time. One seed determines everything.
///
/// Every request has a unique number. The answer contains that number, so misplaced answers are detected. Events
/// contain the connection and a counter.
final class ModelLine {
    enum Happening {
        case toServer(Int, [UInt8])
        case toClient(Int, [UInt8])
        case opened(Int)
        case clientNotices(Int)
        case ask, push
        case answer(ModelServer.Client, re: UInt64, name: String)
    }

    private struct Socket {
        var own: SignalClient.Socket
        var isBroken = false
        var lastToServer: Timestamp
        var lastToClient: Timestamp
    }

    private(set) var now = Timestamp(milliseconds: 1_000_000)
    private(set) var faults: [String] = []
    private(set) var resumes = 0
    private(set) var restarts = 0
    private(set) var outcomes: [SignalClient.RequestID: String] = [:]
    private(set) var asked: UInt64 = 0
    private(set) var line: SignalClient
    private let server: ModelServer
    private var random: SeededGenerator
    private var agenda: [(at: Timestamp, happening: Happening)] = []
    private var sockets: [Socket] = []
    /// The most recent counter received on the current connection.
    private var heard: (connection: ConnectionID, count: Int)?
    /// Rates per thousand frames: broken sockets and duplicates.
    var breaks = 20
    var duplicates = 20
    var isTalkative = true

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        server = ModelServer(seed: random.next())
        var options = SignalClient.Options()
        options.connectTimeout = nil
        // Sometimes limit the buffer to so few messages that a resume is impossible.
        if Int.random(in: 0..<4, using: &random) == 0 { options.replay.messages = 8 }
        line = SignalClient(hello: Hello(), options: options, random: SeededGenerator(seed: random.next()))
        if Int.random(in: 0..<4, using: &random) == 0 { server.bounds.messages = 8 }
        plan(.ask, in: 0...100)
        plan(.push, in: 0...100)
        carryOut(line.handle(.connect, now: now))
    }

    private func fail(_ text: String) { faults.append(text) }

    private func milliseconds(_ range: ClosedRange<Int>) -> Duration {
        .milliseconds(Int.random(in: range, using: &random))
    }

    private func isOneOf(_ perThousand: Int) -> Bool { Int.random(in: 0..<1000, using: &random) < perThousand }

    private func plan(_ happening: Happening, in range: ClosedRange<Int>) {
        plan(happening, at: now + milliseconds(range))
    }

    private func plan(_ happening: Happening, at time: Timestamp) {
        // Two events at the same time happen in the order in which they were scheduled.
        let place = agenda.lastIndex { $0.at <= time }.map { $0 + 1 } ?? 0
        agenda.insert((time, happening), at: place)
    }

    // MARK: Time

    func run(for duration: Duration) {
        let end = now + duration
        while true {
            let (timeout, next) = (line.nextTimeout, agenda.first?.at)
            guard let first = [timeout, next].compactMap({ $0 }).min(), first <= end else { break }
            now = max(now, first)
            if let timeout, timeout <= now {
                carryOut(line.handleTimeout(now: now))
                if let again = line.nextTimeout, again <= now { fail("a handled timeout is still due: \(line)") }
            } else {
                happen(agenda.removeFirst().happening)
            }
        }
        now = end
    }

    private func happen(_ happening: Happening) {
        switch happening {
        case .ask:
            if isTalkative { ask() }
            plan(.ask, in: 10...1500)
        case .push:
            if isTalkative { server.pushAll { self.toClient($0, $1) } }
            plan(.push, in: 10...1500)
        case .opened(let socket):
            guard !sockets[socket].isBroken else { return }
            report(.opened(sockets[socket].own))
        case .toServer(let socket, let bytes):
            guard !sockets[socket].isBroken else { return }
            arrive(bytes, on: socket)
        case .toClient(let socket, let bytes):
            guard !sockets[socket].isBroken else { return }
            report(.received(bytes, on: sockets[socket].own))
        case .clientNotices(let socket): report(.closed(sockets[socket].own, .abnormal))
        case .answer(let client, let re, let name):
            server.answer(client, re, name) { self.toClient($0, $1) }
        }
    }

    private func ask() {
        asked += 1
        report(.request(.init(rawValue: asked), .presence(.appear(Appearance(name: "\(asked)")))))
    }

    func leave() { report(.leave) }

    private func report(_ event: SignalClient.Event) { carryOut(line.handle(event, now: now)) }

    // MARK: Effects

    private func carryOut(_ effects: [SignalClient.Effect]) {
        for effect in effects {
            switch effect {
            case .open(let own):
                sockets.append(Socket(own: own, lastToServer: now, lastToClient: now))
                plan(.opened(sockets.count - 1), in: 1...200)
                if isOneOf(breaks * 5) { cut(sockets.count - 1) }
            case .send(let bytes, let own): toServer(bytes, on: Int(own.number) - 1)
            case .close(let own, let code):
                sockets[Int(own.number) - 1].isBroken = true
                if code.isLeaving { server.leave(Int(own.number) - 1) }
            case .connected(let welcome, let start): connected(welcome, start)
            case .answered(let id, let message): answered(id, message)
            case .failed(let id, let error):
                settle(id, "failed: \(error.code.rawValue)")
            case .event(let message): take(message)
            case .unreadable(let message): fail("unreadable: \(message)")
            case .reconnecting, .expired, .ended: break
            }
        }
    }

    private func connected(_ welcome: Welcome, _ start: SignalClient.Start) {
        switch start {
        case .first: heard = (welcome.connection, 0)
        case .resumed:
            resumes += 1
            if heard?.connection != welcome.connection { fail("resumed as another") }
        case .restarted:
            restarts += 1
            if heard?.connection == welcome.connection { fail("restarted as the same") }
            heard = (welcome.connection, 0)
        }
    }

    private func answered(_ id: SignalClient.RequestID, _ message: ServerMessage) {
        guard case .presence(.own(let own)) = message, own.name == "\(id.rawValue)" else {
            return fail("\(id) was answered \(message)")
        }
        if server.performed[own.name] != 1 { fail("\(id) was answered but not executed") }
        settle(id, "answered")
    }

    private func settle(_ id: SignalClient.RequestID, _ outcome: String) {
        if let before = outcomes.updateValue(outcome, forKey: id) { fail("\(id) is \(outcome) after \(before)") }
    }

    private func take(_ message: ServerMessage) {
        guard case .presence(.own(let own)) = message, let heard else { return fail("an event \(message)") }
        if own.name != "\(heard.connection)/\(heard.count + 1)" {
            fail("\(own.name) came after \(heard.count) of \(heard.connection)")
        }
        self.heard?.count += 1
    }

    // MARK: The transport

    private func toServer(_ bytes: [UInt8], on socket: Int) {
        guard !sockets[socket].isBroken else { return }
        let at = max(sockets[socket].lastToServer, now + milliseconds(1...300))
        sockets[socket].lastToServer = at
        plan(.toServer(socket, bytes), at: at)
        if isOneOf(duplicates) { plan(.toServer(socket, bytes), at: at) }
        if isOneOf(breaks) { cut(socket) }
    }

    private func toClient(_ socket: Int, _ bytes: [UInt8]) {
        guard !sockets[socket].isBroken else { return }
        let at = max(sockets[socket].lastToClient, now + milliseconds(1...300))
        sockets[socket].lastToClient = at
        plan(.toClient(socket, bytes), at: at)
        if isOneOf(duplicates) { plan(.toClient(socket, bytes), at: at) }
        if isOneOf(breaks) { cut(socket) }
    }

    /// Data in flight is lost. The client notices it later, or by a timeout.
    private func cut(_ socket: Int) {
        guard !sockets[socket].isBroken else { return }
        sockets[socket].isBroken = true
        if isOneOf(900) { plan(.clientNotices(socket), in: 0...15_000) }
    }

    private func arrive(_ bytes: [UInt8], on socket: Int) {
        guard let envelope = try? Envelope<ClientMessage>.decode(bytes) else { return fail("an unreadable request") }
        if let fault = server.receive(envelope, on: socket, now: now, send: { self.toClient(socket, $0) }) {
            fail(fault)
        }
        for (client, re, name) in server.takeRequests() {
            plan(.answer(client, re: re, name: name), in: 0...2000)
        }
    }

    // MARK: At the end

    /// Whether everything sent to this connection has arrived.
    var isUpToDate: Bool { heard.map { server.told($0.connection) == $0.count } ?? false }
}
