import Cluster
import TestSupport
import Testing
import Wire

@testable import Signaling

/// With relays, contacts on two nodes call each other without moving. The call and its session are on the caller's node.
@Suite struct SpanningCallsTests: SpanningFixture {
    let world = ClusterWorld(nodes: 3, spans: true) { $0.routesMedia = true }
    private let ada = IdentityID(high: 1, low: 1)
    private let bo = IdentityID(high: 1, low: 2)

    /// Two contacts, each on a node of their own.
    private func contacts() -> (ada: ClusterClient, bo: ClusterClient) {
        world.shelf.archive.apply(.keptInTouch(ada, bo, names: ["Ada", "Bo"], at: world.now))
        let clients = (world.arrive(ada, at: 1), world.arrive(bo, at: 2))
        clients.0.appear(Appearance(name: "Ada"))
        clients.1.appear(Appearance(name: "Bo"))
        world.pass(.milliseconds(100))
        return clients
    }

    private func dial(_ client: ClusterClient, _ other: IdentityID) {
        let person = world.nodes[0].stage.project.personID(of: other)
        client.want(.request(.call(.start(.init(person: person, video: true)))))
        world.pass(.seconds(1))
    }

    private func accept(_ client: ClusterClient) throws -> CallID {
        let call = try #require(client.call, "\(client.news)")
        client.say(.call(.accept(.init(call: call, video: true))))
        world.pass(.seconds(1))
        return call
    }

    /// Two contacts in a call.
    private func talk() throws -> (ada: ClusterClient, bo: ClusterClient, call: CallID) {
        let (first, second) = contacts()
        dial(first, bo)
        let call = try accept(second)
        try #require(accepted(first) == 1 && accepted(second) == 1, "\(first.news) \(second.news)")
        return (first, second, call)
    }

    private func accepted(_ client: ClusterClient) -> Int {
        client.news.count { if case .call(.accepted) = $0 { true } else { false } }
    }

    private func rings(_ client: ClusterClient) -> Bool {
        client.news.contains { if case .call(.incoming) = $0 { true } else { false } }
    }

    private func ends(_ client: ClusterClient) -> [CallOutcome] {
        client.news.compactMap { if case .call(.ended(let ended)) = $0 { ended.reason } else { nil } }
    }

    private func partnerStates(_ client: ClusterClient) -> [PartnerState] {
        client.news.compactMap { if case .call(.partner(let partner)) = $0 { partner.state } else { nil } }
    }

    /// The numbers of streams and of subscriptions that the media plane of each node has.
    private var planes: [[Int]] {
        world.nodes.map { [$0.stage.ledger.streams.count, $0.stage.ledger.subscriptionCount] }
    }

    private var callCounts: [Int] { world.nodes.map { $0.isLive ? $0.stage.hub.callCount : 0 } }

    private func rejoin(_ clients: ClusterClient..., call: CallID) {
        for client in clients { client.want(.request(.call(.rejoin(.init(call: call))))) }
        world.pass(.seconds(2))
    }

