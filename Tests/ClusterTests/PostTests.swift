import Cluster
import Testing

@Suite("Posting entries")
struct PostTests {
    private static let receiver = NodeTag(node: 2, life: 7)!
    private static let third = NodeTag(node: 3, life: 8)!

    private static func at(_ milliseconds: Int) -> Instant { Instant(.milliseconds(milliseconds)) }

    private static func letters(_ byte: UInt8, count: Int = 1) -> PostContent {
        .letters(Array(repeating: byte, count: count))
    }

    private static func appended(_ effects: [PostOutbox.Effect]) -> (entries: [PostEntry], number: UInt64)? {
        for case .append(let entries, let number) in effects { return (entries, number) }
        return nil
    }

    @Test("entries are numbered for each receiver, and appended in the order in which they were posted")
    func order() throws {
        var outbox = PostOutbox()
        for (index, to) in [Self.receiver, Self.third, Self.receiver].enumerated() {
            #expect(outbox.post(Self.letters(UInt8(index)), to: to, at: Self.at(0)).isEmpty)
        }
        let batch = try #require(Self.appended(outbox.connected(store: "a", at: Self.at(1))))
        #expect(batch.entries.map(\.receiver) == [Self.receiver, Self.third, Self.receiver])
        #expect(batch.entries.map(\.position.number) == [1, 1, 2])
    }

    @Test("one batch is under way at a time, and has a limited size")
    func batches() throws {
        var outbox = PostOutbox()
        _ = outbox.connected(store: "a", at: Self.at(0))
        let first = try #require(Self.appended(outbox.post(Self.letters(1), to: Self.receiver, at: Self.at(0))))
        for _ in 0..<150 {
            let effects = outbox.post(Self.letters(2, count: 1000), to: Self.receiver, at: Self.at(0))
            #expect(effects.isEmpty)
        }
        let second = try #require(Self.appended(outbox.answered(first.number, .stored, at: Self.at(1))))
        #expect(second.entries.count == 100)
        let third = try #require(Self.appended(outbox.answered(second.number, .stored, at: Self.at(1))))
        #expect(third.entries.map(\.position.number) == Array(102...151))
    }

    @Test("an outage does not count: what was stored shortly before it is kept for the Redis that follows")
    func outage() throws {
        var outbox = PostOutbox()
        _ = outbox.connected(store: "a", at: Self.at(0))
        let batch = try #require(Self.appended(outbox.post(Self.letters(1), to: Self.receiver, at: Self.at(0))))
        _ = outbox.answered(batch.number, .stored, at: Self.at(0))
        #expect(outbox.nextWakeUp == Self.at(5000))
        outbox.disconnected()
        #expect(outbox.nextWakeUp == nil)
        #expect(outbox.tick(at: Self.at(400_000)).isEmpty)
        let again = try #require(Self.appended(outbox.connected(store: "b", at: Self.at(400_000))))
        #expect(again.entries.map(\.position.number) == [1, 2])
    }

    @Test("a Redis that took over gets what was stored within the last 5 s once more")
    func takeover() throws {
        var outbox = PostOutbox()
        _ = outbox.connected(store: "a", at: Self.at(0))
        for (index, time) in [0, 3000, 6000].enumerated() {
            let effects = outbox.post(Self.letters(UInt8(index)), to: Self.receiver, at: Self.at(time))
            let batch = try #require(Self.appended(effects))
            _ = outbox.answered(batch.number, .stored, at: Self.at(time))
        }
        outbox.disconnected()
        _ = outbox.tick(at: Self.at(7000))
        let same = Self.appended(outbox.connected(store: "a", at: Self.at(7000)))
        #expect(same == nil, "the same Redis has it")
        let again = try #require(Self.appended(outbox.connected(store: "b", at: Self.at(7000))))
        #expect(again.entries.map(\.position.number) == [2, 3, 4])
        #expect(again.entries.last?.content == .letters([]))
    }

