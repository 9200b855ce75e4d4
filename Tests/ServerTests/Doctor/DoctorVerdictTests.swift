import Testing
import Wire

@testable import Server

/// The findings of `confab doctor` for what it can see, as tables.
@Suite("What the doctor concludes") struct DoctorVerdictTests {
    private static let now = Timestamp(milliseconds: 1_790_000_000_000)
    private static let day = Duration.seconds(86400)

    private let site = SiteAddress("https://chat.example.org").unsafelyUnwrapped

    private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

    /// Compares one finding with what is expected, and requires that each fault has a fix.
    private func expect(
        _ finding: DoctorFinding?, _ outcome: DoctorFinding.Outcome, _ seen: String, fix: String? = nil,
        _ location: SourceLocation = #_sourceLocation
    ) {
        let isRight =
            finding?.outcome == outcome && finding?.seen.contains(seen) == true
            && (fix.map { finding?.fix?.contains($0) == true } ?? true)
        let hasFix = outcome == .passed || outcome == .skipped ? finding?.fix == nil : finding?.fix?.isEmpty == false
        #expect(isRight && hasFix, "\(String(describing: finding))", sourceLocation: location)
    }

    @Test("URLs of sites are taken apart, and others are refused")
    func siteAddresses() throws {
        #expect(site.place == "chat.example.org:443" && site.authority == "chat.example.org" && site.path.isEmpty)
        let other = try #require(SiteAddress("http://[2001:db8::1]:8080/video/"))
        #expect(other.host == "2001:db8::1" && other.port == 8080 && other.path == "/video" && !other.isSecure)
        #expect(other.url == "http://[2001:db8::1]:8080/video" && other.origin == "http://[2001:db8::1]:8080")
        for text in [
            "", "chat.example.org", "ftp://a", "https://", "https://a:0", "https://a:70000", "https://a b",
            "https://u@a",
        ] {
            #expect(SiteAddress(text) == nil, "\(text)")
        }
    }

    @Test("URLs of STUN and TURN servers are taken apart, and others are refused")
    func relayAddresses() throws {
        let turn = try #require(RelayAddress("turn:turn.example.org?transport=udp"))
        #expect(turn.isTURN && turn.host == "turn.example.org" && turn.port == 3478 && turn.transport == .udp)
        let secure = try #require(RelayAddress("turns:[2001:db8::1]:443?transport=tcp"))
        #expect(secure.host == "2001:db8::1" && secure.port == 443 && secure.transport == .tls)
        #expect(try #require(RelayAddress("turns:a")).port == 5349)
        #expect(try #require(RelayAddress("turn:a:1?transport=tcp")).transport == .tcp)
        #expect(try #require(RelayAddress("stun:a")).isTURN == false)
        for text in ["", "turn:", "turn", "http:a", "turn:a:0", "turn:a:x", "turn::5", "turn:?transport=udp"] {
            #expect(RelayAddress(text) == nil, "\(text)")
        }
    }

    @Test("names without an address, or only with private ones, are found")
    func names() throws {
        func verdict(_ host: String, _ addresses: [String]?) throws -> DoctorFinding {
            DoctorVerdicts.dns(NameObservation(host: host, addresses: try addresses?.map(address)))
        }
        expect(try verdict("chat.example.org", ["8.8.8.8"]), .passed, "8.8.8.8")
        expect(try verdict("chat.example.org", []), .failed, "no address", fix: "A or AAAA record")
        expect(try verdict("chat.example.org", nil), .failed, "did not answer", fix: "resolv.conf")
        expect(try verdict("chat.example.org", ["10.0.0.1"]), .warning, "10.0.0.1", fix: "public address")
        expect(try verdict("box.local", ["10.0.0.1"]), .passed, "10.0.0.1")
        expect(try verdict("10.0.0.1", ["10.0.0.1"]), .skipped, "no name")
    }

