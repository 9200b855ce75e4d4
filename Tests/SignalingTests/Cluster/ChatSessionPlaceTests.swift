import Cluster
import TestSupport
import Testing
import Wire

@testable import Signaling

/// Clients that join the session of a chat with a token of an application, on any node. The session is on the node of the chat, with and
/// without relays.
@Suite struct ChatSessionPlaceTests {
    private struct Strangers: SpanningStrangers {
        let world: ClusterWorld

        init(spans: Bool = false) { world = ClusterWorld(nodes: 3, spans: spans) { $0.routesMedia = true } }

        /// The session of a chat of two strangers on node 2. With relays, the second one is on node 3.
        func chat() throws -> (session: SessionID, strangers: [ClusterClient]) {
            let strangers = search(at: 2, world.spans ? 3 : 2)
            try #require(matchCounts == [0, 1, 0])
            return (try match(strangers[0]).publish.session, strangers)
        }
    }

    @Test(arguments: [false, true]) func theyAreRedirectedToTheNodeOfTheChat(_ spans: Bool) throws {
        let fixture = Strangers(spans: spans)
        let session = try fixture.chat().session
        let clients = (1...3).map { fixture.join(session, at: $0) }
        #expect(clients.map { $0.node?.name } == ["n2", "n2", "n2"])
        #expect(clients.map(\.redirects) == [1, 0, 1])
        // Without relays, the strangers of these tests do not join.
        #expect(fixture.members(of: session) == [0, spans ? 5 : 3, 0])
        #expect(fixture.place(of: session) == nil, "no place is claimed")
        fixture.judgeLetters()
    }

    @Test(arguments: [false, true]) func theyStayTogetherAfterTheChatHasEnded(_ spans: Bool) throws {
        let fixture = Strangers(spans: spans)
        let (session, strangers) = try fixture.chat()
        let early = fixture.join(session, at: 1)
        for stranger in strangers { stranger.leave() }
        fixture.world.pass(.seconds(90))
        #expect(fixture.matchCounts == [0, 0, 0])
        let late = fixture.join(session, at: 3)
        #expect([early, late].map { $0.node?.name } == ["n2", "n2"])
        #expect(fixture.members(of: session) == [0, 2, 0])
        fixture.judgeLetters()
    }

    @Test func whenTheNodeOfTheChatHasDiedTheyMeetOnOneNode() throws {
        let fixture = Strangers()
        let session = try fixture.chat().session
        fixture.world.kill(fixture.world.nodes[1])
        let early = fixture.join(session, at: 1)
        #expect(fixture.members(of: session) == [0, 0, 0], "the life of the node is not over yet")
        fixture.world.pass(.seconds(8))
        let late = fixture.join(session, at: 3)
        #expect(fixture.members(of: session).sorted() == [0, 0, 2])
        #expect(early.node != nil && early.node === late.node && fixture.place(of: session) == early.node?.tag)
    }
}