    @Test("the time from posting an entry until it is stored is known, and what is posted again is counted")
    func figures() throws {
        var outbox = PostOutbox()
        for time in [10, 20] { _ = outbox.post(Self.letters(1), to: Self.receiver, at: Self.at(time)) }
        let batch = try #require(Self.appended(outbox.connected(store: "a", at: Self.at(30))))
        #expect(outbox.oldestPosted(inBatch: batch.number) == Self.at(10))
        #expect(outbox.oldestPosted(inBatch: batch.number + 1) == nil)
        _ = outbox.answered(batch.number, .failed, at: Self.at(40))
        #expect(outbox.oldestPosted(inBatch: batch.number) == nil)
        let second = try #require(Self.appended(outbox.tick(at: Self.at(140))))
        #expect(outbox.oldestPosted(inBatch: second.number) == Self.at(10))
        _ = outbox.answered(second.number, .stored, at: Self.at(150))
        #expect(outbox.repostedCount == 0)
        outbox.disconnected()
        // The time since they were stored in the former Redis says nothing about this one.
        let again = try #require(Self.appended(outbox.connected(store: "b", at: Self.at(2000))))
        #expect(outbox.oldestPosted(inBatch: again.number) == Self.at(2000))
        #expect(outbox.repostedCount == 2)
    }

    @Test("a Redis that took over gets an empty entry for everybody, so that they notice if the last ones are lost")
    func announced() throws {
        var outbox = PostOutbox()
        _ = outbox.connected(store: "a", at: Self.at(0))
        let first = try #require(Self.appended(outbox.post(Self.letters(1), to: Self.receiver, at: Self.at(0))))
        _ = outbox.answered(first.number, .stored, at: Self.at(0))
        _ = outbox.tick(at: Self.at(60_000))
        let later = try #require(Self.appended(outbox.connected(store: "b", at: Self.at(60_000))))
        var inbox = PostInbox()
        let position = try #require(later.entries.first?.position)
        let sender = Self.third
        let effects = inbox.receive(position, from: sender, standing: .living, at: Self.at(60_000))
        #expect(effects == [.lost(sender), .askReset(sender, series: 1)])
    }

    @Test("what was under way when the connection was lost is appended again")
    func unknownOutcome() throws {
        var outbox = PostOutbox()
        _ = outbox.connected(store: "a", at: Self.at(0))
        let first = try #require(Self.appended(outbox.post(Self.letters(1), to: Self.receiver, at: Self.at(0))))
        outbox.disconnected()
        let again = try #require(Self.appended(outbox.connected(store: "a", at: Self.at(10))))
        #expect(again.entries == first.entries)
        #expect(outbox.answered(first.number, .stored, at: Self.at(11)).isEmpty, "an answer of the earlier connection")
    }

    @Test("a full stream is tried again, and stops the node from reading more when much waits")
    func full() throws {
        var outbox = PostOutbox()
        _ = outbox.connected(store: "a", at: Self.at(0))
        let first = try #require(Self.appended(outbox.post(Self.letters(1), to: Self.receiver, at: Self.at(0))))
        #expect(outbox.answered(first.number, .full([Self.receiver]), at: Self.at(1)).isEmpty)
        #expect(outbox.nextWakeUp == Self.at(101))
        for _ in 0..<5 { _ = outbox.post(Self.letters(2, count: 1 << 20), to: Self.receiver, at: Self.at(2)) }
        #expect(outbox.isCongested)
        let again = try #require(Self.appended(outbox.tick(at: Self.at(101))))
        #expect(again.entries.map(\.position.number) == [1])
    }

    @Test(
        "a stream that stays full does not stop the entries for others: its own are given up, and none follow for a while"
    )
    func stuck() throws {
        var outbox = PostOutbox()
        _ = outbox.connected(store: "a", at: Self.at(0))
        var batch = try #require(Self.appended(outbox.post(Self.letters(1), to: Self.receiver, at: Self.at(0))))
        #expect(outbox.post(Self.letters(2), to: Self.third, at: Self.at(0)).isEmpty)
        #expect(outbox.answered(batch.number, .full([Self.receiver]), at: Self.at(100)).isEmpty)
        batch = try #require(Self.appended(outbox.tick(at: Self.at(5000))))
        #expect(batch.entries.map(\.receiver) == [Self.receiver, Self.third])
        #expect(outbox.answered(batch.number, .full([Self.receiver]), at: Self.at(5050)).isEmpty, "not yet for 5 s")

        batch = try #require(Self.appended(outbox.tick(at: Self.at(5150))))
        let effects = outbox.answered(batch.number, .full([Self.receiver]), at: Self.at(5160))
        #expect(effects.first == .lost(Self.receiver))
        batch = try #require(Self.appended(effects))
        #expect(batch.entries.map(\.receiver) == [Self.third])
        #expect(outbox.answered(batch.number, .stored, at: Self.at(5170)).isEmpty)
        #expect(outbox.post(Self.letters(3), to: Self.receiver, at: Self.at(6000)).isEmpty, "it is left alone")

        #expect(outbox.tick(at: Self.at(35_160)) == [.lost(Self.receiver)], "both begin again")
        batch = try #require(Self.appended(outbox.post(Self.letters(4), to: Self.receiver, at: Self.at(35_161))))
        #expect(batch.entries.map(\.position) == [PostPosition(series: 2, number: 1)])
    }

