import Cluster
import Signaling
import TestSupport
import Testing
import Wire

@testable import Redis
@testable import Server

/// Letters between lives through a Redis that these tests start.
@Suite(
    .enabled(if: RunningRedis.executable != nil, "redis-server is not installed, so letters are not tested with it."),
    .timeLimit(.minutes(3)))
struct RedisPostTests {
    /// Starts lives at a Redis, and closes them after the body. They are not connected yet.
    private func withLives(
        _ count: UInt16, settings: RedisPost.Settings = RedisPost.Settings(),
        _ body: ([PostingLife], RunningRedis) async throws -> Void
    ) async throws {
        let redis = try await RunningRedis()
        defer { redis.remove() }
        var lives: [PostingLife] = []
        for node in 1...count { lives.append(try await PostingLife(node, at: redis, settings: settings)) }
        do {
            try await body(lives, redis)
        } catch {
            for life in lives { await life.close() }
            throw error
        }
        for life in lives { await life.close() }
    }

    /// Waits until a life has received the letters 1 to `last` of another one. Others, or another order, are an error.
    private func expectAll(_ last: Int, at receiver: PostingLife, from sender: PostingLife) async throws {
        try await until("node \(receiver.tag.node) has \(last) letters of node \(sender.tag.node)") {
            receiver.numbers(from: sender).count >= last
        }
        #expect(receiver.numbers(from: sender) == Array(1...last))
    }

    // MARK: Letters

    @Test func `letters arrive once, wholly and in the order in which they were posted`() async throws {
        try await withLives(3) { lives, _ in
            for life in lives { life.connect() }
            for part in 0..<10 {
                for sender in lives {
                    let numbers = (part * 50 + 1)...(part * 50 + 50)
                    try await sender.send(numbers, to: lives.map(\.tag).filter { $0 != sender.tag })
                }
            }
            for sender in lives {
                for receiver in lives where receiver !== sender {
                    try await expectAll(500, at: receiver, from: sender)
                }
            }
            for life in lives {
                try await until("what was carried out is removed from the stream") {
                    try await life.streamLength() == 0
                }
                let figures = try await life.run { $0.figures }
                #expect(figures == RedisPost.Figures(posted: 1000, received: 1000))
                #expect(try await life.run { $0.dropped } == 0)
                #expect(life.losses == 0)
            }
        }
    }

    @Test func `a letter that is larger than an entry arrives between its neighbors`() async throws {
        try await withLives(2) { lives, _ in
            let description = String(repeating: "\u{1F373}a=candidate\r\n", count: 15_000)
            let large = Letter.media(
                .offer(ConnectionID(high: 1, low: 2), in: nil, re: 3, .send, sdp: description))
            let receiver = lives[1].tag
            for life in lives { life.connect() }
            try await lives[0].run { post in
                post.post(PostingLife.letter(1), to: receiver)
                post.post(large, to: receiver)
                post.post(PostingLife.letter(2), to: receiver)
            }
            try await until("all three have arrived") { lives[1].received.count == 3 }
            let letters = [PostingLife.letter(1), large, PostingLife.letter(2)]
            #expect(lives[1].received == letters.map { .letter($0, from: lives[0].tag) })
        }
    }

    @Test func `a letter that has no form for other nodes is dropped, and the others arrive`() async throws {
        try await withLives(2) { lives, _ in
            let receiver = lives[1].tag
            for life in lives { life.connect() }
            try await lives[0].run { $0.post(.hall(IdentityID(high: 1, low: 1)), to: receiver) }
            try await lives[0].send([1], to: [receiver])
            try await expectAll(1, at: lives[1], from: lives[0])
            #expect(try await lives[0].run { $0.figures.refused } == 1)
        }
    }

    @Test func `what is received while the rules have not handled the entries before stays in Redis`() async throws {
        try await withLives(2) { lives, _ in
            for life in lives { life.connect() }
            try await lives[1].run { post in post.receive = { _, _, _ in } }
            try await lives[0].send(1...1, to: [lives[1].tag])
            try await until("the first entry was read") { try await lives[1].run { $0.figures.received } == 1 }
            for number in 2...300 { try await lives[0].send([number], to: [lives[1].tag]) }
            try await until("all entries are stored") { try await lives[1].streamLength() ?? 0 >= 2 }
            #expect(try await lives[1].run { $0.figures.received } == 1)
        }
    }

    // MARK: Lives

