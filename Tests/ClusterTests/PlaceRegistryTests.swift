import Cluster
import TestSupport
import Testing

@Suite("The places of a node")
struct PlaceRegistryTests {
    private static let me = NodeTag(node: 1, life: 7)!
    private static let other = NodeTag(node: 2, life: 9)!
    private static let dead = NodeTag(node: 3, life: 3)!
    private static let first = Epoch(number: 1, store: "a")
    private static let second = Epoch(number: 2, store: "b")
    private let kitchen = PlaceKey(.room, "kitchen")
    private let cellar = PlaceKey(.room, "cellar")

    /// The machines of a node, and its clock.
    private struct Node {
        var lives = Lives(of: PlaceRegistryTests.me, at: Instant(.zero))
        var registry = PlaceRegistry(of: PlaceRegistryTests.me)
        var acting = true
        var seconds = 0
        var looks: UInt64 = 0
        var now: Instant { Instant(.seconds(seconds)) }

        mutating func handle(_ input: PlaceRegistry.Input) -> [PlaceRegistry.Effect] {
            registry.handle(input, lives: lives, acting: acting, at: now)
        }

        /// A second passes, and this is what the ledger says.
        mutating func look(_ epoch: Epoch?, age: Int = 60, _ rows: [LedgerView.Life]) -> [PlaceRegistry.Effect] {
            seconds += 1
            looks += 1
            _ = lives.tick(at: now)
            let view = LedgerView(
                clock: .seconds(seconds), age: .seconds(60), lives: rows, epoch: epoch, epochAge: .seconds(age))
            _ = lives.looked(looks, view, acting: acting, at: now)
            return handle(.looked)
        }

        /// Connects and registers, and relies on the ledger's clock.
        mutating func open(_ rows: [LedgerView.Life]) {
            _ = handle(.connected(store: "a"))
            for _ in 0..<7 { _ = look(first, rows) }
            #expect(handle(.replied(1, .registered(taken: [:]))) == [.note(first)])
            #expect(handle(.noted(first, true)) == [])
            // Its first registration could be lost for a second.
            seconds += 1
        }
    }

    private static func alive(_ tag: NodeTag, _ epoch: UInt64?) -> LedgerView.Life {
        LedgerView.Life(tag: tag, state: .unfenced(expiresIn: .seconds(3)), epoch: epoch)
    }

    private static func fenced(_ tag: NodeTag, voidIn: Int, _ epoch: UInt64?) -> LedgerView.Life {
        LedgerView.Life(tag: tag, state: .fenced(heir: me, voidIn: .seconds(voidIn)), epoch: epoch)
    }

    private func claim(_ number: UInt64) -> PlaceClaim { PlaceClaim(tag: Self.me, number: number) }

    @Test("an epoch begins if there is none, and then the node registers before it claims anything")
    func begins() {
        var node = Node()
        #expect(node.handle(.claim(kitchen)) == [])
        #expect(node.handle(.connected(store: "a")) == [])
        #expect(node.look(nil, [Self.alive(Self.me, nil)]) == [.beginEpoch(store: "a")])
        let register = PlaceRegistry.Effect.send(.register([:], epoch: 1, void: []), number: 1)
        #expect(node.look(Self.first, age: 0, [Self.alive(Self.me, nil)]) == [register])
        #expect(node.handle(.replied(1, .registered(taken: [:]))) == [.note(Self.first)])
        #expect(node.handle(.noted(Self.first, true)) == [])
        // An epoch that is younger than a second could be lost.
        #expect(node.look(Self.first, age: 0, [Self.alive(Self.me, 1)]) == [])
        let effects = node.look(Self.first, age: 1, [Self.alive(Self.me, 1)])
        #expect(effects == [.send(.claim(kitchen, claim(1), epoch: 1, void: []), number: 2)])
        #expect(node.handle(.replied(2, .claimed)) == [.answer(kitchen, .claimed)])
        #expect(node.registry.held == [kitchen: claim(1)])
        #expect(node.registry.heldCounts == [.room: 1])
        #expect(node.handle(.claim(kitchen)) == [.answer(kitchen, .claimed)])
        _ = node.handle(.release(kitchen))
        #expect(node.registry.heldCounts == [.room: 0])
    }

    @Test("nothing is claimed before every life that may have places has registered, or has been fenced and has ended")
    func waitsForAll() {
        var node = Node()
        let new = Self.alive(Self.dead, nil)
        node.open([Self.alive(Self.me, 1), Self.alive(Self.other, 9), new])
        #expect(node.handle(.claim(kitchen)) == [])
        #expect(node.look(Self.first, [Self.alive(Self.me, 1), Self.alive(Self.other, 9), new]) == [])
        #expect(node.look(Self.first, [Self.alive(Self.me, 1), Self.fenced(Self.other, voidIn: 3, 9), new]) == [])
        let ended = [Self.alive(Self.me, 1), Self.fenced(Self.other, voidIn: 0, 9), new]
        #expect(node.look(Self.first, ended) == [.send(.claim(kitchen, claim(1), epoch: 1, void: []), number: 2)])
    }

