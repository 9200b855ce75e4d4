import Foundation
import Signaling
import TestSupport
import Testing
import Wire

extension Person {
    fileprivate func register(_ registration: PushRegistration) throws -> String {
        try verdict(.push(.register(registration)))
    }

    /// Calls a person who can only be reached by push. Returns the call, and where it rings or why it ended.
    fileprivate func wake(_ id: PersonID) throws -> (call: CallID, answer: String) {
        let call = try place(id)
        if let end = end(of: call) { return (call, end.reason.rawValue) }
        return try hear("call.ringing") {
            switch $0 {
            case .call(.ringing(let ringing)) where ringing.call == call: (call, "rings on \(ringing.devices)")
            case .call(.ended(let ended)) where ended.call == call: (call, ended.reason.rawValue)
            default: nil
            }
        }
    }
}

extension ServerProcess {
    /// Requests the export of a person's data. Returns the push endpoints in it, and its whole text.
    fileprivate func held(_ secret: String) throws -> (push: [[String: Any]], text: String) {
        let answer = try RawSocket(port: port).ask("/v1/person", headers: [("Authorization", "Bearer \(secret)")])
        let held = try JSONSerialization.jsonObject(with: Data(answer.body)) as? [String: Any]
        guard answer.status == 200, let push = held?["push"] as? [[String: Any]] else { throw TimedOut("\(answer)") }
        return (push, answer.text)
    }

    /// Creates a person whose page registered the endpoint and was then closed, and another person who may call them.
    fileprivate func sleeper(
        _ endpoint: String
    ) throws -> (id: PersonID, secret: String, caller: Person) {
        let sleeper = try Person.arrive(port: port)
        let id = try sleeper.appear(Appearance(name: "Sleeper")).person
        guard try sleeper.register(.browser(endpoint)) == "ok" else { throw TimedOut("\(sleeper.errors)") }
        let caller = try Person.present("Caller", port: port).person
        try sleeper.close()
        try sleeper.hearClose()
        try eventually("the page that was closed is there") { try !caller.isOnline(id) }
        guard let secret = sleeper.welcome.identity else { throw TimedOut("no identity") }
        return (id, secret, caller)
    }
}

extension Hostile {
    @Suite("Case 20: push endpoints") struct PushAttacks {
        private static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_LIMITS_REQUEST_BURST": "1000",
        ]

        /// Endpoints at addresses of this machine, of its network and of its cloud provider. `PORT` stands for a port
        /// with a listener.
        private static let inside = [
            "127.0.0.1:PORT", "127.1:PORT", "127.0.1:PORT", "2130706433:PORT", "0x7f000001:PORT", "0x7F.0.0.1:PORT",
            "0177.0.0.1:PORT", "017700000001:PORT", "127.0.0.1.:PORT", "[::1]:PORT", "[::]:PORT",
            "[::ffff:127.0.0.1]:PORT", "[::ffff:7f00:1]:PORT", "[0:0:0:0:0:FFFF:7F00:0001]:PORT", "[::127.0.0.1]:PORT",
            "[64:ff9b::7f00:1]:PORT", "[2002:7f00:1::]:PORT", "[::1%25lo]:PORT", "0.0.0.0:PORT", "0:PORT",
            "localhost:PORT", "LOCALHOST:PORT", "localhost.:PORT", "localhost.localdomain:PORT", "ip6-localhost:PORT",
            "127.0.0.1.nip.io:PORT", "localtest.me:PORT", "１２７.０.０.１:PORT", "①②⑦.⓪.⓪.①:PORT", "127。0。0。1:PORT",
            "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254", "0xa9fea9fe", "2852039166",
            "0251.0376.0251.0376", "[fe80::1]", "[fd00:ec2::254]", "[::ffff:a9fe:a9fe]", "metadata.google.internal",
            "instance-data", "metadata", "224.0.0.1", "255.255.255.255",
        ].map { "https://\($0)/latest/meta-data/" }

        /// URLs that one parser takes for the push service and another for something else.
        private static let ambiguous = [
            "https://fcm.googleapis.com@127.0.0.1:PORT/x", "https://fcm.googleapis.com:443@127.0.0.1:PORT/x",
            "https://127.0.0.1:PORT@fcm.googleapis.com/x", "https://user:word@fcm.googleapis.com/x",
            "https://fcm.googleapis.com%40127.0.0.1:PORT/x", #"https://fcm.googleapis.com\@127.0.0.1:PORT/x"#,
            #"https://127.0.0.1:PORT\@fcm.googleapis.com/x"#, "https://127.0.0.1:PORT#@fcm.googleapis.com/x",
            "https://127.0.0.1:PORT?@fcm.googleapis.com/x", "https://fcm.googleapis.com:PORT/x",
            "https://fcm.googleapis.com:80/x", "https://fcm.googleapis.com:0/x", "https://fcm.googleapis.com:65979/x",
            "https://fcm.googleapis.com:443:PORT/x", "https://fcm.googleapis.com: 443/x",
            "https://fcm.googleapis.com:+443/x", "https://fcm.googleapis.com:٤٤٣/x",
            "http://fcm.googleapis.com/x", "HTTP://127.0.0.1:PORT/x", "ftp://127.0.0.1:PORT/x", "file:///etc/passwd",
            "gopher://127.0.0.1:PORT/_x", "unix:///run/docker.sock", "//127.0.0.1:PORT/x", "https:/127.0.0.1:PORT/x",
            "https:127.0.0.1:PORT/x", "https:///127.0.0.1:PORT/x", "javascript:alert(1)", "data:,x", "", "https://",
            " https://fcm.googleapis.com/x", "https://fcm.googleapis.com/x ", "https://fcm.googleapis.com/\r\nHost: x",
            "https://fcm.googleapis.com/x\u{0}", "https://fcm.googleapis.com\u{0}.evil.test/x",
            "https://fcm.googleapis.com/x#y", "https://fcm.googleapis.com/%", "https://fcm.googleapis.com",
        ]

