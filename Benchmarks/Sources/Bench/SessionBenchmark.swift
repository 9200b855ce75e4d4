import Foundation
import NIOCore
import NIOPosix
import Signaling
import Wire

/// Measures one session with many members. All join, each sends one signal to all, and all leave.
///
/// The limits of the server are the defaults, and each member has its own address. A request that the server refuses with
/// `rate_limited` is sent again after the time that the server names, so that the rates are those that the server allows.
///
/// The class is `@unchecked Sendable` because its state is used only on the loop.
final class SessionBenchmark: @unchecked Sendable {
    struct Phase {
        var seconds = 0.0
        /// The server's CPU time in seconds.
        var used = 0.0
    }

    private enum Step: String {
        case joining, signaling, leaving
    }

    /// The number of requests in flight.
    private static let joins = 20
    private static let signals = 4
    /// The longest time without any progress.
    private static let stallLimit = TimeAmount.seconds(60)
    /// If nothing arrives for this time after the last answer, nothing more will.
    private static let quiet = TimeAmount.seconds(5)
    private static let data = String(repeating: "0123456789", count: 2)

    let crowd: Crowd
    private let session: SessionID
    private let tokens: [String]
    private var step = Step.joining
    private var next = 0
    private var ended = 0
    private var progress = NIODeadline.now()
    private(set) var retries = 0
    /// How many events of each type all members have received.
    private(set) var received: [String: Int] = [:]
    /// How many other members all members have learned of, in answers to a join, pages of the roster and events.
    private(set) var known = 0
    /// For each signal under way, how many members still have to receive it.
    private var missing: [String: Int] = [:]

    /// - Parameter dataLength: the length of the connection data in each member's token, which every member gets.
    init(crowd: Crowd, members: Int, dataLength: Int, project: Project) {
        self.crowd = crowd
        var generator = SplitMix64(state: 13)
        let now = Timestamp(milliseconds: now())
        let session = project.makeSessionID(mediaMode: .relayed, now: now, using: &generator)
        self.session = session
        // Each member has its own token, as in an application.
        tokens = (0..<members).map { number in
            let name = "member \(number) "
            let data = name + String(repeating: "x", count: max(0, dataLength - name.count))
            let claims = SessionTokenClaims(
                session: session, role: .publisher, data: data, lifetime: .seconds(3600))
            return project.makeSessionToken(claims, now: now, using: &generator)
        }
    }

    func join() throws -> Phase {
        try phase(.joining) { member in .session(.join(.init(session: self.session, token: self.tokens[member]))) }
    }

    func signal() throws -> Phase {
        try phase(.signaling) { member in
            self.missing["\(member)"] = self.tokens.count
            return .session(
                .signal(.init(session: self.session, type: "chat", data: "\(member) \(Self.data)")))
        }
    }

    func leave() throws -> Phase {
        try phase(.leaving) { _ in .session(.leave(.init(session: self.session))) }
    }

    /// Lets every member send one request, and waits for the answers, and for all signals and events that follow from them.
    private func phase(_ step: Step, _ make: @escaping (Int) -> ClientMessage) throws -> Phase {
        let (began, used) = (ContinuousClock.now, crowd.server.processorSeconds())
        nonisolated(unsafe) let make = make
        try crowd.run(within: .hours(1)) { [self] done in
            (self.step, next, ended, progress) = (step, 0, 0, .now())
            for client in crowd.clients {
                client.onMessage = { self.heard($1, done) }
                client.onEnd = { reason in
                    let code = client.closeCode.map { " with \($0.rawValue)" } ?? ""
                    let count = "\(self.ended) of \(self.tokens.count) members were done"
                    let what = "member \(client.tag) was closed\(code) (\(reason)) while \(step.rawValue)"
                    done.fail(LoadClient.Failure(description: "\(what); \(count)"))
                }
            }
            for _ in 0..<(step == .signaling ? Self.signals : Self.joins) { goOn(make, done) }
            watch(done)
        }
        let (seconds, attoseconds) = (ContinuousClock.now - began).components
        return Phase(
            seconds: Double(seconds) + Double(attoseconds) / 1e18, used: crowd.server.processorSeconds() - used)
    }

    private func goOn(_ make: @escaping (Int) -> ClientMessage, _ done: EventLoopPromise<Void>) {
        guard next < tokens.count else { return }
        let member = next
        next += 1
        send(make(member), by: member, make, done)
    }

