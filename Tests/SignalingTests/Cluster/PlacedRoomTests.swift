import Cluster
import Signaling
import TestSupport
import Testing
import Wire

/// A room is on one node of the cluster, and people on other nodes are redirected to it.
@Suite struct PlacedRoomTests {
    let world = ClusterWorld(nodes: 3)

    private func enter(_ room: String = "kitchen", at node: Int) -> ClusterClient {
        let client = world.arrive(at: node)
        client.want(.room(RoomName(room)!))
        world.pass(.seconds(1))
        return client
    }

    @Test func idsBeginWithTheTagOfTheirNode() throws {
        let client = world.arrive(at: 2)
        let tag = try #require(world["n2"]?.tag)
        let guest = try #require(client.guest)
        #expect(guest.connection.high >> 24 == tag.rawValue)
        #expect(client.guest?.welcome?.at == "n2")
    }

    @Test func withoutAClusterIdsAreRandomAndNoNodeIsNamed() {
        let stage = Stage()
        let guests = (0..<8).map { _ in stage.arrive() }
        #expect(Set(guests.map { $0.connection.high >> 24 }).count == 8)
        #expect(guests.allSatisfy { $0.welcome?.at == nil })
    }

    @Test func peopleFromAllNodesMeetInTheRoomWithinOneRedirect() {
        let clients = (1...3).map { enter(at: $0) }
        #expect(clients.allSatisfy { $0.isInRoom })
        #expect(Set(clients.map { $0.node?.name }) == ["n1"])
        #expect(clients.map(\.maxRedirects) == [0, 1, 1])
    }

    @Test func aRoomWithoutANameHasAPlaceToo() throws {
        let client = world.arrive(at: 2)
        let guest = try #require(client.guest)
        guest.say(.room(.join(RoomVerb.Join(name: nil, displayName: "Ada"))))
        world.pass(.milliseconds(100))
        let answers = client.news.compactMap { $0.room?.joined }
        let joined = try #require(answers.last)
        let other = enter(joined.name.text, at: 3)
        #expect(other.isInRoom && other.node?.name == "n2")
    }

    @Test func aRoomMayBeginOnAnotherNodeAfterItHasEnded() {
        enter(at: 1).leave()
        world.pass(.seconds(61))
        #expect(world.registry.places.isEmpty)
        let client = enter(at: 3)
        #expect(client.isInRoom && client.node?.name == "n3" && client.redirects == 0)
    }

    @Test func aRefusedJoinLeavesNoPlaceBehind() {
        let client = world.arrive(at: 1)
        let join = RoomVerb.Join(name: RoomName("kitchen"), displayName: "Ada", password: "secret")
        client.want(.request(.room(.join(join))))
        world.pass(.seconds(1))
        #expect(client.failures.map(\.code) == [.roomNoPassword])
        #expect(world.registry.places.keys.map(\.kind) == [.person])
    }

    @Test func theFirstNodeToAskGetsTheRoomAndTheRegistryDecides() {
        world.registry.delay = 5...50
        let clients = (1...3).map { world.arrive(at: $0) }
        world.pass(.seconds(1))
        for client in clients { client.want(.room(RoomName("kitchen")!)) }
        world.pass(.seconds(2))
        #expect(clients.allSatisfy { $0.isInRoom })
        #expect(Set(clients.map { $0.node?.name }).count == 1)
        #expect(clients.allSatisfy { $0.maxRedirects <= 1 })
    }

    @Test func whileTheRegistryIsAwayNewRoomsAreRefusedAndOthersGoOn() {
        let host = enter(at: 1)
        let (second, third) = (world.arrive(at: 1), world.arrive(at: 1))
        world.pass(.milliseconds(100))
        world.registry.setAway(true)
        second.want(.room(RoomName("kitchen")!))
        third.want(.room(RoomName("cellar")!))
        world.pass(.seconds(1))
        #expect(host.isInRoom && second.isInRoom)
        #expect(!third.isInRoom && third.failures.map(\.code) == [.clusterUnavailable])
        #expect(third.failures.allSatisfy { $0.retryable })
    }

    @Test func aPersistentRoomOfAKilledNodeIsLoadedByTheNextNodeWithItsPassword() throws {
        let node = world.nodes[0]
        let wish = RoomCreationRequest(name: RoomName("kitchen"), options: RoomChanges { $0.password = "secret" })
        let socket = node.stage.resource()
        node.stage.handle(.operated(OperatorRequest(socket: socket, .create(wish))))
        world.pass(.milliseconds(100))
        #expect(node.stage.takeAnswer(socket)?.room != nil)
        world.kill(node)
        world.pass(.seconds(1))
        let early = enter(at: 2)
        #expect(!early.isInRoom, "the place is void only after the fence")
        world.pass(.seconds(5))
        let late = world.arrive(at: 3)
        late.want(.room(RoomName("kitchen")!))
        world.pass(.seconds(1))
        #expect(late.failures.map(\.code) == [.roomPassword])
        late.want(
            .request(.room(.join(RoomVerb.Join(name: RoomName("kitchen"), displayName: "Ada", password: "secret")))))
        world.pass(.seconds(1))
        #expect(late.isInRoom)
    }

    @Test func anOperatorsRequestAtAnotherNodeLearnsWhereTheRoomIs() {
        let host = enter(at: 1)
        let socket = world.nodes[1].stage.resource()
        world.nodes[1].stage.handle(.operated(OperatorRequest(socket: socket, .describe(RoomName("kitchen")!))))
        world.pass(.milliseconds(100))
        guard case .refused(let error) = world.nodes[1].stage.takeAnswer(socket) else {
            return _ = Issue.record("no refusal")
        }
        #expect(error.code == .elsewhere && error.at == "n1" && host.isInRoom)
    }

    @Test func aRoomThatLostItsPlaceSendsItsPeopleToTheOtherOne() throws {
        let clients = [enter(at: 1), enter(at: 1)]
        let key = world.nodes[0].stage.project.placeKey(of: .room(RoomName("kitchen")!))
        world.registry.give(key, to: world.nodes[1].tag)
        world.nodes[0].stage.handle(.lostPlace(key))
        world.pass(.milliseconds(1))
        #expect(world.nodes[0].stage.hub.roomCount == 0)
        #expect(clients.allSatisfy { !$0.isInRoom && $0.node == nil })
    }

    @Test func tooManyLettersForOnePlaceAreRefused() {
        world.registry.delay = 5000...5000
        let stage = world.nodes[0].stage
        let answers = (0..<20_001).map { _ in
            let socket = stage.resource()
            stage.handle(.operated(OperatorRequest(socket: socket, .describe(RoomName("kitchen")!))))
            return stage.takeAnswer(socket)
        }
        #expect(answers.dropLast().allSatisfy { $0 == nil })
        guard case .refused(let error)?? = answers.last else { return _ = Issue.record("no refusal") }
        #expect(error.code == .clusterUnavailable && error.retryable)
    }
}
