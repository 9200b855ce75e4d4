import Foundation
import Logging
import Signaling
import Testing
import Wire

@testable import Server

@Suite("The sender of webhooks", .ownThreads, .timeLimit(.minutes(3))) struct WebhookSenderTests: StorageFixtures {
    private typealias Samples = WebhookSamples

    /// The outbox of a running sender, and the clock that its pauses move.
    private struct Place {
        let storage: SQLiteStorage
        /// Ends a pause of the sender.
        let step: AsyncStream<Void>.Continuation

        /// Polls, and lets the sender's time pass meanwhile.
        func until(_ whyNotYet: () async throws -> String?) async throws {
            try await eventually {
                step.yield()
                return try await whyNotYet()
            }
        }

        func isDrained() async throws {
            try await until {
                let left = try await storage.webhookBacklogs().values.reduce(0) { $0 + $1.waiting }
                return left == 0 ? nil : "\(left) events wait"
            }
        }
    }

    /// Runs a sender with an outbox on disk. Its pauses last until the test polls.
    private func withSender(
        _ targets: TargetsDouble, _ transport: any PushTransport, logger: Logger = PushSamples.silent,
        turn: WebhookTurn? = nil, _ change: (inout ConfabConfiguration.Webhooks) -> Void = { _ in },
        _ body: (Place) async throws -> Void
    ) async throws {
        var settings = ConfabConfiguration.Webhooks()
        change(&settings)
        try await withDirectory { directory in
            let storage = try SQLiteStorage(directory: directory)
            let time = ManualTime(Samples.at)
            let (steps, step) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            let sender = WebhookSender(
                settings, outbox: storage, targets: targets, transport: transport, turn: turn, logger: logger,
                pause: { duration in
                    for await _ in steps { return time.advance(by: duration) }
                }, now: { Moment(now: time.now) })
            let running = Task { try await sender.run() }
            do { try await body(Place(storage: storage, step: step)) } catch {
                running.cancel()
                throw error
            }
            running.cancel()
            try await running.value
            try await storage.close()
        }
    }

    /// Connections with the settings of the server, which resolve names as the test says.
    private func connections(_ resolver: ResolverDouble, trusting authorities: String? = nil) -> PushConnections {
        var settings = ConfabConfiguration.Webhooks()
        settings.authorities = authorities
        settings.allowPrivateAddresses = authorities != nil
        // The default is too short for a busy machine.
        settings.timeout = .seconds(60)
        return PushConnections(WebhookSender.connections(settings), resolver: resolver)
    }

    private func target(_ url: String = "https://example.org/hook") throws -> WebhookTarget {
        try WebhookTarget(url: url, secret: Samples.secret)
    }

    @Test func `events are sent in order, signed, and removed once they are accepted`() async throws {
        let transport = TransportDouble { number, _ in PushResponse(status: number == 1 ? 500 : 204, retryAfter: nil) }
        try await withSender(TargetsDouble([Samples.project: target()]), transport) { place in
            try await place.storage.commit(Samples.visit(1).map { .webhook($0) })
            try await place.isDrained()
            let requests = await transport.requests
            let bodies = requests.map { String(decoding: $0.body, as: UTF8.self) }
            let names = try bodies.map { text in
                try #require(text.components(separatedBy: #""event":""#).last?.prefix(12))
            }
            #expect(names == ["sessionCreat", "connectionCr", "connectionCr", "connectionDe", "sessionDestr"])
            // The second attempt has the same delivery and another time.
            #expect(requests[1]["x-confab-delivery"] == requests[2]["x-confab-delivery"])
            #expect(requests[1]["x-confab-signature"] != requests[2]["x-confab-signature"])
            #expect(Set(requests.map { $0["x-confab-delivery"] ?? "" }).count == 4)
        }
        #expect(await transport.isClosed)
    }

    @Test func `a node of a cluster sends only in its turn, then also the events of others`() async throws {
        let transport = TransportDouble { _, _ in PushResponse(status: 200, retryAfter: nil) }
        let turn = WebhookTurn()
        try await withSender(TargetsDouble([Samples.project: target()]), transport, turn: turn) { place in
            try await place.storage.commit(Samples.visit(1).map { .webhook($0) })
            // Some seconds pass.
            var looks = 0
            try await place.until {
                looks += 1
                return looks > 50 ? nil : "not yet"
            }
            #expect(await transport.requests.isEmpty)
            turn.last(.seconds(3600))
            try await place.isDrained()
            #expect(await transport.requests.count == 4)
            // Another node does not announce its events here.
            try await place.storage.commit(Samples.visit(2).map { .webhook($0) })
            _ = place.storage.webhookSignal.take()
            try await place.isDrained()
            #expect(await transport.requests.count == 8)
        }
    }

    @Test(arguments: [301, 302, 307, 308, 100, 400, 401, 404, 410, 429, 500, 503, 600])
    func `only a status from 200 to 299 counts as accepted`(status: Int) async throws {
        let transport = TransportDouble { number, _ in PushResponse(status: number == 0 ? status : 200, retryAfter: nil)
        }
        try await withSender(TargetsDouble([Samples.project: target()]), transport) { place in
            try await place.storage.commit([.webhook(Samples.event(.sessionCreated))])
            try await place.isDrained()
            #expect(await transport.requests.count == 2)
        }
    }

    @Test func `a webhook that is set, changed and removed takes effect, and a removed one loses its events`()
        async throws
    {
        let transport = TransportDouble { _, request in
            PushResponse(status: request.host == "b.example.org" ? 200 : 503, retryAfter: nil)
        }
        let targets = TargetsDouble([:])
        try await withSender(targets, transport) { place in
            await targets.set(try target("https://a.example.org/"), of: Samples.project)
            try await place.storage.commit([.webhook(Samples.event(.sessionCreated))])
            try await place.until { await transport.requests.isEmpty ? "nothing was sent" : nil }
            await targets.set(try target("https://b.example.org/"), of: Samples.project)
            try await place.isDrained()
            await targets.set(try target("https://a.example.org/"), of: Samples.project)
            try await place.storage.commit([.webhook(Samples.event(.connectionCreated(Samples.connection)))])
            await targets.set(nil, of: Samples.project)
            try await place.until {
                try await place.storage.webhookBacklogs().isEmpty ? nil : "the events are still there"
            }
            // What was reported before is not reported as ended to a webhook that is set later.
            #expect(try await place.storage.endReportedSessions(at: now) == 0)
        }
    }

    @Test func `a lookup that had to wait is neither logged nor counted as a failure of the webhook`() async throws {
        let lines = LogLines()
        let transport = TransportDouble { number, _ in
            guard number > 0 else { throw PushFailure.lookupsBusy }
            return PushResponse(status: 200, retryAfter: nil)
        }
        try await withSender(TargetsDouble([Samples.project: target()]), transport, logger: lines.logger) { place in
            try await place.storage.commit([.webhook(Samples.event(.sessionCreated))])
            try await place.isDrained()
        }
        #expect(await transport.requests.count == 2 && !lines.all.contains { $0.contains("A webhook fails") })
    }

    @Test func `an event is given up after the configured time, with a line in the log that has no secret`()
        async throws
    {
        let lines = LogLines()
        let transport = TransportDouble { _, _ in throw PushFailure.timedOut }
        try await withSender(
            TargetsDouble([Samples.project: target("https://example.org/path-of-the-hook")]), transport,
            logger: lines.logger
        ) {
            $0.giveUpAfter = .seconds(100)
        } _: { place in
            try await place.storage.commit([.webhook(Samples.event(.connectionCreated(Samples.connection)))])
            try await place.isDrained()
        }
        let text = lines.all.joined(separator: "\n")
        #expect(text.contains("too old to try again") && text.contains("did not answer in time"), "\(text)")
        for confidential in [Samples.secret, "path-of-the-hook", "Ann"] { #expect(!text.contains(confidential)) }
    }

    // MARK: Sockets

    @Test func `a webhook over HTTPS receives the events of two sessions, each in order`() async throws {
        let certificate = try TestCertificate(["hooks.example.org"])
        defer { certificate.remove() }
        let service = try await PushServiceDouble.start(certificate) { number, _ in .answer(number % 3 == 0 ? 503 : 200)
        }
        let connections = self.connections(ResolverDouble([["127.0.0.1"]]), trusting: certificate.authorities)
        let other = try #require(SessionID("2_other"))
        let target = try target("https://hooks.example.org:\(service.port)/hook?key=1")
        try await withSender(TargetsDouble([Samples.project: target]), connections) { place in
            for number in 0..<5 {
                let visits = zip(Samples.visit(number), Samples.visit(100 + number, session: other))
                try await place.storage.commit(visits.flatMap { [.webhook($0), .webhook($1)] })
            }
            try await place.isDrained()
        }
        for session in [Samples.session, other] {
            let own = service.requests.filter { String(decoding: $0.body, as: UTF8.self).contains(session.text) }
            var names: [String] = []
            for request in own {
                #expect(request.uri == "/hook?key=1" && request.method == "POST")
                let object = try #require(JSONSerialization.jsonObject(with: Data(request.body)) as? [String: Any])
                let name = try #require(object["event"] as? String)
                // An event that was refused is sent again before the next one.
                if names.last != name { names.append(name) }
            }
            let visit = ["sessionCreated", "connectionCreated", "connectionDestroyed", "sessionDestroyed"]
            #expect(names == (0..<5).flatMap { _ in visit })
        }
        await service.stop()
    }

    @Test func `requests that hang do not keep others from reaching the same host`() async throws {
        let certificate = try TestCertificate(["hooks.example.org"])
        defer { certificate.remove() }
        let service = try await PushServiceDouble.start(certificate, protocols: ["http/1.1"]) { _, _ in .silence }
        let connections = self.connections(ResolverDouble([["127.0.0.1"]]), trusting: certificate.authorities)
        let target = try target("https://hooks.example.org:\(service.port)/")
        let request = PushRequest.webhook(WebhookMessage(delivery: [1], body: [2]), to: target, at: Samples.at)
        let running = (0..<16).map { _ in Task { try await connections.exchange(request) } }
        try await eventually { service.requests.count == 16 ? nil : "\(service.requests.count) requests arrived" }
        for task in running { task.cancel() }
        for task in running { _ = await task.result }
        await connections.close()
        await service.stop()
    }

    @Test func `a redirect is not followed, and a name is resolved once and not connected to elsewhere`() async throws {
        let certificate = try TestCertificate(["hooks.example.org"])
        defer { certificate.remove() }
        let inside = try await PushServiceDouble.start(certificate)
        let port = inside.port
        let service = try await PushServiceDouble.start(certificate) { number, _ in
            number == 0 ? .answer(307, headers: [("location", "https://hooks.example.org:\(port)/")]) : .answer(200)
        }
        // A name server that answers with another address the second time.
        let resolver = ResolverDouble([["127.0.0.1"], ["127.0.0.2"]])
        let connections = self.connections(resolver, trusting: certificate.authorities)
        let target = try target("https://hooks.example.org:\(service.port)/")
        try await withSender(TargetsDouble([Samples.project: target]), connections) { place in
            try await place.storage.commit(Samples.visit(1).map { .webhook($0) })
            try await place.isDrained()
        }
        #expect(inside.connections == 0 && service.requests.count == 5 && resolver.asked == 1)
        await service.stop()
        await inside.stop()
    }

    @Test(arguments: [
        "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
        "[::1]", "[::]", "[fe80::1]", "[fd00:ec2::254]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]", "[ff02::1]", "name-of-127.0.0.1", "name-of-::1", "name-of-8.8.8.8,10.0.0.1",
        "name-of-fe80::1",
    ])
    func `a private address is refused before connecting`(place: String) async throws {
        let isName = place.hasPrefix("name-of-")
        let resolver = ResolverDouble([isName ? place.dropFirst(8).split(separator: ",").map(String.init) : ["8.8.8.8"]]
        )
        for scheme in ["http", "https"] {
            let connections = self.connections(resolver)
            let target = try target("\(scheme)://\(isName ? "inside.example.org" : place):9/")
            let message = WebhookMessage(delivery: [1], body: [2])
            await #expect(throws: PushFailure.addressRefused(target.url.host)) {
                try await connections.exchange(.webhook(message, to: target, at: Samples.at))
            }
            await connections.close()
        }
        #expect(resolver.asked == (isName ? 2 : 0))
    }
}
