import Cluster
import TestSupport
import Testing
import Wire

@testable import Signaling

/// Clients of PerchRTC's protocol, which cannot follow a redirect. With relays, they stay on their nodes and join rooms of others.
@Suite struct SpanningPhonesTests: SpanningRooms {
    let world = ClusterWorld(nodes: 3) { $0.routesMedia = true }
    private let lunch = RoomName("lunch")!

    private func arrive(_ user: String, at node: Int) -> PerchGuest {
        let phone = world.nodes[node - 1].stage.arrivePerch(user, room: "lunch")
        world.pass(.milliseconds(500))
        return phone
    }

    /// Opens the room as a mesh, and joins its session with a camera. Returns the session.
    private func openMesh(
        _ client: ClusterClient, _ change: (inout RoomChanges) -> Void = { _ in }
    ) throws -> SessionID {
        open(client, "lunch") { options in
            (options.media, options.capacity) = (.mesh, 6)
            change(&options)
        }
        let session = try joinSession(client)
        var publish = SessionVerb.Publish()
        (publish.session, publish.videoType) = (session, .camera)
        client.say(.session(.publish(publish)))
        world.pass(.milliseconds(500))
        return session
    }

    /// Returns the node's answer to a phone's request for a token.
    private func check(at node: Int) -> OperatorReply? {
        let stage = world.nodes[node - 1].stage
        let place = PerchPlace(envelope: .flat, domain: "d", application: "a", room: "lunch", user: "iPhone")
        let socket = stage.resource()
        let application = PerchClient.application(place, address: "p", stage.project)
        stage.handle(.operated(OperatorRequest(socket: socket, .check(application))))
        world.pass(.milliseconds(500))
        return stage.takeAnswer(socket)
    }

    // MARK: Meeting

