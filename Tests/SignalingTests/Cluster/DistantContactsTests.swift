import Cluster
import TestSupport
import Testing
import Wire

@testable import Signaling

/// Contacts who are connected to different nodes of a cluster.
@Suite struct DistantContactsTests {
    let world = ClusterWorld(nodes: 3)
    private let ada = IdentityID(high: 1, low: 1)
    private let bo = IdentityID(high: 1, low: 2)

    /// Two contacts come, each to a node of their own.
    private func contacts(areVisible: Bool = true) -> (ada: ClusterClient, bo: ClusterClient) {
        world.shelf.archive.apply(.keptInTouch(ada, bo, names: ["Ada", "Bo"], at: world.now))
        let first = world.arrive(ada, at: 1)
        let second = world.arrive(bo, at: 2)
        first.appear(Appearance(name: "Ada"))
        second.appear(Appearance(name: "Bo", visible: areVisible))
        world.pass(.milliseconds(100))
        return (first, second)
    }

    /// Whether a client's person sees their contact online; nil if there is no such contact.
    private func sees(_ client: ClusterClient, _ other: IdentityID) -> Bool? {
        for node in world.live {
            for view in node.stage.hub.contactViews where view.person == client.identity {
                return view.contacts.contains(other) ? view.online.contains(other) : nil
            }
        }
        return nil
    }

    private func heard(_ client: ClusterClient) -> [PersonInfo] {
        client.news.compactMap { if case .contact(.changed(let news)) = $0 { news.person } else { nil } }
    }

    // MARK: Presence

    @Test func contactsOnTwoNodesSeeEachOtherComeChangeAndGo() {
        let (first, second) = contacts()
        #expect(sees(first, bo) == true && sees(second, ada) == true)
        #expect(first.node?.name == "n1" && second.node?.name == "n2")
        second.appear(Appearance(name: "Bob"))
        world.pass(.milliseconds(100))
        #expect(heard(first).last?.name == "Bob" && heard(first).last?.online == true)
        second.leave()
        world.pass(.milliseconds(100))
        #expect(sees(first, bo) == false && heard(first).last?.online == false)
    }

    /// A letter about a contact asks where the person is, without claiming their place. What waits for the answer still needs other
    /// places.
    @Test func aRoomWhoseFirstMemberHasLeftMeanwhileIsNotMadeWithoutItsPlace() throws {
        world.shelf.archive.apply(.keptInTouch(ada, bo, names: ["Ada", "Bo"], at: world.now))
        let first = world.arrive(ada, at: 1)
        let second = world.arrive(bo, at: 1)
        world.pass(.milliseconds(100))
        let kitchen = try #require(RoomName("kitchen"))
        world.registry.delay = 20...20
        second.want(.room(kitchen))
        second.leave()
        first.appear(Appearance(name: "Ada"))
        world.pass(.seconds(1))
        let third = world.arrive(at: 3)
        third.want(.room(kitchen))
        world.pass(.seconds(1))
        world.check()
        #expect(world.fault == nil)
        #expect(third.isInRoom)
    }

    @Test func anOldReportThatArrivesLateIsCorrectedByTheAnswerToAQuestion() {
        let (first, second) = contacts()
        world.post.setAway(true, now: world.now)
        second.appear(Appearance(name: "Bob"))
        first.leave()
        world.pass(.milliseconds(100))
        // Nobody gets this report, because Ada is on no node.
        second.appear(Appearance(name: "Bob", visible: false))
        world.pass(.milliseconds(100))
        let third = world.arrive(ada, at: 1)
        third.appear(Appearance(name: "Ada"))
        world.pass(.milliseconds(100))
        world.post.setAway(false, now: world.now)
        world.pass(.seconds(5))
        #expect(heard(third).contains { $0.online }, "the first report has arrived")
        #expect(sees(third, bo) == false)
    }

