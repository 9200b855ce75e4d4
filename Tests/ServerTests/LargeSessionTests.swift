import Signaling
import Testing
import Wire

@testable import Server

@Suite("A large session over sockets", .ownThreads) struct LargeSessionSocketTests {
    private static let members = 300

    private static func project(_ server: TestServer) throws -> Project {
        try server.project.project
    }

    private static func admission(_ server: TestServer, _ session: SessionID) throws -> Admission {
        let project = try project(server)
        var random = SystemRandomNumberGenerator()
        let data = String(repeating: "é", count: Limits.connectionData)
        let claims = SessionTokenClaims(session: session, role: .publisher, data: data, lifetime: .seconds(3600))
        let token = project.makeSessionToken(claims, now: ServerClock().now, using: &random)
        return Admission(session: session, token: token)
    }

    @Test("someone who joins 300 members with long connection data is not closed, although the queue is small")
    func joinLargeSession() async throws {
        // The roster has about 600 kB, and a client whose queue has more than 128 KiB is closed as too slow.
        let limit = 128 * 1024
        try await TestServer.run { configuration in
            configuration.limits.sendQueue = limit
            configuration.limits.socketsPerAddress = 1000
        } _: { server in
            var random = SystemRandomNumberGenerator()
            let session = try Self.project(server).makeSessionID(
                mediaMode: .relayed, now: ServerClock().now, using: &random)
            var crowd: [SocketClient] = []
            for _ in 0..<Self.members {
                let client = try await server.client()
                _ = try await client.join(Self.admission(server, session))
                crowd.append(client)
            }
            let late = try await server.client()
            let joined = try await late.join(Self.admission(server, session))
            #expect(joined.more == true)
            var known = Set(joined.connections.map(\.id))
            var more = joined.more
            while more == true {
                let page = try await late.hear("the next page") {
                    if case .session(.roster(let page)) = $0 { page } else { nil }
                }
                known.formUnion(page.connections.map(\.id))
                more = page.more
            }
            #expect(known.count == Self.members)
            #expect(await late.closeCode == nil)
            for client in crowd + [late] { await client.drop() }
        }
    }
}