    private func judge() {
        world.check()
        #expect(world.fault == nil)
        #expect(world.spanningFaults == [])
        for node in world.live { #expect(node.stage.hub.unexpectedLetters == 0) }
    }

    // MARK: Calls

    @Test func aContactOnAnotherNodeRingsAndTalksWithoutARedirect() throws {
        let (first, second, _) = try talk()
        #expect(first.redirects == 0 && second.redirects == 0)
        #expect([first, second].map { $0.node?.name } == ["n1", "n2"])
        #expect(callCounts == [1, 0, 0])
        #expect(planes == [[2, 1], [2, 1], [0, 0]])
        judge()
    }

    @Test func theEndIsLoggedForBothAndFreesTheMediaOfBothNodes() throws {
        let (first, second, call) = try talk()
        world.pass(.seconds(5))
        second.say(.call(.end(.init(call: call))))
        world.pass(.seconds(1))
        #expect(ends(first) == [.hungUp] && ends(second) == [.ended])
        #expect(planes == [[0, 0], [0, 0], [0, 0]] && callCounts == [0, 0, 0])
        for person in [ada, bo] {
            let logged = try #require(world.shelf.archive.logs[person]?.last)
            #expect(logged.call == call && logged.duration.map { $0 > .seconds(4) } == true)
        }
        #expect(second.guest?.openRequests == 0)
        judge()
    }

    @Test func aCallCanBeDeclinedCanceledAndMissedAcrossNodes() throws {
        let (first, second) = contacts()
        dial(first, bo)
        #expect(rings(second))
        second.say(.call(.decline(.init(call: try #require(second.call)))))
        world.pass(.seconds(1))
        #expect(ends(first) == [.declined])
        dial(second, ada)
        second.say(.call(.cancel(.init(call: try #require(second.call)))))
        world.pass(.seconds(1))
        #expect(ends(first) == [.declined, .cancelled] && callCounts == [0, 0, 0])
        dial(first, bo)
        world.pass(.seconds(46))
        #expect(ends(first).last == .unanswered && ends(second).last == .missed)
        #expect(callCounts == [0, 0, 0])
        judge()
    }

    @Test func videoThatIsTurnedOffIsReportedToTheOtherNode() throws {
        let (first, second, call) = try talk()
        second.say(.call(.update(.init(call: call, video: false))))
        world.pass(.milliseconds(100))
        let isReported = first.news.contains {
            if case .call(.changed(let changed)) = $0 { !changed.video } else { false }
        }
        #expect(isReported)
        judge()
    }

    @Test func twoContactsWhoCallEachOtherAreConnected() {
        let (first, second) = contacts()
        dial(first, bo)
        dial(second, ada)
        #expect(accepted(first) == 1 && accepted(second) == 1)
        #expect(callCounts.reduce(0, +) == 1)
        judge()
    }

    @Test func twoContactsWhoCallEachOtherInTheSameMomentCanAcceptOneOfTheCalls() throws {
        let (first, second) = contacts()
        for (client, other) in [(first, bo), (second, ada)] {
            let person = world.nodes[0].stage.project.personID(of: other)
            client.want(.request(.call(.start(.init(person: person, video: true)))))
        }
        world.pass(.seconds(1))
        if accepted(first) == 0 {
            let incoming = first.news.compactMap { message -> CallID? in
                if case .call(.incoming(let incoming)) = message { incoming.call } else { nil }
            }
            first.say(.call(.accept(.init(call: try #require(incoming.last), video: true))))
            world.pass(.seconds(1))
        }
        #expect(accepted(first) == 1 && accepted(second) == 1)
        #expect(callCounts.reduce(0, +) == 1)
        judge()
    }

    @Test func aCallerWithASecondDeviceCanCallToo() throws {
        let (first, second) = contacts()
        _ = world.arrive(ada, at: 1)
        world.pass(.milliseconds(100))
        dial(first, bo)
        #expect(rings(second) && first.redirects == 0)
        _ = try accept(second)
        #expect(accepted(first) == 1)
        judge()
    }

    @Test func withoutMediaBetweenTheNodesTheCallerMoves() {
        let (first, second) = contacts()
        world.nodes[0].stage.handle(.mediaCrosses(to: [world.nodes[2].tag]))
        dial(first, bo)
        #expect(rings(second) && first.redirects == 1 && first.node?.name == "n2")
        #expect(callCounts == [0, 1, 0])
        judge()
    }

    // MARK: Nodes and letters that are lost

    @Test func aCallThatRingsEndsWhenTheCalleesNodeDies() throws {
        let (first, second) = contacts()
        dial(first, bo)
        #expect(rings(second))
        world.kill(world.nodes[1])
        world.pass(.seconds(5))
        #expect(ends(first) == [.unreachable] && callCounts == [0, 0, 0])
        #expect(second.isConnected && world.shelf.archive.logs[bo]?.map(\.outcome) == [.missed])
        judge()
    }

    @Test func aCallThatRingsIsMissedOnceWhenLettersAreLost() throws {
        let (first, second) = contacts()
        dial(first, bo)
        for (node, other) in [(0, 1), (1, 0)] {
            world.nodes[node].stage.handle(.lettersLost(world.nodes[other].tag))
        }
        world.pass(.seconds(3))
        #expect(ends(first) == [.unreachable] && ends(second) == [.missed] && callCounts == [0, 0, 0])
        #expect(world.shelf.archive.logs[bo]?.map(\.outcome) == [.missed])
        judge()
    }

    @Test func aCallThatRingsIsMissedWhenTheCallersNodeDies() throws {
        let (first, second) = contacts()
        dial(first, bo)
        world.heir = world.nodes[2]
        world.kill(world.nodes[0])
        world.pass(.seconds(5))
        #expect(ends(second) == [.missed] && second.node?.name == "n2")
        world.pass(.seconds(60))
        #expect(callCounts == [0, 0, 0] && first.isConnected)
        judge()
    }

    @Test func aCallThatTheCalleeHasMissedEndsForTheCallerWhenTheCalleesNodeContinuesIt() throws {
        let (first, second) = contacts()
        dial(first, bo)
        let call = try #require(first.call)
        world.heir = world.nodes[1]
        world.kill(world.nodes[0])
        world.pass(.seconds(5))
        #expect(ends(second) == [.missed] && callCounts == [0, 1, 0])
        second.say(.call(.seen(.init(call: call))))
        let other = world.arrive(bo, at: 2)
        other.appear(Appearance(name: "Bo"))
        rejoin(first, call: call)
        #expect(first.node?.name == "n2" && ends(first) == [.unreachable] && callCounts == [0, 0, 0])
        rejoin(second, call: call)
        #expect(!rings(other) && second.failures.map(\.code) == [.notFound])
        world.pass(.seconds(60))
        #expect(ends(first) == [.unreachable] && ends(second) == [.missed] && ends(other) == [])
        #expect(callCounts == [0, 0, 0])
        let logged = world.nodes.flatMap(\.stage.changes).compactMap { change -> CallOutcome? in
            if case .callLogged(let record, bo) = change { record.outcome } else { nil }
        }
        #expect(logged == [.missed])
        #expect(world.shelf.archive.logs[ada]?.map(\.outcome) == [.unreachable])
        judge()
    }

    @Test func aCallThatTheCalleeHasMissedEndsForTheCallerWhenAThirdNodeContinuesIt() throws {
        let (first, second) = contacts()
        dial(first, bo)
        let call = try #require(first.call)
        world.heir = world.nodes[2]
        world.kill(world.nodes[0])
        world.pass(.seconds(5))
        #expect(ends(second) == [.missed] && callCounts == [0, 0, 1])
        rejoin(first, call: call)
        #expect(first.node?.name == "n3" && ends(first) == [], "the callee may have been accepting the call")
        world.pass(.seconds(5))
        #expect(ends(first) == [.unreachable] && ends(second) == [.missed] && callCounts == [0, 0, 0])
        #expect(world.shelf.archive.logs[ada]?.map(\.outcome) == [.unreachable])
        #expect(world.shelf.archive.logs[bo]?.map(\.outcome) == [.missed])
        judge()
    }

    @Test func aCallerWhoComesBackLateLearnsAtOnceThatTheCalleeHasMissedTheCall() throws {
        let (first, second) = contacts()
        dial(first, bo)
        let call = try #require(first.call)
        world.heir = world.nodes[2]
        world.kill(world.nodes[0])
        world.pass(.seconds(15))
        #expect(ends(second) == [.missed] && callCounts == [0, 0, 1])
        rejoin(first, call: call)
        #expect(ends(first) == [.unreachable] && callCounts == [0, 0, 0])
        judge()
    }

    @Test func aCallThatTheCalleeWasAcceptingContinuesOnAThirdNode() throws {
        let (first, second) = contacts()
        dial(first, bo)
        let call = try #require(second.call)
        world.heir = world.nodes[2]
        world.kill(world.nodes[0])
        second.say(.call(.accept(.init(call: call, video: true))))
        world.pass(.seconds(5))
        #expect(ends(second) == [] && callCounts == [0, 0, 1])
        rejoin(first, second, call: call)
        // The node has not received the acceptance, so the SDKs send it again.
        #expect(try accept(second) == call)
        #expect([first, second].map { $0.node?.name } == ["n3", "n3"])
        #expect(accepted(first) == 1 && accepted(second) == 1)
        world.pass(.seconds(60))
        #expect(ends(first) == [] && ends(second) == [] && callCounts == [0, 0, 1])
        judge()
    }

    @Test(arguments: [1, 2])
    func aCallThatTheCalleeHasMissedIsCanceledIfTheCallerDoesNotComeBack(_ heir: Int) throws {
        let (first, second) = contacts()
        dial(first, bo)
        world.heir = world.nodes[heir]
        world.kill(world.nodes[0])
        first.leave()
        world.pass(.seconds(5))
        #expect(ends(second) == [.missed] && callCounts[heir] == 1)
        world.pass(.seconds(60))
        #expect(ends(second) == [.missed] && callCounts == [0, 0, 0])
        judge()
    }

    @Test(arguments: [1, 2])
    func aMissedCallThatTheCalleeHasSeenStaysSeenAfterTheyHaveLeft(_ heir: Int) throws {
        let (first, second) = contacts()
        dial(first, bo)
        let call = try #require(second.call)
        world.heir = world.nodes[heir]
        world.kill(world.nodes[0])
        first.leave()
        world.pass(.seconds(5))
        #expect(ends(second) == [.missed] && callCounts[heir] == 1)
        second.say(.call(.seen(.init(call: call))))
        second.leave()
        world.pass(.seconds(60))
        #expect(callCounts == [0, 0, 0])
        let logged = world.shelf.archive.logs[bo] ?? []
        #expect(logged.map(\.outcome) == [.missed] && logged.map(\.isSeen) == [true])
        judge()
    }

    @Test func theCalleeComesBackToTheCallWhenTheirNodeHasDied() throws {
        let (first, second, call) = try talk()
        world.kill(world.nodes[1])
        world.pass(.seconds(6))
        #expect(partnerStates(first) == [.reconnecting] && ends(first) == [])
        rejoin(second, call: call)
        #expect(second.node?.name == "n1" && second.guest?.places.count == 1 && second.failures.isEmpty)
        #expect(partnerStates(first) == [.reconnecting, .connected] && callCounts == [1, 0, 0])
        world.pass(.seconds(60))
        #expect(callCounts == [1, 0, 0])
        judge()
    }

    @Test func aCallEndsIfTheCalleeDoesNotComeBackInTime() throws {
        let (first, second, _) = try talk()
        world.kill(world.nodes[1])
        world.pass(.seconds(40))
        #expect(ends(first) == [.connectionLost] && callCounts == [0, 0, 0] && second.isConnected)
        judge()
    }

    @Test func bothComeBackToTheNodeThatContinuesTheCallWhenTheCallersHasDied() throws {
        let (first, second, call) = try talk()
        let connection = second.guest?.connection
        world.heir = world.nodes[2]
        world.kill(world.nodes[0])
        world.pass(.seconds(6))
        #expect(second.isConnected && second.guest?.connection != connection && ends(second) == [])
        rejoin(first, second, call: call)
        #expect([first, second].map { $0.node?.name } == ["n3", "n3"])
        #expect(first.failures.isEmpty && second.failures.isEmpty)
        #expect(first.guest?.places.count == 1 && first.guest?.places == second.guest?.places)
        world.pass(.seconds(60))
        #expect(callCounts == [0, 0, 1])
        judge()
    }

    @Test func whenLettersAreLostTheCalleeComesToTheCallersNode() throws {
        let (first, second, call) = try talk()
        world.nodes[0].stage.handle(.lettersLost(world.nodes[1].tag))
        world.nodes[1].stage.handle(.lettersLost(world.nodes[0].tag))
        world.pass(.seconds(3))
        #expect(partnerStates(first) == [.reconnecting])
        rejoin(second, call: call)
        #expect(second.node?.name == "n1" && partnerStates(first) == [.reconnecting, .connected])
        #expect(callCounts == [1, 0, 0])
        judge()
    }

    @Test func aCallThatIsGivenUpWhileRedisIsAwayLeavesNoReservation() throws {
        let (first, second) = contacts()
        world.post.setAway(true, now: world.now)
        dial(first, bo)
        world.pass(.seconds(50))
        #expect(first.failures.map(\.code) == [.internalError] && !rings(second))
        world.post.setAway(false, now: world.now)
        world.pass(.seconds(5))
        #expect(!rings(second) && ends(second) == [.missed])
        judge()
        dial(second, ada)
        #expect(rings(first))
    }

    // MARK: Tokens of applications

    private func session(of client: ClusterClient) throws -> SessionID {
        try #require(client.guest?.places.first, "\(client.news)")
    }

    @Test func anApplicationsClientsAreRedirectedToTheCallersNode() throws {
        let session = try session(of: talk().bo)
        let clients = (1...3).map { join(session, at: $0) }
        #expect(clients.map { $0.node?.name } == ["n1", "n1", "n1"])
        #expect(clients.map(\.redirects) == [0, 1, 1])
        #expect(members(of: session) == [5, 0, 0])
        #expect(place(of: session) == nil, "no place is claimed")
        judge()
    }

    @Test func aCallThatAnotherNodeContinuesGetsASessionOfThatNode() throws {
        let (first, second, call) = try talk()
        let former = try session(of: first)
        world.heir = world.nodes[2]
        world.kill(world.nodes[0])
        let early = join(former, at: 2)
        #expect(members(of: former) == [0, 0, 0], "the life of the caller's node is not over yet")
        world.pass(.seconds(6))
        rejoin(first, second, call: call)
        let session = try session(of: first)
        #expect(session != former && second.guest?.places == [session])
        #expect(members(of: session) == [0, 0, 2])
        #expect(members(of: former).sorted() == [0, 0, 1], "the client with the application's token is alone")
        #expect(early.node != nil && place(of: former) == early.node?.tag)
        let late = join(session, at: 2)
        #expect(late.node?.name == "n3" && members(of: session) == [0, 0, 3])
        judge()
        // The next node makes another session again.
        late.leave()
        world.heir = world.nodes[1]
        world.kill(world.nodes[2])
        world.pass(.seconds(6))
        rejoin(first, second, call: call)
        let last = try self.session(of: first)
        #expect(![former, session].contains(last) && second.guest?.places == [last])
        #expect(members(of: last) == [0, 2, 0] && first.failures.isEmpty && second.failures.isEmpty)
    }

    // MARK: Nodes that break the rules

    @Test func aCallThatAsksTwiceGetsOnePlace() throws {
        let (first, second) = contacts()
        dial(first, bo)
        let call = try #require(first.call)
        let stage = world.nodes[1].stage
        let caller = Counterpart(identity: ada, person: stage.project.personID(of: ada), name: "Ada", isOnline: true)
        let offer = CallOffer(
            call: call, other: caller, video: true, placedAt: world.now, ringsUntil: world.now + .seconds(30))
        stage.handle(.received(.person(bo, .call(.asked(offer))), from: world.nodes[0].tag))
        #expect(stage.hub.unexpectedLetters == 1)
        first.say(.call(.cancel(.init(call: call))))
        world.pass(.seconds(1))
        #expect(ends(second) == [.cancelled])
        #expect(world.spanningFaults == [])
    }

    @Test func noNodeEndsACallThatAnotherOneHas() throws {
        let (first, second) = contacts()
        dial(first, bo)
        let call = try #require(first.call)
        func over(_ person: IdentityID, _ other: IdentityID, _ outcome: CallOutcome) -> Letter {
            let record = CallRecord(
                call: call, other: other, otherName: "Eve", direction: .incoming, outcome: outcome, video: true,
                at: world.now, duration: nil, isSeen: false)
            return .person(person, .call(.over(CallEnd(record: record, into: nil))))
        }
        let third = world.nodes[2].tag
        world.nodes[0].stage.handle(.received(over(ada, bo, .missed), from: third))
        world.nodes[1].stage.handle(.received(over(bo, ada, .cancelled), from: third))
        #expect(world.nodes.map { $0.stage.hub.unexpectedLetters } == [1, 1, 0])
        world.nodes[1].stage.handle(.received(over(bo, ada, .missed), from: third))
        world.pass(.milliseconds(100))
        #expect(ends(first) == [] && ends(second) == [] && callCounts == [1, 0, 0])
        _ = try accept(second)
        #expect(accepted(first) == 1 && accepted(second) == 1)
    }

    @Test func noNodeSpeaksForTheCalleeOrTheCallOfAnotherOne() throws {
        let (first, second) = contacts()
        dial(first, bo)
        let call = try #require(first.call)
        let stage = world.nodes[0].stage
        let letters: [Letter] = [
            .call(call, .leave(ada, .hungUp)), .call(call, .joined(bo)), .call(call, .merge(into: call)),
            .person(ada, .call(.ring(call))), .person(ada, .call(.ringing(call, devices: 7))),
        ]
        for letter in letters { stage.handle(.received(letter, from: world.nodes[1].tag)) }
        #expect(stage.hub.unexpectedLetters == letters.count)
        stage.handle(.received(.call(call, .accept(bo, video: true)), from: world.nodes[2].tag))
        world.pass(.milliseconds(100))
        #expect(accepted(first) == 0 && accepted(second) == 0 && callCounts == [1, 0, 0])
    }
}
