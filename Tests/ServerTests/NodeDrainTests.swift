import Foundation
import Testing
import Wire

@testable import Server

@Suite("Draining a server at an operator's request") struct NodeDrainTests {
    private let start = Timestamp(milliseconds: 1_000_000)

    /// When a drain that began at `start`, and that each operation can change, disconnects everyone.
    private func disconnects(
        at times: [Duration], _ operations: [Duration: (inout NodeDrain, Timestamp) -> Void] = [:]
    ) -> [Duration] {
        var drain = NodeDrain()
        drain.begin(grace: .seconds(60), now: start)
        var found: [Duration] = []
        for time in (times + operations.keys).sorted() {
            operations[time]?(&drain, start + time)
            if drain.handleTimeout(now: start + time) { found.append(time) }
        }
        return found
    }

    @Test("everyone is disconnected once, when the grace period is over")
    func grace() {
        let before = Duration.milliseconds(59_999)
        #expect(disconnects(at: [.zero, before, .seconds(60), .seconds(61), .seconds(600)]) == [.seconds(60)])
        #expect(disconnects(at: [before]) == [])
        #expect(disconnects(at: [.seconds(3600)]) == [.seconds(3600)], "a late timer")
    }

    @Test("a repeated command does not prolong the grace period, nor begin another one after its end")
    func repeated() {
        let again: (inout NodeDrain, Timestamp) -> Void = { $0.begin(grace: .seconds(60), now: $1) }
        #expect(disconnects(at: [.seconds(60), .seconds(90)], [.seconds(30): again]) == [.seconds(60)])
        #expect(disconnects(at: [.seconds(60), .seconds(600)], [.seconds(61): again]) == [.seconds(60)])
    }

    @Test("a server that serves again disconnects nobody, and can drain again")
    func served() {
        let serve: (inout NodeDrain, Timestamp) -> Void = { drain, _ in drain.end() }
        let again: (inout NodeDrain, Timestamp) -> Void = { $0.begin(grace: .seconds(60), now: $1) }
        #expect(disconnects(at: [.seconds(60)], [.seconds(30): serve]) == [])
        let both = disconnects(
            at: [.seconds(60), .seconds(149), .seconds(150)], [.seconds(30): serve, .seconds(90): again])
        #expect(both == [.seconds(150)])
    }

    @Test("the state says whether the server is in service, and when it disconnects everyone")
    func states() {
        var drain = NodeDrain()
        #expect(drain.isServing && drain.nextTimeout == nil)
        drain.begin(grace: .seconds(60), now: start)
        #expect(!drain.isServing && drain.nextTimeout == start + .seconds(60))
        _ = drain.handleTimeout(now: start + .seconds(60))
        #expect(drain.state == .drained && drain.nextTimeout == nil)
    }
}

@Suite("PATCH /v1/node", .ownThreads, .timeLimit(.minutes(3))) struct NodeEndpointTests {
    private func state(_ answer: WHIPPlace.Answer) throws -> String? {
        guard case .string(let state)? = try answer.object()["state"] else { return nil }
        return state
    }

    @Test("a draining server is not ready, is alive, and keeps its clients; then it serves again")
    func drainAndServe() async throws {
        try await TestServer.run { server in
            let place = try RoomsPlace(server)
            let client = try await server.client()
            #expect(try state(await place.ask("GET", "/v1/node")) == "serving")
            let answer = try await place.ask("PATCH", "/v1/node", #"{"state":"draining"}"#)
            #expect(try answer.status == 200 && state(answer) == "draining")
            guard case .integer(let left)? = try answer.object()["disconnectsInMs"] else {
                Issue.record("the answer does not say when: \(answer.text)")
                return
            }
            #expect((1_700_000...1_800_000).contains(left))
            let ready = try await place.place.ask("GET", "/ready")
            #expect(ready.status == 404 && ready.text.hasPrefix("draining: "))
            for path in ["/live", "/health"] { #expect(try await place.place.ask("GET", path).status == 200) }
            // A load balancer that was not asked yet, and a server without one, may still send clients.
            try await server.client().ask(.roulette(.count))
            try await client.ask(.roulette(.count))
            #expect(try state(await place.ask("PATCH", "/v1/node", #"{"state":"serving"}"#)) == "serving")
            #expect(try await place.place.ask("GET", "/ready").status == 200)
        }
    }

    @Test("after the grace period everyone is disconnected with 1012 and may come back")
    func disconnects() async throws {
        try await TestServer.run({ $0.cluster.drainGrace = .milliseconds(1) }) { server in
            let place = try RoomsPlace(server)
            let client = try await server.client()
            _ = try await place.ask("PATCH", "/v1/node", #"{"state":"draining"}"#)
            #expect(try await client.hearClose() == CloseCode.serviceRestart.rawValue)
            #expect(await client.refusal?.retryable == true)
            #expect(try state(await place.ask("GET", "/v1/node")) == "drained")
            try await server.client().ask(.roulette(.count))
            #expect(try await place.place.ask("GET", "/ready").status == 404)
        }
    }

    @Test("requests that are not an operator's, for another node or without a state are refused and change nothing")
    func refusals() async throws {
        try await TestServer.run { server in
            let place = try RoomsPlace(server)
            #expect(try await place.place.ask("PATCH", "/v1/node", [:], #"{"state":"draining"}"#).status == 401)
            #expect(try await place.ask("PATCH", "/v1/node", #"{"state":"draining","node":"n2"}"#).status == 404)
            for body in ["", "[]", "{}", #"{"state":"away"}"#, #"{"state":"draining","now":true}"#] {
                #expect(try await place.ask("PATCH", "/v1/node", body).status == 400, "\(body)")
            }
            #expect(try await place.place.ask("GET", "/ready").status == 200)
        }
    }

    @Test("a server accepts sockets for another node", arguments: ["?at=n2", "?at=", "?at=%F0%9F%8D%B0&at=n3"])
    func otherNode(query: String) async throws {
        try await TestServer.run { server in
            let client = try await SocketClient.connect(port: server.port, query: query)
            #expect(try await client.greet().at == nil)
        }
    }
}
