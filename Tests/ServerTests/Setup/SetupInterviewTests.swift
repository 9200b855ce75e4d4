import Testing

@testable import Server

/// Which questions `confab setup` asks, and which answers it accepts.
@Suite("The questions of setup") struct SetupInterviewTests {
    private static let nothing = SetupKnown(ConfabConfiguration(), keys: [])

    private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

    private func interview(
        _ flags: [SetupQuestion: String] = [:], known: SetupKnown = SetupInterviewTests.nothing,
        local: [String] = ["9.9.9.9"]
    ) throws -> SetupInterview {
        try SetupInterview(flags: flags, known: known, local: try local.map(address))
    }

    /// The question that is next; nil if there is none.
    private func question(_ interview: SetupInterview) -> SetupQuestion? {
        guard case .ask(let question, _, _) = interview.step else { return nil }
        return question
    }

    private func message(_ question: SetupQuestion, _ text: String, _ mode: SetupMode? = .direct) -> String {
        do throws(SetupError) {
            return "accepted: \(try question.parse(text, mode: mode))"
        } catch {
            return error.description
        }
    }

    @Test("a server under a domain: mode, domain, lookup, authority, terms, email")
    func direct() throws {
        var interview = try interview()
        #expect(question(interview) == .mode)
        try interview.answer("")
        #expect(interview.mode == .direct && question(interview) == .domain)
        try interview.answer(" Chat.Example.org. ")
        #expect(interview.step == .lookUp("chat.example.org"))
        interview.found(NameObservation(host: "chat.example.org", addresses: [try address("9.9.9.9")]))
        #expect(question(interview) == .authority)
        try interview.answer("")
        #expect(question(interview) == .terms)
        #expect(throws: SetupError.self) { try interview.answer("") }
        #expect(throws: SetupError.self) { try interview.answer("no") }
        #expect(question(interview) == .terms)
        try interview.answer("y")
        #expect(question(interview) == .email)
        try interview.answer("")
        #expect(interview.step == .done)
        #expect(
            interview.answers == [
                .mode: "direct", .domain: "chat.example.org", .authority: "letsencrypt-staging", .terms: "yes",
                .email: "",
            ])
    }

    @Test("a proxy needs only the domain, and a local network nothing")
    func short() throws {
        var proxy = try interview([.mode: "proxy", .domain: "chat.example.org"])
        proxy.found(NameObservation(host: "chat.example.org", addresses: nil))
        #expect(proxy.step == .done)
        #expect(try interview([.mode: "lan"]).step == .done)
    }

    @Test("behind a router, the address of the domain is suggested for media")
    func router() throws {
        var interview = try interview([.mode: "proxy", .domain: "chat.example.org"], local: ["192.168.1.4"])
        interview.found(NameObservation(host: "chat.example.org", addresses: [try address("8.8.8.8")]))
        #expect(question(interview) == .mediaAddress)
        try interview.answer("")
        #expect(interview.answers[.mediaAddress] == "8.8.8.8" && interview.step == .done)
    }

    @Test("without prompts, a missing answer is an error that names its flag")
    func unattended() throws {
        var interview = try interview()
        try interview.acceptDefault()
        let domain = #expect(throws: SetupError.self) { try interview.acceptDefault() }
        #expect(domain?.description.contains("--domain VALUE") == true)
        var terms = try self.interview([.mode: "direct", .domain: "a.example.org", .authority: "letsencrypt"])
        terms.found(NameObservation(host: "a.example.org", addresses: []))
        let error = #expect(throws: SetupError.self) { try terms.acceptDefault() }
        #expect(error?.description.contains("--agree-to-terms.") == true)
    }

    @Test("the present configuration gives the defaults")
    func known() throws {
        var configuration = ConfabConfiguration()
        configuration.acme.domains = ["chat.example.org"]
        configuration.acme.directory = "letsencrypt"
        configuration.acme.agreeToTerms = true
        configuration.acme.email = "a@example.org"
        var interview = try interview(known: SetupKnown(configuration, keys: ["acme.domains"]))
        for _ in 0..<8 {
            switch interview.step {
            case .ask: try interview.answer("")
            case .lookUp(let name): interview.found(NameObservation(host: name, addresses: []))
            case .done: break
            }
        }
        #expect(
            interview.answers == [
                .mode: "direct", .domain: "chat.example.org", .authority: "letsencrypt", .terms: "yes",
                .email: "a@example.org",
            ])
    }

    @Test("an agreement with one authority is none with another")
    func otherAuthority() throws {
        var configuration = ConfabConfiguration()
        configuration.acme.domains = ["chat.example.org"]
        configuration.acme.agreeToTerms = true
        let known = SetupKnown(configuration, keys: ["acme.domains"])
        for (authority, isAgreed) in [("letsencrypt", true), ("https://ca.example.org/directory", false)] {
            var interview = try interview([.authority: authority, .email: "none"], known: known)
            for answered in [SetupQuestion.mode, .domain] {
                #expect(question(interview) == answered)
                try interview.acceptDefault()
            }
            interview.found(NameObservation(host: "chat.example.org", addresses: []))
            #expect(question(interview) == .terms)
            if isAgreed {
                try interview.acceptDefault()
                #expect(interview.step == .done)
            } else {
                #expect(throws: SetupError.self) { try interview.acceptDefault() }
            }
        }
    }

    @Test("mistakes in a domain get a sentence that says what to write")
    func domains() {
        #expect(message(.domain, "chat.example.org") == "accepted: chat.example.org")
        #expect(message(.domain, "xn--bcher-kva.example") == "accepted: xn--bcher-kva.example")
        #expect(message(.domain, "bücher.example").contains("xn--"))
        #expect(message(.domain, "https://chat.example.org/").contains("without https://"))
        #expect(message(.domain, "192.0.2.1").contains("--mode lan"))
        #expect(message(.domain, "*.example.org").contains("Wildcards"))
        #expect(message(.domain, "chat.local").contains("not a public name"))
        #expect(message(.domain, "chat.local", .proxy) == "accepted: chat.local")
        for text in ["a b.example", "-a.example", "a..example", "1.2.3", String(repeating: "a", count: 300)] {
            #expect(message(.domain, text).contains("is not a domain"), "\(text)")
        }
    }

    @Test("other answers are checked as the settings are")
    func others() {
        for text in ["0", "65536", "-1", "8080x", "99999999999999999999"] {
            #expect(message(.port, text).contains("from 1 to 65535"), "\(text)")
        }
        #expect(message(.port, " 8443 ") == "accepted: 8443")
        #expect(message(.email, "none") == "accepted: " && message(.email, "nobody").contains("--email"))
        #expect(message(.authority, "http://ca.example").contains("letsencrypt-staging"))
        #expect(message(.mode, "LAN") == "accepted: lan" && message(.mode, "x").contains("direct, proxy, lan"))
        #expect(message(.mediaAddress, "0.0.0.0").contains("--media-address"))
        #expect(message(.turnServer, "turn.example.org:3478").contains("--turn-server"))
        #expect(message(.mode, "\u{1B}[2J").contains("\u{1B}") == false)
    }
}