        /// Host names that resemble allowed ones but are not allowed.
        private static let strangers = [
            "fcm.googleapis.com.evil.test", "evil-fcm.googleapis.com", "evil.fcm.googleapis.com", "googleapis.com",
            "fcm.googleapis.com.", "fcm..googleapis.com", "xn--fcm.googleapis.com", "fcm.googl\u{435}apis.com",
            "ｆcm.googleapis.com", "push.apple.com", "evilpush.apple.com", "web.push.apple.com.evil.test",
            ".push.apple.com", "notify.windows.com", "a_b.notify.windows.com", "-.notify.windows.com",
            "updates.push.services.mozilla.com:8443", "push.services.mozilla.com", "*.push.apple.com", "evil.test",
        ].map { "https://\($0)/x" }

        @Test("endpoints outside of push services are refused with their codes, and the server does not connect")
        func endpoints() async throws {
            let trap = try Trap()
            try await Attack(number: 20, name: "push endpoints", settings: Self.settings).run { server in
                let ann = try Person.arrive(port: server.port)
                let id = try ann.appear(Appearance(name: "Ann")).person
                let secret = try #require(ann.welcome.identity)
                #expect(ann.welcome.push != nil)
                var tally = Tally()
                for endpoint in Self.inside + Self.ambiguous + Self.strangers {
                    let endpoint = endpoint.replacing("PORT", with: "\(trap.port)")
                    let verdict = try ann.register(.browser(endpoint))
                    tally.count(verdict)
                    #expect(["push_not_allowed", "push_invalid"].contains(verdict), "\(endpoint.debugDescription)")
                }
                let good = PushRegistration.browser("https://fcm.googleapis.com/fcm/send/x")
                var wrong = [good, good, good, good, good]
                wrong[0].auth = nil
                wrong[1].p256dh = Forging.base64URL(Data(repeating: 4, count: 65))
                wrong[2].p256dh = "\u{0}"
                wrong[3] = PushRegistration(kind: .apns, endpoint: String(repeating: "a0", count: 32))
                wrong[4] = PushRegistration(
                    kind: .apns, endpoint: "../../3/device/\(String(repeating: "a", count: 50))")
                let codes = ["push_invalid", "push_invalid", "push_invalid", "push_not_allowed", "push_invalid"]
                for (registration, code) in zip(wrong, codes) {
                    let verdict = try ann.register(registration)
                    tally.count(verdict)
                    #expect(verdict == code, "\(registration)")
                }
                for members in [
                    "", #""kind":"ftp","endpoint":"x""#, #""kind":"web","endpoint":["https://127.0.0.1/"]"#,
                ] {
                    #expect(try ann.verdict("push.register", members: members) == "malformed")
                }
                let long = "https://fcm.googleapis.com/" + String(repeating: "x", count: 2022)
                #expect(try ann.register(.browser(long)) == "malformed")
                #expect(try server.held(secret).push.isEmpty)
                // Store a valid endpoint, and remove it before anything is sent to it.
                #expect(try ann.register(good) == "ok")
                let held = try server.held(secret)
                #expect(held.push.count == 1 && !held.text.contains("/fcm/send/x"))
                #expect(try ann.verdict(.push(.unregister(.init(endpoint: good.endpoint)))) == "ok")
                let bob = try Person.present("Bob", port: server.port).person
                try ann.close()
                try ann.hearClose()
                try eventually("the page that was closed is there") { try !bob.isOnline(id) }
                #expect(try bob.wake(id).answer == "unreachable")
                let caught = trap.caught()
                #expect(caught == 0)
                return AttackOutcome(sent: "\(tally.total) endpoints", cameBack: "\(tally.text), \(caught) connections")
            }
        }

