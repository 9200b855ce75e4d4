import Signaling
import TestSupport
import Wire

/// A `SignalClient` on the simulated network. It joins a session and puts a counter into every signal, so that receivers
/// detect lost and duplicate signals. It also appears, with a new name each time: the answer contains the name, so misplaced
/// answers are detected.
final class NetworkClient {
    /// A request of the current epoch, and whether its outcome is known.
    private struct Asked {
        var message: ClientMessage
        var isSettled = false
    }

    let number: Int
    let identity: IdentityID
    private unowned let network: SimulatedNetwork

    private var line: SignalClient
    /// The line's current socket, and the socket's ID in the network.
    private var socket: (own: SignalClient.Socket, network: SocketID)?
    private var connection = ConnectionID(high: 0, low: 0)
    /// The number of times that this client has started over.
    private(set) var epoch = 0
    private(set) var said = 0
    private var asked: [SignalClient.RequestID: Asked] = [:]
    private var requestCount: UInt64 = 0
    /// Whether the line dropped its connection before the server did.
    private var hasExpired = false
    /// Whether this client keeps so few messages that it sometimes must give up its connection.
    private let isForgetful: Bool
    private(set) var hasLeft = false
    /// The most recent counter received from each sender's epoch, during this client's current epoch.
    private(set) var heard: [String: Int] = [:]
    private(set) var resumes = 0
    private(set) var failures = 0

    /// - Parameter keeping: how many sent messages the client keeps; nil for the usual number.
    init(number: Int, identity: IdentityID, seed: UInt64, keeping: Int?, on network: SimulatedNetwork) {
        (self.number, self.identity, self.network) = (number, identity, network)
        var options = SignalClient.Options()
        options.connectTimeout = nil
        isForgetful = keeping != nil
        if let keeping { options.replay.messages = keeping }
        line = SignalClient(hello: Hello(), options: options, random: SeededGenerator(seed: seed))
    }

    // MARK: Events

    func connect() { report(.connect) }

    func opened(_ socket: SocketID) {
        guard let own = self.socket, socket == own.network else { return }
        report(.opened(own.own))
    }

    /// Reports that the server cannot be reached.
    func unreachable(_ socket: SignalClient.Socket) { report(.closed(socket, .abnormal)) }

    func lost(_ socket: SocketID) {
        guard let own = self.socket, socket == own.network else { return }
        self.socket = nil
        report(.closed(own.own, .abnormal))
    }

    func receive(_ bytes: [UInt8], on socket: SocketID) {
        guard let own = self.socket, socket == own.network else { return }
        report(.received(bytes, on: own.own))
    }

    func wake() { carryOut(line.handleTimeout(now: network.now)) }

    func speak() {
        guard epoch > 0 else { return }
        let data = "\(number)/\(epoch)/\(said)"
        said += 1
        ask(.session(.signal(.init(session: network.session, type: nil, data: data))))
    }

    func appear() { ask(.presence(.appear(Appearance(name: "\(number) \(requestCount)")))) }

    func leave() {
        hasLeft = true
        report(.leave)
    }

    private func ask(_ message: ClientMessage) {
        requestCount += 1
        let id = SignalClient.RequestID(rawValue: requestCount)
        asked[id] = Asked(message: message)
        report(.request(id, message))
    }

    private func report(_ event: SignalClient.Event) { carryOut(line.handle(event, now: network.now)) }

    // MARK: Effects

    private func carryOut(_ effects: [SignalClient.Effect]) {
        for effect in effects {
            switch effect {
            case .open(let socket): open(socket)
            case .send(let bytes, let socket):
                if let own = self.socket, own.own == socket { network.toServer(own.network, bytes) }
            case .close(let socket, let code): close(socket, code)
            case .connected(let welcome, let start): connected(welcome, start)
            case .expired:
                hasExpired = true
                beginAnew()
            case .answered(let id, let message): answered(id, message)
            case .failed(let id, let error): failed(id, error)
            case .event(let message): take(message)
            case .unreadable(let message): network.fail("an unreadable message: \(message.error.message)")
            case .ended(let ending): if !hasLeft { network.fail("\(number) ended with \(ending)") }
            case .reconnecting: break
            }
        }
        if let next = line.nextTimeout { network.wake(self, at: next) }
    }

