import Cluster
import Logging
import NIOCore
import Redis
import Wire

/// A node that has places in Redis, posts letters to the other nodes and reads its own, with the server's code for that. It has no
/// clients, and does nothing with the letters but take the time.
///
/// The class is `@unchecked Sendable` because its state is used only on its loop.
final class LoadNode: @unchecked Sendable {
    /// What a node has counted.
    struct Counts {
        var posted = 0
        var received = 0
        /// The milliseconds from posting to receiving, of the letters in the measured time.
        var delays: [Double] = []
    }

    /// A place of this node: the person, and the number of the claim.
    private typealias Holding = (person: Int, claim: UInt64)

    /// How many claims are sent before the first answer when all places are claimed.
    private static let claimsUnderWay = 64
    /// The epoch under which claims count. Another one begins only when places are entered again.
    private var epoch: UInt64 = 1

    let tag: NodeTag
    let loop: any EventLoop
    private let client: NIORedisClient
    private let places: RedisPlaces
    private let post: RedisPost
    private let letters: LoadLetter
    private var random: SplitMix64
    private var connection: UInt64?
    private var holdings: [Holding] = []
    private var lastClaim: UInt64 = 0
    private var unclaimed = 0..<0
    private var open = 0
    private var counts = Counts()
    private var isMeasured = false
    /// What went wrong first; nil if nothing did.
    private var fault: String?

    private var traffic: Traffic?
    private var others: [NodeTag] = []
    private var people = 0
    private var lastPerson = 0
    private var dueTurn = NIODeadline.now()
    private var dueLetter = NIODeadline.now()
    private var dueArrival = NIODeadline.now()
    private var timer: Scheduled<Void>?

    init(_ number: Int, port: Int, on loop: any EventLoop) throws {
        guard let node = UInt16(exactly: number), let tag = NodeTag(node: node, life: UInt32(number)) else {
            throw Failure(description: "There are too many nodes.")
        }
        (self.tag, self.loop) = (tag, loop)
        var random = SplitMix64(state: UInt64(number))
        letters = try LoadLetter(using: &random)
        self.random = random
        client = try NIORedisClient(
            RedisConfiguration(.servers([try RedisURL("redis://127.0.0.1:\(port)")])), on: loop)
        places = RedisPlaces(client, of: tag)
        let start = ContinuousClock.now
        post = RedisPost(
            client, of: tag, secrets: SealingSecrets(current: "the same for all nodes"), eventLoop: loop,
            logger: Logger(label: "redis", factory: { _ in SwiftLogNoOpLogHandler() }),
            clock: { Cluster.Instant(ContinuousClock.now - start) })
    }

    private func fail(_ text: String) { fault = fault ?? text }

    // MARK: Connecting

    /// Connects and starts to read the letters that other nodes post to this one.
    func start() async throws {
        let ready = loop.makePromise(of: Void.self)
        loop.execute {
            self.post.standing = { _, _ in .living }
            self.post.receive = { [unowned self] items, handled, carriedOut in
                hear(items)
                handled()
                carriedOut()
            }
        }
        client.observe { self.changed(to: $0, ready) }
        try await ready.futureResult.get()
    }

    private func changed(to state: RedisState, _ ready: EventLoopPromise<Void>) {
        switch state {
        case .ready(let server):
            connection = server.connection
            Task { [places, loop] in
                do {
                    let store = try await places.identify(onlyOn: server.connection)
                    loop.execute {
                        self.post.connected(store: store, connection: server.connection)
                        ready.succeed()
                    }
                } catch {
                    ready.fail(error)
                }
            }
        case .disconnected(let error):
            fail("Redis was lost: \(error)")
            post.disconnected()
        case .connecting, .closed: break
        }
    }

    func close() async {
        try? await loop.submit { self.post.stop() }.get()
        await client.close()
    }

