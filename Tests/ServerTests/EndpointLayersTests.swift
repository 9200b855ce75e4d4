import Signaling
import Testing
import Wire

@testable import Server

@Suite("What endpoints have in common", .ownThreads, .timeLimit(.minutes(3)))
struct EndpointLayersTests {
    struct Endpoint: CustomTestStringConvertible {
        var method: String
        var path: String
        /// The status of a request from a page.
        var status: Int
        /// The headers that pages of other origins may send; nil if they cannot read the responses.
        var headers: String?
        var testDescription: String { "\(method) \(path)" }
    }

    private static let file = "/v1/rooms/Tea/files/\(RoomFileID(high: 1, low: 1))"
    static let endpoints = [
        Endpoint(method: "GET", path: "/v1/person", status: 401, headers: "Authorization"),
        Endpoint(method: "GET", path: file, status: 404, headers: "Authorization, Content-Type"),
        Endpoint(method: "PUT", path: file, status: 404, headers: "Authorization, Content-Type"),
        Endpoint(method: "POST", path: "/v1/qr", status: 400),
        Endpoint(method: "GET", path: "/v1/rooms", status: 401),
        Endpoint(method: "GET", path: "/v1/projects", status: 401),
        Endpoint(method: "POST", path: "/session/create", status: 403),
        Endpoint(method: "GET", path: "/v2/project/1/archive", status: 403),
        Endpoint(
            method: "DELETE", path: "/whip/resources/x", status: 401, headers: "Authorization, Content-Type, If-Match"),
        Endpoint(method: "POST", path: "/logging/ClientEvent", status: 200, headers: "Content-Type"),
        Endpoint(method: "GET", path: "/logging/ClientEvent", status: 200, headers: "Content-Type"),
    ]

    @Test("pages of other origins can read responses unless the operator restricts them", arguments: endpoints)
    func everyOrigin(_ endpoint: Endpoint) async throws {
        try await TestServer.run { server in
            let place = try WHIPPlace(server)
            let answer = try await place.ask(endpoint.method, endpoint.path, ["Origin": "https://chat.example"])
            #expect(answer.status == endpoint.status, "\(answer.text)")
            #expect(answer["Access-Control-Allow-Origin"] == (endpoint.headers == nil ? nil : "*"))
            #expect(answer["Cache-Control"] == "no-store" && answer["X-Content-Type-Options"] == "nosniff")
        }
    }

    @Test("if only some origins are allowed, pages of others can neither send nor read", arguments: endpoints)
    func someOrigins(_ endpoint: Endpoint) async throws {
        try await TestServer.run({ $0.allowedOrigins = ["https://chat.example"] }) { server in
            let place = try WHIPPlace(server)
            let (mine, other) = (["Origin": "https://chat.example"], ["Origin": "https://other.example"])
            let allowed = try await place.ask(endpoint.method, endpoint.path, mine)
            #expect(allowed.status == endpoint.status)
            #expect(allowed["Access-Control-Allow-Origin"] == (endpoint.headers == nil ? nil : mine["Origin"]))
            #expect((allowed["Vary"] == "Origin") == (endpoint.headers != nil))
            let refused = try await place.ask(endpoint.method, endpoint.path, other)
            #expect((refused.status, refused.code) == (403, "forbidden_origin"))
            #expect(refused["Access-Control-Allow-Origin"] == nil)
            #expect(try await place.ask(endpoint.method, endpoint.path).status == endpoint.status, "no page")
            guard let headers = endpoint.headers else { return }
            let preflight = try await place.ask("OPTIONS", endpoint.path, mine)
            #expect(preflight["Access-Control-Allow-Headers"] == headers)
            #expect(preflight["Access-Control-Allow-Methods"]?.contains(endpoint.method) == true)
            #expect(try await place.ask("OPTIONS", endpoint.path, other)["Access-Control-Allow-Origin"] == nil)
        }
    }

    @Test("requests are rate limited per address", arguments: endpoints.prefix(8))
    func rate(_ endpoint: Endpoint) async throws {
        try await TestServer.run {
            $0.limits.hellos = Budget.Rate(perSecond: 0.001, burst: 2)
            $0.limits.files = Budget.Rate(perSecond: 0.001, burst: 2)
        } _: { server in
            let place = try WHIPPlace(server)
            for _ in 0..<2 {
                #expect(try await place.ask(endpoint.method, endpoint.path).status == endpoint.status)
            }
            let refused = try await place.ask(endpoint.method, endpoint.path)
            #expect((refused.status, refused.code) == (429, "rate_limited"))
            #expect(refused["Retry-After"] != nil)
        }
    }
}
