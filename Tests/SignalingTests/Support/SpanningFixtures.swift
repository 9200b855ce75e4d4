import Cluster
import Testing
import Wire

@testable import Signaling

/// Tests in which media can cross between the nodes of a cluster.
protocol SpanningFixture {
    var world: ClusterWorld { get }
}

extension SpanningFixture {
    /// Lets media cross between a node and these others, and no longer to any other node.
    func connect(_ node: Int, to others: [Int]) {
        world.nodes[node - 1].stage.handle(.mediaCrosses(to: Set(others.map { world.nodes[$0 - 1].tag })))
    }

    /// Lets media cross between all nodes.
    func connectAll() {
        let numbers = Array(1...world.nodes.count)
        for node in numbers { connect(node, to: numbers.filter { $0 != node }) }
    }

    /// Lets a new client connect to this node, and join the session with a token of an application.
    func join(_ session: SessionID, at node: Int) -> ClusterClient {
        let client = world.arrive(at: node)
        client.want(.session(session, token: world.nodes[node - 1].stage.token(session)))
        world.pass(.seconds(1))
        return client
    }

    /// The number of members that the session has on each node.
    func members(of session: SessionID) -> [Int] {
        world.nodes.map { node in
            node.isLive ? node.stage.hub.sessions.read(session) { $0.members.count } ?? 0 : 0
        }
    }

    /// The node that has claimed the session's place; nil if none has.
    func place(of session: SessionID) -> NodeTag? {
        world.registry.places[world.nodes[0].stage.project.placeKey(of: .session(session))]
    }

    /// Lets letters arrive again after `world.post.setAway`, in the order in which they were posted.
    func endSilence() {
        world.post.setAway(false, now: world.now)
        world.pass(.seconds(5))
    }

    /// Checks that clients saw no fault, and that each node expected all letters that it got.
    func judgeLetters() {
        world.check()
        #expect(world.fault == nil)
        for node in world.live { #expect(node.stage.hub.unexpectedLetters == 0) }
    }
}

// MARK: - Rooms

/// Tests with people in rooms that span nodes.
protocol SpanningRooms: SpanningFixture {}

extension SpanningRooms {
    /// The number of rooms on each node that lives.
    var roomCounts: [Int] { world.live.map { $0.stage.hub.roomCount } }

    /// Lets a client join a room with these options.
    func open(_ client: ClusterClient, _ room: String = "kitchen", _ change: (inout RoomChanges) -> Void) {
        var join = RoomVerb.Join(name: RoomName(room), displayName: "Ada")
        var options = RoomChanges()
        change(&options)
        join.options = options
        client.want(.request(.room(.join(join))))
        world.pass(.milliseconds(500))
    }

    /// Lets a new client join a room from this node.
    func enter(_ room: String = "kitchen", at node: Int) -> ClusterClient {
        let client = world.arrive(at: node)
        client.want(.room(RoomName(room)!))
        world.pass(.milliseconds(500))
        return client
    }

    /// Publishes audio and video in a session. Returns the stream's id.
    func publish(_ client: ClusterClient, _ session: SessionID) throws -> StreamID {
        var verb = SessionVerb.Publish()
        (verb.session, verb.mids) = (session, MediaMids(audio: "0", video: "1"))
        client.say(.session(.publish(verb)))
        world.pass(.milliseconds(500))
        let published = client.news.compactMap { message -> StreamID? in
            if case .session(.published(let published)) = message { published.stream.id } else { nil }
        }
        return try #require(published.last)
    }

    func connection(_ client: ClusterClient) throws -> ConnectionID { try #require(client.guest).connection }

    /// Returns the admission to the session of the room in which the client is.
    func admission(of client: ClusterClient) throws -> Admission {
        let admissions = client.news.compactMap { message -> Admission? in
            if case .room(.joined(let joined)) = message { joined.admission } else { nil }
        }
        return try #require(admissions.last, "\(client.failures)")
    }

    /// Joins the session of the room in which the client is. Returns its id.
    func joinSession(_ client: ClusterClient) throws -> SessionID {
        let admission = try admission(of: client)
        client.say(.session(.join(.init(session: admission.session, token: admission.token))))
        world.pass(.milliseconds(500))
        let joined = client.news.contains { if case .session(.joined) = $0 { true } else { false } }
        try #require(joined, "\(client.failures)")
        return admission.session
    }

    func judge() { judgeLetters() }
}

// MARK: - Strangers

/// Tests with strangers who wait in the hall from their nodes.
protocol SpanningStrangers: SpanningFixture {}

extension SpanningStrangers {
    func arrive(at node: Int) -> ClusterClient {
        let client = world.arrive(at: node)
        world.pass(.milliseconds(50))
        return client
    }

    /// A stranger who looks for a text chat. The others look for a video chat, so this stranger is never matched, and keeps the hall on
    /// their node.
    func holdHall(at node: Int) -> ClusterClient {
        let client = arrive(at: node)
        client.say(.roulette(.start(.init(mode: .text))))
        world.pass(.seconds(1))
        return client
    }

    /// Lets strangers arrive and search one after the other.
    func search(at nodes: Int...) -> [ClusterClient] {
        nodes.map { node in
            let client = arrive(at: node)
            client.want(.chat)
            world.pass(.seconds(1))
            return client
        }
    }

    func match(_ client: ClusterClient) throws -> RouletteNotice.Matched {
        try #require(client.guest?.match, "\(client.news)")
    }

    /// The nodes whose media planes know the streams of a session, with the number of streams and of subscriptions.
    func planes(_ session: SessionID) -> [[Int]] {
        world.nodes.map { node in
            let streams = node.stage.ledger.streams.values.filter { $0.session == session }
            return [streams.count, streams.reduce(0) { $0 + $1.subscribers.count }]
        }
    }

    var matchCounts: [Int] { world.nodes.map { $0.isLive ? $0.stage.hub.matchCount : 0 } }
    var waitingCounts: [Int] { world.nodes.map { $0.isLive ? $0.stage.hub.waitingCount : 0 } }

    func judge() {
        judgeLetters()
        #expect(world.spanningFaults == [])
    }
}
