import NIOHTTP1
import Testing
import Wire

@testable import Server

/// Tokens of PerchRTC's clients, and the URLs of its calls.
@Suite struct PerchTokensTests {
    private let start = Timestamp(milliseconds: 1_790_000_000_000)

    private func ticket(_ address: String = "203.0.113.1", until: Duration = .seconds(60)) throws -> PerchTokens.Ticket
    {
        let place = PerchPlace(envelope: .flat, domain: "d", application: "a", room: "r", user: "u")
        return PerchTokens.Ticket(
            place: place, address: try #require(IPAddress(address)), expiresAt: start + until)
    }

    @Test func aTokenWorksOnceAndOnlyForAWhile() throws {
        var tokens = PerchTokens()
        tokens.add("one", try ticket(), now: start)
        tokens.add("two", try ticket(), now: start)
        #expect(tokens.contains("one", now: start))
        #expect(tokens.take("one", now: start) != nil)
        #expect(tokens.take("one", now: start) == nil)
        #expect(!tokens.contains("two", now: start + .seconds(60)))
        #expect(tokens.take("two", now: start + .seconds(60)) == nil)
        #expect(tokens.count == 0)
    }

    @Test func expiredTokensAreForgotten() throws {
        var tokens = PerchTokens()
        for number in 0..<100 { tokens.add("\(number)", try ticket(), now: start) }
        tokens.add("late", try ticket(until: .seconds(200)), now: start + .seconds(100))
        #expect(tokens.count == 1)
    }

    @Test func aFewAddressesCannotPushOutTheTokensOfOthers() throws {
        var tokens = PerchTokens(maxCount: 50)
        tokens.add("mine", try ticket("198.51.100.7"), now: start)
        for number in 0..<1000 { tokens.add("\(number)", try ticket(), now: start) }
        #expect(tokens.count == 50)
        #expect(tokens.contains("mine", now: start))
        #expect(tokens.contains("999", now: start))
    }

    @Test func bothNamesOfACallAreKnown() {
        let names: [(String, PerchHTTPRequest.Call)] = [
            ("getToken", .token), ("signal/token", .token), ("wsList", .list), ("signal/list", .list),
            ("getIceServers", .servers), ("ice", .servers),
        ]
        for (name, call) in names {
            #expect(PerchHTTPRequest(method: .POST, uri: "/xirsys/\(name)?x=1") == .call(call))
            #expect(PerchHTTPRequest(method: .GET, uri: "/xirsys/\(name)") == .wrongMethod)
        }
        #expect(PerchHTTPRequest(method: .POST, uri: "/xirsys/addRoom") == .unknown)
        #expect(PerchHTTPRequest(method: .POST, uri: "/xirsysx/ice") == nil)
    }

    @Test func theURLOfAWebSocketDecidesTheEnvelope() {
        let flat = PerchHTTPRequest.socket(uri: "/xirsys/ws/abc?x")
        #expect(flat?.token == "abc" && flat?.envelope == .flat)
        let layered = PerchHTTPRequest.socket(uri: "/xirsys/ws/v2/abc")
        #expect(layered?.token == "abc" && layered?.envelope == .layered)
        for uri in ["/xirsys/ws", "/xirsys/ws/", "/xirsys/ws/v2/", "/xirsys/ws/v3/abc", "/xirsys/ws/a/b/c"] {
            #expect(PerchHTTPRequest.socket(uri: uri) == nil, "\(uri)")
        }
    }
}
