import NIOCore
import Synchronization
import Wire

/// Counts the requests that the server has answered, and calls a function when the count reaches a number.
final class DrillCounter: Sendable {
    private struct State {
        var count = 0
        var alarm: (at: Int, ring: @Sendable () -> Void)?
    }

    private let state = Mutex(State())

    var count: Int { state.withLock { $0.count } }

    func call(at count: Int, _ ring: @escaping @Sendable () -> Void) {
        state.withLock { $0.alarm = (count, ring) }
    }

    func add() {
        let ring = state.withLock { state -> (@Sendable () -> Void)? in
            state.count += 1
            guard let alarm = state.alarm, alarm.at == state.count else { return nil }
            state.alarm = nil
            return alarm.ring
        }
        ring?()
    }
}

/// A person who blocks others, changes the profile and reports the partner of a chat, one request after the other, and keeps a
/// journal of what the server answered.
///
/// The class is `@unchecked Sendable` because one task uses it at a time.
final class DrillWriter: @unchecked Sendable {
    /// What was answered, and what was requested. A request without an answer may be stored or not.
    private struct Journal<Entry: Hashable> {
        var requested: Set<Entry> = []
        var answered: Set<Entry> = []
    }

    let number: Int
    private let loop: any EventLoop
    private let targets: [PersonID]
    private var random: SplitMix64
    private var identity: String?
    private var client: LoadClient?
    private var blocks = Journal<Int>()
    private var names = Journal<Int>()
    private var reports = Journal<Int>()
    /// The server stores one report of a chat, and accepts further ones without storing them.
    private var mayReport = false
    private let isOver = Atomic(false)

    init(_ number: Int, targets: [PersonID], seed: UInt64, on loop: any EventLoop) {
        (self.number, self.targets, self.loop) = (number, targets, loop)
        random = SplitMix64(state: seed &+ UInt64(number) &* 0x9E37_79B9)
    }

    var answeredCount: Int { blocks.answered.count + names.answered.count + reports.answered.count }

    /// Ends `work` after the current request.
    func stop() { isOver.store(true, ordering: .relaxed) }

    // MARK: Connecting

    /// Connects as the same person as before, and goes online.
    func connect(port: Int) async throws {
        var hello = Hello()
        hello.identity = identity
        let client = try await LoadClient.connect(port: port, number: number, hello: hello, on: loop).get()
        let welcome = try await loop.flatSubmit { client.welcome() }.get()
        identity = identity ?? welcome.identity
        self.client = client
        isOver.store(false, ordering: .relaxed)
        if names.requested.isEmpty { try await setName(0) { .appear($0) } }
    }

    /// Matches this writer with another in the roulette, because only a partner can be reported.
    func meet(_ other: DrillWriter) async throws {
        let start = ClientMessage.roulette(.start(.init(mode: .text, interests: ["drill \(number)"])))
        let clients = [client, other.client].compactMap { $0 }
        let matches = clients.map { _ in loop.makePromise(of: Void.self) }
        try await loop.submit {
            for (client, match) in zip(clients, matches) {
                client.onMessage = { _, message in if case .roulette(.matched) = message { match.succeed() } }
                client.onEnd = { match.fail(LoadClient.Failure(description: $0)) }
                client.ask(start)
            }
        }.get()
        for match in matches { try await match.futureResult.get() }
        try await loop.submit { for client in clients { client.onEnd = nil } }.get()
        (mayReport, other.mayReport) = (true, true)
    }

    func end() async throws {
        let client = client
        try await loop.submit { client?.end() }.get()
    }

    // MARK: Requests

    /// Sends requests until the connection ends or `stop` is called.
    func work(_ counter: DrillCounter) async {
        do {
            while !isOver.load(ordering: .relaxed) {
                switch Int.random(in: 0..<10, using: &random) {
                case 0 where mayReport: try await report(counter)
                case 1..<6 where blocks.requested.count < targets.count: try await block(counter)
                default:
                    try await setName(names.requested.count) { .set($0) }
                    counter.add()
                }
            }
        } catch {
            // The server was killed or closed the connection. The check shows what it has stored.
        }
    }

    private func ask(_ message: ClientMessage) async throws -> ServerMessage {
        guard let client else { throw LoadClient.Failure(description: "not connected") }
        return try await loop.flatSubmit { client.request(message) }.get()
    }

    private func setName(_ number: Int, _ verb: (Appearance) -> PresenceVerb) async throws {
        names.requested.insert(number)
        let answer = try await ask(.presence(verb(.init(name: "writer \(self.number) name \(number)"))))
        if case .presence(.own) = answer { names.answered.insert(number) }
    }

    private func block(_ counter: DrillCounter) async throws {
        let target = blocks.requested.count
        blocks.requested.insert(target)
        if case .ok = try await ask(.presence(.block(.init(person: targets[target])))) {
            blocks.answered.insert(target)
            counter.add()
        }
    }

    private func report(_ counter: DrillCounter) async throws {
        mayReport = false
        let report = reports.requested.count
        reports.requested.insert(report)
        if case .ok = try await ask(.roulette(.report(.init(reason: reason(report))))) {
            reports.answered.insert(report)
            counter.add()
        }
    }

    /// Ends with a period, so that no reason is the beginning of another.
    private func reason(_ report: Int) -> String { "drill \(number) \(report)." }

    // MARK: Checking

    /// Compares the journal with what the server has loaded from storage. Call it after a restart, when connected.
    ///
    /// - Parameter stored: all stored reports as text.
    /// - Returns: a sentence for each fault.
    func check(reports stored: String) async throws -> [String] {
        guard case .presence(.own(let own)) = try await ask(.presence(.appear(.init()))),
            case .presence(.blocked(let list)) = try await ask(.presence(.blocked))
        else { return ["writer \(number): the server does not tell what it has stored"] }
        var faults: [String] = []
        // Names are changed one after the other, so the stored one is the last that was answered or a later one.
        let last = names.answered.max() ?? 0
        let name = own.name.split(separator: " ").last.flatMap { Int($0) } ?? -1
        if name < last || !names.requested.contains(name) {
            faults.append("writer \(number): the name is \"\(own.name)\", and name \(last) was answered")
        }
        // The ids in the list differ from those with which people were blocked, so only the number can be compared here.
        if !(blocks.answered.count...blocks.requested.count).contains(list.people.count) {
            faults.append(
                "writer \(number): \(list.people.count) people are blocked; \(blocks.answered.count) blocks were answered, "
                    + "of \(blocks.requested.count)")
        }
        let lost = reports.answered.filter { !stored.contains(reason($0)) }
        if !lost.isEmpty { faults.append("writer \(number): the reports \(lost.sorted()) are missing") }
        return faults
    }

    /// Unblocks everyone whose block was answered, which shows that each block was stored.
    ///
    /// - Returns: a sentence for each fault.
    func checkBlocks() async throws -> [String] {
        var faults: [String] = []
        for target in blocks.answered.sorted() {
            if case .ok = try await ask(.presence(.unblock(.init(person: targets[target])))) { continue }
            faults.append("writer \(number): block \(target) is missing")
        }
        return faults
    }
}
