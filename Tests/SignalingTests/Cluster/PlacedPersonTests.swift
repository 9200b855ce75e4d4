import Cluster
import Signaling
import TestSupport
import Testing
import Wire

/// A person with all devices is on one node of the cluster.
@Suite struct PlacedPersonTests {
    let world = ClusterWorld(nodes: 3)
    private let person = IdentityID(high: 1, low: 1)

    private func room(_ name: String) -> ClusterClient.Wish { .room(RoomName(name)!) }

    @Test func theFirstDeviceDecidesAndTheSecondIsRedirected() {
        let first = world.arrive(person, at: 1)
        world.pass(.milliseconds(10))
        let second = world.arrive(person, at: 2)
        world.pass(.seconds(1))
        #expect(first.node?.name == "n1" && second.node?.name == "n1")
        #expect(second.redirects == 1)
        #expect(world.nodes[1].stage.hub.personCount == 0)
    }

    @Test func whoLeavesMayComeBackOnAnotherNodeAtOnce() {
        world.arrive(person, at: 1).leave()
        world.pass(.milliseconds(50))
        let client = world.arrive(person, at: 2)
        world.pass(.milliseconds(50))
        #expect(client.node?.name == "n2" && client.redirects == 0)
        #expect(world.nodes[0].stage.hub.personCount == 0)
    }

    @Test func whoMayStillResumeIsSentBackToTheOldNode() {
        let client = world.arrive(person, at: 1)
        world.pass(.milliseconds(50))
        client.drop()
        client.reconnect(to: world.nodes[1])
        world.pass(.seconds(1))
        #expect(client.node?.name == "n1" && client.redirects == 1)
    }

    @Test func whoHasDroppedIsReleasedAfterTheGrace() {
        let client = world.arrive(person, at: 1)
        world.pass(.milliseconds(50))
        client.drop()
        world.pass(.seconds(31))
        client.reconnect(to: world.nodes[1])
        world.pass(.seconds(1))
        #expect(client.node?.name == "n2" && client.redirects == 0)
    }

    /// The client's leaving and its arrival on the other node take different paths, so the arrival may be earlier.
    @Test func anArrivalThatWasRedirectedWaitsUntilTheFormerNodeHasReleasedThePerson() throws {
        world.arrive(at: 2).want(room("kitchen"))
        let client = world.arrive(person, at: 1)
        world.pass(.milliseconds(100))
        let overtaking = Guest(on: world.nodes[1].stage, as: person)
        overtaking.at = "n2"
        overtaking.arrive()
        overtaking.say(.presence(.appear(Appearance(name: "Ada"))))
        world.pass(.milliseconds(1500))
        #expect(overtaking.socket != nil && overtaking.openRequests == 1)
        client.leave()
        world.pass(.milliseconds(300))
        #expect(overtaking.socket != nil && overtaking.openRequests == 0)
        #expect(world.nodes[1].stage.hub.personCount == 2)
    }

    /// A client of node 1 that the load balancer sent to node 2, because node 1 does not answer.
    private func guestOfALostNode() -> Guest {
        world.arrive(person, at: 1)
        world.pass(.milliseconds(50))
        let guest = Guest(on: world.nodes[1].stage, as: person)
        guest.at = "n1"
        guest.arrive()
        guest.say(.presence(.appear(Appearance(name: "Ada"))))
        world.pass(.seconds(1))
        return guest
    }

    private var key: PlaceKey { world.nodes[0].stage.project.placeKey(of: .person(person)) }

    @Test func whoWaitsForTheEndOfALostNodeIsSentToTheNodeThatContinuesTheirCall() {
        let guest = guestOfALostNode()
        #expect(guest.openRequests == 1 && guest.refusals.isEmpty)
        world.registry.give(key, to: world.nodes[2].tag)
        world.pass(.milliseconds(500))
        #expect(guest.refusals.map(\.code) == [.elsewhere] && guest.refusals.first?.at == "n3")
    }

    @Test func whoWaitsForTheEndOfALostNodeIsSentToItsNextLifeWhenTheLoadBalancerKnowsThatItServes() {
        let guest = guestOfALostNode()
        world.registry.give(key, to: NodeTag(node: 1, life: 1000)!)
        world.pass(.milliseconds(1500))
        #expect(guest.refusals.isEmpty)
        world.pass(.seconds(1))
        #expect(guest.refusals.map(\.code) == [.elsewhere] && guest.refusals.first?.at == "n1")
    }