    @Test("a port that is closed is distinguished from one that a firewall hides")
    func connections() throws {
        func verdict(_ outcomes: ConnectObservation.Outcome...) throws -> [DoctorFinding] {
            let address = try address("192.0.2.1")
            return DoctorVerdicts.tcp(site, outcomes.map { ConnectObservation(address: address, outcome: $0) })
        }
        expect(try verdict(.connected).first, .passed, "accepts")
        expect(try verdict(.refused).first, .failed, "nothing listens", fix: "Start the server")
        expect(try verdict(.timedOut).first, .failed, "firewall", fix: "Open TCP port 443")
        expect(try verdict(.failed("No route to host")).first, .failed, "No route to host")
        // One of two addresses does not work: some people cannot connect.
        let both = try verdict(.timedOut, .connected)
        #expect(both.map(\.outcome) == [.passed, .warning])
        #expect(try verdict(.failed("Network is unreachable"), .connected).map(\.outcome) == [.passed])
    }

    private static func certificate(
        from start: Duration = .zero - day, to end: Duration = day * 60, names: [String] = ["chat.example.org"],
        isSelfSigned: Bool = false
    ) -> CertificateFacts {
        CertificateFacts(
            subject: "CN=chat", issuer: isSelfSigned ? "CN=chat" : "CN=Authority", notBefore: now + start,
            notAfter: now + end, names: names)
    }

    @Test("faults of certificates are distinguished, the most likely cause first")
    func certificates() {
        func verdict(_ chain: [CertificateFacts], isTrusted: Bool = true, error: String? = nil) -> DoctorFinding {
            DoctorVerdicts.tls(site, TLSObservation(chain: chain, error: error, isTrusted: isTrusted), now: Self.now)
        }
        let (good, authority) = (Self.certificate(), Self.certificate(names: []))
        expect(verdict([good, authority]), .passed, "valid until")
        expect(verdict([Self.certificate(to: .zero - Self.day)], isTrusted: false), .failed, "expired", fix: "Renew")
        expect(verdict([Self.certificate(from: Self.day)], isTrusted: false), .failed, "clock", fix: "clock")
        expect(
            verdict([Self.certificate(names: ["a.example"])], isTrusted: false), .failed, "not for chat.example.org")
        expect(verdict([Self.certificate(isSelfSigned: true)], isTrusted: false), .failed, "signed by itself")
        expect(verdict([good], isTrusted: false), .failed, "only its own certificate", fix: "fullchain.pem")
        expect(verdict([good, authority], isTrusted: false), .failed, "does not trust", fix: "public authority")
        expect(
            verdict([good, Self.certificate(to: .zero - Self.day, names: [])], isTrusted: false), .failed,
            "intermediate")
        expect(verdict([Self.certificate(to: Self.day * 3), authority]), .warning, "expires in 3 days", fix: "Renew")
        expect(verdict([], error: "wrong version number"), .failed, "wrong version number", fix: "HTTPS")
        expect(verdict([good, authority], error: "no answer in time"), .failed, "no answer in time")
    }

    @Test(
        "names of certificates cover hosts as RFC 6125 says",
        arguments: [
            ("chat.example.org", "chat.example.org", true), ("Chat.Example.org", "chat.example.ORG", true),
            ("*.example.org", "chat.example.org", true), ("*.example.org", "a.chat.example.org", false),
            ("*.example.org", "example.org", false), ("*.example.org", ".example.org", false),
            ("192.0.2.1", "192.0.2.1", true), ("2001:db8:0::1", "2001:db8::1", true), ("*.0.2.1", "192.0.2.1", false),
        ])
    func covering(_ name: String, _ host: String, _ isCovered: Bool) {
        #expect(DoctorVerdicts.covers(name, host) == isCovered)
    }

    private static func answer(_ status: Int?, _ body: String = "", error: String? = nil) -> HTTPObservation {
        HTTPObservation(status: status, body: body, error: error)
    }

    private static let health =
        #"{"status":"ok","version":"0.1.0","openssl":"3.0","srtp":"OpenSSL","time":1790000000000}"#