    @Test("claims are admitted exactly while they would be sent")
    func admitsClaims() {
        var node = Node()
        func admits() -> Bool { node.registry.admitsClaims(lives: node.lives, acting: node.acting, at: node.now) }
        let (mine, other) = (Self.alive(Self.me, 1), Self.alive(Self.other, 9))
        _ = node.handle(.connected(store: "a"))
        #expect(!admits(), "nothing is known of the ledger")
        node.open([mine, other])
        _ = node.look(Self.first, [mine, other])
        #expect(!admits(), "a life has not registered")
        _ = node.look(Self.first, [mine, Self.fenced(Self.other, voidIn: 0, 9)])
        #expect(admits())
        node.acting = false
        #expect(!admits())
        node.acting = true
        _ = node.handle(.disconnected)
        #expect(!admits(), "Redis is away")
    }

    @Test("a frozen node claims nothing")
    func frozen() {
        var node = Node()
        node.open([Self.alive(Self.me, 1)])
        #expect(node.look(Self.first, [Self.alive(Self.me, 1)]) == [])
        node.acting = false
        #expect(node.handle(.claim(kitchen)) == [])
        node.acting = true
        #expect(node.handle(.looked).count == 1)
    }

    @Test("a place of another life is there, and the place of a life that has ended is claimed from it")
    func holders() {
        var node = Node()
        let rows = [Self.alive(Self.me, 1), Self.alive(Self.other, 1), Self.fenced(Self.dead, voidIn: 0, 1)]
        node.open(rows)
        _ = node.look(Self.first, rows)
        #expect(node.handle(.claim(kitchen)).count == 1)
        let others = PlaceReply.held(PlaceClaim(tag: Self.other, number: 4))
        #expect(node.handle(.replied(2, others)) == [.answer(kitchen, .at(Self.other))])
        #expect(node.handle(.claim(cellar)) == [.send(.claim(cellar, claim(2), epoch: 1, void: []), number: 3)])
        let again = PlaceRegistry.Effect.send(.claim(cellar, claim(2), epoch: 1, void: [Self.dead]), number: 4)
        #expect(node.handle(.replied(3, .held(PlaceClaim(tag: Self.dead, number: 4)))) == [again])
    }

    @Test("a question about the place of a life that has ended is answered with nowhere")
    func findsDead() {
        var node = Node()
        let rows = [Self.alive(Self.me, 1), Self.fenced(Self.dead, voidIn: 0, 1)]
        node.open(rows)
        _ = node.look(Self.first, rows)
        #expect(node.handle(.find(kitchen)) == [.send(.find(kitchen, epoch: 1), number: 2)])
        #expect(node.handle(.replied(2, .held(PlaceClaim(tag: Self.dead, number: 1)))) == [.answer(kitchen, .nowhere)])
    }

    @Test("a life that this node has not heard of is looked up before its place is taken")
    func unknownHolder() {
        var node = Node()
        let rows = [Self.alive(Self.me, 1)]
        node.open(rows)
        _ = node.look(Self.first, rows)
        #expect(node.handle(.claim(kitchen)).count == 1)
        node.seconds += 1
        #expect(node.handle(.replied(2, .held(PlaceClaim(tag: Self.other, number: 1)))) == [])
        #expect(node.look(Self.first, rows + [Self.alive(Self.other, 1)]) == [.answer(kitchen, .at(Self.other))])
    }

    @Test("the origin of a place has it without a claim, also while Redis is away, until its life has ended")
    func origins() {
        var node = Node()
        let rows = [Self.alive(Self.me, 1), Self.alive(Self.other, 1), Self.fenced(Self.dead, voidIn: 0, 1)]
        let living = PlaceKey(.session, "a", origin: Self.other)
        #expect(node.handle(.claim(living)) == [], "nothing is known of the ledger")
        #expect(node.look(Self.first, rows) == [.answer(living, .at(Self.other))])
        #expect(node.handle(.find(living)) == [.answer(living, .at(Self.other))])
        node.open(rows)
        _ = node.look(Self.first, rows)
        #expect(node.handle(.claim(living)) == [.answer(living, .at(Self.other))])
        #expect(node.registry.questionCount == 0 && node.registry.held.isEmpty)
        // Redis knows who has claimed the place since.
        let over = PlaceKey(.session, "b", origin: Self.dead)
        #expect(node.handle(.find(over)) == [.send(.find(over, epoch: 1), number: 2)])
        let held = PlaceReply.held(PlaceClaim(tag: Self.other, number: 1))
        #expect(node.handle(.replied(2, held)) == [.answer(over, .at(Self.other))])
        #expect(node.handle(.find(over)) == [.send(.find(over, epoch: 1), number: 3)])
        #expect(node.handle(.replied(3, .held(nil))) == [.answer(over, .nowhere)])
        let claims = PlaceRegistry.Effect.send(.claim(over, claim(1), epoch: 1, void: [Self.dead]), number: 4)
        #expect(node.handle(.claim(over)) == [claims])
        #expect(node.handle(.replied(4, .claimed)) == [.answer(over, .claimed)])
        #expect(node.registry.held == [over: claim(1)])
    }