    @Test func twoDevicesInTwoRoomsOnTwoNodesGetOneErrorAndNoLoop() {
        world.arrive(at: 2).want(room("cellar"))
        let first = world.arrive(person, at: 1)
        world.pass(.milliseconds(50))
        first.want(room("kitchen"))
        let second = world.arrive(person, at: 1)
        world.pass(.milliseconds(50))
        second.want(room("cellar"))
        world.pass(.seconds(30))
        #expect(first.isInRoom && first.node?.name == "n1")
        #expect(!second.isInRoom && second.node?.name == "n1")
        #expect(second.failures.map(\.code) == [.elsewhere])
        #expect(second.failures.first?.retryable == false)
        #expect(second.redirects == 2, "there and back")
    }

    @Test func requestsThatWaitForThePlaceKeepTheirOrder() {
        world.registry.delay = 50...50
        let client = world.arrive(person, at: 1)
        client.say(.presence(.appear(Appearance(name: "Ada"))))
        client.say(.presence(.leave))
        world.pass(.milliseconds(40))
        #expect(client.guest?.openRequests == 2)
        world.pass(.milliseconds(200))
        #expect(client.guest?.openRequests == 0)
        #expect(client.news.map(\.type).suffix(2) == ["presence.self", "ok"])
    }

    @Test func aClientThatLeavesBeforeItsPlaceIsKnownLeavesNothingBehind() {
        world.registry.delay = 50...50
        world.arrive(person, at: 1).leave()
        world.pass(.seconds(1))
        #expect(world.registry.places.isEmpty)
        #expect(world.nodes[0].stage.hub.personCount == 0 && world.nodes[0].stage.hub.waitingLetters == 0)
    }

    @Test func theRecordIsReadAfterThePlaceWasClaimed() throws {
        world.registry.delay = 50...50
        let guest = Guest(on: world.nodes[0].stage, as: person)
        guest.arrive(record: PersonRecord())
        let other = IdentityID(high: 9, low: 9)
        world.shelf.archive.apply(.block(owner: person, blocked: other, at: world.now))
        world.pass(.seconds(1))
        #expect(guest.blockedPeople?.count == 1)
    }

    @Test func whileTheRegistryIsAwayNewcomersAreRefusedAndOthersGoOn() {
        let old = world.arrive(at: 1)
        world.pass(.milliseconds(50))
        world.registry.setAway(true)
        let guest = Guest(on: world.nodes[0].stage, as: person)
        guest.arrive()
        world.pass(.milliseconds(50))
        #expect(guest.closeCode == .serviceRestart)
        #expect(guest.refusals.map(\.code) == [.clusterUnavailable] && guest.refusals[0].retryable)
        old.want(.request(.presence(.appear(Appearance(name: "Bo")))))
        world.pass(.milliseconds(50))
        #expect(old.failures.isEmpty && old.news.last?.type == "presence.self")
    }

    @Test func aPersonOfAKilledNodeCanComeAfterTheFence() {
        let client = world.arrive(person, at: 1)
        world.pass(.milliseconds(50))
        world.kill(world.nodes[0])
        world.pass(.seconds(1))
        #expect(client.isConnected && client.node?.name != "n1", "it is welcomed at once, and waits")
        client.want(.request(.presence(.devices)))
        world.pass(.seconds(2))
        #expect(client.guest?.openRequests == 1)
        world.pass(.seconds(1))
        #expect(client.guest?.openRequests == 0 && client.redirects == 0)
        client.want(.request(.presence(.appear(Appearance(name: "Ada")))))
        world.pass(.milliseconds(50))
        #expect(client.news.last?.type == "presence.self")
    }

    @Test func aPersonWhosePlaceWasLostIsSentAway() {
        let client = world.arrive(person, at: 1)
        world.pass(.milliseconds(50))
        let stage = world.nodes[0].stage
        let key = stage.project.placeKey(of: .person(person))
        world.registry.give(key, to: world.nodes[2].tag)
        stage.handle(.lostPlace(key))
        #expect(stage.hub.personCount == 0)
        world.pass(.milliseconds(200))
        #expect(client.guest == nil, "the client connects again, to any node")
    }

