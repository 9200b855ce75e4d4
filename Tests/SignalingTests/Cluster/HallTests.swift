import Cluster
import Signaling
import TestSupport
import Testing
import Wire

/// Strangers who find nobody on their own node meet on one node of the cluster.
@Suite struct HallTests {
    @Test func twoStrangersOnTwoNodesMeet() {
        let world = ClusterWorld(nodes: 3)
        let clients = [world.arrive(at: 1), world.arrive(at: 2)]
        world.pass(.milliseconds(50))
        for client in clients { client.want(.chat) }
        world.pass(.seconds(2))
        #expect(clients.allSatisfy { $0.isMatched })
        #expect(clients.map(\.redirects).sorted() == [0, 1])
    }

    @Test func aStrangerLooksForAPartnerOnTheirNodeBeforeARedirect() {
        let world = ClusterWorld(nodes: 2)
        world.arrive(at: 1).want(.chat)
        world.pass(.seconds(1))
        let client = world.arrive(at: 2)
        world.pass(.milliseconds(50))
        client.want(.chat)
        world.pass(.milliseconds(250))
        #expect(client.redirects == 0 && world.nodes[1].stage.hub.waitingCount == 1)
        world.pass(.seconds(1))
        #expect(client.redirects == 1 && client.isMatched)
    }

    @Test func whoIsAloneInTheClusterStaysWhereTheyAre() {
        let world = ClusterWorld(nodes: 3)
        let client = world.arrive(at: 2)
        client.want(.chat)
        world.pass(.seconds(60))
        #expect(client.node?.name == "n2" && client.redirects == 0 && client.waitingSince != nil)
    }

    @Test func theCountsIncludeTheOtherNodes() {
        let world = ClusterWorld(nodes: 2)
        let client = world.arrive(at: 1)
        world.pass(.milliseconds(50))
        world.nodes[0].stage.handle(.othersCounted(ClientCounts(clients: 40, waiting: 2)))
        client.want(.request(.roulette(.count)))
        world.pass(.milliseconds(50))
        guard case .roulette(.count(let count))? = client.news.last else { return _ = Issue.record("\(client.news)") }
        #expect(count.online == 41 && count.waiting == 2)
    }

    @Test func strangersOfOneNodeMeetThereWithoutTheHall() {
        let world = ClusterWorld(nodes: 2)
        let clients = [world.arrive(at: 1), world.arrive(at: 1)]
        world.pass(.milliseconds(50))
        for client in clients { client.want(.chat) }
        world.pass(.milliseconds(100))
        #expect(clients.allSatisfy { $0.isMatched && $0.redirects == 0 })
        #expect(!world.registry.places.keys.contains { $0.kind == .hall })
    }

    @Test func theHallMovesSomeTimeAfterNobodyWaitsThere() {
        let world = ClusterWorld(nodes: 2)
        let first = world.arrive(at: 1)
        first.want(.chat)
        world.pass(.seconds(1))
        #expect(world.registry.places[PlaceKey(.hall)] == world.nodes[0].tag)
        first.leave()
        world.pass(.seconds(4))
        #expect(world.registry.places[PlaceKey(.hall)] == world.nodes[0].tag)
        world.pass(.seconds(2))
        #expect(world.registry.places[PlaceKey(.hall)] == nil)
    }

    @Test func aPersonWithSeveralDevicesIsNotRedirected() {
        let world = ClusterWorld(nodes: 2)
        world.arrive(at: 1).want(.chat)
        world.pass(.seconds(1))
        let identity = IdentityID(high: 3, low: 3)
        let (other, searching) = (world.arrive(identity, at: 2), world.arrive(identity, at: 2))
        world.pass(.milliseconds(50))
        searching.want(.chat)
        world.pass(.seconds(5))
        #expect(searching.redirects == 0 && searching.waitingSince != nil)
        other.leave()
        world.pass(.seconds(2))
        #expect(searching.isMatched)
    }

    @Test func whileTheRegistryIsAwayStrangersWaitOnTheirNodes() {
        let world = ClusterWorld(nodes: 2)
        let clients = [world.arrive(at: 1), world.arrive(at: 2)]
        world.pass(.milliseconds(50))
        world.registry.setAway(true)
        for client in clients { client.want(.chat) }
        world.pass(.seconds(5))
        #expect(clients.allSatisfy { $0.redirects == 0 && $0.isConnected })
        world.registry.setAway(false)
        world.pass(.seconds(3))
        #expect(clients.allSatisfy { $0.isMatched })
    }

    @Test func aLostHallIsAskedForAgain() {
        let world = ClusterWorld(nodes: 2)
        let client = world.arrive(at: 1)
        client.want(.chat)
        world.pass(.seconds(1))
        world.registry.give(PlaceKey(.hall), to: world.nodes[1].tag)
        world.nodes[0].stage.handle(.lostPlace(PlaceKey(.hall)))
        world.pass(.seconds(3))
        #expect(client.node?.name == "n2" && client.redirects == 1)
    }

    /// Strangers come to several nodes, a few each second, so that pools are thin. While two of them wait on different nodes, one is
    /// redirected, and that must be over after two seconds. `CONFAB_MODEL_EVENTS=10000` counts over 10,000 strangers.
    @Test(arguments: [2, 5]) func nobodyWaitsAloneWhileAnotherWaitsAloneElsewhere(nodes: Int) {
        let count = ModelRun.chosenEvents.map { min($0, 10_000) } ?? 1000
        let started = ContinuousClock.now
        let world = ClusterWorld(nodes: nodes, seed: ModelRun.seed)
        print("strangers: seed \(world.seed), \(count) strangers on \(nodes) nodes")
        var longest: Duration = .zero
        var waits: [Duration] = []
        world.judge = { longest = max(longest, world.bothWaiting()) }
        for _ in 0..<count {
            world.arrive().want(.chat)
            world.pass(.milliseconds(Int.random(in: 0...400, using: &world.random)))
            // Chats are short, so that few people are there at a time.
            for client in world.clients where client.isMatched {
                if let wait = client.firstWait { waits.append(wait) }
                client.leave()
            }
        }
        waits.sort()
        let median = waits.isEmpty ? .zero : waits[waits.count / 2]
        print("strangers: \(waits.count) matched, median wait \(median), longest both waiting \(longest)")
        print("strangers: took \(ContinuousClock.now - started)")
        #expect(longest <= .seconds(2), "seed \(world.seed)")
        #expect(waits.count > count * 9 / 10, "seed \(world.seed)")
    }
}
