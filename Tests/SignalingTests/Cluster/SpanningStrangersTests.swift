import Cluster
import TestSupport
import Testing
import Wire

@testable import Signaling

/// With relays, strangers stay on their nodes: they wait in the hall by letters, and their match is on the node of one of them.
@Suite struct SpanningStrangersTests: SpanningStrangers {
    let world = ClusterWorld(nodes: 3, spans: true) { $0.routesMedia = true }

    private func ends(_ client: ClusterClient) -> [EndReason] {
        client.news.compactMap { if case .roulette(.ended(let ended)) = $0 { ended.reason } else { nil } }
    }

    // MARK: Meeting

    @Test func twoStrangersOnTwoNodesMeetWithoutARedirect() throws {
        let clients = search(at: 1, 2)
        #expect(clients.allSatisfy { $0.isMatched && $0.redirects == 0 })
        #expect(clients.map { $0.node?.name } == ["n1", "n2"])
        #expect(try match(clients[0]).match == match(clients[1]).match)
        #expect(matchCounts == [1, 0, 0] && waitingCounts == [0, 0, 0])
        judge()
    }

    @Test func theMatchIsOnTheNodeOfTheOneWhoWaitedLongerAndTheHallHasNoPartInIt() throws {
        let holder = holdHall(at: 1)
        let clients = search(at: 2, 3)
        #expect(clients.allSatisfy { $0.isMatched && $0.redirects == 0 })
        #expect(matchCounts == [0, 1, 0] && waitingCounts == [1, 0, 0])
        let session = try match(clients[0]).publish.session
        #expect(
            planes(session) == [[0, 0], [2, 1], [2, 1]],
            "both streams are on both nodes, each with the other's subscriber")
        #expect(holder.redirects == 0)
        judge()
    }

    @Test func strangersOfOneNodeMeetThereBeforeTheyAskForTheHall() {
        let holder = holdHall(at: 1)
        let clients = [arrive(at: 2), arrive(at: 2)]
        for client in clients { client.want(.chat) }
        world.pass(.milliseconds(100))
        #expect(clients.allSatisfy { $0.isMatched } && matchCounts == [0, 1, 0] && !holder.isMatched)
        judge()
    }

    @Test func twoStrangersOfOneNodeWhoBothWaitInTheHallMeetOnTheirNode() {
        let holder = holdHall(at: 1)
        let clients = search(at: 2)
        #expect(waitingCounts == [2, 0, 0] && !holder.isMatched)
        let all = clients + search(at: 2)
        #expect(all.allSatisfy { $0.isMatched && $0.redirects == 0 } && matchCounts == [0, 1, 0])
        judge()
    }

    @Test func nextReconnectsNothing() throws {
        let clients = search(at: 1, 2)
        let session = try match(clients[0]).publish.session
        let connections = clients.map { $0.guest?.connection }
        let third = arrive(at: 3)
        clients[1].say(.roulette(.next(.init())))
        third.want(.chat)
        world.pass(.seconds(3))
        #expect(ends(clients[0]) == [.partnerNext])
        #expect(planes(session) == [[0, 0], [0, 0], [0, 0]])
        #expect(third.isMatched && third.redirects == 0)
        #expect(clients.map { $0.guest?.connection } == connections && clients.allSatisfy { $0.redirects == 0 })
        #expect(matchCounts.reduce(0, +) == 1)
        judge()
        // After `rematchWait`, the one who is left may meet either of them again.
        third.leave()
        world.pass(.seconds(15))
        #expect(clients.allSatisfy { $0.isMatched && $0.redirects == 0 })
        judge()
    }

    @Test func aStrangerLooksForAPartnerOnTheirNodeForAMoment() {
        let holder = holdHall(at: 1)
        let client = arrive(at: 2)
        client.want(.chat)
        world.pass(.milliseconds(20))
        #expect(waitingCounts == [1, 1, 0])
        world.pass(.milliseconds(80))
        #expect(waitingCounts == [2, 0, 0] && client.redirects == 0 && !holder.isMatched)
        judge()
    }

    @Test func nextFindsAStrangerOfAnotherNodeAsSoonAsOneOfTheSameNode() {
        let clients = search(at: 1, 2)
        let third = search(at: 3)[0]
        #expect(!third.isMatched)
        clients[1].say(.roulette(.next(.init())))
        world.pass(.milliseconds(200))
        #expect(third.isMatched && clients.count(where: \.isMatched) == 1)
        world.pass(.seconds(1))
        judge()
    }

    @Test func aStrangerWhoMayHaveToMoveLooksLongerOnTheirNode() {
        let holder = holdHall(at: 1)
        connect(2, to: [])
        let client = arrive(at: 2)
        client.want(.chat)
        world.pass(.milliseconds(250))
        #expect(waitingCounts == [1, 1, 0] && client.redirects == 0)
        world.pass(.seconds(1))
        #expect(client.redirects == 1 && client.node?.name == "n1" && !holder.isMatched)
        judge()
    }

    @Test func aPersonWithSeveralDevicesMeetsStrangersOfOtherNodesToo() {
        let identity = IdentityID(high: 3, low: 3)
        let (other, searching) = (world.arrive(identity, at: 2), world.arrive(identity, at: 2))
        world.pass(.milliseconds(50))
        let clients = search(at: 1)
        searching.want(.chat)
        world.pass(.seconds(2))
        #expect(searching.isMatched && clients[0].isMatched && !other.isMatched)
        judge()
    }

    @Test func aStrangerWhoStopsLeavesTheHall() {
        let clients = search(at: 1, 2)
        for client in clients {
            client.endWish()
            client.say(.roulette(.stop))
        }
        let third = search(at: 3)[0]
        #expect(waitingCounts.reduce(0, +) == 1)
        third.endWish()
        third.say(.roulette(.stop))
        world.pass(.seconds(1))
        #expect(waitingCounts == [0, 0, 0] && matchCounts == [0, 0, 0])
        judge()
    }

    // MARK: Without media between two nodes

    @Test func aStrangerOfANodeWhoseMediaCannotReachTheHallIsRedirected() {
        connect(2, to: [3])
        let clients = search(at: 1, 2, 3)
        #expect(clients[0].isMatched && clients[1].isMatched)
        #expect(clients.map { $0.node?.name } == ["n1", "n1", "n3"])
        judge()
    }

    @Test func strangersBetweenWhoseNodesNoMediaCrossesMeetOnTheNodeOfTheHall() {
        let holder = holdHall(at: 1)
        connect(2, to: [1])
        connect(3, to: [1])
        let clients = search(at: 2, 3)
        world.pass(.seconds(2))
        #expect(clients.allSatisfy { $0.isMatched })
        #expect(clients.map { $0.node?.name } == ["n1", "n1"] && holder.redirects == 0)
        judge()
    }

    @Test func strangersGoBackToTheirNodeWhenMediaCanNoLongerReachTheHall() {
        let holder = holdHall(at: 1)
        let client = search(at: 2)[0]
        #expect(waitingCounts == [2, 0, 0])
        connect(1, to: [3])
        connect(2, to: [3])
        world.pass(.milliseconds(500))
        #expect(waitingCounts == [1, 1, 0])
        world.pass(.seconds(2))
        #expect(client.node?.name == "n1" && client.redirects == 1 && !holder.isMatched)
        judge()
    }

    // MARK: What is about a chat

    @Test func aReportIsStoredWithTheChatOfTheMatchsNode() throws {
        let clients = search(at: 1, 2)
        let session = try match(clients[0]).publish.session
        clients[0].say(.session(.signal(.init(session: session, type: "chat", data: "rude"))))
        world.pass(.milliseconds(100))
        clients[1].say(.roulette(.report(.init(reason: "rude"))))
        world.pass(.milliseconds(100))
        let reports = world.nodes[0].stage.changes.compactMap { change -> Report? in
            if case .report(let report) = change { report } else { nil }
        }
        #expect(reports.map(\.by) == [clients[1].identity] && reports.map(\.against) == [clients[0].identity])
        #expect(reports.first?.lines.map(\.text) == ["rude"])
        #expect(clients[1].guest?.openRequests == 0)
        judge()
    }

    @Test func aReportThatArrivesWhenTheChatIsNoLongerKeptIsStoredWithoutIt() throws {
        let clients = search(at: 1, 2)
        let session = try match(clients[0]).publish.session
        clients[0].say(.session(.signal(.init(session: session, type: "chat", data: "rude"))))
        for client in clients {
            client.endWish()
            client.say(.roulette(.stop))
            world.pass(.milliseconds(500))
        }
        world.pass(.seconds(58))
        world.post.setAway(true, now: world.now)
        clients[1].say(.roulette(.report(.init(reason: "rude"))))
        world.pass(.seconds(5))
        #expect(clients[1].guest?.openRequests == 1)
        world.post.setAway(false, now: world.now)
        world.pass(.seconds(5))
        #expect(clients[1].guest?.openRequests == 0 && !clients[1].news.contains { $0.errorCode != nil })
        let reports = world.nodes.map { node -> [Report] in
            node.stage.changes.compactMap { if case .report(let report) = $0 { report } else { nil } }
        }
        #expect(reports.map(\.count) == [0, 1, 0])
        #expect(reports[1].first?.by == clients[1].identity && reports[1].first?.lines == [])
        judge()
    }

    @Test func theVerdictAboutACameraBlursItOnTheOtherNode() throws {
        let clients = search(at: 1, 2)
        for (number, client) in clients.enumerated() {
            let matched = try match(client)
            let source = SampleSource(
                match: matched.match, person: client.identity, session: matched.publish.session)
            let stage = world.nodes[number].stage
            let grant = try stage.project.verifySessionToken(
                matched.publish.token, for: matched.publish.session, now: stage.now)
            #expect(stage.hub.sampleSource(for: grant) == source, "each node takes the samples of its own people")
            stage.handle(.sampled(source, [0xFF, 0xD8]))
            stage.handle(.judged(source, SampleJudgment(.blur)))
        }
        world.pass(.milliseconds(100))
        for client in clients {
            let blurs = client.news.compactMap { message -> BlurredVideo? in
                if case .roulette(.blur(let blur)) = message, blur.blurred { blur.whose } else { nil }
            }
            #expect(Set(blurs) == [.own, .partner])
        }
        judge()
    }

    @Test func strangersBecomeContactsAcrossNodes() throws {
        let clients = search(at: 1, 2)
        for client in clients { client.appear(Appearance(name: "Ada")) }
        let meeting = try MeetingReference(match: match(clients[0]).match)
        for client in clients {
            client.say(.contact(.keep(meeting)))
            world.pass(.milliseconds(100))
        }
        for client in clients {
            let added = client.news.contains { if case .contact(.added) = $0 { true } else { false } }
            #expect(added)
        }
        #expect(world.shelf.archive.record(of: clients[0].identity).contacts.map(\.identity) == [clients[1].identity])
        clients[1].leave()
        world.pass(.seconds(1))
        let isOffline = clients[0].news.contains {
            if case .contact(.changed(let changed)) = $0 { !changed.person.online } else { false }
        }
        #expect(isOffline)
        judge()
    }

    // MARK: Requests that the match's node does not answer

    /// The number of members of a session on the first node; nil if it has none with this id.
    private func memberCount(_ session: SessionID) -> Int? {
        world.nodes[0].stage.hub.sessions.read(session) { $0.members.count }
    }

    /// A stranger has left the session of a match on the first node, and joins it again while that node gets no letters.
    private func joinInSilence() throws -> (client: ClusterClient, guest: Guest, join: ClientMessage, SessionID) {
        let client = search(at: 1, 2)[1]
        let guest = try #require(client.guest)
        let admission = try match(client).publish
        guest.say(.session(.leave(.init(session: admission.session))))
        world.pass(.milliseconds(500))
        world.post.setAway(true, now: world.now)
        let join = ClientMessage.session(.join(.init(session: admission.session, token: admission.token)))
        guest.say(join)
        return (client, guest, join, admission.session)
    }

    @Test func aJoinThatIsAnsweredInTimeSucceeds() throws {
        let (client, guest, _, session) = try joinInSilence()
        world.pass(.seconds(7))
        #expect(guest.openRequests == 1)
        endSilence()
        world.pass(.seconds(10))
        #expect(guest.openRequests == 0 && guest.places == [session] && memberCount(session) == 2)
        #expect(!client.news.contains { $0.errorCode != nil })
        judge()
    }

    @Test func aJoinThatIsNeverAnsweredFails() throws {
        let (client, guest, _, _) = try joinInSilence()
        world.pass(.seconds(9))
        #expect(guest.openRequests == 1)
        world.pass(.seconds(2))
        #expect(guest.openRequests == 0 && client.news.compactMap(\.errorCode) == [.clusterUnavailable])
        world.pass(.seconds(65))
        #expect(guest.places.isEmpty && client.isConnected)
        #expect(world.nodes[1].stage.hub.distantSessions.waits(guest.connection), "the answer may still come")
        client.leave()
        world.pass(.seconds(15))
        #expect(!world.nodes[1].stage.hub.distantSessions.waits(guest.connection), "the join is forgotten")
    }

    @Test func aJoinThatIsAnsweredTooLateIsUndone() throws {
        let (client, guest, join, session) = try joinInSilence()
        world.pass(.seconds(11))
        #expect(guest.openRequests == 0)
        endSilence()
        #expect(guest.places.isEmpty && memberCount(session) == 1)
        #expect(client.news.compactMap(\.errorCode) == [.clusterUnavailable])
        guest.say(join)
        world.pass(.milliseconds(500))
        #expect(guest.places == [session] && memberCount(session) == 2)
        judge()
    }

    @Test func aClientThatJoinsAgainBeforeTheLateAnswerIsInTheSession() throws {
        let (client, guest, join, session) = try joinInSilence()
        world.pass(.seconds(11))
        guest.say(join)
        world.pass(.seconds(1))
        endSilence()
        #expect(guest.openRequests == 0 && guest.places == [session] && memberCount(session) == 2)
        #expect(client.news.compactMap(\.errorCode) == [.clusterUnavailable])
        judge()
    }

    @Test func aStreamWhosePublicationIsAnsweredTooLateEnds() throws {
        let client = search(at: 1, 2)[1]
        let guest = try #require(client.guest)
        let session = try match(client).publish.session
        let before = planes(session)
        world.post.setAway(true, now: world.now)
        var publish = SessionVerb.Publish()
        (publish.session, publish.mids) = (session, MediaMids(audio: "4", video: "5"))
        guest.say(.session(.publish(publish)))
        world.pass(.seconds(11))
        #expect(guest.openRequests == 0 && client.news.compactMap(\.errorCode) == [.clusterUnavailable])
        endSilence()
        #expect(planes(session) == before)
        #expect(!world.nodes[1].stage.hub.distantSessions.waits(guest.connection))
        judge()
    }

    /// A stranger on the second node, and a subscription of theirs to a stream in a session on the first node.
    private func subscriber() throws -> (client: ClusterClient, guest: Guest, SessionVerb.Subscribe) {
        let client = search(at: 1, 2)[1]
        let guest = try #require(client.guest)
        let session = try match(client).publish.session
        let streams = world.nodes[1].stage.ledger.streams
        let stream = try #require(streams.first { $0.value.subscribers[guest.connection] != nil }?.key)
        let mids = MediaMids(audio: "2", video: "3")
        #expect(planes(session) == [[2, 1], [2, 1], [0, 0]])
        return (client, guest, SessionVerb.Subscribe(session: session, stream: stream, mids: mids))
    }

    private func unsubscribe(_ guest: Guest, from verb: SessionVerb.Subscribe) {
        guest.say(.session(.unsubscribe(.init(session: verb.session, stream: verb.stream))))
        world.pass(.milliseconds(500))
        #expect(planes(verb.session) == [[2, 1], [2, 0], [0, 0]])
    }

    @Test func aSubscriptionThatIsAnsweredTooLateEnds() throws {
        let (client, guest, verb) = try subscriber()
        unsubscribe(guest, from: verb)
        world.post.setAway(true, now: world.now)
        guest.say(.session(.subscribe(verb)))
        world.pass(.seconds(11))
        #expect(guest.openRequests == 0 && client.news.compactMap(\.errorCode) == [.clusterUnavailable])
        endSilence()
        #expect(planes(verb.session) == [[2, 1], [2, 0], [0, 0]])
        #expect(!world.nodes[1].stage.hub.distantSessions.waits(guest.connection))
        judge()
    }

    @Test func aClientThatSubscribesAgainBeforeTheLateAnswerIsSubscribed() throws {
        let (client, guest, verb) = try subscriber()
        unsubscribe(guest, from: verb)
        world.post.setAway(true, now: world.now)
        guest.say(.session(.subscribe(verb)))
        world.pass(.seconds(11))
        guest.say(.session(.subscribe(verb)))
        world.pass(.seconds(1))
        endSilence()
        #expect(guest.openRequests == 0 && client.news.compactMap(\.errorCode) == [.clusterUnavailable])
        #expect(planes(verb.session) == [[2, 1], [2, 1], [0, 0]])
        judge()
    }

    @Test func aSubscriptionWhoseChangeIsAnsweredTooLateStays() throws {
        let (client, guest, known) = try subscriber()
        var verb = known
        verb.video = false
        world.post.setAway(true, now: world.now)
        guest.say(.session(.subscribe(verb)))
        world.pass(.seconds(11))
        #expect(guest.openRequests == 0 && client.news.compactMap(\.errorCode) == [.clusterUnavailable])
        endSilence()
        #expect(planes(verb.session) == [[2, 1], [2, 1], [0, 0]])
        judge()
    }

    @Test func aReportThatIsNotAnsweredIsStoredWithoutTheChat() throws {
        let client = search(at: 1, 2)[1]
        world.post.setAway(true, now: world.now)
        client.say(.roulette(.report(.init(reason: "rude"))))
        world.pass(.seconds(11))
        #expect(client.guest?.openRequests == 0 && !client.news.contains { $0.errorCode != nil })
        let reports = world.nodes[1].stage.changes.compactMap { change -> Report? in
            if case .report(let report) = change { report } else { nil }
        }
        #expect(reports.map(\.by) == [client.identity] && reports.first?.lines == [])
        endSilence()
        judge()
    }

    // MARK: Nodes and letters that are lost

    @Test func whenThePartnersNodeDiesThePersonSearchesAgain() throws {
        let clients = search(at: 1, 2)
        let session = try match(clients[0]).publish.session
        let connection = clients[0].guest?.connection
        clients[1].endWish()
        world.kill(world.nodes[1])
        world.pass(.seconds(5))
        #expect(ends(clients[0]) == [.partnerLeft] && clients[0].guest?.connection == connection)
        #expect(planes(session)[0] == [0, 0] && matchCounts == [0, 0, 0])
        #expect(search(at: 3)[0].isMatched && clients[0].isMatched)
        judge()
    }

    @Test func whenTheMatchsNodeDiesThePersonSearchesAgainWithoutConnectingAgain() throws {
        let clients = search(at: 1, 2)
        let session = try match(clients[1]).publish.session
        let connection = clients[1].guest?.connection
        clients[0].endWish()
        world.kill(world.nodes[0])
        world.pass(.seconds(5))
        #expect(ends(clients[1]) == [.partnerLeft] && clients[1].guest?.connection == connection)
        #expect(clients[1].guest?.places == [])
        #expect(planes(session)[1] == [0, 0])
        #expect(search(at: 3)[0].isMatched && clients[1].isMatched)
        judge()
    }

    @Test func aRequestThatTheMatchsNodeDoesNotAnswerIsAnsweredWhenTheNodeIsLost() throws {
        let clients = search(at: 1, 2)
        let session = try match(clients[1]).publish.session
        clients[0].endWish()
        world.kill(world.nodes[0])
        clients[1].say(.session(.signal(.init(session: session, type: "chat", data: "hello"))))
        clients[1].say(.roulette(.report(.init(reason: "rude"))))
        world.pass(.seconds(1))
        #expect(clients[1].guest?.openRequests == 2)
        world.pass(.seconds(5))
        #expect(clients[1].guest?.openRequests == 0)
        let isStored = world.nodes[1].stage.changes.contains { if case .report = $0 { true } else { false } }
        #expect(isStored, "a report is stored without the lines that were lost")
        judge()
    }

    @Test func whenTheNodeOfTheHallDiesItsStrangersWaitElsewhere() {
        let holder = holdHall(at: 1)
        let client = search(at: 2)[0]
        #expect(waitingCounts == [2, 0, 0] && !holder.isMatched)
        world.kill(world.nodes[0])
        world.pass(.seconds(5))
        #expect(client.waitingSince != nil && client.redirects == 0)
        #expect(search(at: 3)[0].isMatched && client.isMatched)
        judge()
    }

    @Test func aNodeThatStopsSendsTheStrangersOfOthersBack() {
        let holder = holdHall(at: 1)
        let client = search(at: 2)[0]
        #expect(waitingCounts == [2, 0, 0] && !holder.isMatched)
        world.drain(world.nodes[0])
        world.pass(.seconds(4))
        #expect(world.nodes[0].stage.hub.waitingCount == 0)
        #expect(client.node?.name == "n2" && client.redirects == 0)
        #expect(search(at: 3)[0].isMatched && client.isMatched)
        judge()
    }

    @Test func whenLettersAreLostTheChatEndsOnBothNodes() throws {
        let clients = search(at: 1, 2)
        let session = try match(clients[0]).publish.session
        let connections = clients.map { $0.guest?.connection }
        world.nodes[0].stage.handle(.lettersLost(world.nodes[1].tag))
        world.nodes[1].stage.handle(.lettersLost(world.nodes[0].tag))
        world.pass(.milliseconds(500))
        #expect(clients.map { ends($0) } == [[.partnerLeft], [.partnerLeft]])
        #expect(planes(session) == [[0, 0], [0, 0], [0, 0]])
        world.pass(.seconds(15))
        #expect(clients.allSatisfy { $0.isMatched } && clients.map { $0.guest?.connection } == connections)
        judge()
    }

    @Test func aStrangerWaitsAgainIfTheMatchDoesNotBegin() {
        let holder = holdHall(at: 1)
        let client = search(at: 2)[0]
        #expect(waitingCounts == [2, 0, 0] && !holder.isMatched)
        let match = MatchID(high: world.nodes[2].tag.rawValue << 24, low: 7)
        let reserve = PersonEvent.reserve(match, with: IdentityID(high: 9, low: 9), at: world.nodes[2].tag)
        world.nodes[1].stage.handle(.received(.person(client.identity, reserve), from: world.nodes[0].tag))
        world.pass(.seconds(6))
        #expect(client.waitingSince != nil)
        #expect(search(at: 3)[0].isMatched && client.isMatched)
        judge()
    }

    @Test func aChatWithAStrangerWhoLeftBeforeItBeganEnds() throws {
        let holder = holdHall(at: 1)
        let client = search(at: 2)[0]
        #expect(waitingCounts == [2, 0, 0] && !holder.isMatched)
        // Both have agreed, and one has left meanwhile. The match is on the node of that one.
        let (hall, here, there) = (world.nodes[0].tag, world.nodes[1].tag, world.nodes[2].tag)
        let match = MatchID(high: there.rawValue << 24, low: 7)
        let gone = PoolEntry(identity: IdentityID(high: 9, low: 9), node: there)
        let reserve = PersonEvent.reserve(match, with: gone.identity, at: there)
        world.nodes[1].stage.handle(.received(.person(client.identity, reserve), from: hall))
        let begin = MatchEvent.begin(.video, gone, PoolEntry(identity: client.identity, node: here))
        world.nodes[2].stage.handle(.received(.match(match, begin), from: hall))
        world.pass(.seconds(2))
        #expect(matchCounts == [0, 0, 0] && ends(client) == [.partnerLeft])
        #expect(waitingCounts == [2, 0, 0] && client.waitingSince != nil)
        judge()
    }

    @Test func aStrangerWhoComesToTheHallBeforeTheLettersOfTheirFormerNodeWaitsThere() {
        let holder = holdHall(at: 1)
        let entry = PoolEntry(identity: IdentityID(high: 9, low: 9), node: world.nodes[1].tag)
        let (hall, former) = (world.nodes[0].stage, world.nodes[1].tag)
        hall.handle(.received(.pool(.enter(entry)), from: former))
        let client = world.arrive(entry.identity, at: 1)
        world.pass(.milliseconds(50))
        client.want(.chat)
        for late in [PoolEvent.enter(entry), .withdraw(entry.identity)] {
            hall.handle(.received(.pool(late), from: former))
        }
        world.pass(.seconds(1))
        #expect(waitingCounts == [2, 0, 0] && !holder.isMatched)
        #expect(search(at: 3)[0].isMatched && client.isMatched)
        judge()
    }

    @Test func aReservationOfAStrangerWhoseNodeIsSilentIsReleased() {
        let waiting = search(at: 1)[0]
        var entry = PoolEntry(identity: IdentityID(high: 9, low: 9))
        entry.node = world.nodes[2].tag
        world.nodes[0].stage.handle(.received(.pool(.enter(entry)), from: world.nodes[2].tag))
        world.pass(.seconds(1))
        #expect(!waiting.isMatched && waitingCounts == [2, 0, 0])
        world.pass(.seconds(2))
        #expect(waitingCounts == [1, 0, 0], "who does not answer no longer waits")
        #expect(search(at: 2)[0].isMatched && waiting.isMatched)
        judge()
    }

    @Test func whileRedisIsAwayStrangersOfOneNodeMeetThereAfterAWhile() {
        let holder = holdHall(at: 1)
        let first = search(at: 2)[0]
        let second = arrive(at: 2)
        #expect(waitingCounts == [2, 0, 0] && !holder.isMatched)
        world.registry.setAway(true)
        world.post.setAway(true, now: world.now)
        second.want(.chat)
        world.pass(.seconds(15))
        #expect(first.isMatched && second.isMatched)
        world.registry.setAway(false)
        world.post.setAway(false, now: world.now)
        world.pass(.seconds(15))
        judge()
    }

    // MARK: Nodes that break the rules

    @Test func noNodeSpeaksForTheStrangersOfAnotherOne() throws {
        let clients = search(at: 1, 2)
        let holder = holdHall(at: 1)
        let (current, own) = (try match(clients[0]).match, clients[0].identity)
        clients[0].appear(Appearance(name: "Ada"))
        let stage = world.nodes[0].stage
        var entry = PoolEntry(identity: IdentityID(high: 9, low: 9))
        entry.node = world.nodes[1].tag
        let distant = MatchID(high: world.nodes[1].tag.rawValue << 24, low: 7)
        let letters: [Letter] = [
            .match(current, .leave(clients[1].identity, .stopped)), .match(current, .leave(own, .stopped)),
            .match(distant, .leave(own, .stopped)), .match(distant, .begin(.video, entry, entry)),
            .person(own, .matchEnded(current, .partnerLeft)), .person(own, .matchEnded(distant, .partnerLeft)),
            .person(own, .partnerAway(current, true)), .pool(.enter(entry)),
        ]
        for letter in letters { stage.handle(.received(letter, from: world.nodes[2].tag)) }
        #expect(stage.hub.unexpectedLetters == letters.count)
        stage.handle(.received(.pool(.withdraw(holder.identity)), from: world.nodes[2].tag))
        stage.handle(.received(.person(own, .partnerBlurred(current, true)), from: world.nodes[2].tag))
        stage.handle(.received(.person(holder.identity, .hallClosed), from: world.nodes[2].tag))
        let (meeting, person) = (MeetingReference(match: current), stage.project.personID(of: clients[1].identity))
        let partner = Counterpart(identity: clients[1].identity, person: person, name: "Bo", isOnline: true)
        for event in [PersonContactEvent.asked(meeting, by: partner), .agreed(meeting, with: partner)] {
            stage.handle(.received(.person(own, .contact(event)), from: world.nodes[2].tag))
        }
        world.pass(.milliseconds(100))
        #expect(clients.allSatisfy { $0.isMatched } && waitingCounts == [1, 0, 0])
        let isBlurred = clients[0].news.contains { if case .roulette(.blur) = $0 { true } else { false } }
        let isAsked = clients[0].news.contains { if case .contact = $0 { true } else { false } }
        #expect(!isBlurred && !isAsked)
    }

    @Test func aClientJoinsOnlyTheSessionForWhichItHasAsked() throws {
        let clients = search(at: 1, 2)
        let (stage, tag) = (world.nodes[1].stage, world.nodes[0].tag)
        let guest = try #require(clients[1].guest)
        let admission = try match(clients[1]).publish
        guest.say(.session(.leave(.init(session: admission.session))))
        var joined = SessionNotice.Joined()
        joined.re = guest.say(.session(.join(.init(session: admission.session, token: admission.token))))
        joined.session = stage.project.makeSessionID(mediaMode: .routed, now: world.now, using: &stage.generator)
        let letter = Letter.client(guest.connection, .deliver(.session(.joined(joined))))
        // The second one answers no request.
        for _ in 0..<2 { stage.handle(.received(letter, from: tag)) }
        #expect(stage.hub.unexpectedLetters == 1)
        #expect(stage.hub.distantSessions.node(of: joined.session) == nil)
        world.pass(.milliseconds(100))
        #expect(guest.places.isEmpty && guest.openRequests == 0)
        let errors = clients[1].news.compactMap(\.errorCode)
        #expect(errors == [.clusterUnavailable])
    }

    @Test func aNodeReportsOnlyForItsOwnPeopleAndOnlyTheirPartners() throws {
        let clients = search(at: 1, 2)
        let others = search(at: 1, 1)
        let matched = try match(clients[0])
        let (own, other) = (clients[0].identity, clients[1].identity)
        let stranger = others[0].identity
        let (stage, tag) = (world.nodes[0].stage, world.nodes[1].tag)
        func report(by reporter: IdentityID, against: IdentityID, in session: SessionID) {
            let report = Report(
                match: matched.match, by: reporter, against: against, reason: "rude", lines: [], createdAt: world.now)
            let client = ConnectionID(high: tag.rawValue << 24, low: 7)
            stage.handle(.received(.session(session, .report(report, by: client, re: 1)), from: tag))
        }
        let session = matched.publish.session
        report(by: stranger, against: own, in: session)
        report(by: own, against: other, in: session)
        report(by: other, against: stranger, in: session)
        report(by: other, against: other, in: session)
        #expect(stage.hub.unexpectedLetters == 4)
        report(by: other, against: own, in: try match(others[0]).publish.session)
        world.pass(.milliseconds(100))
        #expect(!stage.changes.contains { if case .report = $0 { true } else { false } })
        report(by: other, against: own, in: session)
        #expect(stage.changes.contains { if case .report = $0 { true } else { false } })
    }

    @Test func aMatchThatBeginsAgainForSomeoneElseStillEndsWhenItsNodeIsLost() throws {
        let clients = search(at: 1, 2)
        let other = arrive(at: 2)
        let matched = try match(clients[1])
        let (stage, tag) = (world.nodes[1].stage, world.nodes[0].tag)
        for person in [other, clients[1]].map(\.identity) {
            let begun = PersonEvent.matched(matched, partner: clients[0].identity, address: "", at: tag)
            stage.handle(.received(.person(person, begun), from: tag))
        }
        stage.handle(.received(.person(other.identity, .matchEnded(matched.match, .partnerLeft)), from: tag))
        #expect(stage.hub.unexpectedLetters == 3)
        clients[0].endWish()
        world.kill(world.nodes[0])
        world.pass(.seconds(5))
        #expect(ends(clients[1]) == [.partnerLeft] && clients[1].guest?.places == [])
        #expect(world.fault == nil && world.spanningFaults == [])
    }

    @Test func withoutRelaysALetterToThePoolIsDropped() {
        let stage = Stage(tag: NodeTag(node: 1, life: 1))
        stage.handle(.received(.pool(.withdraw(IdentityID(high: 1, low: 1))), from: NodeTag(node: 2, life: 2)!))
        #expect(stage.hub.unexpectedLetters == 1 && stage.hub.waitingCount == 0)
    }

    /// Strangers come to several nodes, a few each second. Nobody is redirected.
    @Test func manyStrangersMeetWithoutARedirect() {
        var matched = 0
        for _ in 0..<200 {
            world.arrive().want(.chat)
            world.pass(.milliseconds(Int.random(in: 0...400, using: &world.random)))
            for client in world.clients where client.isMatched {
                matched += 1
                client.leave()
            }
        }
        #expect(world.clients.allSatisfy { $0.redirects == 0 } && matched > 180)
        world.pass(.seconds(2))
        judge()
    }
}