    @Test("what waits is limited: a receiver's entries are given up, and a new series begins")
    func limited() throws {
        var limits = PostOutbox.Limits()
        limits.maxWaiting = 10_000
        var outbox = PostOutbox(limits)
        for _ in 0..<9 {
            let effects = outbox.post(Self.letters(1, count: 1000), to: Self.receiver, at: Self.at(0))
            #expect(effects.isEmpty)
        }
        #expect(outbox.post(Self.letters(2, count: 1000), to: Self.receiver, at: Self.at(0)) == [.lost(Self.receiver)])
        let batch = try #require(Self.appended(outbox.connected(store: "a", at: Self.at(1))))
        #expect(batch.entries.map(\.position) == [PostPosition(series: 2, number: 1)])
    }

    @Test("nothing is posted to a life that has ended")
    func ended() throws {
        var outbox = PostOutbox()
        _ = outbox.connected(store: "a", at: Self.at(0))
        let first = try #require(Self.appended(outbox.post(Self.letters(1), to: Self.receiver, at: Self.at(0))))
        _ = outbox.post(Self.letters(2), to: Self.third, at: Self.at(0))
        let rest = try #require(Self.appended(outbox.answered(first.number, .ended([Self.receiver]), at: Self.at(1))))
        #expect(rest.entries.map(\.receiver) == [Self.third])
        // Otherwise the positions would begin again, which the seal must not see.
        _ = outbox.post(Self.letters(3), to: Self.receiver, at: Self.at(2))
        #expect(Self.appended(outbox.answered(rest.number, .stored, at: Self.at(3))) == nil)
    }

    @Test("each entry is accepted once and in order, also if it is stored again")
    func once() {
        var inbox = PostInbox()
        var accepted: [UInt64] = []
        for number in [1, 2, 1, 2, 3, 3] as [UInt64] {
            let effects = inbox.receive(
                PostPosition(number: number), from: Self.receiver, standing: .living, at: Self.at(0))
            if effects == [.accept] { accepted.append(number) }
        }
        #expect(accepted == [1, 2, 3])
        #expect(inbox.dropped == 3)
    }

    @Test("after a gap nothing of the series is accepted, and a new one is asked for once a second")
    func gap() {
        var inbox = PostInbox()
        func receive(_ series: UInt32, _ number: UInt64, at time: Int) -> [PostInbox.Effect] {
            inbox.receive(
                PostPosition(series: series, number: number), from: Self.receiver, standing: .living, at: Self.at(time))
        }
        #expect(receive(1, 1, at: 0) == [.accept])
        #expect(receive(1, 3, at: 1) == [.lost(Self.receiver), .askReset(Self.receiver, series: 1)])
        #expect(receive(1, 2, at: 2).isEmpty, "an entry that comes late is lost too: its place was given up")
        #expect(receive(1, 4, at: 1100) == [.askReset(Self.receiver, series: 1)])
        #expect(receive(2, 1, at: 1200) == [.accept])
        #expect(receive(1, 5, at: 1300).isEmpty)
        #expect(receive(3, 1, at: 1400) == [.lost(Self.receiver), .accept], "the sender gave the series up by itself")
    }