    @Test func `Redis refuses the letters of a fenced life`() async throws {
        try await withLives(2) { lives, _ in
            try await RedisPlaces(lives[1].client, of: lives[1].tag).announceDeath(of: lives[0].tag)
            for life in lives { life.connect() }
            try await lives[0].send(1...10, to: [lives[1].tag])
            try await until("Redis has refused it") { try await lives[0].run { $0.isFenced } }
            #expect(try await lives[1].streamLength() == 0)
            #expect(lives[1].received.isEmpty)
        }
    }

    @Test func `letters to a life that has ended are dropped, and do not hold up the others`() async throws {
        try await withLives(3) { lives, _ in
            try await RedisPlaces(lives[0].client, of: lives[0].tag).announceDeath(of: lives[1].tag)
            for life in lives { life.connect() }
            try await lives[0].send(1...10, to: [lives[1].tag, lives[2].tag])
            try await expectAll(10, at: lives[2], from: lives[0])
            #expect(try await lives[1].streamLength() == 0)
        }
    }

    @Test func `entries of a life that may have ended are kept until that is known`() async throws {
        try await withLives(2) { lives, _ in
            for life in lives { life.connect() }
            lives[1].regard(othersAs: .unclear)
            try await lives[0].send(1...3, to: [lives[1].tag])
            try await until("the entry was read") { try await lives[1].run { $0.keptCount } == 1 }
            try await lives[1].run { $0.looked() }
            #expect(lives[1].received.isEmpty)
            lives[1].regard(othersAs: .living)
            try await lives[1].run { $0.looked() }
            try await expectAll(3, at: lives[1], from: lives[0])
            lives[1].regard(othersAs: .ended)
            try await lives[0].send(4...4, to: [lives[1].tag])
            try await until("the last entry was dropped") { try await lives[1].run { $0.dropped } == 1 }
            #expect(lives[1].numbers(from: lives[0]) == [1, 2, 3])
        }
    }

    // MARK: A stolen password of Redis

    @Test func `an entry that is written again is refused and counted`() async throws {
        try await withLives(2) { lives, _ in
            // The receiver does not read yet, so the entries can be copied.
            lives[0].connect()
            for number in 1...3 { try await lives[0].send([number], to: [lives[1].tag]) }
            try await until("three entries are stored") { try await lives[1].entries().count == 3 }
            let recorded = try await lives[1].entries()
            for entry in recorded + recorded.reversed() { try await lives[1].write(entry) }
            lives[1].connect()
            try await expectAll(3, at: lives[1], from: lives[0])
            try await until("the copies were refused") { try await lives[1].run { $0.dropped } == 6 }
            // Later, too.
            try await lives[1].write(recorded[0])
            try await until("the late copy was refused") { try await lives[1].run { $0.dropped } == 7 }
            try await lives[0].send([4], to: [lives[1].tag])
            try await expectAll(4, at: lives[1], from: lives[0])
            #expect(lives[1].losses == 0)
        }
    }

    @Test func `the password of Redis alone lets an attacker withhold letters, but not forge one`() async throws {
        try await withLives(3) { lives, redis in
            let stranger = try await PostingLife(1, at: redis, secret: "another")
            lives[0].connect()
            stranger.connect()
            try await lives[0].send([1], to: [lives[2].tag])
            try await stranger.send([1], to: [lives[1].tag])
            try await until("both have posted") {
                guard try await lives[2].streamLength() == 1 else { return false }
                return try await lives[1].streamLength() == 1
            }
            let forOther = try await lives[2].entries()[0]
            try await lives[1].write(forOther)
            var changed = forOther
            changed[3] = .bytes([1] + [UInt8](repeating: 7, count: 60))
            let sender = lives[0].tag.description
            for fields: [RedisCommand.Argument] in [
                changed, ["from", .text(sender), "entry", ""], ["from", .text(sender)], ["entry", "x"],
                ["from", "0-0", "entry", "x"], ["from", .text(lives[1].tag.description), "entry", forOther[3]],
                ["from", .bytes([UInt8](repeating: 65, count: 100_000)), "entry", "x"],
                ["from", .text(sender), "entry", .bytes([UInt8](repeating: 1, count: 300_000))], ["a", "b"],
            ] { try await lives[1].write(fields) }
            try await lives[0].send([1, 2], to: [lives[1].tag])
            lives[1].connect()
            try await expectAll(2, at: lives[1], from: lives[0])
            #expect(try await lives[1].run { $0.figures.forged } == 11)
            #expect(lives[1].received.count == 2 && lives[1].losses == 0)
            await stranger.close()
        }
    }

