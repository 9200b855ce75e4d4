import NIOCore
import NIOHTTP1
import Testing
import Wire

@testable import Server

/// Requests that are refused for their headers, whatever they are for.
@Suite("Refused HTTP requests") struct HTTPRefusalTests {
    /// What a connection from a trusted proxy does with the head of a request.
    private func outputs(_ head: HTTPRequestHead, peer: String = "127.0.0.1") -> [String] {
        var configuration = ConfabConfiguration()
        configuration.trustedProxies = TrustedProxies([CIDRBlock("127.0.0.1")].compactMap { $0 })
        let now = NIODeadline.uptimeNanoseconds(1_000_000_000)
        let settings = HTTPConnection.Settings(configuration, peer: IPAddress(peer)!)
        var connection = HTTPConnection(settings: settings, now: now)
        return connection.handle(.received(.head(head)), now: now).map(\.text)
    }

    private func forwarded(_ head: HTTPRequestHead, _ list: String, _ standard: String) -> HTTPRequestHead {
        var head = head
        head.headers.add(contentsOf: [("X-Forwarded-For", list), ("Forwarded", standard)])
        return head
    }

    @Test("HTTP/1.0 has no transfer encoding")
    func transferEncoding() {
        for version in [HTTPVersion.http1_0, HTTPVersion(major: 0, minor: 9)] {
            let head = HTTPRequestHead.request("/x", .POST, version: version, ("transfer-encoding", "chunked"))
            #expect(outputs(head) == ["began", "refuse transfer encoding", "linger", "next turn"])
        }
        let head = HTTPRequestHead.request("/x", .POST, ("Transfer-Encoding", "chunked"))
        #expect(outputs(head) == ["began", "route /x"])
    }

    @Test(
        "a request whose proxies name different clients, whatever it is for",
        arguments: [.health, .upload, .poll, .webSocket, .legacySocket, .request("/whip/1_MX4x", .POST)]
            as [HTTPRequestHead])
    func contradiction(_ head: HTTPRequestHead) {
        for standard in ["for=1.1.1.1", "for=unknown", "for=192.0.2.9, for=1.1.1.1"] {
            let outputs = outputs(forwarded(head, "192.0.2.9", standard))
            #expect(outputs == ["began", "refuse forwarding", "linger", "next turn"], "\(standard)")
        }
        #expect(outputs(forwarded(head, "192.0.2.9", "for=192.0.2.9")).contains("refuse forwarding") == false)
        #expect(
            outputs(forwarded(head, "192.0.2.9", "for=1.1.1.1"), peer: "192.0.2.1").contains("refuse forwarding")
                == false,
            "a client that is no trusted proxy")
    }

    @Test("OpenTok's SDKs get a JSON error with a status that they take for an error")
    func operation() throws {
        let reply = HTTPConnection.Refusal.operationTooLarge.response(ConfabConfiguration())
        #expect(reply.status == 400 && reply.headers["Content-Type"] == ["application/json"])
        guard case .object(let body) = try JSONReader.parse(reply.body) else { return #expect(Bool(false)) }
        #expect(body["code"] == .string("message_too_large"))
        #expect(body["message"] == .string("The request body must not exceed 65536 bytes."))
    }

    @Test("the sentence tells the operator what to do")
    func sentence() {
        let reply = HTTPConnection.Refusal.forwardingContradictory.response(ConfabConfiguration())
        let text = String(decoding: reply.body, as: UTF8.self)
        #expect(reply.status == 400 && text.contains("let its proxy remove"))
    }
}
