import Cluster
import TestSupport
import Testing
import Wire

@testable import Signaling

/// Clients of RouletteTok's protocol, which cannot follow a redirect. With relays, they wait in the hall from their nodes as other
/// strangers do.
@Suite struct SpanningLegacyTests: SpanningStrangers {
    let world = ClusterWorld(nodes: 3, spans: true) { $0.routesMedia = true }

    private func searchLegacy(at node: Int) -> LegacyGuest {
        let guest = world.nodes[node - 1].stage.arriveLegacy()
        guest.next()
        world.pass(.seconds(1))
        return guest
    }

    /// Joins a session. A legacy client's SDK does that over a connection of its own, on any node. The client publishes and subscribes as
    /// far as the token permits.
    private func join(_ admission: Admission, _ client: ClusterClient) {
        client.say(.session(.join(.init(session: admission.session, token: admission.token))))
        world.pass(.milliseconds(500))
    }

    // MARK: Meeting

    @Test(arguments: [false, true])
    func aLegacyClientAndAStrangerOfAnotherNodeSeeEachOther(_ comesFirst: Bool) throws {
        let holder = holdHall(at: 1)
        let early = comesFirst ? searchLegacy(at: 2) : nil
        let bob = search(at: 3)[0]
        let ada = early ?? searchLegacy(at: 2)
        let matched = try match(bob)
        #expect(bob.redirects == 0 && matchCounts == [0, 1, 0] && waitingCounts == [1, 0, 0])
        #expect(ada.partner?.session == matched.publish.session && matched.subscribe.session == ada.home.session)
        let sdk = arrive(at: 1)
        join(ada.home, sdk)
        join(try #require(ada.partner), sdk)
        join(matched.subscribe, bob)
        #expect(planes(ada.home.session) == [[1, 0], [1, 0], [1, 1]])
        #expect(planes(matched.publish.session) == [[1, 1], [1, 0], [1, 0]])
        judge()

        ada.take()
        bob.say(.roulette(.next(.init())))
        world.pass(.milliseconds(200))
        #expect(ada.take() == [.disconnectPartner])
        #expect(planes(ada.home.session) == [[1, 0], [1, 0], [0, 0]], "its own stream stays")
        #expect(planes(matched.publish.session) == [[0, 0], [0, 0], [0, 0]])
        #expect(matchCounts == [0, 0, 0] && !holder.isMatched)
        judge()
    }

    @Test func twoLegacyClientsOfTwoNodesSeeEachOther() throws {
        let holder = holdHall(at: 1)
        let (ada, eve) = (searchLegacy(at: 2), searchLegacy(at: 3))
        #expect(ada.partner?.session == eve.home.session && eve.partner?.session == ada.home.session)
        #expect(matchCounts == [0, 0, 1] && waitingCounts == [1, 0, 0])
        let (first, second) = (arrive(at: 1), arrive(at: 3))
        for (guest, sdk) in [(ada, first), (eve, second)] {
            join(guest.home, sdk)
            join(try #require(guest.partner), sdk)
        }
        #expect(planes(ada.home.session) == [[1, 0], [1, 0], [1, 1]])
        #expect(planes(eve.home.session) == [[1, 1], [0, 0], [1, 0]])
        judge()

        for guest in [ada, eve] { guest.take() }
        eve.disconnectPartners()
        world.pass(.milliseconds(200))
        #expect(ada.take() == [.disconnectPartner] && eve.take() == [.disconnectPartner])
        #expect(planes(ada.home.session) == [[1, 0], [1, 0], [0, 0]])
        #expect(planes(eve.home.session) == [[0, 0], [0, 0], [1, 0]])
        judge()

        for guest in [ada, eve] { guest.vanish() }
        for client in [first, second, holder] { client.leave() }
        world.pass(world.nodes[0].stage.rules.reportWindow + .seconds(1))
        #expect(world.nodes.map { $0.stage.hub.sessionCount } == [0, 0, 0], "nothing is left of their sessions")
        judge()
    }

    @Test func aTokenForALegacyClientOfAnotherNodeEndsWithTheMatch() throws {
        let holder = holdHall(at: 1)
        let (ada, eve) = (searchLegacy(at: 2), searchLegacy(at: 3))
        let admission = try #require(eve.partner)
        ada.disconnectPartners()
        world.pass(.milliseconds(200))
        let sdk = arrive(at: 3)
        let before = sdk.guest?.connection
        join(admission, sdk)
        #expect(sdk.guest?.connection != before, "an invalid token ends the connection")
        #expect(!holder.isMatched && matchCounts == [0, 0, 0])
        judge()
    }

    @Test func aMatchThatBeginsTooLateLeavesTheCurrentOneAlone() throws {
        let holder = holdHall(at: 1)
        let ada = searchLegacy(at: 2)
        let bob = search(at: 3)[0]
        let matched = try match(bob)
        let (hall, here, there) = (world.nodes[0].tag, world.nodes[1].tag, world.nodes[2].tag)
        let stage = world.nodes[1].stage
        let side = stage.hub.matches.read(matched.match) { $0.sides.first { $0.node == here } } ?? nil
        let entry = PoolEntry(identity: try #require(side).identity, home: ada.home.session, node: here)
        // The legacy client was reserved for this match before it met Bob. The letter took longer than the reservation.
        let late = MatchID(high: here.rawValue << 24, low: 7)
        let begin = MatchEvent.begin(.video, entry, PoolEntry(identity: IdentityID(high: 9, low: 9), node: there))
        stage.handle(.received(.match(late, begin), from: hall))
        world.pass(.milliseconds(200))
        #expect(matchCounts == [0, 1, 0] && ada.partner?.session == matched.publish.session)

        join(ada.home, arrive(at: 1))
        join(matched.subscribe, bob)
        #expect(planes(ada.home.session) == [[1, 0], [1, 0], [1, 1]], "the token of the current match is valid")
        bob.say(.roulette(.next(.init())))
        world.pass(.milliseconds(200))
        #expect(planes(ada.home.session) == [[1, 0], [1, 0], [0, 0]], "the partner leaves when that match ends")
        #expect(matchCounts == [0, 0, 0] && !holder.isMatched)
        judge()
    }

    @Test func aLegacyClientThatLeavesWithdrawsFromTheHall() {
        let holder = holdHall(at: 1)
        let ada = searchLegacy(at: 2)
        #expect(ada.take() == [.empty] && waitingCounts == [2, 0, 0])
        ada.vanish()
        world.pass(.milliseconds(200))
        #expect(waitingCounts == [1, 0, 0] && !holder.isMatched)
        judge()
    }

    @Test func anApplicationsClientIsRedirectedToTheNodeOfALegacyClient() {
        let ada = searchLegacy(at: 2)
        let clients = [1, 3].map { join(ada.home.session, at: $0) }
        #expect(clients.map { $0.node?.name } == ["n2", "n2"])
        #expect(members(of: ada.home.session) == [0, 2, 0] && place(of: ada.home.session) == nil)
        judge()
    }

    // MARK: Without relays

    @Test func aLegacyClientThatCannotReachTheHallWaitsOnItsNode() {
        let holder = holdHall(at: 1)
        connect(1, to: [3])
        connect(2, to: [3])
        let ada = searchLegacy(at: 2)
        world.pass(.seconds(5))
        #expect(ada.take() == [.empty] && waitingCounts == [1, 1, 0])
        connect(1, to: [2, 3])
        connect(2, to: [1, 3])
        world.pass(.seconds(2))
        #expect(ada.take() == [] && waitingCounts == [2, 0, 0] && !holder.isMatched)
        judge()
    }

    @Test func aLegacyClientAndAStrangerBetweenWhoseNodesNoMediaCrossesMeetOnTheNodeOfTheHall() throws {
        let holder = holdHall(at: 1)
        connect(2, to: [1])
        connect(3, to: [1])
        let ada = searchLegacy(at: 2)
        let bob = search(at: 3)[0]
        world.pass(.seconds(5))
        let matched = try match(bob)
        #expect(bob.node?.name == "n1" && ada.partner?.session == matched.publish.session && !holder.isMatched)
        #expect(matchCounts == [0, 1, 0])
        judge()
    }

    @Test func withoutRelaysALegacyClientStaysInThePoolOfItsNode() {
        let world = ClusterWorld(nodes: 2)
        let stage = world.nodes[1].stage
        let other = world.arrive(at: 2)
        world.pass(.milliseconds(50))
        other.say(.roulette(.start(.init(mode: .text))))
        let ada = stage.arriveLegacy()
        ada.next()
        world.pass(.seconds(5))
        #expect(ada.take() == [.empty] && stage.hub.waitingCount == 2)
        // The hall is on the other node now.
        let key = stage.project.placeKey(of: .hall)
        world.registry.give(key, to: world.nodes[0].tag)
        stage.handle(.lostPlace(key))
        world.pass(.seconds(5))
        #expect(ada.take() == [] && stage.hub.waitingCount == 1)
        #expect(other.node?.name == "n1")
    }

    // MARK: Nodes that are lost

    @Test(arguments: [2, 3])
    func whenTheNodeOfEitherDiesTheOtherIsDisconnectedAndMeetsSomeoneElse(_ dying: Int) throws {
        let holder = holdHall(at: 1)
        let (ada, eve) = (searchLegacy(at: 2), searchLegacy(at: 3))
        let left = dying == 2 ? eve : ada
        let sdk = arrive(at: 1)
        join(left.home, sdk)
        left.take()
        world.kill(world.nodes[dying - 1])
        world.pass(.seconds(5))
        #expect(left.take() == [.disconnectPartner] && matchCounts == [0, 0, 0])
        left.next()
        world.pass(.seconds(1))
        let bob = search(at: 1)[0]
        let matched = try match(bob)
        #expect(left.partner?.session == matched.publish.session && !holder.isMatched)
        judge()
    }

    @Test(arguments: [false, true])
    func whenTheNodeOfTheHallIsLostOrStopsALegacyClientWaitsElsewhere(_ dies: Bool) {
        let holder = holdHall(at: 1)
        let ada = searchLegacy(at: 2)
        #expect(ada.take() == [.empty] && waitingCounts == [2, 0, 0] && !holder.isMatched)
        if dies { world.kill(world.nodes[0]) } else { world.drain(world.nodes[0]) }
        world.pass(.seconds(5))
        #expect(ada.take() == [])
        #expect(search(at: 3)[0].isMatched && ada.partner != nil)
        judge()
    }
}
