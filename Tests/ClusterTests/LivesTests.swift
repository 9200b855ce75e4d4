import Cluster
import Testing

@Suite("Watching the lives of nodes")
struct LivesTests {
    private static let me = NodeTag(node: 1, life: 7)!
    private static let other = NodeTag(node: 2, life: 9)!
    private static let dead = NodeTag(node: 3, life: 3)!
    private static let epoch = Epoch(number: 4, store: "d")

    /// The machine, its clock and the ledger's.
    private struct Watcher {
        var lives = Lives(of: LivesTests.me, former: NodeTag(node: 1, life: 2), at: Instant(.zero))
        var milliseconds = 0
        var ledger = 0
        var looks: UInt64 = 0
        var now: Instant { Instant(.milliseconds(milliseconds)) }

        mutating func look(
            after wait: Int = 1000, ledger step: Int? = nil, age: Int = 60, epochAge: Int = 60, acting: Bool = true,
            answeredAfter way: Int = 0, _ rows: [LedgerView.Life]
        ) -> [Lives.Effect] {
            milliseconds += wait
            ledger += step ?? wait
            looks += 1
            #expect(lives.tick(at: now) == [.look(number: looks)])
            let view = LedgerView(
                clock: .milliseconds(ledger), age: .seconds(age), lives: rows, epoch: LivesTests.epoch,
                epochAge: .seconds(epochAge))
            milliseconds += way
            return lives.looked(looks, view, acting: acting, at: now)
        }

        /// Watches until the node relies on the ledger's clock.
        mutating func settle(_ rows: [LedgerView.Life]) {
            for _ in 0..<6 { _ = look(rows) }
            #expect(lives.isSteady(at: now))
        }
    }

    private static func alive(_ tag: NodeTag, _ milliseconds: Int = 3000, epoch: UInt64? = 4) -> LedgerView.Life {
        LedgerView.Life(tag: tag, state: .unfenced(expiresIn: .milliseconds(milliseconds)), epoch: epoch)
    }

    private static func fenced(_ tag: NodeTag, heir: NodeTag = other, voidIn: Int = 0) -> LedgerView.Life {
        LedgerView.Life(tag: tag, state: .fenced(heir: heir, voidIn: .milliseconds(voidIn)), epoch: 4)
    }

    private let all = [alive(me), alive(other), alive(dead)]

    @Test("a life is the oldest when each older one is void, and not before it has looked")
    func oldest() {
        var watcher = Watcher()
        #expect(!watcher.lives.isOldest)
        for (rows, isOldest) in [
            (all, false), ([Self.alive(Self.me), Self.fenced(Self.dead, voidIn: 5)], false),
            ([Self.alive(Self.me), Self.fenced(Self.dead), Self.alive(Self.other)], true),
            ([Self.alive(Self.me), Self.alive(Self.other)], true),
        ] {
            _ = watcher.look(rows)
            #expect(watcher.lives.isOldest == isOldest, "\(rows)")
        }
    }

    @Test("it looks each second, and as soon as a lease expires or places become void")
    func looks() {
        var watcher = Watcher()
        _ = watcher.look(all)
        #expect(watcher.lives.nextWakeUp == Instant(.milliseconds(2000)))
        _ = watcher.look([Self.alive(Self.me, 100), Self.alive(Self.other), Self.alive(Self.dead, 500)])
        #expect(watcher.lives.nextWakeUp == Instant(.milliseconds(2511)))
        _ = watcher.look(after: 511, [Self.alive(Self.me), Self.fenced(Self.dead, voidIn: 0)])
        #expect(watcher.lives.nextWakeUp == Instant(.milliseconds(3511)))
    }

    @Test("a look that failed is repeated, and its late answer does not count")
    func fails() {
        var watcher = Watcher()
        #expect(watcher.lives.tick(at: Instant(.zero)) == [.look(number: 1)])
        #expect(watcher.lives.tick(at: Instant(.seconds(1))) == [])
        watcher.lives.lookFailed(1, at: Instant(.seconds(1)))
        #expect(watcher.lives.tick(at: Instant(.seconds(2))) == [.look(number: 2)])
        let view = LedgerView(clock: .zero, age: .zero, lives: all, epoch: nil, epochAge: .zero)
        #expect(watcher.lives.looked(1, view, acting: true, at: Instant(.seconds(2))) == [])
        #expect(watcher.lives.view == nil)
        watcher.lives.lookFailed(1, at: Instant(.seconds(2)))
        #expect(watcher.lives.nextWakeUp == nil)
    }

