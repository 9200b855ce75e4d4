import Foundation
import Signaling
import TestSupport
import Testing
import Wire

@testable import Server

@Suite("Requests and tokens as OpenTok's SDKs create them", .ownThreads, .timeLimit(.minutes(3)))
struct VendorRequestTests {
    private static let form = "application/x-www-form-urlencoded"
    private static let applicationID = "00000000-0000-4000-8000-000000000001"

    /// A server whose main project has an application.
    private struct Vendor: Sendable {
        let server: TestServer
        let place: WHIPPlace
        let key: ApplicationKey
        var project: String { "/v2/project/\(VendorRequestTests.applicationID)" }

        init(_ server: TestServer) async throws {
            (self.server, place, key) = (server, try WHIPPlace(server), try ApplicationKey())
            let members = ["applicationId": VendorRequestTests.applicationID, "publicKey": key.publicKey]
            let body = String(decoding: try JSONEncoder().encode(members), as: UTF8.self)
            let answer = try await RoomsPlace(server).ask("PATCH", "/v1/projects/\(server.project.apiKey)", body)
            try #require(answer.status == 200, "\(answer.text)")
        }

        /// Returns a token with the claims that `vonage-video` always writes, and these.
        func token(_ more: String = "") throws -> String {
            let now = RoomsPlace.now.seconds
            return try key.token(
                #"{"application_id":"\#(VendorRequestTests.applicationID)","iat":\#(now),"exp":\#(now + 900),"#
                    + #""jti":"\#(UUID())"\#(more)}"#)
        }

        func ask(_ method: String, _ path: String, _ token: String) async throws -> WHIPPlace.Answer {
            try await place.ask(method, path, token: token)
        }

        /// Joins a session. Returns the connection, or the code of the error, and the client.
        func join(
            _ session: SessionID, _ token: String
        ) async throws -> (connection: ConnectionID?, refusal: WireError.Code?, client: SocketClient) {
            let client = try await server.client()
            try await client.say(.session(.join(.init(session: session, token: token))))
            let (connection, refusal) = try await client.hear("an answer") {
                message -> (ConnectionID?, WireError.Code?)? in
                switch message {
                case .session(.joined(let joined)): (joined.connection.id, nil)
                case .error(let failure): (nil, failure.error.code)
                default: nil
                }
            }
            return (connection, refusal, client)
        }
    }

    @Test(
        "a created session is described in XML, unless the SDK asks for JSON",
        arguments: [
            ("*/*", false), ("text/xml", false), ("application/*", false), ("application/jsonx", false),
            ("application/json", true), ("text/html, Application/JSON;q=0.9", true),
        ])
    func formats(_ accept: String, _ isJSON: Bool) async throws {
        try await TestServer.run { server in
            let place = try RoomsPlace(server)
            let answer = try await place.ask(
                "POST", "/session/create", ["Content-Type": Self.form, "Accept": accept], "p2p.preference=enabled")
            #expect(answer.status == 200 && answer["Content-Type"] == (isJSON ? "application/json" : "text/xml"))
            guard !isJSON else { return #expect(answer.text.hasPrefix(#"[{"session_id":""#)) }
            let parts = answer.text.split { "<>".contains($0) }.map(String.init)
            try #require(parts.count == 14, "\(answer.text)")
            #expect(
                parts == [
                    #"?xml version="1.0" encoding="UTF-8"?"#, "sessions", "Session", "session_id", parts[4],
                    "/session_id", "partner_id", server.project.apiKey, "/partner_id", "create_dt", parts[10],
                    "/create_dt", "/Session", "/sessions",
                ])
            #expect(SessionID(parts[4]).flatMap { place.project.mediaMode(of: $0) } == .relayed)
            #expect(parts[10].contains(" UTC "))
        }
    }

    @Test("errors are JSON for every SDK")
    func errors() async throws {
        try await TestServer.run { server in
            let answer = try await RoomsPlace(server).ask(
                "POST", "/session/create", ["Content-Type": Self.form, "Accept": "*/*"], "e2ee=true")
            #expect((answer.status, answer.code) == (400, "unsupported"))
        }
    }

    @Test("the application's private key signs requests about sessions, but none of operators")
    func requests() async throws {
        try await TestServer.run { server in
            let vendor = try await Vendor(server)
            let token = try vendor.token()
            #expect(try await vendor.ask("GET", vendor.project + "/archive", token).status == 200)
            for (method, path) in [
                ("GET", "/v1/projects"), ("POST", "/v1/projects"), ("DELETE", "/v1/projects/1"), ("GET", "/v1/rooms"),
                ("POST", "/v1/rooms"),
            ] {
                let answer = try await vendor.ask(method, path, token)
                #expect((answer.status, answer.code) == (401, "token_scope"), "\(method) \(path)")
            }
            for more in [#","sub":"ada""#, #","acl":{"paths":{"/*/sessions/**":{}}}"#] {
                let answer = try await vendor.ask("GET", vendor.project + "/archive", vendor.token(more))
                #expect((answer.status, answer.code) == (403, "token_scope"), "\(more)")
            }
            let client = try await SocketClient.connect(port: server.port)
            var hello = Hello()
            hello.token = try vendor.token(#","scope":"user.connect","sub":"ada""#)
            try await client.say(.hello(hello))
            #expect(try await client.hearClose() == CloseCode.token.rawValue)
        }
    }

    @Test("after a forced disconnect, the same T1 or RS256 token does not admit its holder again")
    func forcedDisconnect() async throws {
        try await TestServer.run { server in
            let vendor = try await Vendor(server)
            let created = try await vendor.place.ask(
                "POST", "/session/create", token: vendor.token(),
                ["Content-Type": Self.form, "Accept": "application/json"], "p2p.preference=enabled")
            guard case .array(let list)? = try? JSONReader.parse(Array(created.text.utf8)),
                case .object(let first)? = list.first, case .string(let id)? = first["session_id"]
            else { throw WireError(.malformed, created.text) }
            let session = try #require(SessionID(id))
            let now = RoomsPlace.now.seconds
            let t1 = t1Token(
                "session_id=\(session)&create_time=\(now)&nonce=512345&role=PUBLISHER", key: server.project.apiKey,
                secret: server.project.apiSecret.revealed)
            let rs256 = try vendor.token(
                #","session_id":"\#(session)","role":"publisher","scope":"session.connect","subject":"video","#
                    + #""acl":{"paths":{"/session/**":{}}}"#)
            for token in [t1, rs256] {
                let (connection, refusal, client) = try await vendor.join(session, token)
                #expect(refusal == nil)
                let path = "\(vendor.project)/session/\(session)/connection/\(try #require(connection))"
                #expect(try await vendor.ask("DELETE", path, vendor.token()).status == 204)
                _ = try await client.hear("the forced disconnect") {
                    if case .session(.left(let left)) = $0, left.reason == .forceDisconnected { true } else { nil }
                }
                #expect(try await vendor.join(session, token).refusal == .tokenRevoked)
            }
            #expect(try await vendor.join(session, vendor.place.token()).refusal == .tokenSession)
        }
    }
}