    @Test func placesOfPeopleDoNotRevealIdentities() {
        let key = world.nodes[0].stage.project.placeKey(of: .person(person))
        #expect(key.kind == .person && key.id.count == 32)
        #expect(!key.id.contains(person.description))
    }

    // MARK: Other people

    private func known(_ name: String, _ identity: IdentityID, at node: Int) -> ClusterClient {
        let client = world.arrive(identity, at: node)
        world.pass(.milliseconds(50))
        client.want(.request(.presence(.appear(Appearance(name: name)))))
        world.pass(.milliseconds(50))
        return client
    }

    private func publicID(_ identity: IdentityID) -> PersonID { world.nodes[0].stage.project.personID(of: identity) }

    @Test func aPersonOnAnotherNodeIsFoundAsOffline() throws {
        let ada = known("Ada", person, at: 1)
        let bo = known("Bo", IdentityID(high: 2, low: 2), at: 2)
        bo.want(.request(.presence(.find(.init(person: publicID(person))))))
        world.pass(.milliseconds(100))
        guard case .presence(.person(let answer))? = bo.news.last else { return _ = Issue.record("\(bo.news)") }
        #expect(answer.person.name == "Ada" && !answer.person.online)
        #expect(ada.isConnected && bo.node?.name == "n2")
        #expect(world.nodes[1].stage.hub.personCount == 1, "the person is not created here")
    }

    @Test func aCallToAPersonOnAnotherNodeIsUnreachable() throws {
        let ada = known("Ada", person, at: 1)
        let bo = known("Bo", IdentityID(high: 2, low: 2), at: 2)
        bo.want(.request(.call(.start(.init(person: publicID(person), video: true)))))
        world.pass(.milliseconds(100))
        #expect(bo.news.compactMap(\.call).compactMap(\.ended).map(\.reason) == [.unreachable])
        #expect(world.nodes.allSatisfy { $0.stage.hub.callCount == 0 })
        #expect(!ada.news.contains { $0.call != nil })
    }

    @Test func whoIsNowhereCanBeCalledAndThenBelongsToTheCallersNode() throws {
        let ada = known("Ada", person, at: 1)
        let socket = try #require(ada.guest)
        world.nodes[0].stage.register(socket)
        ada.leave()
        world.pass(.milliseconds(100))
        let bo = known("Bo", IdentityID(high: 2, low: 2), at: 2)
        bo.want(.request(.call(.start(.init(person: publicID(person), video: true)))))
        world.pass(.milliseconds(100))
        #expect(world.nodes[1].stage.hub.callFigures.ringing == 1)
        let back = world.arrive(person, at: 3)
        world.pass(.seconds(1))
        #expect(back.node?.name == "n2")
        back.want(.request(.presence(.appear(Appearance(name: "Ada")))))
        world.pass(.milliseconds(100))
        #expect(back.news.contains { if case .call(.incoming) = $0 { true } else { false } })
    }

    /// Two people in a call on node 1, which dies. Node 3 continues the call; Ada comes to node 2 and Bo to node 3.
    ///
    /// - Parameter isAccepted: whether Ada has accepted the call. If not, it rings.
    private func callOfADeadNode(isAccepted: Bool = true) throws -> (ada: ClusterClient, bo: ClusterClient, CallID) {
        let ada = known("Ada", person, at: 1)
        let bo = known("Bo", IdentityID(high: 2, low: 2), at: 1)
        bo.want(.request(.call(.start(.init(person: publicID(person), video: true)))))
        world.pass(.milliseconds(100))
        let call = try #require(world.shelf.archive.openCalls.keys.first)
        if isAccepted { ada.want(.request(.call(.accept(.init(call: call, video: true))))) }
        world.pass(.milliseconds(100))
        world.heir = world.nodes[2]
        world.kill(world.nodes[0])
        ada.connect(to: world.nodes[1], at: "n1")
        bo.connect(to: world.nodes[2], at: "n1")
        world.pass(.seconds(4))
        for client in [ada, bo] {
            client.want(.request(.presence(.appear(Appearance()))))
            world.pass(.milliseconds(50))
        }
        return (ada, bo, call)
    }

    private func ends(_ client: ClusterClient) -> [CallOutcome] {
        client.news.compactMap(\.call).compactMap(\.ended).map(\.reason)
    }

