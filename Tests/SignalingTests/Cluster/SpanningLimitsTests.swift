import Cluster
import Testing
import Wire

@testable import Signaling

/// The limits of rooms that span nodes. The node of the room decides, and counts the people of all nodes.
@Suite struct SpanningLimitsTests: SpanningRooms {
    let world = ClusterWorld(nodes: 3) { ($0.routesMedia, $0.connectionsPerSession) = (true, 2) }

    init() { connectAll() }

    private func codes(_ client: ClusterClient) -> [WireError.Code] { client.news.compactMap(\.errorCode) }

    @Test func aRoomIsFullAtItsCapacityWhicheverNodesItsPeopleAreOn() {
        open(world.arrive(at: 1)) { $0.capacity = 2 }
        let (second, third) = (enter(at: 2), enter(at: 3))
        #expect(second.isInRoom && !third.isInRoom && third.failures.map(\.code) == [.roomFull])
        second.say(.room(.leave))
        third.want(.room(RoomName("kitchen")!))
        world.pass(.milliseconds(500))
        #expect(third.isInRoom && third.node?.name == "n3")
        let late = enter(at: 1)
        #expect(!late.isInRoom && late.failures.map(\.code) == [.roomFull])
        judge()
    }

    @Test func aSessionIsFullWhicheverNodesItsMembersAreOn() throws {
        let (host, second, third) = (enter(at: 1), enter(at: 2), enter(at: 3))
        let session = try joinSession(second)
        #expect(try joinSession(third) == session)
        let admission = try admission(of: host)
        host.say(.session(.join(.init(session: admission.session, token: admission.token))))
        world.pass(.milliseconds(500))
        #expect(codes(host) == [.sessionFull])
        third.leave()
        world.pass(.milliseconds(500))
        #expect(try joinSession(host) == session)
        judge()
    }

    @Test func theBandwidthLimitOfANodeCountsAsLongAsItHasMembers() throws {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let session = try joinSession(host)
        #expect(try joinSession(other) == session)
        let (own, distant) = (world.nodes[0].stage, world.nodes[1].stage)
        func publish() -> [WireError.Code] {
            let before = codes(host).count
            var verb = SessionVerb.Publish()
            (verb.session, verb.mids) = (session, MediaMids(audio: "0", video: "1"))
            host.say(.session(.publish(verb)))
            world.pass(.milliseconds(500))
            return Array(codes(host).dropFirst(before))
        }
        distant.handle(.media(.full(session, true)))
        world.pass(.milliseconds(500))
        own.handle(.media(.full(session, true)))
        own.handle(.media(.full(session, false)))
        #expect(publish() == [.bandwidthExceeded], "the other node is still full")
        distant.handle(.media(.full(session, false)))
        world.pass(.milliseconds(500))
        #expect(publish() == [])
        distant.handle(.media(.full(session, true)))
        world.pass(.milliseconds(500))
        #expect(publish() == [.bandwidthExceeded])
        // The node no longer knows the session, so it does not say when it has room.
        other.leave()
        world.pass(.milliseconds(500))
        #expect(publish() == [])
        judge()
    }

    @Test func aNodeWithoutMembersCannotMakeASessionFull() throws {
        let host = enter(at: 1)
        let session = try joinSession(host)
        let stage = world.nodes[0].stage
        stage.handle(.received(.session(session, .full(true)), from: world.nodes[1].tag))
        #expect(stage.hub.sessions.read(session) { $0.isFull } == false)
        stage.handle(.media(.full(session, true)))
        #expect(stage.hub.sessions.read(session) { $0.isFull } == true)
        judge()
    }
}
