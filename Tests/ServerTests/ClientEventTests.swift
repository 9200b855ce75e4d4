import Signaling
import Testing

@testable import Server

@Suite("The address for OpenTok's log events", .ownThreads, .timeLimit(.minutes(3)))
struct ClientEventTests {
    private let path = "/logging/ClientEvent"

    @Test("accepts events of any content, up to a size")
    func events() async throws {
        try await TestServer.run { server in
            let place = try WHIPPlace(server)
            for body in ["", #"{"action":"Connect"}"#, "not JSON", String(repeating: "x", count: 65_536)] {
                let answer = try await place.ask("POST", path, ["Content-Type": "application/json"], body)
                #expect((answer.status, answer.text) == (200, "{}\n"))
            }
            let large = try await place.ask("POST", path, [:], String(repeating: "x", count: 65_537))
            #expect((large.status, large.code) == (413, "message_too_large"))
            #expect(try await place.ask("GET", path + "?action=Connect").status == 200)
            #expect(try await place.ask("DELETE", path).status == 404)
        }
    }

    @Test("refuses an address that has used up its budget for messages")
    func flood() async throws {
        try await TestServer.run {
            $0.limits.addressMessages = Budget.Rate(perSecond: 0.001, burst: 2)
        } _: { server in
            let place = try WHIPPlace(server)
            for _ in 0..<2 { #expect(try await place.ask("POST", path).status == 200) }
            #expect(try await place.ask("POST", path).status == 429)
        }
    }
}