    @Test func anOldReportOfAContactWhoHasLeftMeanwhileIsCorrectedAlthoughNobodyAnswers() {
        let (first, second) = contacts()
        world.post.setAway(true, now: world.now)
        second.appear(Appearance(name: "Bob"))
        first.leave()
        world.pass(.milliseconds(100))
        // Nobody gets this report either.
        second.leave()
        world.pass(.milliseconds(100))
        let third = world.arrive(ada, at: 1)
        third.appear(Appearance(name: "Ada"))
        world.pass(.milliseconds(100))
        world.post.setAway(false, now: world.now)
        world.pass(.seconds(5))
        #expect(heard(third).map(\.online).suffix(2) == [true, false], "the first report has arrived")
        #expect(sees(third, bo) == false)
    }

    /// The registry has said that the contact is nowhere just before they came, and their report overtakes this answer.
    @Test func aContactWhoComesWhileTheRegistryAnswersStaysOnline() {
        world.shelf.archive.apply(.keptInTouch(ada, bo, names: ["Ada", "Bo"], at: world.now))
        let first = world.arrive(ada, at: 1)
        first.appear(Appearance(name: "Ada"))
        world.pass(.milliseconds(100))
        let (own, other) = (world.nodes[0].stage, world.nodes[1])
        world.registry.delay = 20...20
        own.handle(.lettersLost(other.tag))
        world.pass(.milliseconds(30))
        world.arrive(bo, at: 2).appear(Appearance(name: "Bo"))
        let report = Counterpart(identity: bo, person: own.project.personID(of: bo), name: "Bo", isOnline: true)
        own.handle(.received(.person(ada, .contact(.presence(of: report))), from: other.tag))
        #expect(sees(first, bo) == true && own.hub.waitingLetters > 0)
        world.pass(.milliseconds(15))
        #expect(sees(first, bo) == true, "the answer has come")
        world.pass(.seconds(1))
        #expect(sees(first, bo) == true && world.fault == nil)
        #expect(heard(first).map(\.online) == [true])
        #expect(own.hub.waitingLetters == 0)
    }

    @Test func aContactWhoMovesToAThirdNodeIsSeenThere() {
        let (first, second) = contacts()
        second.leave()
        world.arrive(bo, at: 3).appear(Appearance(name: "Bo"))
        world.pass(.milliseconds(100))
        #expect(sees(first, bo) == true)
        #expect(world.nodes[2].stage.hub.visiblePeople == [bo])
    }

    @Test func aContactWhoMovesToTheSameNodeIsSeenThere() {
        let (first, second) = contacts()
        second.leave()
        let again = world.arrive(bo, at: 1)
        again.appear(Appearance(name: "Bo"))
        world.pass(.milliseconds(100))
        #expect(sees(first, bo) == true)
        again.leave()
        world.pass(.milliseconds(100))
        #expect(sees(first, bo) == false)
    }

    /// Redis has forgotten that a person is on the node, and the person's other device has come to another one. The node learns this
    /// only after the other node has reported the person, so the person's contacts on the node have ignored that report.
    @Test func aContactWhosePlaceWasLostIsSeenOnTheNodeThatHasIt() {
        world.shelf.archive.apply(.keptInTouch(ada, bo, names: ["Ada", "Bo"], at: world.now))
        let first = world.arrive(ada, at: 1)
        first.appear(Appearance(name: "Ada"))
        world.arrive(bo, at: 1).appear(Appearance(name: "Bo"))
        world.pass(.milliseconds(100))
        let key = world.nodes[0].stage.project.placeKey(of: .person(bo))
        world.registry.give(key, to: world.nodes[1].tag)
        let other = world.arrive(bo, at: 2)
        other.appear(Appearance(name: "Bo"))
        world.pass(.milliseconds(100))
        #expect(sees(first, bo) == true && other.node?.name == "n2")
        world.nodes[0].stage.handle(.lostPlace(key))
        #expect(sees(first, bo) == false)
        world.pass(.milliseconds(100))
        #expect(sees(first, bo) == true)
        #expect(heard(first).map(\.online).suffix(2) == [false, true])
        world.pass(.seconds(5))
        #expect(sees(first, bo) == true && sees(other, ada) == true)
    }

