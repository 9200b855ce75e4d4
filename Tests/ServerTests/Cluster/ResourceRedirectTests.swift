import Cluster
import NIOCore
import NIOHTTP1
import NIOPosix
import Signaling
import Testing
import Wire

@testable import Server

@Suite("WHIP and WHEP requests for a session on another node", .ownThreads, .timeLimit(.minutes(3)))
struct ResourceRedirectTests {
    private static let own = NodeTag(node: 1, life: 7)!
    private static let other = NodeTag(node: 2, life: 6)!
    private static let viewer = IPAddress("203.0.113.1")!

    /// A registry in which another node has every place.
    private final class ElsewherePlaces: MachinePlaces {
        private unowned let runner: HubRunner

        init(_ runner: HubRunner) { self.runner = runner }

        func reach(_ key: PlaceKey, _ machine: PlacedMachine, claims: Bool) {
            let runner = NIOLoopBound(runner, eventLoop: runner.eventLoop)
            // As the real registry, answer after this call.
            runner.value.eventLoop.execute { runner.value.submit(.placed(key, at: ResourceRedirectTests.other)) }
        }

        func release(_ key: PlaceKey) {}
    }

    /// What a client of the test needs of a response.
    private struct Answer: Sendable {
        var status: Int
        var location: String?
        var body: String
    }

    private struct Node: Sendable {
        let directory: NIOLoopBound<WHIPDirectory>
        let executor: EventLoopExecutor
    }

    private let project: Project
    private let session: SessionID

    init() throws {
        project = try #require(Project(apiKey: "45000001", secret: String(repeating: "b", count: 40)))
        var random = SystemRandomNumberGenerator()
        session = project.makeSessionID(mediaMode: .routed, now: ServerClock().wallNow, using: &random)
    }

    private func start() async throws -> Node {
        let (loop, project) = (MultiThreadedEventLoopGroup.singleton.next(), project)
        return try await loop.submit { () -> Node in
            let gateway = try Gateway.forTests(project, on: loop, as: Self.own)
            gateway.runner.places = ElsewherePlaces(gateway.runner)
            return Node(
                directory: NIOLoopBound(WHIPDirectory(gateway: gateway), eventLoop: loop), executor: gateway.executor)
        }.get()
    }

    /// Sends a POST, as a client that publishes or watches.
    private func post(_ uri: String, to node: Node) async throws -> Answer {
        let request = try #require(WHIPRequest(method: .POST, uri: uri))
        var random = SystemRandomNumberGenerator()
        let claims = SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(600))
        let token = project.makeSessionToken(claims, now: ServerClock().wallNow, using: &random)
        let headers: HTTPHeaders = ["Content-Type": "application/sdp", "Authorization": "Bearer \(token)"]
        let offer = request.isWHIP ? SampleOffer.obs : SampleOffer.player
        let call = GateRequest(method: .POST, headers: headers, address: Self.viewer, body: Array(offer.utf8))
        let task = Task(executorPreference: node.executor) { () -> Answer? in
            let directory = node.directory.value
            let response = await directory.gateway.respond(to: call, .whip(request)) {
                _, call async throws(WireError) in
                try await directory.respond(to: request, call)
            }
            guard let response else { return nil }
            return Answer(
                status: response.status, location: response.headers.first(name: "Location"),
                body: String(decoding: response.body, as: UTF8.self))
        }
        return try #require(await task.value)
    }

    @Test("get 307 with the same URL and the name of that node", arguments: ["whip", "whep"])
    func redirect(_ name: String) async throws {
        let node = try await start()
        let path = "/\(name)/\(session.text)"
        for (uri, location) in [
            (path, "?at=n2"), ("\(path)/", "?at=n2"), ("\(path)?room=a%26b&x", "?room=a%26b&x&at=n2"),
            ("\(path)?at=n1&x=1", "?x=1&at=n2"),
        ] {
            let answer = try await post(uri, to: node)
            #expect(answer.status == 307 && answer.location == location, "\(uri): \(answer)")
        }
    }

    @Test("that name a node without the session are redirected, too", arguments: ["whip", "whep"])
    func unknownNode(_ name: String) async throws {
        let node = try await start()
        for at in ["n9", "", "none"] {
            let answer = try await post("/\(name)/\(session.text)?at=\(at)", to: node)
            #expect(answer.status == 307 && answer.location == "?at=n2", "\(at): \(answer)")
        }
    }

    @Test("get 421 with the code elsewhere if the load balancer has ignored the name", arguments: ["whip", "whep"])
    func loop(_ name: String) async throws {
        let node = try await start()
        for _ in 0..<2 {
            let answer = try await post("/\(name)/\(session.text)?at=n2", to: node)
            #expect(answer.status == 421 && answer.location == nil, "\(answer)")
            #expect(answer.body.contains(#""code":"elsewhere""#) && answer.body.contains(#""at":"n2""#), "\(answer)")
        }
    }
}
