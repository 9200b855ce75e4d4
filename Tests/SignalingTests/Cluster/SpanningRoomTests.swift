import Cluster
import TestSupport
import Testing
import Wire

@testable import Signaling

/// With relays, people stay on their nodes, and a room spans them. The room and its session are on one node.
@Suite struct SpanningRoomTests: SpanningRooms {
    let world = ClusterWorld(nodes: 3) { $0.routesMedia = true }

    init() { connectAll() }

    private func subscribe(_ client: ClusterClient, _ session: SessionID, _ stream: StreamID) {
        let mids = MediaMids(audio: "2", video: "3")
        client.say(
            .session(.subscribe(.init(session: session, stream: stream, audio: true, video: true, mids: mids))))
        world.pass(.milliseconds(500))
    }

    /// The subscribers of a stream as the media plane of a node knows them; nil if it does not know the stream.
    private func subscribers(_ stream: StreamID, at node: Int) -> Set<ConnectionID>? {
        world.nodes[node - 1].stage.ledger.streams[stream].map { Set($0.subscribers.keys) }
    }

    // MARK: Entering

    @Test func peopleOfAllNodesMeetInARoomWithoutARedirect() throws {
        let clients = (1...3).map { enter(at: $0) }
        #expect(clients.allSatisfy { $0.isInRoom && $0.maxRedirects == 0 })
        #expect(clients.map { $0.node?.name } == ["n1", "n2", "n3"])
        #expect(roomCounts == [1, 0, 0])
        let sessions = try clients.map { try joinSession($0) }
        #expect(Set(sessions).count == 1)
        #expect(world.nodes.map { $0.stage.hub.sessionCount } == [1, 0, 0])
        judge()
    }

    @Test func peopleAreRedirectedToANodeWhoseMediaCannotCross() {
        connect(2, to: [3])
        let clients = [enter(at: 1), enter(at: 2), enter(at: 3)]
        #expect(clients.allSatisfy { $0.isInRoom })
        #expect(clients.map { $0.node?.name } == ["n1", "n1", "n3"])
        judge()
    }

    @Test func aRefusalReachesTheClientOnTheOtherNode() {
        open(world.arrive(at: 1)) { $0.password = "secret" }
        let other = enter(at: 2)
        #expect(!other.isInRoom && other.failures.map(\.code) == [.roomPassword] && other.node?.name == "n2")
        other.want(
            .request(.room(.join(RoomVerb.Join(name: RoomName("kitchen"), displayName: "Bo", password: "secret")))))
        world.pass(.milliseconds(500))
        #expect(other.news.contains { if case .room(.joined) = $0 { true } else { false } })
        judge()
    }

