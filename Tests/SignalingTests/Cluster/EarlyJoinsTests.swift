import Cluster
import TestSupport
import Testing
import Wire

@testable import Signaling

/// Joins of a legacy client's home session that arrive before its node knows of the match. Each letter takes a random time, and the
/// partner's SDK may be connected to a node that is faster.
@Suite struct EarlyJoinsTests {
    private func pass(_ world: ClusterWorld) { world.pass(.milliseconds(500)) }

    private func isIn(_ session: SessionID, _ client: ClusterClient) -> Bool {
        client.news.contains { if case .session(.joined(let joined)) = $0 { joined.session == session } else { false } }
    }

    private func join(_ admission: Admission, _ client: ClusterClient) {
        client.say(.session(.join(.init(session: admission.session, token: admission.token))))
    }

    private func arrive(_ world: ClusterWorld, at node: Int) -> ClusterClient {
        let client = world.arrive(at: node)
        world.pass(.milliseconds(50))
        return client
    }

    private func earlyCount(_ session: SessionID, _ node: ClusterNode) -> Int {
        node.stage.hub.sessions.read(session) { $0.early.clients.count } ?? 0
    }

    /// A legacy client on node 2, and the token for a match on node 1 that does not begin.
    private func matchThatDoesNotBegin(_ world: ClusterWorld) -> (ada: LegacyGuest, admission: Admission) {
        let stage = world.nodes[1].stage
        let ada = stage.arriveLegacy()
        let match = MatchID(high: world.nodes[0].tag.rawValue << 24 | 5, low: 7).bound(to: world.nodes[1].tag)
        let token = stage.token(ada.home.session, .subscriber, match: match)
        return (ada, Admission(session: ada.home.session, token: token))
    }

    @Test(arguments: [1, 2])
    func aJoinThatArrivesBeforeTheMatchIsCarriedOutWhenTheMatchOpensTheSession(_ sdkNode: Int) throws {
        var earlyJoins = 0
        for seed in 1...8 as ClosedRange<UInt64> {
            let world = ClusterWorld(nodes: 3, seed: seed, spans: true) { $0.routesMedia = true }
            let (holder, sdk) = (arrive(world, at: 1), arrive(world, at: sdkNode))
            // Keeps the hall on node 1.
            holder.say(.roulette(.start(.init(mode: .text))))
            world.pass(.seconds(1))
            let ada = world.nodes[1].stage.arriveLegacy()
            ada.next()
            world.pass(.seconds(1))
            let eve = world.nodes[2].stage.arriveLegacy()
            eve.next()
            for _ in 0..<2000 where eve.partner == nil { world.pass(.milliseconds(1)) }
            let admission = try #require(eve.partner)
            #expect(admission.session == ada.home.session)
            join(admission, sdk)
            for _ in 0..<10 where earlyCount(admission.session, world.nodes[1]) == 0 { world.pass(.milliseconds(1)) }
            earlyJoins += earlyCount(admission.session, world.nodes[1])
            pass(world)
            #expect(isIn(admission.session, sdk), "\(sdk.news)")
            #expect(earlyCount(admission.session, world.nodes[1]) == 0)
            for node in world.live { #expect(node.stage.hub.unexpectedLetters == 0) }
            world.check()
            #expect(world.fault == nil)
        }
        if sdkNode == 2 { #expect(earlyJoins > 0, "no letter was slower than the partner's SDK") }
    }

    @Test(arguments: [1, 2]) func aJoinForAMatchThatDoesNotBeginIsRefusedAfterAWhile(_ sdkNode: Int) {
        let world = ClusterWorld(nodes: 2, spans: true) { $0.routesMedia = true }
        let (_, admission) = matchThatDoesNotBegin(world)
        let sdk = arrive(world, at: sdkNode)
        let before = sdk.guest?.connection
        join(admission, sdk)
        pass(world)
        #expect(earlyCount(admission.session, world.nodes[1]) == 1 && sdk.guest?.connection == before)
        join(admission, sdk)
        pass(world)
        #expect(earlyCount(admission.session, world.nodes[1]) == 1, "a client waits once")
        world.pass(.seconds(3))
        #expect(earlyCount(admission.session, world.nodes[1]) == 0)
        #expect(sdk.guest?.connection != before, "an invalid token ends the connection")
        #expect(!isIn(admission.session, sdk))
    }

    @Test func joinsThatWaitAreLimited() {
        let world = ClusterWorld(nodes: 2, spans: true) { $0.routesMedia = true }
        let (_, admission) = matchThatDoesNotBegin(world)
        for _ in 0..<6 { join(admission, arrive(world, at: 2)) }
        #expect(earlyCount(admission.session, world.nodes[1]) == 4)
    }

    @Test func joinsThatWaitAreRefusedWhenTheLegacyClientLeaves() {
        let world = ClusterWorld(nodes: 2, spans: true) { $0.routesMedia = true }
        let (ada, admission) = matchThatDoesNotBegin(world)
        let sdk = arrive(world, at: 2)
        let before = sdk.guest?.connection
        join(admission, sdk)
        ada.vanish()
        pass(world)
        #expect(sdk.guest?.connection != before)
        #expect(world.nodes[1].stage.hub.sessionCount == 0)
    }

    @Test func aJoinThatWaitsIsForgottenWhenTheNodeOfItsClientIsLost() {
        let world = ClusterWorld(nodes: 2, spans: true) { $0.routesMedia = true }
        let (_, admission) = matchThatDoesNotBegin(world)
        let sdk = arrive(world, at: 1)
        join(admission, sdk)
        pass(world)
        #expect(earlyCount(admission.session, world.nodes[1]) == 1)
        world.nodes[1].stage.handle(.lettersLost(world.nodes[0].tag))
        #expect(earlyCount(admission.session, world.nodes[1]) == 0)
    }

    @Test func onOneNodeATokenForAMatchThatDoesNotExistIsRefusedAtOnce() {
        let world = ClusterWorld(nodes: 2) { $0.routesMedia = true }
        let (_, admission) = matchThatDoesNotBegin(world)
        let sdk = arrive(world, at: 2)
        let before = sdk.guest?.connection
        join(admission, sdk)
        world.pass(.milliseconds(0))
        #expect(sdk.guest?.connection != before)
    }
}