    @Test("entries of a life that has ended are dropped, also if they are stored again from the beginning")
    func replayed() {
        var inbox = PostInbox()
        let first = inbox.receive(PostPosition(), from: Self.receiver, standing: .living, at: Self.at(0))
        #expect(first == [.accept])
        inbox.ended(Self.receiver)
        let again = inbox.receive(PostPosition(), from: Self.receiver, standing: .ended, at: Self.at(1))
        #expect(again.isEmpty)
        let unknown = inbox.receive(PostPosition(), from: Self.third, standing: .unclear, at: Self.at(1))
        #expect(unknown == [.keep])
    }

    @Test("a sender begins a new series once for each that a receiver has lost")
    func resets() throws {
        var outbox = PostOutbox()
        _ = outbox.post(Self.letters(1), to: Self.receiver, at: Self.at(0))
        #expect(outbox.reset(by: Self.receiver, series: 1, at: Self.at(0)) == [.lost(Self.receiver)])
        #expect(outbox.reset(by: Self.receiver, series: 1, at: Self.at(0)).isEmpty, "asked twice")
        #expect(outbox.reset(by: Self.third, series: 1, at: Self.at(0)).isEmpty, "nothing was posted to it")
        _ = outbox.post(Self.letters(2), to: Self.receiver, at: Self.at(0))
        let batch = try #require(Self.appended(outbox.connected(store: "a", at: Self.at(1))))
        #expect(batch.entries.map(\.position) == [PostPosition(series: 2, number: 1)])
    }

    @Test("a request for a new series is posted again if the series with it is given up")
    func resetsBothWays() throws {
        var outbox = PostOutbox()
        _ = outbox.connected(store: "a", at: Self.at(0))
        let first = try #require(Self.appended(outbox.post(Self.letters(1), to: Self.receiver, at: Self.at(0))))
        #expect(outbox.post(.reset(series: 4), to: Self.receiver, at: Self.at(1)).isEmpty, "it waits")
        #expect(outbox.reset(by: Self.receiver, series: 1, at: Self.at(2)) == [.lost(Self.receiver)])
        var batch = try #require(Self.appended(outbox.answered(first.number, .stored, at: Self.at(3))))
        #expect(batch.entries.map(\.position) == [PostPosition(series: 2, number: 1)])
        #expect(batch.entries.map(\.content) == [.reset(series: 4)])
        #expect(outbox.answered(batch.number, .stored, at: Self.at(4)).isEmpty)

        // What was stored may be lost in a failover, so it is posted again too.
        let effects = outbox.reset(by: Self.receiver, series: 2, at: Self.at(5))
        #expect(effects.first == .lost(Self.receiver))
        batch = try #require(Self.appended(effects))
        #expect(batch.entries.map(\.position) == [PostPosition(series: 3, number: 1)])
        #expect(batch.entries.map(\.content) == [.reset(series: 4)])
    }

    @Test("a request for a new series to a receiver whose stream was full follows when the silence is over")
    func resetAfterSilence() throws {
        var outbox = PostOutbox()
        _ = outbox.connected(store: "a", at: Self.at(0))
        var batch = try #require(Self.appended(outbox.post(.reset(series: 4), to: Self.receiver, at: Self.at(0))))
        #expect(outbox.answered(batch.number, .full([Self.receiver]), at: Self.at(100)).isEmpty)
        batch = try #require(Self.appended(outbox.tick(at: Self.at(5150))))
        #expect(outbox.answered(batch.number, .full([Self.receiver]), at: Self.at(5160)) == [.lost(Self.receiver)])
        var effects = outbox.tick(at: Self.at(35_160))
        #expect(effects.first == .lost(Self.receiver))
        batch = try #require(Self.appended(effects))
        #expect(batch.entries.map(\.content) == [.reset(series: 4)])

        // One that is posted during the silence follows too.
        #expect(outbox.answered(batch.number, .full([Self.receiver]), at: Self.at(35_200)).isEmpty)
        batch = try #require(Self.appended(outbox.tick(at: Self.at(40_250))))
        #expect(outbox.answered(batch.number, .full([Self.receiver]), at: Self.at(40_260)) == [.lost(Self.receiver)])
        #expect(outbox.post(.reset(series: 5), to: Self.receiver, at: Self.at(50_000)).isEmpty)
        effects = outbox.tick(at: Self.at(70_260))
        batch = try #require(Self.appended(effects))
        #expect(batch.entries.map(\.content) == [.reset(series: 5)])
    }
}