        @Test("an allowed name that resolves to this machine is not used unless the operator permits it")
        func privateAddresses() async throws {
            let trap = try Trap()
            let services = ["CONFAB_PUSH_SERVICES": "localhost:\(trap.port)"].merging(Self.settings) { $1 }
            let endpoint = "https://localhost:\(trap.port)/x"
            try await Attack(number: 20, name: "names that lead inside", settings: services).run { server in
                let (id, _, caller) = try server.sleeper(endpoint)
                let (call, answer) = try caller.wake(id)
                #expect(answer == "rings on 0")
                try eventually("the refusal is not in the log: \(server.log)") {
                    server.log.contains("resolves to a private address")
                }
                #expect(try caller.verdict(.call(.end(.init(call: call)))) == "ok")
                _ = try caller.hearEnd(call)
                let caught = trap.caught()
                #expect(caught == 0)
                // Check that the trap detects connections: with the operator's permission there is one.
                let open = services.merging(["CONFAB_PUSH_ALLOW_PRIVATE_ADDRESSES": "true"]) { $1 }
                try await ServerProcess.run(open) { server in
                    let (id, _, caller) = try server.sleeper(endpoint)
                    #expect(try caller.wake(id).answer == "rings on 0")
                    try eventually("nothing connects") { trap.caught() > 0 }
                }
                return AttackOutcome(sent: "1 push to a name of 127.0.0.1", cameBack: "\(caught) connections")
            }
        }

        @Test("a redirect by a push service is not followed")
        func redirects() async throws {
            guard let tunnel = try TLSTunnel() else { return print("hostile 20 | redirects | skipped: no openssl") }
            defer { tunnel.remove() }
            let (trap, port) = (try Trap(), try TestPorts.next())
            let service = try tunnel.answerer(port: port)
            defer { service.end() }
            let settings = [
                // The redirect must not be followed even if its target is allowed too.
                "CONFAB_PUSH_SERVICES": "localhost:\(port),localhost:\(trap.port)",
                "CONFAB_PUSH_ALLOW_PRIVATE_ADDRESSES": "true", "CONFAB_PUSH_AUTHORITIES": tunnel.certificate,
            ].merging(Self.settings) { $1 }
            try await Attack(number: 20, name: "redirected pushes", settings: settings).run { server in
                let (id, _, caller) = try server.sleeper("https://localhost:\(port)/x")
                let (call, answer) = try caller.wake(id)
                #expect(answer == "rings on 0")
                let head = try service.answer(
                    "HTTP/1.1 307 Temporary Redirect\r\nLocation: https://localhost:\(trap.port)/x\r\n"
                        + "Content-Length: 0\r\n\r\n")
                #expect(head.hasPrefix("POST /x HTTP/1.1\r\n"))
                try eventually("the redirect is not in the log: \(server.log)") { server.log.contains("status 307") }
                _ = try caller.verdict(.call(.end(.init(call: call))))
                _ = try caller.hearEnd(call)
                let caught = trap.caught()
                #expect(caught == 0)
                return AttackOutcome(sent: "1 push, answered with 307", cameBack: "\(caught) connections")
            }
        }

        @Test("registering, removing or deleting another person's endpoint changes nothing and reveals no address")
        func theft() async throws {
            let trap = try Trap()
            let settings = [
                "CONFAB_PUSH_SERVICES": "localhost:\(trap.port)", "CONFAB_LOG_LEVEL": "debug",
            ].merging(Self.settings) { $1 }
            try await Attack(number: 20, name: "push-token theft", settings: settings).run { server in
                let endpoint = "https://localhost:\(trap.port)/capability-of-ann"
                let (id, secret, caller) = try server.sleeper(endpoint)
                let eve = try Person.arrive(port: server.port)
                try eve.appear(Appearance(name: "Eve"))
                let eves = try #require(eve.welcome.identity)
                var tally = Tally()
                let unregister = ClientMessage.push(.unregister(.init(endpoint: endpoint)))
                for verb in [unregister, .push(.register(.browser(endpoint))), unregister] {
                    tally.count(try eve.verdict(verb))
                    #expect(try server.held(secret).push.count == 1)
                }
                #expect(try server.held(eves).push.isEmpty)
                // Register more endpoints than a person may have. Only Eve's own oldest endpoints are dropped.
                for number in 0..<50 {
                    tally.count(try eve.register(.browser("https://localhost:\(trap.port)/\(number)")))
                }
                tally.count(try eve.register(.browser(endpoint)))
                #expect(try (1...20).contains(server.held(eves).push.count))
                #expect(try eve.verdict(.presence(.delete)) == "ok")
                #expect(try eve.hearClose() == 4409)
                let held = try server.held(secret)
                #expect(held.push.count == 1 && !held.text.contains("capability-of-ann"))
                let (call, answer) = try caller.wake(id)
                #expect(answer == "rings on 0", "the other person can still be woken")
                _ = try caller.verdict(.call(.end(.init(call: call))))
                _ = try caller.hearEnd(call)
                #expect(!server.log.contains("capability-of-ann"))
                #expect(trap.caught() == 0)
                return AttackOutcome(sent: "\(tally.total) verbs with another person's endpoint", cameBack: tally.text)
            }
        }
    }
}
