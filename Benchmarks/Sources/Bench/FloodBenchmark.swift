import NIOCore
import NIOPosix
import Signaling
import Wire

#if canImport(Glibc)
import Glibc
#endif

/// Floods a server from many sockets of one address, each of which sends as many messages as the limits allow one connection.
///
/// The limits per connection are 20 requests a second that are answered, 20 that are refused, and 50 negotiation messages. The
/// budget for all messages leaves room for some 30 pings. A sender that exceeds them is closed, so the flood stays just below. A
/// socket that the server closes comes back after a second.
///
/// The class is `@unchecked Sendable` because its state is used only on its loop.
final class FloodBenchmark: @unchecked Sendable {
    enum Kind: String {
        /// Each socket is another person, who starts searches, presses Next, changes the profile, asks for counts and sends
        /// signals to one other member.
        case people
        /// All sockets are in one session, and send signals to all.
        case session
    }

    struct Figures {
        var sent = 0
        /// Messages that could not be sent, because the server did not read those before.
        var unread = 0
        var answers = 0
        var reconnects = 0
        /// How often the server closed or refused a socket, by reason.
        var ends: [String: Int] = [:]
    }

    private static let address = "127.0.0.2"
    private static let tick = TimeAmount.milliseconds(5)
    /// One write of each socket is for this time.
    private static let period = TimeAmount.milliseconds(200)
    private static let returnPause = TimeAmount.seconds(1)
    private static let data = String(repeating: "0123456789", count: 20)

    private let kind: Kind
    private let port: Int
    private let loop: any EventLoop
    private let sessions: [SessionID]
    private let tokens: [String]
    private var sockets: [LoadClient?]
    private var turns: [Int]
    private var position = 0
    private var isOver = false
    private(set) var figures = Figures()

    init(_ kind: Kind, sockets count: Int, port: Int, project: Project, loop: any EventLoop) {
        (self.kind, self.port, self.loop) = (kind, port, loop)
        sockets = Array(repeating: nil, count: count)
        turns = Array(repeating: 0, count: count)
        var generator = SplitMix64(state: 11)
        let now = Timestamp(milliseconds: now())
        sessions = (0..<(kind == .session ? 1 : (count + 1) / 2)).map { _ in
            project.makeSessionID(mediaMode: .relayed, now: now, using: &generator)
        }
        tokens = sessions.map { session in
            project.makeSessionToken(
                SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(3600)), now: now,
                using: &generator)
        }
    }

    var openCount: Int { sockets.count { $0 != nil } }

    // MARK: Connecting

    /// Connects all sockets, and waits until as many are in as the server admits.
    func open() throws {
        // The measuring clients share the core with the flood. They must not wait for it.
        _ = try loop.submit { setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19) }.wait()
        for first in stride(from: 0, to: sockets.count, by: 20) {
            let some = first..<min(first + 20, sockets.count)
            let opened = try loop.submit { some.map { self.connect($0) } }.wait()
            _ = try EventLoopFuture.whenAllComplete(opened, on: loop).wait()
        }
    }

    /// Connects one socket, which joins its session and goes online.
    private func connect(_ index: Int) -> EventLoopFuture<Void> {
        let session = sessions[kind == .session ? 0 : index / 2]
        let token = tokens[kind == .session ? 0 : index / 2]
        return LoadClient.connect(port: port, number: index, from: Self.address, on: loop).flatMap { client in
            client.onEnd = { self.ended(index, $0, client) }
            return client.welcome().flatMap { _ in
                client.request(.session(.join(.init(session: session, token: token))))
            }.flatMap { _ in
                client.request(.presence(.appear(.init(name: "flood \(index)"))))
            }.map { _ in self.sockets[index] = client }
        }.flatMapErrorThrowing { error in
            self.ended(index, "\(error)", nil)
            throw error
        }
    }

    private func ended(_ index: Int, _ reason: String, _ client: LoadClient?) {
        guard !isOver else { return }
        let reason = client?.closeCode.map { "closed with \($0.rawValue)" } ?? reason
        // A client that ends while it connects is reported by its promise and by its callback.
        if client == nil || sockets[index] != nil { figures.ends[String(reason.prefix(60)), default: 0] += 1 }
        if let socket = sockets[index] { figures.answers += socket.floodAnswers }
        let wasOpen = sockets[index] != nil
        sockets[index] = nil
        guard client == nil || wasOpen else { return }
        loop.scheduleTask(in: Self.returnPause) {
            guard !self.isOver else { return }
            self.figures.reconnects += 1
            _ = self.connect(index)
        }
    }

    // MARK: Sending

    /// Sends until `stop`.
    func start() {
        loop.execute { self.send() }
    }

    func stop() throws -> Figures {
        try loop.submit { [self] in
            isOver = true
            for socket in sockets {
                figures.answers += socket?.floodAnswers ?? 0
                socket?.end()
            }
            return figures
        }.wait()
    }

    /// Lets some of the sockets write, so that the flood is even.
    private func send() {
        guard !isOver else { return }
        let due = NIODeadline.now() + Self.tick
        let share = sockets.count * Int(Self.tick.nanoseconds) / Int(Self.period.nanoseconds)
        for _ in 0..<max(1, share) {
            position = (position + 1) % sockets.count
            guard let socket = sockets[position] else { continue }
            let messages = messages(of: position)
            if socket.flood(messages) {
                figures.sent += messages.count
            } else {
                figures.unread += messages.count
            }
        }
        loop.scheduleTask(deadline: due) { self.send() }
    }

    /// The messages of one socket for one period.
    private func messages(of index: Int) -> [ClientMessage] {
        turns[index] += 1
        // 38 requests a second, of which the server refuses 18.
        let requests = turns[index] % 5 < 3 ? 8 : 7
        switch kind {
        case .session:
            let signal = SessionVerb.Signal(session: sessions[0], type: "chat", data: Self.data)
            return Array(repeating: .session(.signal(signal)), count: requests)
        case .people:
            let session = sessions[index / 2]
            var negotiation = SessionVerb.Negotiate()
            (negotiation.session, negotiation.candidate) = (session, .null)
            return (0..<requests).map { request(turns[index] * 8 + $0, session, index) }
                + Array(repeating: .session(.negotiate(negotiation)), count: 10)
                + Array(repeating: .ping, count: 5)
        }
    }

    private func request(_ number: Int, _ session: SessionID, _ index: Int) -> ClientMessage {
        switch number % 5 {
        case 0: .roulette(.start(.init(mode: .text)))
        case 1: .roulette(.next(.init(match: nil)))
        case 2: .presence(.set(.init(name: "flood \(index) \(number)")))
        case 3: .roulette(.count)
        default: .session(.signal(.init(session: session, type: "chat", data: Self.data)))
        }
    }
}