    /// Returns the parts of `INFO` that begin with a word, such as `cmdstat_xadd`, by their names.
    func information(_ section: String) async throws -> [Substring: Substring] {
        let answer = try await client.send(RedisCommand("INFO", .text(section))).text ?? ""
        return answer.split(whereSeparator: \.isNewline).reduce(into: [:]) { values, line in
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2 { values[parts[0]] = parts[1] }
        }
    }

    // MARK: Places

    private static func place(of person: Int) -> PlaceKey {
        // The ids of people are random. These are different for each person, and look random.
        var mixed = SplitMix64(state: UInt64(truncatingIfNeeded: person))
        return PlaceKey(.person, PersonID(high: mixed.next(), low: mixed.next()).description)
    }

    private func claim(_ number: UInt64) -> PlaceClaim { PlaceClaim(tag: tag, number: number) }

    private func send(_ command: PlaceCommand) async throws -> PlaceReply {
        let answer = loop.makePromise(of: PlaceReply.self)
        loop.execute {
            self.places.send(command, onlyOn: self.connection) { answer.completeWith($0.mapError { $0 as any Error }) }
        }
        return try await answer.futureResult.get()
    }

    /// Claims the places of these people, one command for each.
    func claim(_ people: Range<Int>) async throws {
        let done = loop.makePromise(of: Void.self)
        loop.execute {
            self.unclaimed = people
            for _ in 0..<Self.claimsUnderWay { self.claimNext(done) }
        }
        try await done.futureResult.get()
    }

    private func claimNext(_ done: EventLoopPromise<Void>) {
        guard let person = unclaimed.popFirst() else {
            if open == 0 { done.succeed() }
            return
        }
        open += 1
        claimPlace(of: person) { [self] isClaimed in
            open -= 1
            guard isClaimed else { return done.fail(Failure(description: "A place was not claimed.")) }
            claimNext(done)
        }
    }

    private func claimPlace(of person: Int, _ completion: @escaping @Sendable (Bool) -> Void) {
        lastClaim += 1
        let number = lastClaim
        let command = PlaceCommand.claim(Self.place(of: person), claim(number), epoch: epoch, void: [])
        places.send(command, onlyOn: connection) { [self] result in
            let isClaimed = result == .success(.claimed)
            if isClaimed { holdings.append((person, number)) }
            completion(isClaimed)
        }
    }

    /// Enters all places of this node under an epoch, as each node does after Redis has forgotten them.
    func register(under epoch: UInt64) async throws {
        let holdings = try await loop.submit {
            self.epoch = epoch
            return self.holdings.map { [$0.person, Int($0.claim)] }
        }.get()
        for start in stride(from: 0, to: max(1, holdings.count), by: PlaceRegistry.chunk) {
            var entries: [PlaceKey: PlaceClaim] = [:]
            for holding in holdings[start..<min(start + PlaceRegistry.chunk, holdings.count)] {
                entries[Self.place(of: holding[0])] = PlaceClaim(tag: tag, number: UInt64(holding[1]))
            }
            guard try await send(.register(entries, epoch: epoch, void: [])) == .registered(taken: [:]) else {
                throw Failure(description: "Places were not registered.")
            }
        }
    }

    /// A person leaves, another one comes, and the places of the contacts of both are looked up.
    private func replacePerson() {
        if let index = holdings.indices.randomElement(using: &random) {
            holdings.swapAt(index, holdings.count - 1)
            let (person, number) = holdings.removeLast()
            places.send(.release(Self.place(of: person), claim(number)), onlyOn: connection) { self.expect($0) }
        }
        // People are numbered across all nodes. The new ones are those behind the first `people`, and none belongs to two nodes.
        lastPerson += 1
        claimPlace(of: people + lastPerson * (others.count + 1) + Int(tag.node)) { [self] isClaimed in
            if !isClaimed { fail("A place was not claimed.") }
        }
        for _ in 0..<Traffic.lookUps {
            // About half of the contacts are absent.
            let contact = Int.random(in: 0..<(2 * people), using: &random)
            let place = Self.place(of: contact < people ? contact : -contact)
            places.send(.find(place, epoch: epoch), onlyOn: connection) { self.expect($0) }
        }
    }

