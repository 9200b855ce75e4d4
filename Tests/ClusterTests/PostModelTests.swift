import Cluster
import TestSupport
import Testing

/// Lives that post to each other through a Redis that fails over and may lose its newest entries.
private struct PostModel {
    /// What the model does.
    struct Plan {
        var lives = 4
        /// The most that a failover loses, in milliseconds. More than 5 s cannot be posted again.
        var longestLoss = 3000
        var limits = PostOutbox.Limits()
    }

    private enum Event {
        case post(Int), read(Int), append(Int, [PostEntry], UInt64, connection: Int)
        case answer(Int, UInt64, connection: Int), connect(Int), cut(Int), failover, tick(Int)
    }

    private struct Life {
        let tag: NodeTag
        var outbox: PostOutbox
        var inbox = PostInbox()
        var connection: Int?
        var lastConnection = 0
        var store = 0
        var cursor = 0
        var accepted: [NodeTag: [Int]] = [:]
        /// How often each pair began again.
        var lost = 0
    }

    private struct Stored {
        let sender: NodeTag
        let entry: PostEntry
        let time: Int
    }

    private let plan: Plan
    private var random: SeededGenerator
    private var queue = EventQueue<Event>()
    private(set) var now = 0
    private var lives: [Life]
    /// The streams of the Redis that is the primary, by receiver.
    private var streams: [[Stored]]
    private var stores = 0
    var isCalm = false
    private(set) var posted: [[Int]]
    private(set) var failovers = 0

    init(_ plan: Plan, seed: UInt64) {
        self.plan = plan
        random = SeededGenerator(seed: seed)
        lives = (0..<plan.lives).map {
            Life(tag: NodeTag(node: UInt16($0 + 1), life: 1)!, outbox: PostOutbox(plan.limits))
        }
        streams = Array(repeating: [], count: plan.lives)
        posted = Array(repeating: Array(repeating: 0, count: plan.lives), count: plan.lives)
        for index in lives.indices {
            queue.add(.connect(index), at: 0)
            queue.add(.post(index), at: 1)
            queue.add(.read(index), at: 1)
            queue.add(.tick(index), at: 50)
        }
        queue.add(.failover, at: 2000)
    }

    var accepted: Int { lives.reduce(0) { $0 + $1.accepted.values.reduce(0) { $0 + $1.count } } }
    var sent: Int { posted.joined().reduce(0, +) }
    var lost: Int { lives.reduce(0) { $0 + $1.lost } }

    /// Each pair's letters in the order in which they were accepted.
    var sequences: [(sent: Int, accepted: [Int])] {
        lives.indices.flatMap { sender in
            lives.indices.filter { $0 != sender }.map { receiver in
                (posted[sender][receiver], lives[receiver].accepted[lives[sender].tag] ?? [])
            }
        }
    }

    /// Whether each life has the last letter of every other one.
    var hasEveryLast: Bool { sequences.allSatisfy { $0.accepted.last == $0.sent } }

    /// Lets each life post to every other one.
    mutating func postToAll() {
        for index in lives.indices { for other in lives.indices where other != index { post(index, to: other) } }
    }

    mutating func run(events: Int) {
        for _ in 0..<events {
            guard let (time, event) = queue.next() else { return }
            now = max(now, Int(time))
            handle(event)
        }
    }

    private mutating func upTo(_ most: Int) -> Int { Int.random(in: 0...most, using: &random) }
    private var instant: Instant { Instant(.milliseconds(now)) }
    private mutating func later(_ event: Event, in most: Int) { queue.add(event, at: Int64(now + 1 + upTo(most))) }

    private mutating func handle(_ event: Event) {
        switch event {
        case .post(let index): post(index)
        case .read(let index): read(index)
        case .append(let index, let entries, let number, let connection):
            append(index, entries, number, connection)
        case .answer(let index, let number, let connection):
            guard lives[index].connection == connection else { return }
            perform(index, lives[index].outbox.answered(number, .stored, at: instant))
        case .connect(let index): connect(index)
        case .cut(let index):
            lives[index].connection = nil
            lives[index].outbox.disconnected()
            later(.connect(index), in: 500)
        case .failover: failover()
        case .tick(let index):
            perform(index, lives[index].outbox.tick(at: instant))
            queue.add(.tick(index), at: Int64(now + 50))
        }
    }

    private mutating func post(_ index: Int) {
        guard !isCalm else { return }
        var other = upTo(plan.lives - 2)
        if other >= index { other += 1 }
        post(index, to: other)
        later(.post(index), in: 40)
        if upTo(400) == 0 { queue.add(.cut(index), at: Int64(now + 1)) }
    }

    private mutating func post(_ index: Int, to other: Int) {
        posted[index][other] += 1
        let number = posted[index][other]
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
        perform(index, lives[index].outbox.post(.letters(bytes), to: lives[other].tag, at: instant))
    }

    private mutating func perform(_ index: Int, _ effects: [PostOutbox.Effect]) {
        for effect in effects {
            switch effect {
            case .append(let entries, let number):
                guard let connection = lives[index].connection else { continue }
                later(.append(index, entries, number, connection: connection), in: 3)
            case .lost: lives[index].lost += 1
            }
        }
    }