    @Test("an expired life is fenced, but not by a frozen node, not after a failover and never by itself")
    func fences() {
        var watcher = Watcher()
        watcher.settle(all)
        let expired = [Self.alive(Self.me, -1), Self.alive(Self.other), Self.alive(Self.dead, -1)]
        #expect(watcher.look(acting: false, expired) == [])
        #expect(watcher.look(age: 4, expired) == [])
        #expect(watcher.look(expired) == [.fence(Self.dead)])
    }

    @Test("nobody is fenced for 5 s after the ledger's clock was set, or was not watched")
    func clockIsSet() {
        var watcher = Watcher()
        let expired = [Self.alive(Self.me), Self.alive(Self.dead, -1)]
        for _ in 0..<5 { #expect(watcher.look(expired) == []) }
        #expect(watcher.look(expired) == [.fence(Self.dead)])
        #expect(watcher.look(ledger: 1500, expired) == [])
        for _ in 0..<4 { #expect(watcher.look(expired) == []) }
        #expect(watcher.look(expired) == [.fence(Self.dead)])
        #expect(watcher.look(after: 3001, expired) == [])
        for _ in 0..<4 { #expect(watcher.look(expired) == []) }
        #expect(watcher.look(expired) == [.fence(Self.dead)])
        // Set back: it may be another server's, which was set forward since.
        #expect(watcher.look(ledger: -5000, expired) == [])
        for _ in 0..<4 { #expect(watcher.look(expired) == []) }
        #expect(watcher.look(expired) == [.fence(Self.dead)])
        // A clock that is 2 % faster has not been set. An answer that takes long says nothing about it.
        #expect(watcher.look(ledger: 1020, expired) == [.fence(Self.dead)])
        #expect(watcher.look(answeredAfter: 251, expired) == [])
    }

    @Test("the end of a life is reported once, when its places are void")
    func tells() {
        var watcher = Watcher()
        watcher.settle(all)
        #expect(watcher.lives.standing(of: Self.dead, heard: watcher.now) == .living)
        #expect(
            watcher.look([Self.alive(Self.me), Self.alive(Self.other), Self.fenced(Self.dead, voidIn: 1000)]) == [])
        #expect(watcher.lives.standing(of: Self.dead, heard: watcher.now) == .unclear)
        let rows = [Self.alive(Self.me), Self.alive(Self.other), Self.fenced(Self.dead)]
        #expect(watcher.look(rows) == [.nodeLost(Self.dead, heir: Self.other)])
        #expect(watcher.lives.standing(of: Self.dead, heard: watcher.now) == .ended)
        #expect(watcher.look(rows) == [])
    }

    @Test("when the heir ends, its heir is answerable for both")
    func heirs() {
        var watcher = Watcher()
        watcher.settle(all)
        _ = watcher.look([Self.alive(Self.me), Self.alive(Self.other), Self.fenced(Self.dead)])
        let rows = [Self.alive(Self.me), Self.fenced(Self.other, heir: Self.me), Self.fenced(Self.dead)]
        #expect(watcher.look(rows) == [.nodeLost(Self.other, heir: Self.me), .nodeLost(Self.dead, heir: Self.me)])
    }

    @Test("a life that the ledger no longer has is over, and has no heir")
    func missing() {
        var watcher = Watcher()
        watcher.settle(all)
        #expect(watcher.look([Self.alive(Self.me), Self.alive(Self.other)]) == [.nodeLost(Self.dead, heir: nil)])
        #expect(watcher.lives.standing(of: Self.dead, heard: watcher.now) == .ended)
        // It may have begun after the view was requested.
        let later = Instant(.milliseconds(watcher.milliseconds + 1))
        #expect(watcher.lives.standing(of: NodeTag(node: 4, life: 50)!, heard: later) == .unclear)
    }

    @Test("the former life of this node has ended, whatever the ledger's clock says")
    func former() {
        #expect(Watcher().lives.standing(of: NodeTag(node: 1, life: 2)!, heard: Instant(.zero)) == .ended)
        #expect(Watcher().lives.standing(of: Self.dead, heard: Instant(.zero)) == .unclear)
    }

    @Test("lives with places that have not registered within 15 s are fenced by one that has")
    func unregistered() {
        var watcher = Watcher()
        watcher.settle(all)
        let rows = [Self.alive(Self.me), Self.alive(Self.other, epoch: 3)]
        _ = watcher.look(epochAge: 15, rows)
        #expect(watcher.look(epochAge: 16, rows) == [.fenceUnregistered])
        #expect(watcher.look(epochAge: 16, [Self.alive(Self.me, epoch: 3), Self.alive(Self.other, epoch: 3)]) == [])
        #expect(watcher.look(epochAge: 16, [Self.alive(Self.me), Self.alive(Self.other, epoch: nil)]) == [])
    }
}
