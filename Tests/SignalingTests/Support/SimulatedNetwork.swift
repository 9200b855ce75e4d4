import HeapModule
import Signaling
import TestSupport
import Wire

/// The fault rates of a network. Data on one socket arrives in order, as with TCP, until the socket breaks. Then data
/// in flight is lost, and each end notices the break separately.
struct Weather {
    /// Duplicated frames per thousand.
    var duplicates = 0
    /// Frames from the server, per thousand, that vanish although the socket stays open. TCP never does this, but a
    /// faulty proxy might.
    var losses = 0
    /// Frames per thousand at which the socket breaks.
    var breaks = 0
    var delay = 5...300
    /// The time in milliseconds until an end notices a broken socket.
    var notice = 0...12_000
    /// The time in milliseconds during which a client cannot reach the server after its socket broke.
    var absence = 0...4000

    static let calm = Weather(delay: 1...5)
}

/// Clients and a hub with a network between them, in simulated time. One seed determines everything.
final class SimulatedNetwork {
    private enum Event {
        case toServer(SocketID, [UInt8])
        case toClient(SocketID, [UInt8])
        case serverNotices(SocketID)
        case clientNotices(SocketID)
        case connect(NetworkClient)
        case opened(SocketID)
        case unreachable(NetworkClient, SignalClient.Socket)
        case speak(NetworkClient)
        case wake(NetworkClient, Timestamp)
    }

    private struct Due: Comparable {
        var at: Timestamp
        var order: Int
        var event: Event
        static func < (left: Due, right: Due) -> Bool { (left.at, left.order) < (right.at, right.order) }
        static func == (left: Due, right: Due) -> Bool { left.order == right.order }
    }

    private struct Socket {
        var client: NetworkClient
        var isBroken = false
        var saidHello = false
        var isOpenForServer = true
        var lastToServer: Timestamp
        var lastToClient: Timestamp
    }

    let seed: UInt64
    var random: SeededGenerator
    var weather: Weather
    private(set) var now = Timestamp(milliseconds: 1_790_000_000_000)
    private(set) var hub: Hub
    let project: Project
    let session: SessionID
    private(set) var clients: [NetworkClient] = []
    private(set) var faults: [String] = []
    private var sockets: [SocketID: Socket] = [:]
    /// For each client, the time until which the server is unreachable, and the client's next timeout.
    private var awayUntil: [Int: Timestamp] = [:]
    private var wakes: [Int: Timestamp] = [:]
    private var lastSocket: UInt64 = 0
    private var events = Heap<Due>()
    private var order = 0
    /// Whether clients keep sending signals automatically.
    var isTalkative = true

    /// - Parameters:
    ///   - replay: what the server keeps for each client.
    ///   - keeping: how many sent messages a client keeps; nil for the usual number.
    init(seed: UInt64, weather: Weather, clients count: Int, replay: Link.Bounds = .init(), keeping: Int? = nil) {
        var rules = Rules()
        rules.replay = replay
        (self.seed, self.weather, project) = (seed, weather, Stage.project)
        random = SeededGenerator(seed: seed)
        session = project.makeSessionID(mediaMode: .relayed, now: now, using: &random)
        hub = Hub(hubSettings: HubSettings(rules: rules, project: project), generator: SeededGenerator(seed: ~seed))
        clients = (0..<count).map {
            NetworkClient(
                number: $0, identity: .random(using: &random), seed: random.next(), keeping: keeping, on: self)
        }
        for client in clients {
            schedule(.connect(client), in: 0...100)
            schedule(.speak(client), in: 100...2000)
        }
    }

    func fail(_ text: String) { faults.append("seed \(seed): \(text)") }

    private func milliseconds(_ range: ClosedRange<Int>) -> Duration {
        .milliseconds(Int.random(in: range, using: &random))
    }

    private func isOneOf(_ perThousand: Int) -> Bool { Int.random(in: 0..<1000, using: &random) < perThousand }

    private func schedule(_ event: Event, in range: ClosedRange<Int>) { schedule(event, at: now + milliseconds(range)) }

    private func schedule(_ event: Event, at time: Timestamp) {
        order += 1
        events.insert(Due(at: time, order: order, event: event))
    }

    // MARK: Time

    func run(for duration: Duration) {
        let end = now + duration
        while let next = [events.min?.at, hub.nextTimeout].compactMap({ $0 }).min(), next <= end {
            now = max(now, next)
            if let timer = hub.nextTimeout, timer <= now { carryOut(hub.handleTimeout(now: now)) }
            if let due = events.min, due.at <= now { happen(events.removeMin().event) }
        }
        now = end
    }