    /// Redis carries a command out, also if its connection was lost on the way of the answer.
    private mutating func append(_ index: Int, _ entries: [PostEntry], _ number: UInt64, _ connection: Int) {
        guard lives[index].store == stores, lives[index].connection == connection || upTo(1) == 0 else { return }
        for entry in entries {
            streams[Int(entry.receiver.node) - 1].append(Stored(sender: lives[index].tag, entry: entry, time: now))
        }
        later(.answer(index, number, connection: connection), in: 3)
    }

    private mutating func connect(_ index: Int) {
        guard lives[index].connection == nil else { return }
        lives[index].lastConnection += 1
        lives[index].connection = lives[index].lastConnection
        // Ids of another Redis can be older than what was read, so its streams are read from the beginning.
        if lives[index].store != stores { (lives[index].store, lives[index].cursor) = (stores, 0) }
        perform(index, lives[index].outbox.connected(store: "\(stores)", at: instant))
    }

    private mutating func failover() {
        defer { queue.add(.failover, at: Int64(now + 1000 + upTo(5000))) }
        guard !isCalm else { return }
        failovers += 1
        stores += 1
        let end = now - upTo(plan.longestLoss)
        for index in streams.indices { streams[index].removeAll { $0.time > end } }
        for index in lives.indices {
            lives[index].connection = nil
            lives[index].outbox.disconnected()
            later(.connect(index), in: 1500)
        }
    }

    private mutating func read(_ index: Int) {
        // Sometimes a node reads nothing for a while, so a failover loses what nobody has read.
        defer { later(.read(index), in: upTo(300) == 0 ? 5000 : 5) }
        guard lives[index].connection != nil, lives[index].store == stores else { return }
        for _ in 0..<20 where lives[index].cursor < streams[index].count {
            let stored = streams[index][lives[index].cursor]
            lives[index].cursor += 1
            var isReset = false
            if case .reset = stored.entry.content { isReset = true }
            let effects = lives[index].inbox.receive(
                stored.entry.position, isReset: isReset, from: stored.sender, standing: .living, at: instant)
            for effect in effects { judged(index, stored, effect) }
        }
    }

    private mutating func judged(_ index: Int, _ stored: Stored, _ effect: PostInbox.Effect) {
        switch effect {
        case .accept:
            switch stored.entry.content {
            case .letters([]): break
            case .letters(let bytes):
                let number = bytes.enumerated().reduce(0) { $0 | Int($1.element) << ($1.offset * 8) }
                lives[index].accepted[stored.sender, default: []].append(number)
            case .reset(let series):
                perform(index, lives[index].outbox.reset(by: stored.sender, series: series, at: instant))
            }
        case .lost: lives[index].lost += 1
        case .askReset(let life, let series):
            perform(index, lives[index].outbox.post(.reset(series: series), to: life, at: instant))
        case .keep: break
        }
    }
}

@Suite("Posting in bad weather")
struct PostModelTests {
    private func run(_ plan: PostModel.Plan, seed: UInt64, events: Int) -> PostModel {
        var model = PostModel(plan, seed: seed)
        model.run(events: events)
        model.isCalm = true
        model.run(events: 100_000)
        let lost = model.lost
        // Each gap was noticed without another entry, and the next one arrives.
        model.postToAll()
        model.run(events: 100_000)
        #expect(model.lost == lost && model.hasEveryLast, "seed \(seed)")
        print(
            "post, seed \(seed): \(model.sent) posted, \(model.accepted) accepted, \(model.failovers) failovers, "
                + "\(model.lost) pairs began again")
        return model
    }

    @Test("failovers that lose up to 3 s lose no letter, repeat none, and keep the order")
    func nothingIsLost() {
        let seed = Weather.seed()
        let model = run(PostModel.Plan(), seed: seed, events: 200_000)
        #expect(model.failovers > 10, "seed \(seed)")
        #expect(model.lost == 0, "seed \(seed)")
        for (sent, accepted) in model.sequences { #expect(accepted == Array(1...sent), "seed \(seed)") }
    }

    @Test("if a failover loses more than can be posted again, both sides begin again, and nothing is repeated")
    func tooMuchIsLost() {
        let seed = Weather.seed()
        var plan = PostModel.Plan()
        plan.longestLoss = 9000
        plan.limits.keptFor = .seconds(1)
        let model = run(plan, seed: seed, events: 200_000)
        #expect(model.lost > 10, "seed \(seed)")
        #expect(model.accepted < model.sent && model.accepted > model.sent / 20, "seed \(seed)")
        for (sent, accepted) in model.sequences {
            #expect(zip(accepted, accepted.dropFirst()).allSatisfy { $0 < $1 }, "seed \(seed)")
            #expect(accepted.last.map { $0 <= sent } ?? true, "seed \(seed)")
        }
    }

    @Test("without posting again the model finds letters that are lost")
    func findsLoss() {
        let seed = Weather.seed()
        var plan = PostModel.Plan()
        plan.limits.keptFor = .zero
        let model = run(plan, seed: seed, events: 200_000)
        #expect(model.lost > 0 && model.accepted < model.sent, "seed \(seed)")
    }
}