    @Test func phonesOfTwoNodesMeetInARoomAndNegotiate() {
        connectAll()
        let amy = arrive("Amy", at: 1)
        #expect(amy.take() == [.peers([])])
        let bob = arrive("Bob", at: 2)
        #expect(bob.take() == [.peers(["Amy"])])
        #expect(amy.take() == [.connected("Bob")])
        amy.send(.offer("o"), "c1", to: "Bob")
        world.pass(.milliseconds(100))
        #expect(bob.take() == [.message("offer", connection: "c1", from: "Amy", text: "o")])
        bob.send(.answer("a"), "c1", to: "Amy")
        bob.send(.candidate(PerchCandidate(label: 0, mid: "audio", candidate: "candidate:1")), "c1", to: "Amy")
        world.pass(.milliseconds(100))
        #expect(
            amy.take() == [
                .message("answer", connection: "c1", from: "Bob", text: "a"),
                .message("ice", connection: "c1", from: "Bob", text: "candidate:1"),
            ])
        #expect(roomCounts == [1, 0, 0])
        judge()
        bob.leave()
        world.pass(.milliseconds(100))
        #expect(amy.take() == [.message("bye", connection: "c1", from: "Bob", text: nil), .removed("Bob")])
        amy.leave()
        world.pass(.seconds(61))
        #expect(roomCounts == [0, 0, 0])
        judge()
    }

    @Test func phonesOfTwoNodesMeetInARoomOfAThirdOne() throws {
        connectAll()
        _ = try openMesh(world.arrive(at: 3))
        let (amy, bob) = (arrive("Amy", at: 1), arrive("Bob", at: 2))
        #expect(bob.take().first == .peers(["Amy"]))
        #expect(amy.take().contains(.connected("Bob")))
        amy.send(.offer("o"), "c1", to: "Bob")
        world.pass(.milliseconds(100))
        #expect(bob.take().contains(.message("offer", connection: "c1", from: "Amy", text: "o")))
        #expect(roomCounts == [0, 0, 1])
        judge()
    }

    @Test func aPhoneOffersToABrowserOfAnotherNode() throws {
        connectAll()
        let ada = world.arrive(at: 1)
        let session = try openMesh(ada)
        let phone = arrive("Amy", at: 2)
        world.pass(.milliseconds(500))
        #expect(phone.take() == [.peers([]), .connected("Ada")])
        phone.send(.offer("v=0\r\na=msid:ARDAMS audio\r\n"), "c1", to: "Ada")
        world.pass(.milliseconds(100))
        let offers = ada.news.compactMap { message -> SessionNotice.Negotiate? in
            if case .session(.negotiate(let negotiate)) = message { negotiate } else { nil }
        }
        let offer = try #require(offers.first)
        let own = try #require(ada.guest?.connection)
        #expect(offer.negotiationID == "c1" && own < offer.from, "so the browser is polite")
        var answer = SessionVerb.Negotiate()
        (answer.session, answer.to) = (session, offer.from)
        (answer.negotiationID, answer.offerNumber) = ("c1", 1)
        answer.description = SessionDescription(type: .answer, sdp: "a")
        ada.say(.session(.negotiate(answer)))
        world.pass(.milliseconds(100))
        #expect(phone.take() == [.message("answer", connection: "c1", from: "Ada", text: "a")])
        ada.leave()
        world.pass(.milliseconds(100))
        #expect(phone.take() == [.message("bye", connection: "c1", from: "Ada", text: nil), .removed("Ada")])
        judge()
    }

    @Test func aPhoneThatLeavesBeforeTheRoomAnswersIsNotInTheRoom() {
        connectAll()
        let amy = arrive("Amy", at: 1)
        let bob = world.nodes[1].stage.arrivePerch("Bob", room: "lunch")
        bob.leave()
        world.pass(.milliseconds(500))
        amy.leave()
        world.pass(.seconds(61))
        #expect(roomCounts == [0, 0, 0])
        judge()
    }

    // MARK: Refusals

    @Test func theRoomOfAnotherNodeRefusesAPhoneWhenItJoins() throws {
        connectAll()
        _ = try openMesh(world.arrive(at: 1)) { $0.lobby = true }
        #expect(check(at: 1)?.errorCode == .roomRefused)
        #expect(check(at: 2) == .admissible)
        let phone = arrive("Amy", at: 2)
        #expect(phone.take() == [.refused("room_refused")] && phone.closeCode == .forbidden)
        judge()
    }

    @Test func withoutRelaysAPhoneIsRefusedWithTheCodeElsewhere() {
        _ = arrive("Amy", at: 1)
        #expect(check(at: 1) == .admissible)
        #expect(check(at: 2)?.errorCode == .elsewhere)
        let bob = arrive("Bob", at: 2)
        #expect(bob.take() == [.refused("elsewhere")] && bob.closeCode == .forbidden)
        judge()
    }

    // MARK: Nodes and letters that are lost

    @Test func whenTheRoomsNodeDiesThePhoneIsDisconnectedAndOpensTheRoomAgain() {
        connectAll()
        _ = arrive("Amy", at: 1)
        let bob = arrive("Bob", at: 2)
        bob.take()
        world.kill(world.nodes[0])
        world.pass(.seconds(5))
        #expect(bob.take() == [.refused("cluster_unavailable")] && bob.closeCode == .serviceRestart)
        bob.arrive()
        world.pass(.seconds(5))
        #expect(bob.take() == [.peers([])] && bob.closeCode == nil)
        #expect(roomCounts == [1, 0])
        judge()
    }

    @Test func whenThePhonesNodeDiesThePhoneIsRemoved() {
        connectAll()
        let amy = arrive("Amy", at: 1)
        _ = arrive("Bob", at: 2)
        #expect(amy.take().last == .connected("Bob"))
        world.kill(world.nodes[1])
        world.pass(.seconds(4))
        #expect(amy.take() == [.removed("Bob")])
        judge()
    }

    @Test func whenLettersAreLostThePhoneIsDisconnected() {
        connectAll()
        let (amy, bob) = (arrive("Amy", at: 1), arrive("Bob", at: 2))
        for phone in [amy, bob] { phone.take() }
        world.nodes[0].stage.handle(.lettersLost(world.nodes[1].tag))
        world.nodes[1].stage.handle(.lettersLost(world.nodes[0].tag))
        world.pass(.milliseconds(100))
        #expect(bob.closeCode == .serviceRestart && amy.closeCode == nil)
        #expect(amy.take() == [.removed("Bob")])
        bob.arrive()
        world.pass(.milliseconds(500))
        #expect(bob.take() == [.refused("cluster_unavailable"), .peers(["Amy"])])
    }

    // MARK: Nodes that break the rules

    @Test func noNodeSpeaksForAPhoneOfAnotherOne() throws {
        connectAll()
        let (amy, bob) = (arrive("Amy", at: 1), arrive("Bob", at: 2))
        for phone in [amy, bob] { phone.take() }
        let stage = world.nodes[0].stage
        let members = try #require(stage.hub.rooms.read(lunch) { $0.roster.members.map(\.client) })
        let own = try #require(members.first { $0.tag(unless: world.nodes[0].tag) == nil })
        let other = try #require(members.first { $0 != own })
        let letter = Letter.client(own, .perchSignal(other, PerchSignal(connection: "c1", .bye)))
        stage.handle(.received(letter, from: world.nodes[2].tag))
        #expect(stage.hub.unexpectedLetters == 1 && amy.take() == [])
    }
}