    @Test("the place of an origin is not claimed before its life has ended, or before this node has looked for it")
    func unclearOrigins() {
        var node = Node()
        let rows = [Self.alive(Self.me, 1)]
        node.open(rows + [Self.alive(Self.other, 1)])
        let key = PlaceKey(.session, "a", origin: Self.other)
        _ = node.look(Self.first, rows + [Self.fenced(Self.other, voidIn: 2, 1)])
        #expect(node.handle(.claim(key)) == [])
        #expect(node.look(Self.first, rows + [Self.fenced(Self.other, voidIn: 1, 1)]) == [])
        let first = PlaceRegistry.Effect.send(.claim(key, claim(1), epoch: 1, void: [Self.other]), number: 2)
        #expect(node.look(Self.first, rows + [Self.fenced(Self.other, voidIn: 0, 1)]) == [first])
        // The ledger has forgotten this life, or it has just begun.
        let unknown = PlaceKey(.session, "b", origin: Self.dead)
        node.seconds += 1
        #expect(node.handle(.claim(unknown)) == [])
        let second = PlaceRegistry.Effect.send(.claim(unknown, claim(2), epoch: 1, void: [Self.dead]), number: 3)
        #expect(node.look(Self.first, rows) == [second])
    }

    @Test("a question about the place of an origin ends even if Redis has a claim of that life")
    func claimOfAnOrigin() {
        var node = Node()
        let rows = [Self.alive(Self.me, 1), Self.fenced(Self.dead, voidIn: 0, 1)]
        node.open(rows)
        _ = node.look(Self.first, rows)
        let key = PlaceKey(.session, "a", origin: Self.dead)
        #expect(node.handle(.find(key)) == [.send(.find(key, epoch: 1), number: 2)])
        #expect(node.handle(.replied(2, .held(PlaceClaim(tag: Self.dead, number: 1)))) == [.answer(key, .nowhere)])
    }

    @Test("under a new epoch a node enters what it has, and gives up what another node has")
    func newEpoch() {
        var node = Node()
        let rows = [Self.alive(Self.me, 1), Self.alive(Self.other, 1)]
        node.open(rows)
        _ = node.look(Self.first, rows)
        for (number, key) in [(2, kitchen), (3, cellar)] as [(UInt64, PlaceKey)] {
            _ = node.handle(.claim(key))
            _ = node.handle(.replied(number, .claimed))
        }
        #expect(node.handle(.connected(store: "b")) == [.beginEpoch(store: "b")])
        let entries = [kitchen: claim(1), cellar: claim(2)]
        #expect(node.look(Self.second, rows) == [.send(.register(entries, epoch: 2, void: []), number: 4)])
        let taken = PlaceReply.registered(taken: [cellar: PlaceClaim(tag: Self.other, number: 8)])
        #expect(node.handle(.replied(4, taken)) == [.lost(cellar, to: Self.other), .note(Self.second)])
        #expect(node.registry.held == [kitchen: claim(1)])
        #expect(node.registry.heldCounts == [.room: 1])
    }

    @Test("if the ledger lost that a node has registered, the node registers again")
    func registrationIsLost() {
        var node = Node()
        node.open([Self.alive(Self.me, 1)])
        #expect(node.look(Self.first, [Self.alive(Self.me, nil)]) == [.note(Self.first)])
    }

    @Test("the answer of an earlier connection does not count, and the question is sent again")
    func earlierConnection() {
        var node = Node()
        let rows = [Self.alive(Self.me, 1)]
        node.open(rows)
        _ = node.look(Self.first, rows)
        #expect(node.handle(.claim(kitchen)).count == 1)
        #expect(node.handle(.disconnected) == [])
        #expect(node.handle(.replied(2, .claimed)) == [])
        let again = PlaceRegistry.Effect.send(.claim(kitchen, claim(1), epoch: 1, void: []), number: 3)
        #expect(node.handle(.connected(store: "a")) == [again])
    }