    @Test func `if entries are deleted from a stream both sides hear of the loss and begin again`() async throws {
        try await withLives(2) { lives, _ in
            lives[0].connect()
            try await lives[0].send([1], to: [lives[1].tag])
            try await until("the entry is stored") { try await lives[1].streamLength() == 1 }
            try await lives[1].client.send(RedisCommand("DEL", .text(PostScripts.streamKey(of: lives[1].tag))))
            lives[1].connect()
            try await lives[0].send([2], to: [lives[1].tag])
            try await until("both have heard of it") { lives[0].losses == 1 && lives[1].losses == 1 }
            #expect(lives[1].numbers(from: lives[0]).isEmpty)
            try await lives[0].send([3], to: [lives[1].tag])
            try await until("the next letter has arrived") { lives[1].numbers(from: lives[0]) == [3] }
        }
    }

    // MARK: Faults of Redis

    @Test func `a Redis that starts again empty loses no letter, and repeats none`() async throws {
        try await withLives(2) { lives, redis in
            for life in lives { life.connect() }
            try await lives[0].send(1...100, to: [lives[1].tag])
            try await expectAll(100, at: lives[1], from: lives[0])
            // Nobody reads these before the crash.
            lives[1].regard(othersAs: .unclear)
            for number in 101...150 { try await lives[0].send([number], to: [lives[1].tag]) }
            redis.crash()
            try await lives[0].send(151...200, to: [lives[1].tag])
            try await redis.start()
            lives[1].regard(othersAs: .living)
            try await lives[1].run { $0.looked() }
            try await expectAll(200, at: lives[1], from: lives[0])
            #expect(lives[0].losses == 0 && lives[1].losses == 0)
        }
    }

    @Test func `a full stream makes the sender wait, and nothing is lost`() async throws {
        var settings = RedisPost.Settings()
        settings.maxLength = 10
        settings.outbox.batchCount = 1
        settings.outbox.waiting = 200
        // However slow this machine is.
        settings.outbox.fullFor = .seconds(3600)
        try await withLives(2, settings: settings) { lives, _ in
            lives[0].connect()
            let isRelieved = try await lives[0].run { post in
                let relief = Relief()
                post.relieved = { relief.note() }
                return relief
            }
            for number in 1...30 { try await lives[0].send([number], to: [lives[1].tag]) }
            try await until("the stream is full") { try await lives[1].streamLength() == 10 }
            #expect(try await lives[1].run { $0.streamLength } == nil, "it has not asked")
            #expect(try await lives[0].run { $0.isCongested })
            lives[1].connect()
            try await expectAll(30, at: lives[1], from: lives[0])
            #expect(try await lives[0].run { $0.isCongested } == false)
            #expect(isRelieved.count > 0)
            try await until("the length of the stream is measured") {
                try await lives[1].run { post in
                    post.measureStream()
                    return post.streamLength
                } != nil
            }
        }
    }

    @Test func `a failover to a replica loses no letter, and repeats none`() async throws {
        let primary = try await RunningRedis()
        defer { primary.remove() }
        let replica = try await RunningRedis(["replicaof 127.0.0.1 \(primary.port)"])
        defer { replica.remove() }
        let direct = try ObservedClient(primary)
        try await until("the replica is in step") {
            try await direct.client.send(RedisCommand("INFO", "replication")).text?.contains("state=online") == true
        }
        await direct.client.close()
        let sentinel = try await RunningRedis(
            [
                "sentinel monitor confab 127.0.0.1 \(primary.port) 1", "sentinel down-after-milliseconds confab 500",
                "sentinel failover-timeout confab 5000",
            ], isSentinel: true)
        defer { sentinel.remove() }
        try await sentinel.waitForReplica(of: "confab")
        let configuration = RedisConfiguration(
            .sentinels([try RedisURL(sentinel.url)], primaryName: "confab", credentials: nil, isSecure: false))
        let lives = [try await PostingLife(1, at: configuration), try await PostingLife(2, at: configuration)]
        for life in lives { life.connect() }
        try await lives[0].send(1...100, to: [lives[1].tag])
        try await expectAll(100, at: lives[1], from: lives[0])
        try await lives[0].send(101...150, to: [lives[1].tag])
        primary.crash()
        for number in 151...300 { try await lives[0].send([number], to: [lives[1].tag]) }
        try await lives[1].send(1...50, to: [lives[0].tag])
        try await expectAll(300, at: lives[1], from: lives[0])
        try await expectAll(50, at: lives[0], from: lives[1])
        #expect(lives[0].losses == 0 && lives[1].losses == 0)
        for life in lives { await life.close() }
    }
}

/// Counts how often a congestion has ended.
private final class Relief: @unchecked Sendable {
    // Used on one event loop, and read after it.
    private(set) var count = 0
    func note() { count += 1 }
}
