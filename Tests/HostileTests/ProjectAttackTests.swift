import Foundation
import Signaling
import Testing
import Wire

extension Hostile {
    @Suite("Case 9: requests of applications and operators") struct ProjectAttacks {
        private static let settings = ["CONFAB_LIMITS_HANDSHAKE_BURST": "100000"]
        private static let form = "application/x-www-form-urlencoded"

        /// A request, and whether only the operator may send it.
        private struct Request {
            var method: String
            var path: String
            var isForOperators = false
        }

        private static func requests(_ apiKey: String, _ session: SessionID) -> [Request] {
            let project = "/v2/project/\(apiKey)"
            return [
                Request(method: "POST", path: "/session/create"),
                Request(method: "GET", path: "\(project)/session/\(session)/stream"),
                Request(method: "POST", path: "\(project)/session/\(session)/signal"),
                Request(method: "POST", path: "\(project)/session/\(session)/mute"),
                Request(method: "GET", path: "\(project)/archive"), Request(method: "GET", path: "\(project)/x/y"),
                Request(method: "GET", path: "/v1/projects", isForOperators: true),
                Request(method: "POST", path: "/v1/projects", isForOperators: true),
                Request(method: "GET", path: "/v1/projects/\(apiKey)", isForOperators: true),
                Request(method: "PATCH", path: "/v1/projects/\(apiKey)", isForOperators: true),
                Request(method: "DELETE", path: "/v1/projects/\(apiKey)", isForOperators: true),
                Request(method: "POST", path: "/v1/projects/\(apiKey)/rotate", isForOperators: true),
            ]
        }

        private static func claims(_ forging: Forging, _ changes: [String: String?] = [:]) -> String {
            let usual = [("iss", "\"\(forging.apiKey)\""), ("ist", "\"project\""), ("exp", "\(forging.now + 60)")]
            let kept = usual.compactMap { name, value in (changes[name] ?? value).map { "\"\(name)\":\($0)" } }
            return "{" + kept.joined(separator: ",") + "}"
        }

        private static func code(_ answer: HTTPResponse) throws -> String {
            struct Failure: Decodable { var code: String, message: String }
            let failure = try JSONDecoder().decode(Failure.self, from: Data(answer.body))
            #expect(!failure.message.isEmpty)
            return failure.code
        }