    @Test("a release is repeated on the next connection until it is answered")
    func releases() {
        var node = Node()
        let rows = [Self.alive(Self.me, 1)]
        node.open(rows)
        _ = node.look(Self.first, rows)
        _ = node.handle(.claim(kitchen))
        _ = node.handle(.replied(2, .claimed))
        #expect(node.handle(.disconnected) == [])
        #expect(node.handle(.release(kitchen)) == [])
        #expect(node.handle(.connected(store: "a")) == [.send(.release(kitchen, claim(1)), number: 3)])
        #expect(node.handle(.claim(kitchen)) == [.send(.claim(kitchen, claim(2), epoch: 1, void: []), number: 4)])
        _ = node.handle(.replied(3, .released))
        #expect(node.handle(.connected(store: "a")).count == 1)
    }

    @Test("a command that failed is sent again at the next look, and questions that wait are limited")
    func bounds() {
        var node = Node()
        let rows = [Self.alive(Self.me, 1)]
        node.open(rows)
        _ = node.look(Self.first, rows)
        _ = node.handle(.claim(kitchen))
        #expect(node.handle(.failed(2)) == [])
        #expect(node.look(Self.first, rows) == [.send(.claim(kitchen, claim(1), epoch: 1, void: []), number: 3)])
        _ = node.handle(.disconnected)
        for number in 1..<100_000 { _ = node.handle(.find(PlaceKey(.person, "\(number)"))) }
        #expect(node.registry.questionCount == 100_000)
        #expect(node.handle(.claim(cellar)) == [.answer(cellar, .refused)])
    }
}

@Suite("The table of places")
struct PlaceStoreTests {
    private let kitchen = PlaceKey(.room, "kitchen")
    private let one = PlaceClaim("1-1.1")!
    private let newer = PlaceClaim("1-1.2")!
    private let two = PlaceClaim("2-2.1")!

    @Test("the text of a claim reads back as the same claim, and no other text does")
    func text() {
        #expect(PlaceClaim(one.description) == one)
        for text in ["", "1-1", "1-1.", ".1", "1-1.01", "1-1.-1", "0-1.1", "1-1.1 "] {
            #expect(PlaceClaim(text) == nil)
        }
    }

    @Test("who claims first has the place, until that claim is released or its life is void")
    func claims() {
        var table = PlaceStore()
        #expect(table.handle(.claim(kitchen, one, epoch: 1, void: [])) == .otherEpoch(nil))
        #expect(table.handle(.register([:], epoch: 1, void: [])) == .registered(taken: [:]))
        #expect(table.handle(.claim(kitchen, newer, epoch: 1, void: [])) == .claimed)
        #expect(table.handle(.claim(kitchen, newer, epoch: 1, void: [])) == .claimed)
        #expect(table.handle(.claim(kitchen, one, epoch: 1, void: [])) == .held(newer))
        #expect(table.handle(.claim(kitchen, two, epoch: 1, void: [])) == .held(newer))
        #expect(table.handle(.release(kitchen, one)) == .released)
        #expect(table.handle(.find(kitchen, epoch: 1)) == .held(newer))
        #expect(table.handle(.claim(kitchen, two, epoch: 1, void: [one.tag])) == .claimed)
        #expect(table.handle(.release(kitchen, two)) == .released)
        #expect(table.handle(.find(kitchen, epoch: 1)) == .held(nil))
    }

    @Test("commands of another epoch change nothing")
    func epochs() {
        var table = PlaceStore()
        #expect(table.handle(.register([kitchen: one], epoch: 2, void: [])) == .registered(taken: [:]))
        #expect(table.handle(.register([kitchen: two], epoch: 2, void: [])) == .registered(taken: [kitchen: one]))
        #expect(table.handle(.register([kitchen: two], epoch: 1, void: [one.tag])) == .otherEpoch(2))
        #expect(table.handle(.claim(kitchen, two, epoch: 3, void: [one.tag])) == .otherEpoch(2))
        #expect(table.handle(.find(kitchen, epoch: 1)) == .otherEpoch(2))
        #expect(table.claims == [kitchen: one])
    }

    @Test("the random script meets every reply")
    func script() {
        let seed = UInt64.random(in: 1...1_000_000)
        var (script, table) = (PlaceScript(seed: seed), PlaceStore())
        var met: Set<String> = []
        for _ in 0..<10_000 {
            switch table.handle(script.next()) {
            case .claimed: met.insert("claimed")
            case .held(nil): met.insert("free")
            case .held: met.insert("held")
            case .released: met.insert("released")
            case .registered(let taken): met.insert(taken.isEmpty ? "registered" : "taken")
            case .otherEpoch: met.insert("otherEpoch")
            }
        }
        #expect(met.count == 7, "seed \(seed): only \(met)")
    }
}