    private func open(_ socket: SignalClient.Socket) {
        guard let opened = network.connect(self, socket) else { return }
        self.socket = (socket, opened)
    }

    private func close(_ socket: SignalClient.Socket, _ code: CloseCode) {
        guard let own = self.socket, own.own == socket else { return }
        self.socket = nil
        // A client whose time to resume ended while its hello was on the way may still get a welcome, and then starts over.
        if code != .dropped, !isForgetful, !hasLeft, !hasExpired {
            network.fail("\(number) left with \(code.rawValue)")
        }
        network.abandon(own.network, code)
    }

    private func connected(_ welcome: Welcome, _ start: SignalClient.Start) {
        if case .resumed = start {
            resumes += 1
            if welcome.connection != connection { network.fail("\(number) was resumed as another connection") }
            return
        }
        if welcome.connection == connection { network.fail("\(number) started over with its old connection id") }
        if welcome.state != Snapshot() || welcome.received != 0 { network.fail("a fresh start has a past") }
        connection = welcome.connection
        if case .restarted(let reason) = start {
            failures += 1
            // If the error was lost, the welcome implies it, because both are sent together.
            if reason.code != .resumeFailed, !hasExpired, network.weather.losses == 0 {
                network.fail("\(number) started over without a reason")
            }
        }
        if !hasExpired { beginAnew() }
        hasExpired = false
    }

    private func beginAnew() {
        epoch += 1
        // Requests that waited for the first connection are still unanswered.
        if epoch > 1 {
            if !unanswered.isEmpty { network.fail("\(number) does not know the outcome of \(unanswered)") }
            asked = [:]
        }
        (heard, said) = ([:], 0)
        ask(.session(.join(.init(session: network.session, token: network.token()))))
    }

    private func answered(_ id: SignalClient.RequestID, _ message: ServerMessage) {
        guard let request = settle(id, "answered") else { return }
        if let code = message.errorCode { network.fail("\(number)'s \(request.type) was refused: \(code.rawValue)") }
        guard case .presence(.appear(let appearance)) = request else { return }
        if case .presence(.own(let own)) = message, own.name == appearance.name { return }
        network.fail("\(number)'s \(appearance) was answered \(message)")
    }

    private func failed(_ id: SignalClient.RequestID, _ error: WireError) {
        guard let request = settle(id, "failed") else { return }
        switch error.code {
        case .connectionRestarted: break
        case .left where hasLeft: break
        case .offlineQueueFull where isForgetful:
            // It was not sent, so nobody misses its counter.
            if case .session(.signal) = request { said -= 1 }
        default: network.fail("\(number)'s \(request.type) failed: \(error.code.rawValue)")
        }
    }

    /// Records a request's outcome.
    /// - Returns: the request.
    private func settle(_ id: SignalClient.RequestID, _ outcome: String) -> ClientMessage? {
        guard let request = asked[id] else {
            network.fail("\(number) never sent the request that was \(outcome)")
            return nil
        }
        if request.isSettled { network.fail("\(number)'s \(request.message.type) was \(outcome) after its outcome") }
        asked[id]?.isSettled = true
        return request.message
    }

    private func take(_ message: ServerMessage) {
        if let re = message.re { network.fail("\(number)'s request \(re) was answered twice, or never asked") }
        guard case .session(.signal(let signal)) = message, let parts = signal.data?.split(separator: "/"),
            parts.count == 3,
            let count = Int(parts[2])
        else { return }
        let sender = "\(parts[0])/\(parts[1])"
        if let last = heard[sender], count != last + 1 {
            network.fail("\(number) heard \(count) of \(sender) after \(last)")
        }
        heard[sender] = count
    }

    // MARK: At the end

    var isAtRest: Bool { line.isConnected && line.unansweredCount == 0 }
    var isOver: Bool { line.ending != nil && line.unansweredCount == 0 }
    var unanswered: [String] { asked.values.filter { !$0.isSettled }.map(\.message.type) }
    var sender: String { "\(number)/\(epoch)" }
}