extension Main {
    private static func ms(_ seconds: Double) -> String { "\((seconds * 1000).text(2)) ms" }

    /// Measures the delay of Next for people at other addresses, without load, during a flood, and after it.
    static func flood(_ name: String, _ numbers: [Int]) throws {
        guard let kind = FloodBenchmark.Kind(rawValue: name) else {
            throw LoadClient.Failure(description: "unknown flood \(name)")
        }
        let (port, id, count, seconds) = (numbers[0], numbers[1], numbers[2], numbers[3])
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let server = ServerProcess(name: "Confab", port: port, id: id)
        let meter = NextBenchmark(crowd: Crowd(server: server, loop: group.next()))
        let flood = FloodBenchmark(kind, sockets: count, port: port, project: try project(), loop: group.next())
        let (interval, unloadedTime) = (TimeAmount.milliseconds(100), TimeAmount.seconds(Int64(max(20, seconds / 2))))
        try meter.open()
        _ = try meter.measure(for: .seconds(3), every: interval)
        let before = server.residentBytes()
        let unloaded = try meter.measure(for: unloadedTime, every: interval)
        try flood.open()
        let opened = flood.openCount
        let used = server.processorSeconds()
        flood.start()
        let loaded = try meter.measure(for: .seconds(Int64(seconds)), every: interval)
        let share = (server.processorSeconds() - used) / Double(seconds)
        let figures = try flood.stop()
        let peak = server.peakBytes()
        var phases = [("unloaded", unloaded), ("during the flood", loaded)]
        // The server may still have to read what the kernel holds of the flood.
        let isSettled = try meter.settle(within: .seconds(300))
        if isSettled {
            sleep(10)
            phases.append(("10 s after", try meter.measure(for: .seconds(10), every: interval)))
        }
        let what = "flood (\(name)): "
        for (when, samples) in phases {
            row(
                "\(what)`next` → `matched` of others, \(when), 99 of 100 of \(samples.count) within",
                "\(ms(samples.quantile(0.99))) (median \(ms(samples.median)), longest \(ms(samples.max() ?? .nan)))", ""
            )
        }
        if !isSettled { row("\(what)`next` → `matched` of others, after", "no answer within 300 s", "") }
        row(
            "\(what)that delay during the flood ÷ unloaded", (loaded.quantile(0.99) / unloaded.quantile(0.99)).text(1),
            "at most 5")
        row(
            "\(what)messages sent and answers received per second, \(opened) sockets of one address",
            "\(figures.sent / seconds) and \(figures.answers / seconds)", "")
        row("\(what)messages per second that the server did not read", "\(figures.unread / seconds)", "")
        row("\(what)share of a core that the server used", "\((share * 100).text(0)) %", "")
        let ends = figures.ends.sorted { $0.value > $1.value }.map { "\($0.value) × \($0.key)" }
        row(
            "\(what)sockets that the server closed or refused", ends.isEmpty ? "none" : ends.joined(separator: ", "), ""
        )
        let memory = [before, peak, server.residentBytes()].map { ($0 / 1_000_000).text(0) }
        row("\(what)memory of the server before, at the peak and after", "\(memory.joined(separator: ", ")) MB", "")
        try meter.close()
    }
}