    private func logged(_ identity: IdentityID) -> [CallOutcome]? {
        world.shelf.archive.logs[identity]?.map(\.outcome)
    }

    @Test func aCallContinuesIfItsPeopleComeBackToDifferentNodesAfterTheDeathOfTheirs() throws {
        let (ada, bo, call) = try callOfADeadNode()
        #expect([ada, bo].map(\.node?.name) == ["n2", "n3"])
        for client in [ada, bo] { client.want(.request(.call(.rejoin(.init(call: call))))) }
        world.pass(.seconds(1))
        #expect(ada.node?.name == "n3" && ada.redirects == 1 && ada.failures.isEmpty)
        #expect(bo.node?.name == "n3" && bo.redirects == 0 && bo.failures.isEmpty)
        for client in [ada, bo] {
            #expect(client.news.contains { if case .call(.accepted) = $0 { true } else { false } }, "\(client.news)")
        }
        #expect(world.nodes[2].stage.hub.callCount == 1)
    }

    @Test func aCallEndsIfItsCalleeComesBackToAnotherNodeThanTheOneThatContinuesIt() throws {
        // Ada's client waits on node 2 for her place, and is the first to claim it.
        world.registry.delay = 0...0
        let (ada, bo, call) = try callOfADeadNode(isAccepted: false)
        #expect([ada, bo].map(\.node?.name) == ["n2", "n3"])
        bo.want(.request(.call(.rejoin(.init(call: call)))))
        world.pass(.seconds(5))
        #expect(bo.failures.isEmpty && world.nodes[2].stage.hub.callCount == 0)
        #expect(ends(bo) == [.unreachable])
        #expect(ends(ada) == [.missed] && logged(person) == [.missed])
        #expect(world.live.allSatisfy { $0.stage.hub.unexpectedLetters == 0 })
    }

    @Test func aCallIsMissedIfItsCallerDoesNotComeBackToTheNodeThatContinuesIt() throws {
        world.registry.delay = 0...0
        let (ada, bo, _) = try callOfADeadNode(isAccepted: false)
        bo.leave()
        world.pass(.seconds(31))
        #expect(ends(ada) == [.missed] && logged(person) == [.missed])
        #expect(world.nodes[2].stage.hub.callCount == 0)
    }

    @Test func aCallThatNobodyCouldAcceptIsInTheListOfACalleeWhoHasLeft() throws {
        world.registry.delay = 0...0
        let (ada, bo, call) = try callOfADeadNode(isAccepted: false)
        ada.leave()
        bo.want(.request(.call(.rejoin(.init(call: call)))))
        world.pass(.seconds(5))
        #expect(ends(bo) == [.unreachable] && logged(person) == [.missed])
        let back = known("Ada", person, at: 2)
        #expect(ends(back) == [.missed])
    }

    @Test func aMissedCallWaitsWhileRedisIsAway() throws {
        world.registry.delay = 0...0
        let (ada, bo, call) = try callOfADeadNode(isAccepted: false)
        bo.want(.request(.call(.rejoin(.init(call: call)))))
        world.registry.setAway(true)
        world.pass(.seconds(10))
        #expect(ends(bo) == [.unreachable] && ends(ada) == [])
        world.registry.setAway(false)
        world.pass(.seconds(3))
        #expect(ends(ada) == [.missed] && logged(person) == [.missed])
    }

    @Test func aRestoredCallKeepsRingingWhileTheNodeOfItsCalleeIsUnknown() throws {
        _ = known("Ada", person, at: 1)
        let bo = known("Bo", IdentityID(high: 2, low: 2), at: 1)
        bo.want(.request(.call(.start(.init(person: publicID(person), video: true)))))
        world.pass(.milliseconds(100))
        let call = try #require(world.shelf.archive.openCalls.keys.first)
        world.heir = world.nodes[2]
        world.registry.setAway(true)
        world.kill(world.nodes[0])
        world.pass(.seconds(5))
        #expect(world.nodes[2].stage.hub.callCount == 1)
        world.registry.setAway(false)
        bo.connect(to: world.nodes[2], at: "n1")
        world.pass(.seconds(2))
        bo.want(.request(.call(.rejoin(.init(call: call)))))
        world.pass(.seconds(8))
        #expect(bo.failures.isEmpty && world.nodes[2].stage.hub.callCount == 1)
        #expect(bo.news.compactMap(\.call).compactMap(\.ended).isEmpty)
    }

