import Cluster
import Testing
import Wire

@testable import Signaling

/// Clients that join the session of a room with a token of an application, on any node. The session is on the room's node, with and without
/// relays.
@Suite struct RoomSessionPlaceTests {
    private struct House: SpanningRooms {
        let world: ClusterWorld

        init(spans: Bool = false) { world = ClusterWorld(nodes: 3, spans: spans) { $0.routesMedia = true } }
    }

    @Test(arguments: [false, true]) func theyAreRedirectedToTheRoomsNode(_ spans: Bool) throws {
        let house = House(spans: spans)
        let host = house.enter(at: 1)
        let session = try house.joinSession(host)
        let clients = (1...3).map { house.join(session, at: $0) }
        #expect(clients.map { $0.node?.name } == ["n1", "n1", "n1"])
        #expect(clients.map(\.redirects) == [0, 1, 1])
        #expect(house.members(of: session) == [4, 0, 0])
        #expect(house.place(of: session) == nil, "no place is claimed")
        house.judge()
    }

    @Test(arguments: [false, true]) func theyMeetThePeopleWhoComeToTheRoomLater(_ spans: Bool) throws {
        let house = House(spans: spans)
        let host = house.enter(at: 1)
        let session = try house.admission(of: host).session
        host.leave()
        house.world.pass(.seconds(1))
        #expect(house.world.nodes[0].stage.hub.sessionCount == 0, "the room is empty")
        let client = house.join(session, at: 2)
        #expect(client.node?.name == "n1" && client.redirects == 1)
        let other = house.enter(at: 3)
        #expect(try house.joinSession(other) == session)
        #expect(house.members(of: session) == [2, 0, 0])
        client.leave()
        other.leave()
        house.world.pass(.seconds(90))
        #expect(house.world.nodes.map { $0.stage.hub.sessionCount } == [0, 0, 0])
        #expect(house.world.registry.places.isEmpty)
        house.judge()
    }

    @Test func theyStayTogetherAfterTheRoomHasEnded() throws {
        let house = House()
        let host = house.enter(at: 1)
        let session = try house.admission(of: host).session
        let client = house.join(session, at: 2)
        host.leave()
        house.world.pass(.seconds(90))
        #expect(house.roomCounts == [0, 0, 0])
        let late = house.join(session, at: 3)
        #expect([client, late].map { $0.node?.name } == ["n1", "n1"])
        #expect(house.members(of: session) == [2, 0, 0])
    }

    @Test func applicationsLearnWhereTheSessionOfARoomIs() throws {
        let house = House()
        let session = try house.joinSession(house.enter(at: 1))
        let answers = house.world.nodes.map { node in
            let socket = node.stage.resource()
            node.stage.handle(.operated(OperatorRequest(socket: socket, .session(session, .describe(nil)))))
            house.world.pass(.milliseconds(100))
            return node.stage.takeAnswer(socket)
        }
        guard case .streams? = answers[0] else { return _ = Issue.record("\(answers)") }
        for answer in answers.dropFirst() {
            guard case .refused(let error)? = answer else { return _ = Issue.record("\(answers)") }
            #expect(error.code == .elsewhere && error.at == "n1")
        }
    }

    @Test(arguments: [false, true]) func resourcesAreRedirectedToTheRoomsNode(_ spans: Bool) throws {
        let house = House(spans: spans)
        let session = try house.joinSession(house.enter(at: 1))
        let client = WHIPClient(house.world.nodes[1].stage, session)
        try client.post()
        house.world.pass(.milliseconds(500))
        guard case .refused(nil, let error)? = client.take() else { return _ = Issue.record("not refused") }
        #expect(error.code == .elsewhere && error.at == "n1" && client.isOver)
        _ = try WHIPClient(house.world.nodes[0].stage, session).create()
        house.world.pass(.milliseconds(500))
        #expect(house.members(of: session) == [2, 0, 0])
    }

    /// The room continues with another session. The former one has a place as any session of an application.
    @Test(arguments: [false, true]) func whenTheRoomsNodeHasDiedTheyMeetOnOneNode(_ restarts: Bool) throws {
        let house = House()
        let world = house.world
        let host = house.enter(at: 1)
        let session = try house.admission(of: host).session
        world.kill(world.nodes[0])
        let early = house.join(session, at: 2)
        #expect(house.members(of: session) == [0, 0, 0], "the life of the room's node is not over yet")
        if restarts { world.restart(world.nodes[0]) }
        world.pass(.seconds(8))
        let late = house.join(session, at: restarts ? 1 : 3)
        #expect(house.members(of: session).sorted() == [0, 0, 2])
        #expect(early.node != nil && early.node === late.node && house.place(of: session) == early.node?.tag)
        early.leave()
        late.leave()
        world.pass(.seconds(1))
        #expect(house.members(of: session) == [0, 0, 0] && house.place(of: session) == nil)
    }
}