    @Test func contactsOfANodeWhoseLifeIsOverAreOffline() {
        let (first, _) = contacts()
        world.kill(world.nodes[1])
        world.pass(.seconds(2))
        #expect(sees(first, bo) == true, "nobody knows yet")
        world.pass(.seconds(5))
        // The client has come back to another node, and appeared again.
        #expect(sees(first, bo) == true)
        #expect(heard(first).map(\.online).suffix(2) == [false, true])
    }

    @Test func whatHappensWhileRedisIsAwayIsSeenAfterwards() {
        let (first, second) = contacts()
        world.registry.setAway(true)
        world.post.setAway(true, now: world.now)
        second.say(.presence(.leave))
        world.pass(.seconds(10))
        #expect(sees(first, bo) == true)
        world.registry.setAway(false)
        world.post.setAway(false, now: world.now)
        world.pass(.seconds(5))
        #expect(sees(first, bo) == false)
    }

    @Test func whileRedisIsAwayOnlyTheNewestPresenceOfAContactWaits() {
        let (first, second) = contacts()
        world.registry.setAway(true)
        world.post.setAway(true, now: world.now)
        for name in ["Bob", "Bobby", "Robert"] {
            second.appear(Appearance(name: name))
            world.pass(.seconds(3))
        }
        #expect(world.nodes[1].stage.hub.waitingLetters == 1)
        world.registry.setAway(false)
        world.post.setAway(false, now: world.now)
        world.pass(.seconds(5))
        #expect(heard(first).map(\.name).suffix(1) == ["Robert"])
        #expect(world.nodes[1].stage.hub.droppedLetters == 0)
    }

    @Test func whatWasLostIsAskedForAgain() {
        let (first, second) = contacts()
        world.post.loseEntries(now: world.now)
        second.say(.presence(.leave))
        world.pass(.seconds(7))
        #expect(sees(first, bo) == true, "nobody knows yet")
        world.pass(.seconds(5))
        #expect(sees(first, bo) == false)
        #expect(world.post.figures["letters lost"] == 2)
        second.appear(Appearance(name: "Bo"))
        world.pass(.milliseconds(100))
        #expect(sees(first, bo) == true && sees(second, ada) == true)
    }

    /// Records the people about whom a node asks the registry.
    private func questions(of node: ClusterNode) -> Questions {
        let questions = Questions()
        node.stage.inspect = { effects in
            for case .reach(_, .person(let identity), _) in effects { questions.people.append(identity) }
        }
        return questions
    }

    private final class Questions {
        var people: [IdentityID] = []
    }

    @Test func afterALossANodeAsksOnlyForContactsWhoWereOnlineThereOrOffline() {
        let (cy, di, ev) = (IdentityID(high: 1, low: 3), IdentityID(high: 1, low: 4), IdentityID(high: 1, low: 5))
        for other in [cy, di, ev] {
            world.shelf.archive.apply(.keptInTouch(ada, other, names: ["Ada", "Cy"], at: world.now))
        }
        let (first, _) = contacts()
        world.arrive(cy, at: 3).appear(Appearance(name: "Cy"))
        world.arrive(di, at: 1).appear(Appearance(name: "Di"))
        world.pass(.milliseconds(100))
        #expect(sees(first, cy) == true && sees(first, di) == true && sees(first, ev) == false)
        let questions = questions(of: world.nodes[0])
        world.nodes[0].stage.handle(.lettersLost(world.nodes[1].tag))
        #expect(questions.people == [bo, ev])
        world.pass(.milliseconds(100))
        #expect(sees(first, bo) == true)
    }