    private func happen(_ event: Event) {
        switch event {
        case .toServer(let socket, let bytes): arriveAtServer(socket, bytes)
        case .toClient(let socket, let bytes):
            guard let open = sockets[socket], !open.isBroken else { return }
            open.client.receive(bytes, on: socket)
        case .serverNotices(let socket):
            guard sockets[socket]?.isOpenForServer ?? false else { return }
            sockets[socket]?.isOpenForServer = false
            if sockets[socket]?.saidHello ?? false { carryOut(hub.handle(.closed(socket, leaving: false), now: now)) }
        case .clientNotices(let socket): sockets[socket]?.client.lost(socket)
        case .connect(let client): client.connect()
        case .opened(let socket):
            if let open = sockets[socket], !open.isBroken { open.client.opened(socket) }
        case .unreachable(let client, let socket): client.unreachable(socket)
        case .wake(let client, let time):
            // Skip this timeout, because an earlier one has replaced it.
            guard wakes[client.number] == time else { return }
            wakes[client.number] = nil
            client.wake()
        case .speak(let client):
            if isTalkative { isOneOf(250) ? client.appear() : client.speak() }
            schedule(.speak(client), in: 20...3000)
        }
    }

    // MARK: Sockets

    /// - Returns: nil if the server is unreachable. The client is notified later.
    func connect(_ client: NetworkClient, _ wanted: SignalClient.Socket) -> SocketID? {
        if let until = awayUntil[client.number], now < until {
            schedule(.unreachable(client, wanted), in: weather.delay)
            return nil
        }
        lastSocket += 1
        let socket = SocketID(rawValue: lastSocket)
        sockets[socket] = Socket(client: client, lastToServer: now, lastToClient: now)
        schedule(.opened(socket), in: weather.delay)
        if isOneOf(weather.breaks * 5) { breakDown(socket) }
        return socket
    }

    /// Schedules a timeout of the client. An earlier timeout replaces a later one.
    func wake(_ client: NetworkClient, at time: Timestamp) {
        if let planned = wakes[client.number], planned <= time { return }
        wakes[client.number] = time
        schedule(.wake(client, time), at: max(now, time))
    }

    /// Closes a socket on the client's side. The server notices it later, unless the code tells it that the client leaves.
    func abandon(_ socket: SocketID, _ code: CloseCode) {
        if code.isLeaving, let open = sockets[socket], open.saidHello, open.isOpenForServer, !open.isBroken {
            sockets[socket]?.isOpenForServer = false
            carryOut(hub.handle(.closed(socket, leaving: true), now: now))
        }
        breakDown(socket)
    }

    private func breakDown(_ socket: SocketID) {
        guard sockets[socket]?.isBroken == false else { return }
        sockets[socket]?.isBroken = true
        schedule(.serverNotices(socket), in: weather.notice)
        schedule(.clientNotices(socket), in: weather.notice)
        if let client = sockets[socket]?.client { awayUntil[client.number] = now + milliseconds(weather.absence) }
    }

    func toServer(_ socket: SocketID, _ bytes: [UInt8]) {
        guard let open = sockets[socket], !open.isBroken else { return }
        let at = max(open.lastToServer, now + milliseconds(weather.delay))
        sockets[socket]?.lastToServer = at
        schedule(.toServer(socket, bytes), at: at)
        if open.saidHello, isOneOf(weather.duplicates) { schedule(.toServer(socket, bytes), at: at) }
        if isOneOf(weather.breaks) { breakDown(socket) }
    }

    private func toClient(_ socket: SocketID, _ bytes: [UInt8]) {
        guard let open = sockets[socket], !open.isBroken else { return }
        let at = max(open.lastToClient, now + milliseconds(weather.delay))
        sockets[socket]?.lastToClient = at
        if !isOneOf(weather.losses) { schedule(.toClient(socket, bytes), at: at) }
        if isOneOf(weather.duplicates) { schedule(.toClient(socket, bytes), at: at) }
        if isOneOf(weather.breaks) { breakDown(socket) }
    }

    // MARK: Server side

    private func arriveAtServer(_ socket: SocketID, _ bytes: [UInt8]) {
        guard let open = sockets[socket], !open.isBroken, open.isOpenForServer else { return }
        do throws(UnreadableMessage) {
            let envelope = try Envelope<ClientMessage>.decode(bytes)
            if case .hello(let hello) = envelope.message, !open.saidHello {
                sockets[socket]?.saidHello = true
                let arrival = Arrival(
                    socket: socket, identity: Identity(id: open.client.identity), resume: hello.resume, address: ""
                )
                carryOut(hub.handle(.arrived(arrival), now: now))
            } else {
                carryOut(hub.handle(.message(socket, envelope), now: now))
            }
        } catch {
            carryOut(hub.handle(.unreadable(socket, error), now: now))
        }
    }

    private func carryOut(_ effects: [Effect]) {
        for effect in effects {
            switch effect {
            case .transmit(let socket, let bytes): toClient(socket, bytes)
            case .close(let socket, let code, _):
                guard code == .replaced || code == .normal && sockets[socket]?.client.hasLeft == true else {
                    fail("the server closed a socket with \(code.rawValue)")
                    continue
                }
                breakDown(socket)
            case .persist, .media, .reply, .answer, .query, .push, .deleteFile, .reach, .releasePlace, .post,
                .recording, .broadcast, .composeAhead, .compose, .relay:
                break
            }
        }
    }

    func token() -> String {
        project.makeSessionToken(
            SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(3600)), now: now, using: &random)
    }
}