    private func send(
        _ message: ClientMessage, by member: Int, _ make: @escaping (Int) -> ClientMessage,
        _ done: EventLoopPromise<Void>
    ) {
        nonisolated(unsafe) let make = make
        crowd.clients[member].request(message).whenSuccess { [self] answer in
            progress = .now()
            known += Self.members(in: answer)
            if case .error(let refusal) = answer {
                guard refusal.error.code == .rateLimited else {
                    return done.fail(LoadClient.Failure(refusal.error))
                }
                retries += 1
                let wait = refusal.error.retryAfter ?? .milliseconds(100)
                _ = crowd.loop.scheduleTask(in: .milliseconds(max(1, wait.wholeMilliseconds))) {
                    self.send(message, by: member, make, done)
                }
                return
            }
            ended += 1
            goOn(make, done)
            finish(done)
        }
    }

    private func heard(_ message: ServerMessage, _ done: EventLoopPromise<Void>) {
        progress = .now()
        if case .session(.signal(let signal)) = message {
            let sender = String(signal.data?.prefix { $0 != " " } ?? "")
            missing[sender, default: 0] -= 1
            if missing[sender] == 0 { missing[sender] = nil }
        }
        received[message.type, default: 0] += 1
        known += Self.members(in: message)
        finish(done)
    }

    /// Returns how many members a message tells of.
    private static func members(in message: ServerMessage) -> Int {
        switch message {
        case .session(.joined(let joined)): return joined.connections.count
        case .session(.connectionCreated): return 1
        default: break
        }
        // Newer servers send a long roster in pages. This program also has to work with servers that do not know them.
        guard message.type == "session.roster" else { return 0 }
        return String(decoding: message.encode(), as: UTF8.self).components(separatedBy: "\"createdAt\"").count - 1
    }

    /// How many other members all members have to learn of.
    var expectedKnown: Int { tokens.count * (tokens.count - 1) }
    /// How many departures all members learn of, if each learns of those before its own.
    var expectedDepartures: Int { tokens.count * (tokens.count - 1) / 2 }

    private func finish(_ done: EventLoopPromise<Void>) {
        guard ended == tokens.count else { return }
        switch step {
        case .joining: if known >= expectedKnown { done.succeed() }
        case .signaling: if missing.isEmpty { done.succeed() }
        case .leaving: if received["session.connectionDestroyed", default: 0] >= expectedDepartures { done.succeed() }
        }
    }

    /// Fails if nothing happens for a while.
    private func watch(_ done: EventLoopPromise<Void>) {
        let task = crowd.loop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { [self] _ in
            let silence = NIODeadline.now() - progress
            // A newer server may tell of departures in another way.
            if step == .leaving, ended == tokens.count, silence > Self.quiet { return done.succeed() }
            guard silence > Self.stallLimit else { return }
            let events = received.sorted { $0.key < $1.key }.map { "\($0.value) × \($0.key)" }
            let what = "nothing arrives while \(step.rawValue): \(ended) of \(tokens.count) members were done"
            let state = "\(known) of \(expectedKnown) members known, \(missing.count) signals incomplete"
            done.fail(LoadClient.Failure(description: "\(what), \(state), received \(events.joined(separator: ", "))"))
        }
        done.futureResult.whenComplete { _ in task.cancel() }
    }
}

extension Main {
    static func crowd(_ name: String, _ numbers: [Int]) throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let server = ServerProcess(name: name, port: numbers[0], id: numbers[1])
        let crowd = Crowd(server: server, loop: group.next())
        let members = numbers[2]
        let benchmark = SessionBenchmark(
            crowd: crowd, members: members, dataLength: numbers[3], project: try project())
        let what = "\(members) members in one session, \(name): "
        try crowd.open(members)
        let before = server.residentBytes()
        for (verb, run) in [
            ("join", benchmark.join), ("send a signal to all each", benchmark.signal), ("leave", benchmark.leave),
        ] {
            let phase = try run()
            row(
                "\(what)all \(verb)", "\(phase.seconds.text(1)) s (the server's CPU time: \(phase.used.text(1)) s)",
                "without a fault")
            guard verb.hasPrefix("send") else { continue }
            let delivered = Double(benchmark.received["session.signal", default: 0])
            // Benchmarks/run compares the figures of two servers.
            row("\(what)CPU time per delivered signal", "\((phase.used * 1e6 / delivered).text(3)) µs", "")
        }
        row(
            "\(what)departures that members learned of",
            "\(benchmark.received["session.connectionDestroyed", default: 0]) of \(benchmark.expectedDepartures)", "")
        row("\(what)requests repeated after `rate_limited`", "\(benchmark.retries)", "")
        let memory = [before, server.peakBytes()].map { ($0 / 1_000_000).text(0) }
        row("\(what)memory of the server before the joins and at the peak", "\(memory.joined(separator: ", ")) MB", "")
        try crowd.close()
    }
}
