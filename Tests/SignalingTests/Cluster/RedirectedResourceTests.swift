import Signaling
import TestSupport
import Testing
import Wire

/// Clients of WHIP and WHEP whose session is on another node. Sessions of applications do not span nodes, so these clients are redirected
/// with and without relays.
@Suite struct RedirectedResourceTests {
    @Test(arguments: [false, true])
    func theyAreSentToTheNodeOfTheSessionAndReachItsMembers(_ spans: Bool) throws {
        let world = ClusterWorld(nodes: 2, spans: spans) { $0.routesMedia = true }
        let stage = world.nodes[0].stage
        let session = stage.room(.routed)
        let member = world.arrive(at: 1)
        member.want(.session(session, token: stage.token(session)))
        world.pass(.milliseconds(500))
        for purpose in [ResourcePurpose.publish, .watch(nil)] {
            let client = WHIPClient(world.nodes[1].stage, session, purpose)
            try client.post()
            world.pass(.milliseconds(500))
            guard case .refused(nil, let error)? = client.take() else {
                Issue.record("\(purpose) was not refused")
                continue
            }
            #expect(error.code == .elsewhere && error.at == "n1" && client.isOver)
        }
        // Where the redirect leads.
        let publisher = try WHIPClient(stage, session).create()
        world.pass(.milliseconds(500))
        let publishers = member.news.compactMap { message -> ConnectionID? in
            if case .session(.streamCreated(let created)) = message { created.stream.connection } else { nil }
        }
        #expect(publishers == [publisher.connection])
        #expect(world.nodes.map { $0.stage.hub.sessionCount } == [1, 0])
        world.check()
        #expect(world.fault == nil)
    }
}
