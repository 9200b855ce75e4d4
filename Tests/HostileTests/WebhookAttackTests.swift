import Foundation
import Signaling
import TestSupport
import Testing
import Wire

/// The visits to two sessions, and the events that must be reported about them.
private struct Visits {
    let server: ServerProcess
    let sessions: [SessionID]
    private let token: (SessionID) -> String
    private(set) var expected: [SessionID: [String]] = [:]

    init(_ server: ServerProcess) async throws {
        self.server = server
        sessions = [try await server.makeSession(), try await server.makeSession()]
        let forging = try await Forging(server)
        token = { forging.token(forging.sessionClaims($0.text, ["role": "\"moderator\""])) }
    }

    /// One person joins and leaves each session, and another joins, publishes and stays.
    mutating func happen() throws -> [Person] {
        try sessions.map { session in
            let admission = Admission(session: session, token: token(session))
            let (staying, leaving) = (try Person.arrive(port: server.port), try Person.arrive(port: server.port))
            _ = try staying.join(admission)
            let joined = try leaving.join(admission)
            let request = ClientMessage.session(.leave(.init(session: session)))
            guard try leaving.verdict(request) == "ok" else { throw TimedOut("\(joined.connection.id) may not leave") }
            var publish = SessionVerb.Publish()
            publish.session = session
            let seq = try staying.say(.session(.publish(publish)))
            _ = try staying.hear("published") {
                if case .session(.published(let own)) = $0, own.re == seq { own.stream.id } else { nil }
            }
            expected[session, default: []] += [
                "sessionCreated", "connectionCreated", "connectionCreated", "connectionDestroyed clientDisconnected",
                "streamCreated",
            ]
            return staying
        }
    }

    /// Waits until everything so far is stored: changes are stored in order, and this one is answered once it is stored.
    func settle() throws { _ = try Person.present("Last", port: server.port) }

    /// Ends the server as a crash would, and starts it again.
    mutating func crash() throws {
        server.kill()
        for session in sessions {
            expected[session, default: []] += [
                "streamDestroyed networkDisconnected", "connectionDestroyed networkDisconnected", "sessionDestroyed",
            ]
        }
        try server.restart()
    }
}

extension Hostile {
    @Suite("Case 20: webhooks") struct WebhookAttacks {
        /// Sets the webhook of the main project, waits until the server knows it, and returns its secret.
        private static func setWebhook(_ url: String, _ server: ServerProcess) async throws -> String {
            let key = try server.project().apiKey
            let result = try await server.command(["project", "set", key, "--webhook", url])
            let line = result.output.components(separatedBy: "\n").first { $0.hasPrefix("Webhook secret: ") }
            guard let secret = line?.dropFirst("Webhook secret: ".count) else { throw TimedOut("\(result)") }
            try eventually("the server does not know the webhook: \(server.log)") {
                server.log.contains("The projects have changed")
            }
            return String(secret)
        }

        @Test("what happened while a receiver was down and the server was killed is delivered in order")
        func crashes() async throws {
            let settings = ["CONFAB_WEBHOOKS_ALLOW_PRIVATE_ADDRESSES": "true", "CONFAB_WEBHOOKS_CONCURRENCY": "8"]
            try await ServerProcess.run(settings) { server in
                let port = try TestPorts.next()
                let secret = try await Self.setWebhook("http://127.0.0.1:\(port)/hook?key=word-in-the-url", server)
                var visits = try await Visits(server)
                // The receiver is down.
                var people = try visits.happen()
                try visits.settle()
                try visits.crash()
                people += try visits.happen()
                try visits.settle()
                // It answers four requests and then hangs, while the server is killed again.
                let hanging = try WebhookReceiver(port: port, answers: 4)
                try eventually("only \(hanging.deliveries.count) requests arrived", within: .seconds(60)) {
                    hanging.deliveries.count > 4
                }
                try visits.crash()
                hanging.stop()
                people += try visits.happen()
                try visits.settle()
                try eventually("the port is in use", within: .seconds(10)) { (try? RawSocket(port: port)) == nil }
                let receiver = try WebhookReceiver(port: port)
                defer { receiver.stop() }
                let count = visits.expected.values.reduce(0) { $0 + $1.count }
                try eventually("\(server.log)", within: .seconds(60)) {
                    Set((hanging.deliveries + receiver.deliveries).map { $0.headers["x-confab-delivery"] }).count
                        >= count
                }
                let all = hanging.deliveries + receiver.deliveries
                #expect(all.allSatisfy { $0.isSigned(with: secret) })
                for session in visits.sessions {
                    var (names, last): ([String], String?) = ([], nil)
                    for delivery in all where delivery.session == session.text {
                        // An event may arrive more than once, but only before the next one.
                        if delivery.headers["x-confab-delivery"] != last { names.append(delivery.name) }
                        last = delivery.headers["x-confab-delivery"]
                    }
                    #expect(names == visits.expected[session])
                }
                for confidential in [secret, "word-in-the-url"] { #expect(!server.log.contains(confidential)) }
                #expect(people.count == 6)
                print("hostile 20 | webhooks across 2 kills | \(count) events, \(all.count) requests")
            }
        }

        @Test("a webhook that leads to this machine is refused, and the server does not connect")
        func privateAddresses() async throws {
            let trap = try Trap()
            try await ServerProcess.run { server in
                let key = try server.project().apiKey
                for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "[::1]"] {
                    let result = try await server.command(
                        ["project", "set", key, "--webhook", "http://\(host):\(trap.port)/"])
                    #expect(result.status != 0 && result.errors.contains("webhooks.allowPrivateAddresses"), "\(result)")
                }
                _ = try await Self.setWebhook("http://localhost:\(trap.port)/", server)
                var visits = try await Visits(server)
                let people = try visits.happen()
                try eventually("\(server.log)", within: .seconds(30)) {
                    server.log.contains("has a private address (webhooks.allowPrivateAddresses)")
                }
                #expect(people.count == 2 && trap.caught() == 0)
            }
        }

        @Test("URLs that parsers read differently are refused when they are set")
        func ambiguousURLs() async throws {
            try await ServerProcess.run { server in
                let key = try server.project().apiKey
                for url in [
                    "http://2130706433/", "http://0x7f000001/", "http://127.1/", "http://0177.0.0.1/",
                    "http://example.org@127.0.0.1/", #"http://example.org\@127.0.0.1/"#,
                    "http://example.org#@127.0.0.1/",
                    "http://[::1%25lo]/", "file:///etc/passwd", "gopher://example.org/_x", "http://example.org/\u{7f}",
                ] {
                    let result = try await server.command(["project", "set", key, "--webhook", url])
                    #expect(result.status != 0 && result.errors.contains("webhook"), "\(url): \(result)")
                }
            }
        }
    }
}
