import Cluster
import Testing
import Wire

@testable import Server

@Suite("The nodes of a cluster over HTTP", .ownThreads, .timeLimit(.minutes(3))) struct NodesEndpointTests {
    @Test func `the list has each node with what it does, and says which node was asked`() async throws {
        try await TestServer.run(nodes: .fake()) { server in
            let place = try RoomsPlace(server)
            #expect(try await place.place.ask("GET", "/v1/nodes").status == 401)
            let answer = try await place.ask("GET", "/v1/nodes")
            #expect(answer.status == 200, "\(answer.text)")
            let object = try answer.object()
            #expect(object["asked"] == .string("n1") && object["seenMsAgo"] == .integer(300))
            guard case .array(let values)? = object["nodes"] else {
                Issue.record("the answer has no nodes: \(answer.text)")
                return
            }
            let nodes = values.compactMap { if case .object(let node) = $0 { node } else { nil } }
            #expect(nodes.map { $0["node"] } == [.string("n1"), .string("n2"), .string("n3")])
            #expect(nodes.map { $0["state"] } == [.string("serving"), .string("serving"), .string("fenced")])
            #expect(nodes.map { $0["life"] } == [.integer(7), .integer(6), .integer(5)])
            #expect(nodes.map { $0["leaseMs"] } == [.integer(2000), .integer(2600), nil])
            #expect(nodes[1]["sockets"] == .integer(57) && nodes[1]["load"] == .number(0.12))
            #expect(nodes[1]["places"] == .integer(40) && nodes[1]["version"] == .string("1.0"))
            #expect(nodes[1]["address"] == .string("192.0.2.2:8080"))
            let relays = try JSONReader.parse(
                Array(#"{"connected":1,"connecting":1,"thinned":0,"fault":"unreachable"}"#.utf8))
            #expect(nodes.map { $0["relays"] } == [nil, relays, nil])
            #expect(nodes[2]["fencedBy"] == .string("n1") && nodes[2]["version"] == nil)
        }
    }

    @Test func `a server that is alone has no nodes, and says what to use instead`() async throws {
        try await TestServer.run { server in
            let place = try RoomsPlace(server)
            for (method, path, body) in [("GET", "/v1/nodes", ""), ("PATCH", "/v1/nodes/n1", #"{"state":"draining"}"#)]
            {
                let answer = try await place.ask(method, path, body)
                #expect(answer.status == 404 && answer.code == "not_found", "\(answer.text)")
                #expect(answer.text.contains("/v1/node."))
            }
            #expect(try await place.place.ask("GET", "/ready").status == 200)
        }
    }

    @Test func `the node that is asked drains itself at once`() async throws {
        let requests = TestNodes.Requests()
        try await TestServer.run(nodes: .fake(requests)) { server in
            let place = try RoomsPlace(server)
            let drained = try await place.ask("PATCH", "/v1/nodes/n1", #"{"state":"draining"}"#).object()
            #expect(drained["state"] == .string("draining") && drained["requested"] == nil)
            #expect(drained["disconnectsInMs"] != nil && drained["outOfService"] == .bool(true))
            #expect(try await place.place.ask("GET", "/ready").status == 404)
            let serving = try await place.ask("PATCH", "/v1/nodes/n1", #"{"state":"serving"}"#).object()
            #expect(serving["state"] == .string("serving") && serving["disconnectsInMs"] == nil)
            #expect(serving["outOfService"] == nil)
            #expect(try await place.place.ask("GET", "/ready").status == 200)
            #expect(requests.all.isEmpty)
        }
    }

    @Test func `another node is asked through the ledger, and the answer says that it was`() async throws {
        let requests = TestNodes.Requests()
        try await TestServer.run(nodes: .fake(requests)) { server in
            let place = try RoomsPlace(server)
            let answer = try await place.ask("PATCH", "/v1/nodes/n2", #"{"state":"draining"}"#)
            #expect(answer.status == 200, "\(answer.text)")
            let node = try answer.object()
            #expect(node["node"] == .string("n2") && node["requested"] == .string("draining"))
            #expect(requests.all == [TestNodes.second: .draining])
            #expect(try await place.place.ask("GET", "/ready").status == 200, "not this one")
            requests.goAway()
            let away = try await place.ask("PATCH", "/v1/nodes/n2", #"{"state":"serving"}"#)
            #expect(away.status == 503 && away.code == "cluster_unavailable")
            #expect(away.text.contains("on the machine of n2"))
        }
    }

    @Test func `a node that is over or unknown is not found, with the names of those that live`() async throws {
        let requests = TestNodes.Requests()
        try await TestServer.run(nodes: .fake(requests)) { server in
            let place = try RoomsPlace(server)
            for name in ["n3", "n9", "2", "n02", "x"] {
                let answer = try await place.ask("PATCH", "/v1/nodes/\(name)", #"{"state":"draining"}"#)
                #expect(answer.status == 404 && answer.text.contains("n1, n2"), "\(answer.text)")
            }
            for body in ["", "[]", "{}", #"{"state":"away"}"#, #"{"state":"draining","now":true}"#] {
                #expect(try await place.ask("PATCH", "/v1/nodes/n2", body).status == 400, "\(body)")
            }
            #expect(try await place.place.ask("PATCH", "/v1/nodes/n2", [:], #"{"state":"draining"}"#).status == 401)
            #expect(requests.all.isEmpty)
        }
    }
}