    @Test func aCallThatNoNodeHasContinuedYetIsNotOver() throws {
        let (ada, bo, call) = try callOfADeadNode()
        world.shelf.archive.callHomes[call] = nil
        ada.want(.request(.call(.rejoin(.init(call: call)))))
        world.pass(.milliseconds(50))
        #expect(ada.failures.map(\.code) == [.clusterUnavailable] && ada.failures.first?.retryable == true)
        #expect(bo.failures.isEmpty)
    }

    @Test func aCallOfOthersIsNotLocated() throws {
        let (_, _, call) = try callOfADeadNode()
        let cy = known("Cy", IdentityID(high: 3, low: 3), at: 2)
        cy.want(.request(.call(.rejoin(.init(call: call)))))
        world.pass(.milliseconds(50))
        #expect(cy.failures.map(\.code) == [.notFound])
    }

    @Test func whoWasOnlyLookedUpIsReleasedSoon() {
        known("Ada", person, at: 1).leave()
        let bo = known("Bo", IdentityID(high: 2, low: 2), at: 2)
        bo.want(.request(.presence(.find(.init(person: publicID(person))))))
        world.pass(.milliseconds(100))
        #expect(world.nodes[1].stage.hub.personCount == 2)
        world.pass(.seconds(1))
        #expect(world.nodes[1].stage.hub.personCount == 1)
        #expect(world.registry.places.count == 1)
    }

    // MARK: Nearby, codes and sessions

    @Test func peopleNearbyMeetOnOneNode() {
        let (ada, bo) = (known("Ada", person, at: 1), known("Bo", IdentityID(high: 2, low: 2), at: 2))
        ada.want(.request(.nearby(.move(.init(latitude: 52, longitude: 13)))))
        world.pass(.milliseconds(100))
        bo.want(.request(.nearby(.move(.init(latitude: 52, longitude: 13)))))
        world.pass(.seconds(1))
        #expect(ada.node?.name == "n1" && bo.node?.name == "n1" && bo.redirects == 1)
    }

    @Test func aDeviceIsLinkedOnTheNodeOfTheCodes() throws {
        let (ada, bo) = (known("Ada", person, at: 1), known("Bo", IdentityID(high: 2, low: 2), at: 2))
        ada.want(.request(.presence(.link)))
        world.pass(.milliseconds(100))
        guard case .presence(.linkCode(let code))? = ada.news.last else { return _ = Issue.record("no code") }
        bo.want(.request(.presence(.useLink(.init(code: code.code, label: "Phone")))))
        world.pass(.seconds(1))
        // Afterward, the device connects again, as one of Ada's.
        #expect(bo.failures.isEmpty && bo.redirects >= 1)
        #expect(world.shelf.archive.resolve(IdentityID(high: 2, low: 2)) == .person(person))
    }

    @Test func membersOfAnApplicationsSessionMeetOnOneNode() {
        let stage = world.nodes[0].stage
        let session = stage.room()
        let clients = (1...3).map { world.arrive(at: $0) }
        world.pass(.milliseconds(50))
        for client in clients {
            client.want(.session(session, token: stage.token(session)))
            world.pass(.seconds(1))
        }
        #expect(clients.allSatisfy { $0.node?.name == "n1" && $0.maxRedirects <= 1 })
        #expect(stage.hub.sessionCount == 1)
        for client in clients { client.leave() }
        world.pass(.seconds(1))
        #expect(world.registry.places.isEmpty)
    }

    // MARK: Draining

    @Test func aNodeThatIsAboutToStopSendsIdleClientsAwayAndKeepsRooms() {
        let (idle, busy) = (world.arrive(at: 1), world.arrive(at: 1))
        world.pass(.milliseconds(50))
        busy.want(room("kitchen"))
        world.pass(.milliseconds(50))
        world.drain(world.nodes[0])
        world.pass(.seconds(2))
        #expect(busy.isInRoom && busy.node?.name == "n1")
        #expect(idle.isConnected && idle.node?.name != "n1")
        busy.say(.room(.leave))
        busy.endWish()
        world.pass(.seconds(3))
        #expect(world.nodes[0].stage.hub.clientCount == 0)
        world.pass(.seconds(61))
        #expect(!world.registry.places.values.contains(world.nodes[0].tag))
    }
}
