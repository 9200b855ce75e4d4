import NIOHTTP1
import Testing
import Wire

@testable import Server

@Suite("HTTP requests for what another node of a cluster has") struct MisdirectedRequestTests {
    private let elsewhere = WireError(.elsewhere, "Connect to n2.", retryable: true, at: "n2")
    private let unavailable = WireError(.clusterUnavailable, "Try again.", retryable: true)

    @Test func `are answered with 421 and the name of that node`() {
        let response = GateResponse(elsewhere)
        #expect(response.status == 421)
        #expect(String(decoding: response.body, as: UTF8.self).contains(#""at":"n2""#))
        #expect(response.headers["Retry-After"].isEmpty)
        #expect(GateResponse(unavailable).status == 503)
    }

    @Test func `for files are redirected there, unless the load balancer has ignored that`() {
        let file = "/v1/rooms/kitchen/files/\(RoomFileID(high: 1, low: 2))"
        for (query, location) in [("", "?at=n2"), ("?at=n1", "?at=n2"), ("?at=", "?at=n2"), ("?a=1", "?a=1&at=n2")] {
            let response = RoomFilesEndpoint.redirect(elsewhere, from: file + query)
            #expect(response?.status == 307 && response?.headers.first(name: "Location") == location)
        }
        #expect(RoomFilesEndpoint.redirect(elsewhere, from: "\(file)?at=n2") == nil)
        #expect(RoomFilesEndpoint.redirect(unavailable, from: file) == nil)
    }

    @Test func `of WHIP and WHEP are redirected there, unless the load balancer has ignored that`() throws {
        let session = "1_a"
        for path in ["/whip/\(session)", "/whip/\(session)/", "/whep/\(session)", "/whip/\(session)?at=n1"] {
            let request = try #require(WHIPRequest(method: .POST, uri: path))
            let response = request.redirect(elsewhere)
            #expect(response?.status == 307 && response?.headers.first(name: "Location") == "?at=n2", "\(path)")
            #expect(request.redirect(unavailable) == nil)
        }
        let labeled = try #require(WHIPRequest(method: .POST, uri: "/whip/\(session)?a=1&at=n1&b=%26"))
        #expect(labeled.redirect(elsewhere)?.headers.first(name: "Location") == "?a=1&b=%26&at=n2")
        let again = try #require(WHIPRequest(method: .POST, uri: "/whip/\(session)?at=n2"))
        #expect(again.redirect(elsewhere) == nil)
    }
}