    @Test func afterALossOnlyFiftyPeopleAskInATurn() {
        for number in 0..<60 {
            let person = IdentityID(high: 2, low: UInt64(number))
            let contact = IdentityID(high: 3, low: UInt64(number))
            world.shelf.archive.apply(.keptInTouch(person, contact, names: ["Ada", "Bo"], at: world.now))
            world.arrive(person, at: 1)
        }
        world.pass(.seconds(1))
        let questions = questions(of: world.nodes[0])
        world.nodes[0].stage.handle(.lettersLost(world.nodes[1].tag))
        #expect(questions.people == (0..<50).map { IdentityID(high: 3, low: $0) })
        world.pass(.milliseconds(20))
        #expect(questions.people == (0..<60).map { IdentityID(high: 3, low: $0) })
    }

    @Test func aRemovalThatWasLostIsNoticedWhenTheNodesBeginAgain() {
        let (first, second) = contacts()
        world.post.loseEntries(now: world.now)
        second.say(.contact(.remove(.init(person: world.nodes[0].stage.project.personID(of: ada)))))
        world.pass(.seconds(7))
        #expect(sees(first, bo) == true, "nobody knows yet")
        world.pass(.seconds(5))
        #expect(sees(first, bo) == nil)
    }

    /// The removal waits for Redis on a node that dies, and nobody asks the person who has removed the contact: they seemed to be offline
    /// before.
    @Test func aRemovalThatIsLostWithItsNodeIsNoticedWhenTheOtherPersonConnectsAgain() {
        let (first, second) = contacts(areVisible: false)
        world.registry.setAway(true)
        world.post.setAway(true, now: world.now)
        second.say(.contact(.remove(.init(person: world.nodes[0].stage.project.personID(of: ada)))))
        world.kill(world.nodes[1])
        world.pass(.seconds(5))
        world.registry.setAway(false)
        world.post.setAway(false, now: world.now)
        world.pass(.seconds(10))
        second.appear(Appearance(name: "Bo", visible: true))
        world.pass(.seconds(1))
        #expect(second.isConnected && sees(second, ada) == nil)
        #expect(sees(first, bo) == false, "the contact stays, but reveals nothing")
        first.leave()
        world.pass(.seconds(2))
        let again = world.arrive(ada, at: 1)
        world.pass(.milliseconds(100))
        #expect(again.isConnected && sees(again, bo) == nil)
    }

    @Test func aRemovedContactHearsOfItOnAnotherNode() {
        let (first, second) = contacts()
        second.say(.contact(.remove(.init(person: world.nodes[0].stage.project.personID(of: ada)))))
        world.pass(.milliseconds(100))
        #expect(sees(first, bo) == nil && sees(second, ada) == nil)
        #expect(first.news.contains { if case .contact(.removed) = $0 { true } else { false } })
    }

    // MARK: Calls

    private func call(_ client: ClusterClient, _ other: IdentityID) {
        let person = world.nodes[0].stage.project.personID(of: other)
        client.want(.request(.call(.start(.init(person: person, video: true)))))
        world.pass(.seconds(1))
    }

    private func rings(_ client: ClusterClient) -> Bool {
        client.news.contains { if case .call(.incoming) = $0 { true } else { false } }
    }

    @Test func aCallToAContactOnAnotherNodeMovesTheCallerAndRings() {
        let (first, second) = contacts()
        call(first, bo)
        #expect(first.redirects == 1 && first.node?.name == "n2")
        #expect(rings(second))
        #expect(sees(first, bo) == true && sees(second, ada) == true)
    }

    @Test func aCallerWithASecondDeviceStays() {
        let (first, second) = contacts()
        let device = world.arrive(ada, at: 1)
        call(first, bo)
        #expect(first.redirects == 0 && device.isConnected && !rings(second))
        #expect(first.news.contains { if case .call(.ended) = $0 { true } else { false } })
    }

    @Test func callingAContactWhoIsNotVisibleOrAStrangerRevealsNothing() {
        let (first, second) = contacts(areVisible: false)
        call(first, bo)
        #expect(first.redirects == 0 && !rings(second))
        let stranger = world.arrive(at: 3)
        stranger.appear(Appearance(name: "Cy"))
        call(stranger, bo)
        #expect(stranger.redirects == 0 && !rings(second))
    }
}
