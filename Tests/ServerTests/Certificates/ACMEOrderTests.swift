import Crypto
import Foundation
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Orders at an ACME server") struct ACMEOrderTests {
    /// What an order did until it ended.
    struct Course {
        var result: Result<IssuedCertificate, ACMEFailure>
        var waits: [Duration] = []
        /// How long it took, with no time for requests.
        var time: Duration = .zero

        var failure: ACMEFailure? { if case .failure(let failure) = result { failure } else { nil } }
    }

    private static let accountKey = P256.Signing.PrivateKey()
    private static let start = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))

    private static func order(
        _ domains: [String] = ["chat.example.org"], email: String? = nil,
        challenge: ConfabConfiguration.ACME.Challenge = .http
    ) -> ACMEOrder {
        ACMEOrder(
            .init(
                directory: FakeAuthority.directory, domains: domains, email: email, challenge: challenge,
                accountKey: accountKey, certificateKey: P256.Signing.PrivateKey()))
    }

    /// Runs an order to its end.
    private static func run(_ order: ACMEOrder, at authority: inout FakeAuthority) throws -> Course {
        try run(order) { request, published in .received(authority.respond(to: request, published: published)) }
    }

    private static func run(
        _ order: ACMEOrder, answer: (ACMERequest, [ACMEChallenge]) -> ACMEOrder.Input
    ) throws -> Course {
        var order = order
        var published: [ACMEChallenge] = []
        var waits: [Duration] = []
        var now = start
        var input = ACMEOrder.Input.start
        for _ in 0..<5000 {
            var next: ACMEOrder.Input?
            for output in order.handle(input, at: Moment(now: now)) {
                if next != nil { Issue.record("nothing follows a request or a wait") }
                switch output {
                case .publish(let challenge): published.append(challenge)
                case .send(let request): next = answer(request, published)
                case .wait(let time):
                    waits.append(time)
                    now = now + time
                    next = .waited
                case .done(let result):
                    for input in [ACMEOrder.Input.start, .waited, .lost("late")] {
                        #expect(order.handle(input, at: Moment(now: now + .seconds(86400))).isEmpty)
                    }
                    return Course(result: result, waits: waits, time: now - start)
                }
            }
            input = try #require(next, "the order stops without a result")
        }
        throw EndlessOrder()
    }

    struct EndlessOrder: Error {}

    // MARK: Success

    @Test("an order goes from the directory to a chain with the key, and the authority finds no fault")
    func issue() throws {
        var authority = try FakeAuthority()
        let course = try Self.run(Self.order(email: "admin@example.org"), at: &authority)
        let certificate = try course.result.get()
        #expect(certificate.domains == ["chat.example.org"])
        #expect(authority.violations == [])
        #expect(
            authority.requests == [
                "directory", "new-nonce", "new-account", "new-order", "authorization-0", "challenge-0",
                "authorization-0", "authorization-0", "order", "finalize", "order", "certificate",
            ])
        #expect(authority.contacts == [.array([.string("mailto:admin@example.org")])])
        #expect(course.waits == [.seconds(1), .seconds(2), .seconds(1)])
        #expect(IssuedCertificate(stored: certificate.pem.revealed) == certificate)
        #expect("\(certificate)".contains("[redacted]") && !"\(certificate)".contains("PRIVATE"))
    }

    @Test("several domains are verified one after the other, and a verified one is not verified again")
    func domains() throws {
        var authority = try FakeAuthority()
        let domains = ["a.example.org", "b.example.org", "c.example.org"]
        let course = try Self.run(Self.order(domains), at: &authority)
        #expect(try course.result.get().domains == Set(domains))
        #expect(authority.violations == [] && authority.requests.filter { $0.hasPrefix("challenge-") }.count == 3)
        var second = try FakeAuthority()
        second.authorizationStatuses = ["valid"]
        #expect(try Self.run(Self.order(domains), at: &second).result.get().domains == Set(domains))
        #expect(second.violations == [] && !second.requests.contains { $0.hasPrefix("challenge-") })
        #expect(second.contacts == [.null])
    }

    @Test("the challenge is of the configured type, and has the domain, whose case the authority may change")
    func challengeType() throws {
        var authority = try FakeAuthority()
        authority.challengeType = "tls-alpn-01"
        let domains = ["a.example.org", "b.example.org"]
        let course = try Self.run(Self.order(domains, challenge: .tls), at: &authority)
        #expect(try course.result.get().domains == Set(domains))
        #expect(authority.violations == [] && !authority.requests.contains("other"))
        var other = try FakeAuthority()
        let text =
            #"{"status":"pending","identifier":{"type":"dns","value":"Chat.Example.ORG"},"challenges":["#
            + #"{"type":"http-01","url":"https://ca.example.org/challenge-0","#
            + #""token":"token-0-of-at-least-22-characters"}]}"#
        other.replaced["authorization-0"] = [FakeAuthority.json(200, text)]
        _ = try Self.run(Self.order(), at: &other).result.get()
        #expect(other.violations == [])
    }

    @Test("a refused nonce is replaced by the one in the response")
    func badNonce() throws {
        var authority = try FakeAuthority()
        let refusal = FakeAuthority.problem(400, "badNonce", "old nonce")
        authority.replaced = ["new-order": [refusal, refusal], "finalize": [refusal]]
        _ = try Self.run(Self.order(), at: &authority).result.get()
        #expect(authority.violations == [])
        #expect(authority.requests.filter { $0 == "new-order" }.count == 3)
        #expect(authority.requests.filter { $0 == "new-nonce" }.count == 1)
    }

    @Test("an order succeeds even if nonces of many of its requests are refused")
    func manyBadNonces() throws {
        var authority = try FakeAuthority()
        let refusals = Array(repeating: FakeAuthority.problem(400, "badNonce", "old nonce"), count: 4)
        for name in ["new-account", "new-order", "challenge-0", "finalize"] { authority.replaced[name] = refusals }
        _ = try Self.run(Self.order(), at: &authority).result.get()
        #expect(authority.violations == [])
    }

    @Test("Retry-After sets the pace of polls, but not below a second nor above a minute")
    func pace() throws {
        for (value, wait) in [("0", 1), ("7", 7), ("86400", 60), ("-1", 1), ("soon", 1), ("9999999999999999999", 1)] {
            var authority = try FakeAuthority()
            authority.replaced["challenge-0"] = [FakeAuthority.json(200, "{}", ["retry-after": value])]
            let course = try Self.run(Self.order(), at: &authority)
            #expect(course.waits.first == .seconds(wait), "\(value)")
            _ = try course.result.get()
        }
    }

    // MARK: Refusals

    @Test("a domain that cannot be verified fails with the authority's sentence and a next step")
    func wrongDNS() throws {
        var authority = try FakeAuthority()
        authority.authorizationStatuses = ["pending", "invalid"]
        authority.challengeError = .object(
            JSONObject([
                .init(name: "type", value: .string("urn:ietf:params:acme:error:dns")),
                .init(name: "detail", value: .string("NXDOMAIN looking up A for chat.example.org")),
            ]))
        let failure = try #require(try Self.run(Self.order(), at: &authority).failure)
        #expect(failure.code == .challengeFailed)
        #expect(
            "\(failure)" == """
                The authority could not verify the domain chat.example.org. The authority says: NXDOMAIN looking up A for \
                chat.example.org. Check the A and AAAA records of the domain: they must lead to this server.
                """)
    }

    @Test("a rate limit says how long to wait")
    func rateLimit() throws {
        var authority = try FakeAuthority()
        authority.replaced["new-order"] = [
            FakeAuthority.problem(429, "rateLimited", "too many certificates already issued", retryAfter: "3600")
        ]
        let failure = try #require(try Self.run(Self.order(), at: &authority).failure)
        #expect(failure.code == .rateLimited && failure.retryAfter == .seconds(3600))
        #expect(failure.detail == "too many certificates already issued")
    }

    @Test("changed terms of service name the page to read")
    func terms() throws {
        var authority = try FakeAuthority()
        let text =
            #"{"type":"urn:ietf:params:acme:error:userActionRequired","detail":"Terms have changed","#
            + #""instance":"https://ca.example.org/agree/1"}"#
        authority.replaced["new-order"] = [FakeAuthority.json(403, text)]
        let failure = try #require(try Self.run(Self.order(), at: &authority).failure)
        #expect(failure.code == .termsChanged && failure.detail == "Terms have changed")
        #expect(failure.advice.contains("https://ca.example.org/agree/1"))
    }

    @Test("an authority that is down, at any step, is a failure to try again later")
    func down() throws {
        for lost in Self.steps.filter({ $0 != "order" }) + ["new-nonce"] {
            var authority = try FakeAuthority()
            let course = try Self.run(Self.order()) { request, published in
                request.url.hasSuffix(lost)
                    ? .lost("connection refused") : .received(authority.respond(to: request, published: published))
            }
            #expect(course.failure?.code == .unreachable, "\(lost)")
            #expect(course.failure?.reason.contains("connection refused") == true)
            var faulty = try FakeAuthority()
            faulty.replaced[lost] = [ACMEResponse(status: 503, headers: ["retry-after": "30"])]
            // The request for a nonce may succeed without a status, because only its header matters.
            let failure = try Self.run(Self.order(), at: &faulty).failure
            if lost != "new-nonce" {
                #expect(failure?.code == .unreachable && failure?.retryAfter == .seconds(30), "\(lost)")
            }
        }
    }

    @Test("a domain that cannot be verified over TLS fails with advice about port 443")
    func wrongTLS() throws {
        for type in ["connection", "tls", "unauthorized"] {
            var authority = try FakeAuthority()
            authority.challengeType = "tls-alpn-01"
            authority.authorizationStatuses = ["pending", "invalid"]
            authority.challengeError = .object(
                JSONObject([.init(name: "type", value: .string("urn:ietf:params:acme:error:\(type)"))]))
            let failure = try #require(try Self.run(Self.order(challenge: .tls), at: &authority).failure)
            #expect(failure.code == .challengeFailed && failure.advice.contains("port 443"), "\(failure)")
        }
    }

    @Test("an authority without the configured challenge is refused, with the setting or the authority to change")
    func missingChallenge() throws {
        func failure(_ wanted: ConfabConfiguration.ACME.Challenge, offered: [String]) throws -> ACMEFailure {
            let challenges = offered.map { #"{"type":"\#($0)","url":"https://a/c","token":"t"}"# }
            var authority = try FakeAuthority()
            authority.replaced["authorization-0"] = [
                FakeAuthority.json(
                    200,
                    """
                    {"status":"pending","identifier":{"type":"dns","value":"chat.example.org"},\
                    "challenges":[\(challenges.joined(separator: ","))]}
                    """)
            ]
            let failure = try #require(try Self.run(Self.order(challenge: wanted), at: &authority).failure)
            #expect(failure.code == .challengeFailed && !authority.requests.contains("c"))
            return failure
        }
        let tls = try failure(.tls, offered: ["dns-01", "http-01"])
        #expect(tls.reason == "The authority offers no tls-alpn-01 challenge for chat.example.org.")
        #expect(tls.advice.contains("set acme.challenge to http") && tls.advice.contains("port 80"))
        let http = try failure(.http, offered: ["tls-alpn-01"])
        #expect(http.reason == "The authority offers no http-01 challenge for chat.example.org.")
        #expect(http.advice.contains("set acme.challenge to tls") && http.advice.contains("port 443"))
        for wanted in ConfabConfiguration.ACME.Challenge.allCases {
            #expect(try failure(wanted, offered: ["dns-01"]).advice.contains("acme.directory"))
        }
    }

    @Test("a challenge for a domain that was not ordered is not answered")
    func foreignDomain() throws {
        for challenge in ConfabConfiguration.ACME.Challenge.allCases {
            let text =
                #"{"status":"pending","identifier":{"type":"dns","value":"other.example.com"},"challenges":["#
                + #"{"type":"\#(challenge.type)","url":"https://ca.example.org/challenge-0","token":"t"}]}"#
            var authority = try FakeAuthority()
            authority.replaced["authorization-0"] = [FakeAuthority.json(200, text)]
            let course = try Self.run(Self.order(challenge: challenge)) { request, published in
                #expect(published.isEmpty)
                return .received(authority.respond(to: request, published: published))
            }
            let failure = try #require(course.failure)
            #expect(failure.code == .badResponse && failure.reason.contains("other.example.com"))
        }
    }

    @Test("an authority that needs external accounts is refused with the reason")
    func unsupported() throws {
        var external = try FakeAuthority()
        external.replaced["directory"] = [FakeAuthority.directoryResponse(#"{"externalAccountRequired":true}"#)]
        #expect(try Self.run(Self.order(), at: &external).failure?.reason.contains("external account") == true)
    }

    @Test("a certificate for another key, without a domain, or expired is not used")
    func wrongCertificate() throws {
        var wrong = try FakeAuthority()
        wrong.wrongKey = P256.Signing.PrivateKey().publicKey
        #expect(try Self.run(Self.order(), at: &wrong).failure?.code == .badCertificate)
        var old = try FakeAuthority()
        old.lifetime = -86400
        #expect(try Self.run(Self.order(), at: &old).failure?.code == .badCertificate)
        var made = try FakeAuthority()
        let order = Self.order()
        let pem = try Self.run(order, at: &made).result.get().pem.revealed
        #expect(IssuedCertificate(stored: String(pem.dropFirst(200))) == nil)
        #expect(IssuedCertificate(stored: "") == nil)
    }

    @Test("setting the clock during an order does not end it")
    func clockChanges() throws {
        var authority = try FakeAuthority()
        var order = Self.order()
        var published: [ACMEChallenge] = []
        var input: ACMEOrder.Input? = .start
        var now = Self.start
        while let next = input {
            input = nil
            let jump: Duration = published.isEmpty ? .zero : .seconds(86400 * 30)
            for output in order.handle(next, at: Moment(now: now, wall: now + jump)) {
                switch output {
                case .publish(let challenge): published.append(challenge)
                case .send(let request): input = .received(authority.respond(to: request, published: published))
                case .wait(let time):
                    now = now + time
                    input = .waited
                case .done(let result): _ = try result.get()
                }
            }
        }
        #expect(authority.requests.last == "certificate")
    }

    // MARK: Hostile authorities

    /// The requests of an order whose answers are replaced one at a time.
    private static let steps = [
        "directory", "new-account", "new-order", "authorization-0", "challenge-0", "order", "finalize", "certificate",
    ]

    @Test("no answer at any step traps or continues the order forever", arguments: steps)
    func hostile(step: String) throws {
        let huge = String(repeating: "x", count: ACMEResponse.maxBodySize + 1)
        let answers = [
            FakeAuthority.json(200, ""), FakeAuthority.json(200, "[]"), FakeAuthority.json(200, "{}"),
            FakeAuthority.json(200, "{\"status\":\"\(huge)\"}"), FakeAuthority.json(200, "null"),
            FakeAuthority.json(200, #"{"status":"pending"}"#), FakeAuthority.json(200, #"{"status":17}"#),
            FakeAuthority.json(302, "", ["location": FakeAuthority.directory]), FakeAuthority.json(500, huge),
            FakeAuthority.json(200, String(repeating: "[", count: 100_000)), ACMEResponse(status: 0),
            FakeAuthority.json(201, #"{"status":"pending","authorizations":[],"finalize":"https://a/"}"#),
            FakeAuthority.json(201, #"{"status":"pending","authorizations":["http://a/"],"finalize":"https://a/"}"#),
            FakeAuthority.json(200, #"{"status":"valid","certificate":"file:///etc/passwd"}"#),
            FakeAuthority.json(400, #"{"type":"urn:ietf:params:acme:error:badNonce","detail":"a\u001b[2Jb"}"#),
            ACMEResponse(status: 200, headers: ["replay-nonce": huge], body: Array("-----BEGIN CERTIFICATE-----".utf8)),
        ]
        for answer in answers {
            var authority = try FakeAuthority()
            authority.replaced[step] = [answer]
            // Some answers are harmless at some steps, such as any body of the answer to a challenge.
            let course = try Self.run(Self.order(), at: &authority)
            #expect(course.time <= ACMEOrder.timeLimit + .seconds(60))
            guard let failure = course.failure else { continue }
            #expect("\(failure)".utf8.count < 4000 && !"\(failure)".contains("\u{1b}"))
            // The same answer each time, also to requests that are repeated.
            authority = try FakeAuthority()
            authority.replaced[step] = Array(repeating: answer, count: 3000)
            #expect(try Self.run(Self.order(), at: &authority).failure != nil)
        }
    }

    @Test("a nonce that is refused each time ends the order")
    func endlessBadNonce() throws {
        var authority = try FakeAuthority()
        let refusal = FakeAuthority.problem(400, "badNonce", "no")
        authority.replaced["new-account"] = Array(repeating: refusal, count: 3000)
        #expect(try Self.run(Self.order(), at: &authority).failure?.code == .refused)
        #expect(authority.requests.count < 20)
    }

    @Test("an order or a challenge that stays in progress ends after the time limit")
    func endlessProcessing() throws {
        var processing = try FakeAuthority()
        processing.orderStatuses = ["processing"]
        let course = try Self.run(Self.order(), at: &processing)
        #expect(course.failure?.code == .timedOut && course.failure?.reason.contains("issue") == true)
        #expect(course.time >= ACMEOrder.timeLimit && course.time < ACMEOrder.timeLimit + .seconds(60))
        #expect(processing.requests.count < 100)
        var pending = try FakeAuthority()
        pending.authorizationStatuses = ["pending"]
        #expect(try Self.run(Self.order(), at: &pending).failure?.code == .timedOut)
    }

    @Test("the token of a challenge cannot lead to another path, and URLs are HTTPS")
    func tokens() throws {
        for token in ["", "../../etc/passwd", "a b", "a%2fb", String(repeating: "a", count: 300), "é"] {
            #expect(!ACMEChallenge.isToken(token), "\(token)")
        }
        #expect(ACMEChallenge.isToken("evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr_oA"))
        for url in ["http://a/", "https://", "https://user@a/", "https://a b/", "file:///a", "https:/a", ""] {
            #expect(!ACMEURL.isUsable(url), "\(url)")
        }
        #expect(ACMEURL.isUsable("https://ca.example.org:14000/dir?x=1"))
    }
}