    @Test("a proxy without a server, another program and a stopping server are distinguished")
    func answers() {
        func verdict(_ answer: HTTPObservation) -> DoctorFinding { DoctorVerdicts.http(site, answer) }
        expect(verdict(Self.answer(200, Self.health)), .passed, "Confab 0.1.0")
        expect(verdict(Self.answer(503, Self.health)), .warning, "stopping")
        expect(verdict(Self.answer(502, "<html>")), .failed, "cannot reach Confab", fix: "Start Confab")
        expect(verdict(Self.answer(301)), .failed, "redirected", fix: "https://")
        expect(verdict(Self.answer(200, "<html>")), .failed, "not from Confab", fix: "path")
        expect(verdict(Self.answer(200, #"{"version":"7"}"#)), .failed, "not from Confab")
        expect(verdict(Self.answer(nil, error: "reset\u{1b}[2J")), .failed, "reset")
        #expect(!verdict(Self.answer(nil, error: "reset\u{1b}[2J")).seen.contains("\u{1b}"))
    }

    @Test("each part that is not ready has a fix of its own")
    func readiness() {
        func verdict(_ answer: HTTPObservation) -> DoctorFinding { DoctorVerdicts.ready(site, answer) }
        expect(verdict(Self.answer(200)), .passed, "ready")
        expect(verdict(Self.answer(503, #"{"status":"unready","parts":["disk"]}"#)), .failed, "disk", fix: "Free space")
        expect(verdict(Self.answer(503, "<html>")), .failed, "not ready", fix: "log")
        expect(verdict(Self.answer(404, "full: nearly all\n")), .warning, "full", fix: "node serve")
        expect(verdict(Self.answer(nil, error: "closed")), .failed, "closed")
    }

    @Test("the server's clock is compared with this machine's, and the time of the exchange does not count")
    func clocks() {
        func verdict(_ ahead: Duration, took: Duration = .zero) -> DoctorFinding? {
            var answer = Self.answer(200, Self.health)
            (answer.at, answer.took) = (Self.now + ahead, took)
            return DoctorVerdicts.clock(site, answer)
        }
        expect(verdict(.seconds(3)), .passed, "agrees")
        expect(verdict(.seconds(30)), .warning, "30 s ahead of", fix: "Synchronize")
        expect(verdict(.zero - .seconds(3600)), .failed, "3600 s behind", fix: "Synchronize")
        expect(verdict(.seconds(12), took: .seconds(6)), .passed, "agrees")
        #expect(DoctorVerdicts.clock(site, Self.answer(200, "{}")) == nil, "a server that reports no time")
    }

    @Test("another version of the program gets a warning")
    func versions() {
        let answer = Self.answer(200, Self.health)
        expect(DoctorVerdicts.version(site, answer, own: "0.1.0"), .passed, "OpenSSL 3.0")
        expect(DoctorVerdicts.version(site, answer, own: "0.2.0"), .warning, "this program is 0.2.0")
        #expect(DoctorVerdicts.version(site, Self.answer(502), own: "0.2.0") == nil)
    }

    @Test("a proxy that drops Upgrade is found, and so is everything else that can happen to a WebSocket")
    func webSockets() {
        func verdict(
            _ upgrade: SocketObservation.Upgrade?, _ greeting: SocketObservation.Greeting? = nil
        ) -> DoctorFinding {
            DoctorVerdicts.webSocket(site, SocketObservation(upgrade: upgrade, greeting: greeting))
        }
        expect(verdict(.opened, .welcome), .passed, "opens")
        expect(verdict(.refused(426)), .failed, "drops this header", fix: "Upgrade and Connection")
        expect(verdict(.refused(200)), .failed, "drops this header", fix: "Upgrade and Connection")
        expect(verdict(.refused(502)), .failed, "cannot reach Confab", fix: "Start Confab")
        expect(verdict(.refused(401)), .failed, "status 401", fix: "login")
        expect(verdict(.wrongAnswer), .failed, "not to Confab")
        expect(verdict(.failed("reset")), .failed, "reset")
        expect(verdict(nil), .failed, "no response", fix: "HTTP/1.1")
        expect(verdict(.opened), .failed, "nothing arrives", fix: "buffering")
        expect(verdict(.opened, .closed), .failed, "closed", fix: "proxy")
        expect(
            verdict(.opened, .refused(code: "forbidden_origin", message: "no")), .failed, "refuses pages",
            fix: "Add https://chat.example.org to allowedOrigins")
        expect(verdict(.opened, .refused(code: "banned", message: "You are banned.")), .failed, "You are banned.")
    }

    @Test("a proxy that passes on what clients write about themselves is found")
    func forwarded() {
        func verdict(_ forwarded: Int, _ xForwardedFor: Int, _ both: Int) -> DoctorFinding {
            DoctorVerdicts.forwarded(
                site,
                ForwardingObservation(
                    forwarded: Self.answer(forwarded), xForwardedFor: Self.answer(xForwardedFor),
                    both: Self.answer(both)))
        }
        expect(verdict(200, 200, 200), .passed, "do not contradict")
        expect(verdict(502, 502, 502), .skipped, "no usable response")
        expect(verdict(200, 200, 502), .skipped, "no usable response")
        expect(verdict(400, 200, 400), .warning, "sets X-Forwarded-For", fix: "remove Forwarded")
        expect(verdict(200, 400, 400), .warning, "sets Forwarded", fix: "remove X-Forwarded-For")
        expect(verdict(200, 200, 400), .failed, "claim any address", fix: "set X-Forwarded-For")
    }

    @Test("what the server answers to a claimed address shows what a trusted proxy does with the headers")
    func claims() throws {
        let proxy = try #require(IPAddress("127.0.0.1"))
        let trusted = TrustedProxies([try #require(CIDRBlock("127.0.0.1"))])
        /// The status for the headers that arrive, as `HTTPConnection.Settings` decides it.
        func status(_ arriving: [(name: String, value: String)]) -> Int {
            ForwardedAddress.client(peer: proxy, headers: arriving, trusted: trusted) == nil ? 400 : 200
        }
        let (list, standard) = (
            (name: "X-Forwarded-For", value: "192.0.2.1"), (name: "Forwarded", value: "for=192.0.2.2")
        )
        func verdict(_ proxied: ([(name: String, value: String)]) -> [(name: String, value: String)]) -> DoctorFinding {
            DoctorVerdicts.forwarded(
                site,
                ForwardingObservation(
                    forwarded: Self.answer(status(proxied([standard]))),
                    xForwardedFor: Self.answer(status(proxied([list]))),
                    both: Self.answer(status(proxied([list, standard])))))
        }
        let own = (name: "X-Forwarded-For", value: "203.0.113.7")
        #expect(verdict { _ in [own] }.outcome == .passed)
        #expect(verdict { $0.filter { $0.name != "Forwarded" } + [own] }.outcome == .passed, "it appends")
        #expect(verdict { $0.filter { $0.name == "Forwarded" } + [own] }.outcome == .warning)
        #expect(
            verdict { $0.filter { $0.name != "Forwarded" } + [(name: "Forwarded", value: "for=203.0.113.7")] }.outcome
                == .warning)
        #expect(verdict { $0 }.outcome == .failed)
    }

    @Test("credentials that a TURN server rejects, and everything else that can happen to it")
    func relays() throws {
        let url = "turn:turn.example.org:3478?transport=udp"
        func verdict(_ seen: RelayObservation) -> DoctorFinding { DoctorVerdicts.relay(url, seen) }
        expect(verdict(.allocated(try address("8.8.8.8"), isOpen: false)), .passed, "8.8.8.8")
        expect(verdict(.allocated(try address("10.0.0.8"), isOpen: false)), .warning, "10.0.0.8", fix: "external-ip")
        expect(verdict(.allocated(try address("8.8.8.8"), isOpen: true)), .warning, "everyone", fix: "use-auth-secret")
        expect(verdict(.rejected(401)), .failed, "rejects the credentials", fix: "ice.turnSecret")
        expect(verdict(.rejected(486)), .failed, "quota", fix: "log")
        expect(verdict(.silent), .failed, "does not answer", fix: "ice.turnServers")
        expect(verdict(.refused), .failed, "nothing listens")
        expect(verdict(.unknownName), .failed, "no address")
        expect(verdict(.failed("no route")), .failed, "no route")
        #expect(verdict(.silent).check == .turn && DoctorVerdicts.relay("stun:a", .reflected).check == .stun)
        expect(DoctorVerdicts.relay("stun:a", .silent), .failed, "does not answer", fix: "ice.stunServers")
    }
}