    private func expect(_ result: Result<PlaceReply, RedisPlaces.Failure>) {
        switch result {
        case .success(.held), .success(.released): break
        default: fail("A place was answered with \(result).")
        }
    }

    // MARK: Letters

    /// Begins to post letters to the other nodes, and to claim, release and look up places.
    ///
    /// - Parameter people: the people on all nodes.
    func begin(_ traffic: Traffic, to others: [NodeTag], people: Int) async throws {
        try await loop.submit { [self] in
            (self.traffic, self.others, self.people) = (traffic, others, people)
            let now = NIODeadline.now()
            (dueTurn, dueLetter, dueArrival) = (now, now, now)
            step()
        }.get()
    }

    func end() async throws {
        try await loop.submit { [self] in
            traffic = nil
            timer?.cancel()
        }.get()
    }

    /// Does what is due, and comes back when more is.
    private func step() {
        guard let traffic, !others.isEmpty else { return }
        let now = NIODeadline.now()
        while dueArrival <= now {
            replacePerson()
            let arrivals = Double(people) / Double(traffic.nodes) / Traffic.stay
            dueArrival = dueArrival + Traffic.gap(perSecond: arrivals, using: &random)
        }
        switch traffic.turns {
        case .every(let turn):
            guard dueTurn <= now else { return wake(at: min(dueTurn, dueArrival)) }
            while dueLetter <= now {
                postLetters(Traffic.run)
                let runs = traffic.letters / Double(Traffic.run)
                dueLetter = dueLetter + Traffic.gap(perSecond: runs, using: &random)
            }
            dueTurn = now + turn
            wake(at: min(dueTurn, dueArrival))
        case .ofOneLetter:
            guard dueLetter <= now else { return wake(at: min(dueLetter, dueArrival)) }
            postLetters(1)
            dueLetter = dueLetter + Traffic.gap(perSecond: traffic.letters, using: &random)
            // The letter is packed when this turn ends, before the next one is posted.
            loop.execute { self.step() }
        }
    }

    private func wake(at deadline: NIODeadline) { timer = loop.scheduleTask(deadline: deadline) { self.step() } }

    private func postLetters(_ count: Int) {
        guard let receiver = others.randomElement(using: &random) else { return }
        for _ in 0..<count {
            post.post(letters.next(at: NIODeadline.now().uptimeNanoseconds, using: &random), to: receiver)
            counts.posted += 1
        }
    }

    private func hear(_ items: [RedisPost.Received]) {
        let now = NIODeadline.now().uptimeNanoseconds
        for item in items {
            switch item {
            case .letter(let letter, _):
                counts.received += 1
                guard let time = LoadLetter.time(of: letter), time <= now else {
                    fail("A letter arrived that was not posted.")
                    continue
                }
                if isMeasured { counts.delays.append(Double(now - time) / 1e6) }
            case .lost(let life): fail("Letters between \(tag) and \(life) were lost.")
            }
        }
    }

    // MARK: Figures

    /// Begins to collect delays, or ends it.
    func setMeasured(_ isMeasured: Bool) async throws {
        try await loop.submit { [self] in
            if isMeasured { counts.delays = [] }
            self.isMeasured = isMeasured
        }.get()
    }

    /// Returns what this node has counted since its start.
    ///
    /// - Throws: what went wrong, if anything did.
    func figures() async throws -> Counts {
        try await loop.submit { [self] in
            let seen = post.figures
            if seen.forged + seen.unreadable + seen.refused > 0 { fail("Letters had faults: \(seen).") }
            if let fault { throw Failure(description: fault) }
            return counts
        }.get()
    }
}