        @Test(
            "a forged request token is answered with 403 on OpenTok's paths and 401 on the operator's, and changes nothing"
        )
        func credentials() async throws {
            try await Attack(number: 9, name: "forged request tokens", settings: Self.settings).run { server in
                let main = try await Forging(server)
                let other = try Forging(printed: try await server.command(["project", "create"]).output)
                let session = try await server.makeSession()
                let good = main.token(Self.claims(main))
                func changed(_ changes: [String: String?]) -> String { main.token(Self.claims(main, changes)) }
                let forged = [
                    nil, "", "x", main.apiKey, main.secret, main.token(Self.claims(main), secret: ""),
                    main.token(Self.claims(main), header: #"{"alg":"none"}"#),
                    main.token(Self.claims(main), header: #"{"alg":"RS256"}"#),
                    main.token(Self.claims(main), header: #"{"alg":"HS256","kid":"../../dev/null"}"#, secret: "\u{0}"),
                    changed(["exp": "\(main.now - 1)"]), changed(["exp": nil]), changed(["exp": "1e300"]),
                    changed(["exp": "\(main.now + 10 * 365 * 86_400)"]), changed(["ist": "\"account\""]),
                    changed(["iss": "\"\(other.apiKey)\""]), changed(["iss": "\"45000002\""]),
                    main.token(main.sessionClaims(session.text)), main.token(main.userClaims()),
                    main.t1(main.t1Fields(session.text)), String(good.dropLast()), good + "=",
                    String(repeating: "a", count: 9_000), good + String(repeating: ".a", count: 100),
                ]
                var tally = Tally()
                for token in forged {
                    for request in Self.requests(main.apiKey, session) {
                        let headers = token.map { [("X-OPENTOK-AUTH", $0)] } ?? []
                        let answer = try RawSocket(port: server.port).ask(
                            request.path, method: request.method, headers: headers, body: Array("{}".utf8))
                        tally.count("\(answer.status)")
                        let expected = request.isForOperators ? 401 : 403
                        #expect(
                            answer.status == expected, "\(request.method) \(request.path) \(token ?? "none"): \(answer)"
                        )
                        #expect(try Self.code(answer).hasPrefix("token_"))
                        #expect(!answer.text.contains(main.secret) && !answer.text.contains(other.secret))
                    }
                }
                // The holder of another project's secret is no operator, and cannot reach this project's session.
                let stranger = other.token(Self.claims(other))
                for request in Self.requests(main.apiKey, session) where request.path != "/session/create" {
                    let answer = try RawSocket(port: server.port).ask(
                        request.path, method: request.method, headers: [("X-OPENTOK-AUTH", stranger)],
                        body: Array("{}".utf8))
                    tally.count("\(answer.status)")
                    #expect(answer.status == (request.isForOperators ? 401 : 403), "\(request.path): \(answer)")
                }
                for token in [
                    other.token(other.sessionClaims(session.text)), other.t1(other.t1Fields(session.text)),
                    other.t1(other.t1Fields(session.text), apiKey: main.apiKey),
                ] {
                    let verdict = try server.verdict(join: session, token)
                    tally.count(verdict)
                    #expect(["token_project 4401", "token_signature 4401"].contains(verdict), "\(verdict)")
                }
                let list = try await server.command(["project", "list"]).output
                #expect(list.split(separator: "\n").count == 2, "\(list)")
                let answer = try RawSocket(port: server.port).ask(
                    "/v2/project/\(main.apiKey)/archive", headers: [("X-OPENTOK-AUTH", good)])
                #expect(answer.status == 200 && answer["Content-Type"] == "application/json")
                return AttackOutcome(sent: "\(tally.total) requests", cameBack: tally.text)
            }
        }

        @Test("malformed bodies and paths are answered with an error, or with what they ask for, and use no memory")
        func bodies() async throws {
            try await Attack(number: 9, name: "malformed requests of applications", settings: Self.settings).run {
                server in
                let main = try await Forging(server)
                let session = try await server.makeSession()
                let auth = ("X-OPENTOK-AUTH", main.token(Self.claims(main)))
                var random = Random(ofCase: 9)
                var bodies = [
                    [UInt8](repeating: 0x5B, count: 10_000), [0xFF, 0xFE], Array(#"{"name":"\#u{0}"}"#.utf8), [0],
                    [UInt8](repeating: 0x20, count: 1 << 20), [UInt8](repeating: 0x20, count: (1 << 20) + 1),
                    Array("p2p.preference=%zz&=&&%".utf8),
                    Array(String(repeating: "a=b&", count: 3000).utf8), Array(#"{"items":[{"id":1}]}"#.utf8),
                    Array(#"{"maxConnections":1e999}"#.utf8), Array(#"{"overlap":-9223372036854775808}"#.utf8),
                ]
                for _ in 0..<10 { bodies.append((0..<64).map { _ in UInt8.random(in: 0...255, using: &random) }) }
                var tally = Tally()
                for request in Self.requests(main.apiKey, session) where !["GET", "DELETE"].contains(request.method) {
                    for body in bodies {
                        for type in ["application/json", Self.form, "x", String(repeating: "x", count: 1000)] {
                            let answer = try RawSocket(port: server.port).ask(
                                request.path, method: request.method, headers: [auth, ("Content-Type", type)],
                                body: body)
                            tally.count("\(answer.status)")
                            guard answer.status != 200 else {
                                // A form may contain anything besides the fields that are read.
                                #expect(request.path == "/session/create" && type == Self.form, "\(request): \(answer)")
                                continue
                            }
                            #expect([400, 401, 403, 404, 413, 415].contains(answer.status), "\(request): \(answer)")
                            #expect(request.isForOperators || answer.status != 413, "\(request): \(answer)")
                            if answer.status != 413 { _ = try Self.code(answer) }
                        }
                    }
                }
                let long = String(repeating: "a", count: 4000)
                for path in [
                    "/v2/project/", "/v2/project//session", "/v2/project/\(main.apiKey)/session/%00/stream",
                    "/v2/project/\(main.apiKey)/session/\(long)/stream", "/v2/project/%2e%2e/archive",
                    "/v2/project/\(long)/archive", "/v1/projects/%", "/v1/projects/\(long)",
                    "/v1/projects/\(long)/rotate",
                    "/v1/projects/\(main.apiKey)/../x", "/session/create/x",
                ] {
                    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
                        let answer = try RawSocket(port: server.port).ask(path, method: method, headers: [auth])
                        tally.count("\(answer.status)")
                        #expect(
                            [400, 403, 404, 405].contains(answer.status), "\(method) \(path.prefix(60)): \(answer)")
                    }
                }
                let list = try await server.command(["project", "list"]).output
                #expect(list.split(separator: "\n").count == 1, "\(list)")
                return AttackOutcome(sent: "\(tally.total) requests", cameBack: tally.text)
            }
        }
    }
}