    @Test func whoLeavesIsGoneOnTheRoomsNode() throws {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let session = try joinSession(other)
        #expect(try joinSession(host) == session)
        other.say(.room(.leave))
        world.pass(.milliseconds(500))
        let connection = try connection(other)
        #expect(
            host.news.contains {
                if case .session(.connectionDestroyed(let gone)) = $0 { gone.connection == connection } else { false }
            })
        // They can come back.
        other.want(.room(RoomName("kitchen")!))
        world.pass(.milliseconds(500))
        #expect(other.isInRoom)
        other.leave()
        close(host)
        #expect(world.nodes.map { $0.stage.hub.sessionCount } == [0, 0, 0])
        judge()
    }

    @Test func aClientEntersOneRoomIfItJoinsTwoBeforeEitherAnswers() throws {
        let host = enter(at: 1)
        let (other, guest) = try arrive(at: 2)
        for room in ["kitchen", "cellar"] { guest.say(join(room)) }
        world.pass(.milliseconds(500))
        let errors = other.news.compactMap { message -> WireError.Code? in
            if case .error(let failure) = message { failure.error.code } else { nil }
        }
        #expect(errors == [.alreadyJoined])
        #expect(roomCounts == [1, 0, 0])
        other.leave()
        close(host)
        judge()
    }

    /// Connects a client that joins nothing yet.
    private func arrive(at node: Int) throws -> (ClusterClient, Guest) {
        let client = world.arrive(at: node)
        world.pass(.milliseconds(500))
        return (client, try #require(client.guest))
    }

    private func join(_ room: String = "kitchen") -> ClientMessage {
        .room(.join(RoomVerb.Join(name: RoomName(room), displayName: "Ada")))
    }

    /// Lets the host leave, and the room end after it.
    private func close(_ host: ClusterClient) {
        host.leave()
        world.pass(.seconds(61))
        #expect(roomCounts == [0, 0, 0])
    }

    /// What a client was notified of about the presence of another one in its room.
    private func changes(of connection: ConnectionID, seenBy client: ClusterClient) -> [RoomPresence] {
        client.news.compactMap { message in
            if case .room(.person(let person)) = message, person.connection == connection { person.state } else { nil }
        }
    }

    /// The answers in a client's news: "joined", "ok" and codes of errors.
    private func answers(_ client: ClusterClient) -> [String] {
        client.news.compactMap { message in
            switch message {
            case .room(.joined): "joined"
            case .ok: "ok"
            case .error(let failure): failure.error.code.rawValue
            default: nil
            }
        }
    }

    @Test func aClientThatLeavesBeforeItsJoinIsAnsweredEndsOutsideTheRoom() throws {
        let host = enter(at: 1)
        let (other, guest) = try arrive(at: 2)
        // The second time shows that the first join left nothing behind.
        for _ in 0..<2 {
            for message in [join(), .room(.leave), .room(.leave)] { guest.say(message) }
            world.pass(.milliseconds(500))
        }
        #expect(answers(other) == ["not_joined", "joined", "ok", "not_joined", "joined", "ok"])
        #expect(try changes(of: connection(other), seenBy: host) == [.connected, .left, .connected, .left])
        // The room closes without the client, which can enter another one.
        close(host)
        other.want(.room(RoomName("cellar")!))
        world.pass(.milliseconds(500))
        #expect(other.isInRoom)
        judge()
    }

    @Test func aClientThatDisconnectsBeforeItsJoinIsAnsweredEndsOutsideTheRoom() throws {
        let host = enter(at: 1)
        let (other, guest) = try arrive(at: 2)
        let connection = guest.connection
        guest.say(join())
        other.leave()
        world.pass(.milliseconds(500))
        #expect(changes(of: connection, seenBy: host) == [.connected, .left])
        #expect(!world.nodes[1].stage.hub.distant.waits(connection))
        close(host)
        judge()
    }

    @Test func aClientThatLeavesBeforeItsJoinIsAnsweredCannotJoinAgainUntilBothAre() throws {
        let host = enter(at: 1)
        let (other, guest) = try arrive(at: 2)
        for message in [join(), .room(.leave), join()] { guest.say(message) }
        world.pass(.milliseconds(500))
        #expect(answers(other) == ["already_joined", "joined", "ok"])
        let texts = other.news.compactMap { message -> String? in
            if case .error(let failure) = message { failure.error.message } else { nil }
        }
        #expect(texts == ["You are in a room or waiting for one. Send room.leave, and wait for its answer."])
        guest.say(join())
        world.pass(.milliseconds(500))
        #expect(answers(other).last == "joined")
        other.leave()
        host.leave()
        judge()
    }

    @Test func aClientThatLeavesIsAnsweredAlsoIfItsJoinIsRefused() throws {
        open(world.arrive(at: 1)) { $0.password = "secret" }
        let (other, guest) = try arrive(at: 2)
        for message in [join(), .room(.leave)] { guest.say(message) }
        world.pass(.milliseconds(500))
        #expect(answers(other) == ["room_password", "ok"])
        other.say(.room(.leave))
        world.pass(.milliseconds(500))
        #expect(answers(other) == ["room_password", "ok", "not_joined"])
        judge()
    }

    // MARK: Entering while the room's node does not answer

    /// The room's node does not get letters. A client there is not in the room yet.
    private func silence() throws -> (host: ClusterClient, other: ClusterClient, connection: ConnectionID) {
        let host = enter(at: 1)
        let other = world.arrive(at: 2)
        world.pass(.milliseconds(500))
        world.post.setAway(true, now: world.now)
        return (host, other, try connection(other))
    }

    @Test func aJoinThatIsAnsweredInTimeSucceeds() throws {
        let (host, other, connection) = try silence()
        other.want(.room(RoomName("kitchen")!))
        world.pass(.seconds(7))
        #expect(!other.isInRoom && other.failures.isEmpty)
        endSilence()
        world.pass(.seconds(10))
        #expect(other.isInRoom && other.failures.isEmpty)
        #expect(changes(of: connection, seenBy: host) == [.connected])
        #expect(!world.nodes[1].stage.hub.distant.waits(connection))
        judge()
    }

    @Test func aJoinThatIsNeverAnsweredFails() throws {
        let (_, other, connection) = try silence()
        other.want(.room(RoomName("kitchen")!))
        world.pass(.seconds(9))
        #expect(other.failures.isEmpty)
        world.pass(.seconds(2))
        #expect(other.failures.map(\.code) == [.clusterUnavailable] && other.failures.allSatisfy(\.retryable))
        world.pass(.seconds(65))
        #expect(other.failures.count == 1 && other.isConnected)
        #expect(world.nodes[1].stage.hub.distant.waits(connection), "the answer may still come")
        other.leave()
        world.pass(.seconds(15))
        #expect(!world.nodes[1].stage.hub.distant.waits(connection), "the join is forgotten")
        judge()
    }

    @Test(arguments: [11, 300]) func aJoinThatIsAnsweredTooLateIsUndone(after seconds: Int) throws {
        let (host, other, connection) = try silence()
        other.want(.room(RoomName("kitchen")!))
        world.pass(.seconds(seconds))
        #expect(other.failures.map(\.code) == [.clusterUnavailable])
        endSilence()
        #expect(!other.news.contains { if case .room(.joined) = $0 { true } else { false } })
        #expect(changes(of: connection, seenBy: host) == [.connected, .left])
        #expect(world.nodes[1].stage.hub.distant.seat(of: connection) == nil)
        #expect(!world.nodes[1].stage.hub.distant.waits(connection))
        other.want(.room(RoomName("kitchen")!))
        world.pass(.milliseconds(500))
        #expect(other.isInRoom)
        #expect(changes(of: connection, seenBy: host) == [.connected, .left, .connected])
        judge()
    }

    @Test func aClientThatJoinsAgainBeforeTheLateAnswerEntersTheRoom() throws {
        let (host, other, connection) = try silence()
        for _ in 0..<2 {
            other.want(.room(RoomName("kitchen")!))
            world.pass(.seconds(11))
        }
        other.want(.room(RoomName("kitchen")!))
        world.pass(.seconds(1))
        endSilence()
        #expect(answers(other) == ["cluster_unavailable", "cluster_unavailable", "joined"] && other.isInRoom)
        #expect(changes(of: connection, seenBy: host).last == .connected)
        #expect(world.nodes[1].stage.hub.distant.seat(of: connection)?.tag == world.nodes[0].tag)
        _ = try joinSession(other)
        other.leave()
        host.leave()
        world.pass(.seconds(61))
        #expect(world.nodes.map { $0.stage.hub.roomCount } == [0, 0, 0])
        judge()
    }

    @Test func aClientInAnotherRoomStaysThereWhenTheAnswerIsLate() throws {
        let (host, other, connection) = try silence()
        other.want(.room(RoomName("kitchen")!))
        world.pass(.seconds(11))
        other.want(.room(RoomName("cellar")!))
        world.pass(.milliseconds(500))
        #expect(other.isInRoom)
        endSilence()
        #expect(changes(of: connection, seenBy: host) == [.connected, .left])
        other.say(.room(.leave))
        world.pass(.milliseconds(500))
        #expect(answers(other) == ["cluster_unavailable", "joined", "ok"])
        judge()
    }

    @Test func aClientThatLeavesIsAnsweredWhenItsJoinFails() throws {
        let (host, other, connection) = try silence()
        let guest = try #require(other.guest)
        guest.say(.room(.join(RoomVerb.Join(name: RoomName("kitchen"), displayName: "Ada"))))
        guest.say(.room(.leave))
        world.pass(.seconds(11))
        #expect(answers(other) == ["cluster_unavailable", "ok"])
        endSilence()
        #expect(answers(other) == ["cluster_unavailable", "ok"])
        #expect(changes(of: connection, seenBy: host) == [.connected, .left])
        judge()
    }

    // MARK: Requests that the room's node does not answer

    private func openRequests(_ client: ClusterClient) -> Int? { client.guest?.openRequests }

    @Test func requestsOfAPersonInTheRoomFailAndAreUndoneIfTheAnswerIsLate() throws {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let session = try joinSession(host)
        #expect(try joinSession(other) == session)
        world.post.setAway(true, now: world.now)
        var publish = SessionVerb.Publish()
        (publish.session, publish.mids) = (session, MediaMids(audio: "0", video: "1"))
        other.say(.session(.publish(publish)))
        other.say(.room(.say(.init(text: "Hello"))))
        world.pass(.seconds(9))
        #expect(openRequests(other) == 2)
        world.pass(.seconds(2))
        #expect(openRequests(other) == 0)
        #expect(answers(other) == ["joined", "cluster_unavailable", "cluster_unavailable"])
        endSilence()
        #expect(other.isInRoom && answers(other).count == 3)
        #expect(!other.news.contains { if case .session(.published) = $0 { true } else { false } })
        for node in world.nodes { #expect(node.stage.ledger.streams.values.allSatisfy { $0.session != session }) }
        let connection = try connection(other)
        #expect(!world.nodes[1].stage.hub.distantSessions.waits(connection))
        judge()
    }

    @Test func aPersonWhoLeavesTheRoomIsAnsweredWhenTheNodeIsBack() throws {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let connection = try connection(other)
        world.post.setAway(true, now: world.now)
        other.say(.room(.leave))
        world.pass(.seconds(20))
        #expect(openRequests(other) == 1)
        endSilence()
        #expect(openRequests(other) == 0 && answers(other) == ["joined", "ok"])
        #expect(changes(of: connection, seenBy: host) == [.connected, .left])
        judge()
    }

    @Test func aJoinOfTheRoomsSessionThatIsAnsweredTooLateIsUndone() throws {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let session = try joinSession(host)
        let admission = try admission(of: other)
        func members() -> Int? { world.nodes[0].stage.hub.sessions.read(session) { $0.members.count } }
        world.post.setAway(true, now: world.now)
        other.say(.session(.join(.init(session: session, token: admission.token))))
        world.pass(.seconds(11))
        #expect(openRequests(other) == 0 && answers(other) == ["joined", "cluster_unavailable"])
        endSilence()
        #expect(members() == 1 && other.guest?.places == [] && other.isInRoom)
        #expect(try joinSession(other) == session)
        #expect(members() == 2 && other.guest?.places == [session])
        judge()
    }

    @Test func whenLettersAreLostOpenRequestsEndWithTheConnection() throws {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let before = try connection(other)
        other.guest?.say(.room(.say(.init(text: "Hello"))))
        #expect(world.nodes[1].stage.hub.distantSessions.waits(before))
        world.nodes[0].stage.handle(.lettersLost(world.nodes[1].tag))
        world.nodes[1].stage.handle(.lettersLost(world.nodes[0].tag))
        #expect(!world.nodes[1].stage.hub.distantSessions.waits(before))
        world.pass(.seconds(5))
        #expect(host.isInRoom && other.isInRoom && openRequests(other) == 0)
        #expect(try connection(other) != before)
    }

    // MARK: Tokens of applications

    @Test func aPersonInTheRoomIsReferredToTheRoomsNodeWithAnApplicationsToken() throws {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let session = try joinSession(host)
        other.say(.session(.join(.init(session: session, token: world.nodes[1].stage.token(session)))))
        world.pass(.milliseconds(500))
        #expect(openRequests(other) == 0 && other.isInRoom && other.guest?.places == [])
        #expect(world.nodes.map { $0.stage.hub.sessionCount } == [1, 0, 0])
        judge()
    }

    @Test func anApplicationsTokenForTheSessionOfARoomWithPeopleOnThisNodeLeadsToTheRoomsNode() throws {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let session = try joinSession(host)
        #expect(try joinSession(other) == session)
        let guest = world.arrive(at: 2)
        guest.want(.session(session, token: world.nodes[1].stage.token(session)))
        world.pass(.seconds(2))
        #expect(guest.node?.name == "n1" && guest.maxRedirects == 1)
        let hasJoined = guest.news.contains {
            if case .session(.joined(let joined)) = $0 { joined.session == session } else { false }
        }
        #expect(hasJoined && world.nodes.map { $0.stage.hub.sessionCount } == [1, 0, 0])
        let stage = world.nodes[1].stage
        let socket = stage.resource()
        stage.handle(.operated(OperatorRequest(socket: socket, .session(session, .describe(nil)))))
        #expect(stage.takeAnswer(socket)?.errorCode == .elsewhere)
        judge()
    }

    // MARK: Media

    @Test func aStreamIsPublishedOnEachNodeWithMembersAndSubscriptionsAreThoseOfTheSubscribersNode() throws {
        let clients = (1...3).map { enter(at: $0) }
        let session = try joinSession(clients[0])
        #expect(try joinSession(clients[1]) == session)
        let stream = try publish(clients[1], session)
        #expect(subscribers(stream, at: 1) == [] && subscribers(stream, at: 2) == [])
        #expect(subscribers(stream, at: 3) == nil, "nobody on this node is in the session")
        #expect(try joinSession(clients[2]) == session)
        for client in [clients[0], clients[2]] { subscribe(client, session, stream) }
        let connections = try clients.map { try connection($0) }
        #expect(subscribers(stream, at: 1) == [connections[0]])
        #expect(subscribers(stream, at: 2) == [])
        #expect(subscribers(stream, at: 3) == [connections[2]])

        var update = SessionVerb.Update()
        (update.session, update.stream, update.hasVideo) = (session, stream, false)
        clients[1].say(.session(.update(update)))
        world.pass(.milliseconds(500))
        #expect(world.nodes.allSatisfy { $0.stage.ledger.streams[stream]?.video == false })

        clients[2].leave()
        world.pass(.milliseconds(500))
        #expect(subscribers(stream, at: 3) == nil, "the last member of the node has left")
        #expect(subscribers(stream, at: 2) == [])
        clients[1].leave()
        world.pass(.milliseconds(500))
        #expect(world.nodes.allSatisfy { $0.stage.ledger.streams.isEmpty })
        judge()
    }

    @Test func aNodeGetsTheStreamsAgainWhenSomeoneComesBack() throws {
        let host = enter(at: 1)
        let session = try joinSession(host)
        let stream = try publish(host, session)
        for _ in 0..<2 {
            let other = enter(at: 2)
            #expect(try joinSession(other) == session)
            subscribe(other, session, stream)
            let connection = try connection(other)
            #expect(subscribers(stream, at: 2) == [connection])
            other.leave()
            world.pass(.milliseconds(500))
            #expect(subscribers(stream, at: 2) == nil)
        }
        judge()
    }

    @Test func whatTheMediaPlaneOfASubscribersNodeSaysReachesTheSubscriber() throws {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let session = try joinSession(host)
        _ = try joinSession(other)
        let stream = try publish(host, session)
        subscribe(other, session, stream)
        let news = SessionNotice.SubscriptionChanged(
            session: session, stream: stream, videoPaused: true, reason: .slow)
        let connection = try connection(other)
        let quality = SessionNotice.StreamQuality(session: session, stream: stream, level: .poor, reason: .loss)
        world.nodes[1].stage.handle(.media(.subscriptionChanged(news, subscriber: connection)))
        world.nodes[1].stage.handle(.media(.streamQuality(quality)))
        world.pass(.milliseconds(500))
        #expect(other.news.contains { if case .session(.subscriptionChanged) = $0 { true } else { false } })
        #expect(host.news.contains { if case .session(.streamQuality) = $0 { true } else { false } })
        judge()
    }

    /// The active speakers that a client was notified of.
    private func speakers(_ client: ClusterClient) -> [StreamID?] {
        client.news.compactMap { message -> StreamID?? in
            if case .session(.speaking(let speaking)) = message { .some(speaking.stream) } else { nil }
        }
    }

    @Test func theNodeOfTheSessionChoosesTheActiveSpeakerForAllNodes() throws {
        let clients = (1...3).map { enter(at: $0) }
        let session = try joinSession(clients[0])
        for client in clients[1...] { #expect(try joinSession(client) == session) }
        let streams = try clients.map { try publish($0, session) }
        let heard = world.nodes.map { node in streams.map { node.stage.ledger.streams[$0]?.alwaysHeard } }
        #expect(
            heard == [[false, true, true], [false, false, false], [false, false, false]],
            "the session's node hears the people of other nodes")
        // The media planes of the three nodes do not agree.
        for (node, stream) in zip(world.nodes, [streams[2], streams[1], streams[0]]) {
            node.stage.handle(.media(.speaking(session, stream)))
        }
        world.pass(.milliseconds(500))
        #expect(clients.map { speakers($0) } == [[streams[2]], [streams[2]], [streams[2]]])
        world.nodes[1].stage.handle(.media(.speaking(session, nil)))
        world.nodes[0].stage.handle(.media(.speaking(session, nil)))
        world.pass(.milliseconds(500))
        #expect(clients.map { speakers($0) } == [[streams[2], nil], [streams[2], nil], [streams[2], nil]])
        judge()
    }

    // MARK: Nodes that break the rules, or are lost

    @Test func noNodeSpeaksForAClientOfAnotherOne() throws {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let session = try joinSession(other)
        let (client, own) = (try connection(other), try connection(host))
        let letters: [Letter] = [
            .room(RoomName("kitchen")!, .gone(client)), .session(session, .gone(client, .clientDisconnected)),
            .room(RoomName("kitchen")!, .close), .session(session, .projectDeleted), .session(session, .speaking(nil)),
            .media(.leave(own)),
            .media(.subscribe(StreamID(high: 1, low: 1), session, by: client, MediaMids(), audio: true, video: true)),
        ]
        let stage = world.nodes[0].stage
        for letter in letters { stage.handle(.received(letter, from: world.nodes[2].tag)) }
        world.pass(.milliseconds(500))
        #expect(stage.hub.unexpectedLetters == letters.count)
        #expect(stage.hub.roomCount == 1 && other.isInRoom && host.isInRoom)
    }

    @Test func noNodeSeatsAClientInARoomOrASessionForWhichItWasNotAsked() throws {
        let host = enter("kitchen", at: 1)
        _ = enter("cellar", at: 2)
        let session = try joinSession(host)
        let stream = try publish(host, session)
        let other = enter("cellar", at: 1)
        #expect(other.isInRoom && other.node?.name == "n1")
        let stage = world.nodes[0].stage
        let client = try connection(other)
        let place = RoomSeat.Place(session: session, binding: MatchID(high: 7, low: 7))
        let seats = [
            (world.nodes[1], RoomSeat(name: RoomName("cellar")!, place: place)),
            (world.nodes[1], RoomSeat(name: RoomName("kitchen")!)),
            (world.nodes[2], RoomSeat(name: RoomName("cellar")!)),
        ]
        for (node, seat) in seats { stage.handle(.received(.client(client, .room(seat)), from: node.tag)) }
        #expect(stage.hub.unexpectedLetters == seats.count)
        #expect(stage.hub.distant.seat(of: client)?.tag == world.nodes[1].tag)
        stage.handle(.media(.speaking(session, stream)))
        world.pass(.milliseconds(500))
        #expect(
            host.news.contains { if case .session(.speaking) = $0 { true } else { false } },
            "what the media plane says about this node's session stays here")
    }

    @Test func withoutRelaysALetterAboutARoomIsDropped() {
        let stage = Stage(tag: NodeTag(node: 1, life: 1))
        let letter = Letter.room(RoomName("kitchen")!, .gone(ConnectionID(high: 2 << 48 | 2 << 24, low: 1)))
        stage.handle(.received(letter, from: NodeTag(node: 2, life: 2)!))
        #expect(stage.hub.unexpectedLetters == 1)
    }

    @Test func whenTheRoomsNodeDiesItsPeopleMeetAgainOnAnotherOne() throws {
        let (host, second, third) = (enter(at: 1), enter(at: 2), enter(at: 3))
        let session = try joinSession(second)
        #expect(try joinSession(third) == session)
        let stream = try publish(second, session)
        #expect(subscribers(stream, at: 3) == [])
        host.leave()
        world.kill(world.nodes[0])
        world.pass(.seconds(10))
        #expect(subscribers(stream, at: 2) == nil && subscribers(stream, at: 3) == nil)
        #expect(second.isInRoom && third.isInRoom)
        #expect(roomCounts.reduce(0, +) == 1)
    }

    @Test func whenTheNodeOfAMemberDiesTheMemberLeavesTheRoom() throws {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let session = try joinSession(host)
        #expect(try joinSession(other) == session)
        let stream = try publish(other, session)
        #expect(subscribers(stream, at: 1) == [])
        let connection = try connection(other)
        other.endWish()
        world.kill(world.nodes[1])
        world.pass(.seconds(10))
        #expect(subscribers(stream, at: 1) == nil && host.isInRoom)
        #expect(
            host.news.contains {
                if case .session(.connectionDestroyed(let gone)) = $0 { gone.connection == connection } else { false }
            })
    }

    @Test func aJoinThatANodeDoesNotAnswerEndsWithTheNode() throws {
        _ = enter(at: 1)
        let (other, guest) = try arrive(at: 2)
        let before = guest.connection
        world.kill(world.nodes[0])
        other.want(.room(RoomName("kitchen")!))
        world.pass(.seconds(1))
        #expect(!other.isInRoom && other.failures.isEmpty)
        world.pass(.seconds(10))
        #expect(other.isInRoom)
        #expect(try connection(other) != before)
    }

    @Test func whenLettersBetweenTwoNodesAreLostTheirPeopleBeginAgain() throws {
        let (host, other) = (enter(at: 1), enter(at: 2))
        let session = try joinSession(host)
        #expect(try joinSession(other) == session)
        let stream = try publish(host, session)
        let before = try connection(other)
        world.nodes[0].stage.handle(.lettersLost(world.nodes[1].tag))
        world.nodes[1].stage.handle(.lettersLost(world.nodes[0].tag))
        world.pass(.seconds(5))
        #expect(host.isInRoom && other.isInRoom)
        #expect(try connection(other) != before)
        #expect(subscribers(stream, at: 1) == [], "those of the room's own node notice nothing")
        #expect(subscribers(stream, at: 2) == nil)
    }
}
