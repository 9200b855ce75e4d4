import Foundation
import Server
import Signaling
import TestSupport
import Testing
import Wire

@Suite("WHIP and WHEP over real sockets", .ownThreads, .timeLimit(.minutes(3)))
struct WHIPTests {
    @Test("an offer from OBS is answered as RFC 9725 requires, and DELETE ends it")
    func publishing() async throws {
        try await TestServer.run {
            $0.ice.stunServers = ["stun:stun.example.org"]
            $0.ice.turnServers = ["turn:turn.example.org?transport=udp"]
            ($0.ice.turnUsername, $0.ice.turnPassword) = ("\"u\"", SecretText("p\\w"))
        } _: { server in
            let place = try WHIPPlace(server)
            let made = try await place.post(place.whip)
            #expect(made.status == 201, "\(made.text)")
            #expect(made["Content-Type"] == "application/sdp")
            #expect(made["Access-Control-Allow-Origin"] == "*")
            #expect(made["Access-Control-Expose-Headers"]?.contains("Location") == true)
            let links = try #require(made["Link"])
            #expect(links.contains("<stun:stun.example.org>; rel=\"ice-server\""))
            #expect(
                links.contains(
                    "<turn:turn.example.org?transport=udp>; rel=\"ice-server\"; username=\"\\\"u\\\"\"; "
                        + "credential=\"p\\\\w\"; credential-type=\"password\""))
            for line in ["a=ice-lite", "a=setup:passive", "a=recvonly", "a=rtpmap:96 H264/90000", "a=mid:1"] {
                #expect(made.text.contains(line + "\r\n"), "\(made.text)")
            }
            let location = try #require(made["Location"])
            #expect(location.hasPrefix("/whip/resources/") && location.utf8.count == 16 + 32)
            let tag = try #require(made["ETag"])
            #expect(tag.hasPrefix("\"") && tag.hasSuffix("\"") && tag.utf8.count > 10)
            #expect(try await place.ask("DELETE", location, token: place.token()).status == 200)
            let gone = try await place.ask("DELETE", location, token: place.token())
            #expect((gone.status, gone.code) == (404, "not_found"))
        }
    }

    @Test("a WHIP stream is announced to the session, and WHEP can watch it")
    func watching() async throws {
        try await TestServer.run { server in
            let place = try WHIPPlace(server)
            let none = try await place.post(place.whep, token: place.token(.subscriber), SampleOffer.player)
            #expect((none.status, none.code) == (404, "not_found"))
            let made = try await place.post(place.whip)
            #expect(made.status == 201)
            let ann = try await server.client()
            let joined = try await ann.join(Admission(session: place.session, token: place.token(.subscriber)))
            let stream = try #require(joined.streams.first)
            #expect((stream.hasAudio, stream.hasVideo, stream.videoType) == (true, true, .camera))
            for path in [place.whep, "\(place.whep)/\(stream.id)"] {
                let watched = try await place.post(path, token: place.token(.subscriber), SampleOffer.player)
                #expect(watched.status == 201, "\(watched.text)")
                #expect(watched.text.contains("a=sendonly\r\n") && watched["Location"]?.hasPrefix("/whep/") == true)
                let whip = watched["Location"]?.replacingOccurrences(of: "/whep/", with: "/whip/") ?? ""
                #expect(try await place.ask("DELETE", whip, token: place.token()).status == 404)
            }
            _ = try await place.ask("DELETE", made["Location"] ?? "", token: place.token())
            let ended = try await ann.hear("the end") {
                if case .session(.streamDestroyed(let destroyed)) = $0 { destroyed } else { nil }
            }
            #expect(ended.stream == stream.id)
        }
    }

    @Test("candidates need the current ETag, and an ICE restart changes it")
    func patching() async throws {
        try await TestServer.run { server in
            let place = try WHIPPlace(server)
            let made = try await place.post(place.whip)
            let (location, tag) = (try #require(made["Location"]), try #require(made["ETag"]))
            #expect(try await place.patch(location, match: tag, SampleOffer.candidate).status == 204)
            #expect(try await place.patch(location, match: "\"x\", \(tag)", SampleOffer.candidate).status == 204)
            #expect(try await place.patch(location, match: nil, SampleOffer.candidate).status == 428)
            #expect(try await place.patch(location, match: "\"x\"", SampleOffer.candidate).status == 412)
            #expect(try await place.patch(location, match: "W/\(tag)", SampleOffer.candidate).status == 412)
            let restarted = try await place.patch(location, match: "*", SampleOffer.restart())
            #expect(restarted.status == 200, "\(restarted.text)")
            #expect(restarted["Content-Type"] == "application/trickle-ice-sdpfrag")
            let next = try #require(restarted["ETag"])
            #expect(next != tag)
            func value(_ name: String, _ text: String) -> Substring? {
                text.components(separatedBy: "\r\n").first { $0.hasPrefix("a=\(name):") }?.dropFirst(name.count + 3)
            }
            #expect(value("ice-ufrag", restarted.text) != nil)
            #expect(value("ice-ufrag", restarted.text) != value("ice-ufrag", made.text))
            #expect(value("ice-pwd", restarted.text) != value("ice-pwd", made.text))
            #expect(value("candidate", restarted.text) == value("candidate", made.text))
            #expect(restarted.text.hasPrefix("a=ice-lite\r\n") && restarted.text.contains("a=mid:0\r\n"))
            #expect(try await place.patch(location, match: tag, SampleOffer.candidate).status == 412)
            let late = try await place.patch(location, match: next, SampleOffer.candidate)
            #expect(late.status == 200, "the old credentials cause another restart")
        }
    }

    struct Wrong: Sendable, CustomTestStringConvertible {
        var what: String
        var status: Int
        var code: String?
        var method = "POST"
        /// Returns the path of the request. The arguments are the place and the resource's path.
        var path: @Sendable (WHIPPlace, String) -> String = { place, _ in place.whip }
        var token: @Sendable (WHIPPlace) -> String? = { $0.token() }
        var headers = ["Content-Type": "application/sdp"]
        var body = SampleOffer.obs
        var testDescription: String { what }
    }

    private static func without(_ line: String) -> String {
        SampleOffer.obs.components(separatedBy: "\r\n").filter { !$0.hasPrefix(line) }.joined(separator: "\r\n")
    }

    private static func with(_ text: String, _ other: String) -> String {
        SampleOffer.obs.replacingOccurrences(of: text, with: other)
    }

    private static let fragment = ["Content-Type": "application/trickle-ice-sdpfrag", "If-Match": "*"]

    static let wrongs: [Wrong] = [
        // Invalid session descriptions.
        Wrong(what: "no body", status: 400, code: "malformed", body: ""),
        Wrong(what: "no description", status: 400, code: "malformed", body: "hello"),
        Wrong(what: "JSON", status: 400, code: "malformed", body: "{\"sdp\": \"v=0\"}"),
        Wrong(what: "no origin", status: 400, code: "malformed", body: without("o=")),
        Wrong(what: "NUL in a line", status: 400, code: "malformed", body: with("s=-", "s=\u{0}")),
        Wrong(what: "a duplicate mid", status: 400, code: "malformed", body: with("a=mid:1", "a=mid:0")),
        Wrong(what: "an invalid port", status: 400, code: "malformed", body: with("m=audio 53742", "m=audio x")),
        Wrong(what: "a short password", status: 400, code: "malformed", body: with("Ti8Fm1Wvss8lg2uAWzxYyB", "x")),
        Wrong(
            what: "too many sections", status: 400, code: "malformed",
            body: SampleOffer.obs + String(repeating: "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\n", count: 300)),
        Wrong(what: "no credentials", status: 422, code: "description_invalid", body: without("a=ice-ufrag")),
        Wrong(
            what: "no sections", status: 422, code: "description_invalid",
            body: "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=ice-ufrag:abcd\r\n"
                + "a=ice-pwd:0123456789012345678901\r\n"),
        Wrong(what: "sections that only receive", status: 422, code: "description_invalid", body: SampleOffer.player),
        Wrong(what: "no fingerprint", status: 422, code: "description_invalid", body: without("a=fingerprint")),
        Wrong(what: "no rtcp-mux", status: 422, code: "description_invalid", body: without("a=rtcp-mux")),
        Wrong(what: "no BUNDLE", status: 422, code: "description_invalid", body: without("a=group:BUNDLE")),
        Wrong(what: "a passive client", status: 422, code: "description_invalid", body: with("actpass", "passive")),
        Wrong(
            what: "an ICE-lite client", status: 422, code: "description_invalid",
            body: with("t=0 0", "t=0 0\r\na=ice-lite")),
        Wrong(
            what: "no supported codec", status: 422, code: "description_invalid",
            body: with("opus", "speex").replacingOccurrences(of: "H264", with: "H261")),
        Wrong(what: "plain RTP", status: 422, code: "description_invalid", body: with("UDP/TLS/RTP/SAVPF", "RTP/AVP")),
        Wrong(
            what: "too large", status: 413, code: "message_too_large",
            body: SampleOffer.obs + String(repeating: "a=x\r\n", count: 60_000)),
        // Invalid requests.
        Wrong(what: "another type", status: 415, code: "content_type", headers: ["Content-Type": "text/plain"]),
        Wrong(
            what: "a coding", status: 415, code: "content_type",
            headers: ["Content-Type": "application/sdp", "Content-Encoding": "gzip"]),
        Wrong(what: "GET at the endpoint", status: 405, code: "method_not_allowed", method: "GET", body: ""),
        Wrong(what: "HEAD at the endpoint", status: 405, method: "HEAD", body: ""),
        Wrong(what: "PUT at the endpoint", status: 405, code: "method_not_allowed", method: "PUT"),
        Wrong(what: "PATCH at the endpoint", status: 405, code: "method_not_allowed", method: "PATCH"),
        Wrong(what: "POST to a resource", status: 405, code: "method_not_allowed", path: { $1 }),
        Wrong(
            what: "GET of a resource", status: 405, code: "method_not_allowed", method: "GET", path: { $1 }, body: ""),
        Wrong(
            what: "GET at WHEP's endpoint", status: 405, code: "method_not_allowed", method: "GET",
            path: { place, _ in place.whep }, body: ""),
        // Invalid tokens.
        Wrong(what: "no token", status: 401, code: "token_malformed", token: { _ in nil }),
        Wrong(what: "a malformed token", status: 401, code: "token_malformed", token: { _ in "abc" }),
        Wrong(what: "a forged token", status: 401, code: "token_signature", token: { $0.token() + "A" }),
        Wrong(
            what: "an expired token", status: 401, code: "token_expired",
            token: { $0.token(lifetime: .seconds(-60)) }),
        Wrong(what: "a subscriber at WHIP", status: 403, code: "not_permitted", token: { $0.token(.subscriber) }),
        Wrong(
            what: "a publisheronly token at WHEP", status: 403, code: "not_permitted",
            path: { place, _ in place.whep }, token: { $0.token(.publisherOnly) }, body: SampleOffer.player),
        Wrong(
            what: "no token at a resource", status: 401, code: "token_malformed", method: "DELETE", path: { $1 },
            token: { _ in nil }, body: ""),
        Wrong(
            what: "a subscriber at WHIP's resource", status: 403, code: "not_permitted", method: "DELETE",
            path: { $1 }, token: { $0.token(.subscriber) }, body: ""),
        // Missing sessions and streams.
        Wrong(what: "an invalid session", status: 404, code: "session_invalid", path: { _, _ in "/whip/1_abc" }),
        Wrong(what: "no session", status: 404, code: "not_found", path: { _, _ in "/whip" }),
        Wrong(what: "too deep", status: 404, code: "not_found", path: { place, _ in place.whip + "/x/y" }),
        Wrong(what: "a malformed stream ID", status: 404, code: "not_found", path: { place, _ in place.whep + "/x" }),
        Wrong(
            what: "an unknown stream", status: 404, code: "not_found",
            path: { place, _ in place.whep + "/" + String(repeating: "0", count: 32) }, body: SampleOffer.player),
        Wrong(
            what: "an unknown resource", status: 404, code: "not_found", method: "DELETE",
            path: { _, _ in "/whip/resources/" + String(repeating: "0", count: 32) }, body: ""),
        // Invalid SDP fragments.
        Wrong(
            what: "an empty fragment", status: 400, code: "malformed", method: "PATCH", path: { $1 },
            headers: fragment, body: ""),
        Wrong(
            what: "a malformed fragment", status: 400, code: "malformed", method: "PATCH", path: { $1 },
            headers: fragment, body: "hello"),
        Wrong(
            what: "a fragment without ICE", status: 400, code: "malformed", method: "PATCH", path: { $1 },
            headers: fragment, body: "a=mid:0\r\n"),
        Wrong(
            what: "incomplete credentials", status: 400, code: "malformed", method: "PATCH", path: { $1 },
            headers: fragment, body: "a=ice-ufrag:abcd\r\n"),
        Wrong(
            what: "two ICE sessions in one", status: 400, code: "malformed", method: "PATCH", path: { $1 },
            headers: fragment, body: SampleOffer.candidate + SampleOffer.restart()),
        Wrong(
            what: "an incomplete restart", status: 422, code: "description_invalid", method: "PATCH", path: { $1 },
            headers: fragment, body: SampleOffer.restart("TvQu")),
        Wrong(
            what: "a fragment of another type", status: 415, code: "content_type", method: "PATCH", path: { $1 },
            body: SampleOffer.candidate),
        Wrong(
            what: "a fragment that is too large", status: 413, code: "message_too_large", method: "PATCH", path: { $1 },
            headers: fragment, body: String(repeating: "a=x\r\n", count: 20_000)),
    ]

    @Test("malformed bodies and requests in a wrong state get the right status, and other resources are not affected")
    func wrongs() async throws {
        try await TestServer.run { server in
            let place = try WHIPPlace(server)
            let made = try await place.post(place.whip)
            let (location, tag) = (try #require(made["Location"]), try #require(made["ETag"]))
            for wrong in Self.wrongs {
                let answer = try await place.ask(
                    wrong.method, wrong.path(place, location), token: wrong.token(place), wrong.headers, wrong.body)
                #expect(answer.status == wrong.status, "\(wrong.what): \(answer.text)")
                #expect(answer.code == wrong.code, "\(wrong.what): \(answer.text)")
                #expect(answer["Access-Control-Allow-Origin"] == "*", "\(wrong.what)")
                #expect((answer["WWW-Authenticate"] != nil) == (answer.status == 401), "\(wrong.what)")
                #expect((answer["Allow"] != nil) == (answer.status == 405), "\(wrong.what)")
            }
            #expect(try await place.patch(location, match: tag, SampleOffer.candidate).status == 204)
        }
    }

    @Test("relayed sessions and servers without media reject resources")
    func noMedia() async throws {
        try await TestServer.run { server in
            let place = try WHIPPlace(server, .relayed)
            let refused = try await place.post(place.whip)
            #expect((refused.status, refused.code) == (409, "session_relayed"))
        }
        try await TestServer.run {
            $0.rules.routesMedia = false
        } _: { server in
            let place = try WHIPPlace(server)
            let refused = try await place.post(place.whip)
            #expect((refused.status, refused.code) == (503, "media_unavailable"))
            #expect(refused["Retry-After"] != nil)
        }
    }

    @Test("OPTIONS names the accepted type, methods and headers")
    func options() async throws {
        try await TestServer.run { server in
            let place = try WHIPPlace(server)
            let asked = try await place.ask("OPTIONS", place.whip, ["Origin": "https://a.example"])
            #expect(asked.status == 200)
            #expect(asked["Accept-Post"] == "application/sdp")
            #expect(asked["Access-Control-Allow-Methods"] == "POST, OPTIONS")
            #expect(asked["Access-Control-Allow-Headers"]?.contains("Authorization") == true)
            let resource = try await place.ask("OPTIONS", "/whep/resources/x", ["Origin": "https://a.example"])
            #expect(resource["Access-Control-Allow-Methods"] == "PATCH, DELETE, OPTIONS")
        }
    }

    @Test("resources are limited, and those that never connect are removed")
    func limits() async throws {
        try await TestServer.run {
            $0.rules.resourcesPerAddress = 2
            $0.rules.resourceConnect = .milliseconds(200)
        } _: { server in
            let place = try WHIPPlace(server)
            var statuses: [Int] = []
            var location = ""
            for _ in 0..<3 {
                let answer = try await place.post(place.whip)
                statuses.append(answer.status)
                location = answer["Location"] ?? location
                if answer.status == 429 { #expect(answer["Retry-After"] != nil) }
            }
            // On a slow machine, the first resource may already have been removed.
            #expect(statuses.prefix(2) == [201, 201] && [201, 429].contains(statuses[2]))
            var status = 0
            // Wait until the server has removed the resource.
            while status != 404 {
                status = try await place.patch(location, match: "*", SampleOffer.candidate).status
                #expect([204, 404, 429].contains(status))
            }
        }
    }
}
