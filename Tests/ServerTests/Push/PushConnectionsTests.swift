import Crypto
import Foundation
import NIOCore
import Signaling
import Testing
import Wire

@testable import Server

/// Tests push connections with local servers that act as push services.
@Suite("Push connections over real sockets", .timeLimit(.minutes(3))) struct PushConnectionsTests {
    private let certificate: TestCertificate

    init() throws {
        certificate = try TestCertificate(
            ["localhost", "push.example.org"] + (0..<4).map { "push-\($0).example.org" })
    }

    private func request(_ host: String, _ port: Int) -> PushRequest {
        PushRequest(host: host, port: port, path: "/x?y=%20z", headers: [("ttl", "5")], body: [1, 2, 3])
    }

    /// Runs `body` with connections that trust the test's certificate authority, and closes them.
    private func withConnections<Result>(
        allowsPrivate: Bool = true, trusts: Bool = true,
        resolver: any PushResolver = ResolverDouble([["127.0.0.1"]]),
        timeIsOver: @escaping @Sendable () async throws -> Void = PushSamples.never,
        _ body: (PushConnections) async throws -> Result
    ) async throws -> Result {
        let connections = PushConnections(
            .init(
                timeout: .seconds(60), connectionsPerHost: 8, allowsPrivateAddresses: allowsPrivate,
                authorities: trusts ? certificate.authorities : nil, pause: { _ in try await timeIsOver() }),
            resolver: resolver)
        defer { certificate.remove() }
        do {
            let result = try await body(connections)
            await connections.close()
            return result
        } catch {
            await connections.close()
            throw error
        }
    }

    private func failure(_ body: () async throws -> PushResponse) async -> PushFailure? {
        do {
            _ = try await body()
            return nil
        } catch {
            return error as? PushFailure
        }
    }

    @Test(
        "connects to the checked address and sends the requested host name",
        arguments: ["h2", "http/1.1"])
    func pinning(version: String) async throws {
        let service = try await PushServiceDouble.start(certificate, protocols: [version]) { _, _ in
            .answer(429, headers: [("retry-after", "12")], body: "later")
        }
        let resolver = ResolverDouble([["127.0.0.1"], ["127.0.0.9"]])
        try await withConnections(resolver: resolver) { connections in
            for _ in 0..<3 {
                let answer = try await connections.exchange(request("push.example.org", service.port))
                #expect(answer == PushResponse(status: 429, retryAfter: "12", body: Array("later".utf8)))
            }
        }
        #expect(resolver.asked == 1, "the HTTP client must not resolve the name again")
        #expect(service.connections == 1, "connections are reused")
        let received = try #require(service.requests.first)
        #expect(received.method == "POST" && received.uri == "/x?y=%20z" && received.body == [1, 2, 3])
        #expect(received["ttl"] == "5" && received.host == "push.example.org:\(service.port)")
        #expect(received.isHTTP2 == (version == "h2"))
        await service.stop()
    }

    @Test("a name that resolves to this machine is rejected before connecting")
    func localhost() async throws {
        let service = try await PushServiceDouble.start(certificate)
        try await withConnections(allowsPrivate: false, resolver: SystemResolver()) { connections in
            let failure = await failure { try await connections.exchange(request("localhost", service.port)) }
            #expect(failure == .addressRefused("localhost"))
        }
        #expect(service.connections == 0)
        await service.stop()
    }

    @Test(
        "a name with any private address is rejected",
        arguments: [
            ["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["::ffff:10.0.0.1"], ["2607:f8b0::1", "fe80::1"], ["0.0.0.0"],
        ])
    func mixed(addresses: [String]) async throws {
        try await withConnections(allowsPrivate: false, resolver: ResolverDouble([addresses])) { connections in
            let failure = await failure { try await connections.exchange(request("push.example.org", 443)) }
            #expect(failure == .addressRefused("push.example.org"))
        }
    }

    @Test("after a failure the name is resolved and checked again")
    func lookedUpAgain() async throws {
        let service = try await PushServiceDouble.start(certificate)
        // Nothing listens at 127.0.0.77.
        let resolver = ResolverDouble([["127.0.0.77"], ["127.0.0.1"]])
        try await withConnections(resolver: resolver) { connections in
            let first = await failure { try await connections.exchange(request("push.example.org", service.port)) }
            #expect(first != nil)
            let answer = try await connections.exchange(request("push.example.org", service.port))
            #expect(answer.status == 201)
        }
        #expect(resolver.asked == 2)
        await service.stop()
    }

    @Test("requests for the same host share one lookup")
    func sharedLookups() async throws {
        let service = try await PushServiceDouble.start(certificate, protocols: ["http/1.1"])
        let resolver = HangingResolver { _ in true }
        try await withConnections(resolver: resolver) { connections in
            let requests = (0..<32).map { request("push-\($0 % 4).example.org", service.port) }
            let running = requests.map { request in Task { try await connections.exchange(request) } }
            try await eventually { resolver.asked.count == 4 ? nil : "\(resolver.asked)" }
            resolver.open()
            for task in running { #expect(try await task.value.status == 201) }
        }
        #expect(Set(resolver.asked).count == 4 && resolver.asked.count == 4)
        await service.stop()
    }

    @Test("hosts whose lookups hang do not affect others")
    func hangingLookups() async throws {
        let service = try await PushServiceDouble.start(certificate)
        let resolver = HangingResolver { $0.hasPrefix("hanging") }
        let connections = PushConnections(
            .init(
                timeout: .seconds(60), connectionsPerHost: 8, allowsPrivateAddresses: true,
                authorities: certificate.authorities,
                pause: { if $0 != PushLookups.slowAfter { try await PushSamples.never() } }),
            resolver: resolver)
        // When one of them finishes, the lookups in the slots for fast ones are late, and one of them takes its slot.
        let hosts = PushLookups.maxFast + PushLookups.maxSlow
        let hanging = (0..<hosts).map { request("hanging-\($0).example.org", service.port) }
        let running = hanging.map { request in Task { try await connections.exchange(request) } }
        try await eventually { resolver.asked.count == hosts ? nil : "\(resolver.asked.count) lookups" }
        resolver.openFirst()
        #expect(try await connections.exchange(request("push.example.org", service.port)).status == 201)
        for task in running { task.cancel() }
        for task in running { _ = await task.result }
        resolver.open()
        await connections.close()
        certificate.remove()
        await service.stop()
    }

    @Test("a lookup that does not start in time is reported as such")
    func busyLookups() async throws {
        let resolver = HangingResolver { _ in true }
        let connections = PushConnections(
            .init(
                timeout: .seconds(60), connectionsPerHost: 8, allowsPrivateAddresses: true,
                pause: {
                    if $0 == PushLookups.slowAfter { return try await PushSamples.never() }
                    try await eventually {
                        resolver.asked.count == PushLookups.maxFast ? nil : "\(resolver.asked.count) lookups"
                    }
                }),
            resolver: resolver)
        let requests = (0...PushLookups.maxFast).map { request("hanging-\($0).example.org", 443) }
        let running = requests.map { request in Task { await failure { try await connections.exchange(request) } } }
        var failures: [PushFailure?] = []
        for task in running { failures.append(await task.value) }
        #expect(failures.filter { $0 == .timedOut }.count == PushLookups.maxFast, "\(failures)")
        #expect(failures.filter { $0 == .lookupsBusy }.count == 1, "\(failures)")
        resolver.open()
        await connections.close()
        certificate.remove()
    }

    @Test("the old addresses are used if a new lookup fails")
    func oldAddresses() async throws {
        let service = try await PushServiceDouble.start(certificate)
        let resolver = ResolverDouble([["127.0.0.1"], []])
        try await withConnections(resolver: resolver) { connections in
            // Nothing listens at port 1.
            let first = await failure { try await connections.exchange(request("push.example.org", 1)) }
            #expect(first != nil)
            let answer = try await connections.exchange(request("push.example.org", service.port))
            #expect(answer.status == 201)
        }
        #expect(resolver.asked == 2)
        await service.stop()
    }

    @Test("the addresses of many hosts are kept, and those looked up first are forgotten first")
    func manyHosts() async throws {
        let count = 100
        let resolver = ResolverDouble(Array(repeating: ["127.0.0.1"], count: count + 1) + [[]])
        let connections = PushConnections(
            .init(
                timeout: .seconds(60), connectionsPerHost: 8, allowsPrivateAddresses: true, maxNames: count,
                pause: { _ in try await PushSamples.never() }),
            resolver: resolver)
        func failure(_ number: Int) async -> PushFailure? {
            // Nothing listens at port 1, so the next request looks the name up again.
            await self.failure { try await connections.exchange(request("host-\(number).example.org", 1)) }
        }
        for number in 0...count { _ = await failure(number) }
        #expect(resolver.asked == count + 1)
        #expect(await failure(0) == .nameUnknown("host-0.example.org"))
        for number in 1...count {
            guard case .unreachable = await failure(number) else {
                Issue.record("the addresses of host \(number) were forgotten")
                continue
            }
        }
        await connections.close()
        certificate.remove()
    }

    @Test("a second address is tried when the first does not answer")
    func secondAddress() async throws {
        let service = try await PushServiceDouble.start(certificate)
        // Nothing listens at 127.0.0.77.
        try await withConnections(resolver: ResolverDouble([["127.0.0.77", "127.0.0.1"]])) { connections in
            let answer = try await connections.exchange(request("push.example.org", service.port))
            #expect(answer.status == 201)
        }
        await service.stop()
    }

    @Test("an unknown name is an error")
    func unknownName() async throws {
        try await withConnections(resolver: SystemResolver()) { connections in
            let failure = await failure { try await connections.exchange(request("nobody.invalid", 443)) }
            #expect(failure == .nameUnknown("nobody.invalid"))
        }
    }

    @Test("redirects are not followed", arguments: [301, 302, 307, 308])
    func redirects(status: Int) async throws {
        let target = try await PushServiceDouble.start(certificate)
        let (port, resolver) = (target.port, ResolverDouble([["127.0.0.1"]]))
        let service = try await PushServiceDouble.start(certificate) { _, _ in
            .answer(status, headers: [("location", "https://push.example.org:\(port)/inside")])
        }
        try await withConnections(resolver: resolver) { connections in
            let answer = try await connections.exchange(request("push.example.org", service.port))
            #expect(answer.status == status && PushVerdict(web: answer) == .refused("status \(status)"))
        }
        #expect(target.connections == 0)
        await service.stop()
        await target.stop()
    }

    @Test(
        "an untrusted certificate, or a certificate for another name, is rejected",
        arguments: ["push.example.org", "other.example.org"])
    func certificates(host: String) async throws {
        let service = try await PushServiceDouble.start(certificate)
        let hasRightName = host == "push.example.org"
        try await withConnections(trusts: !hasRightName) { connections in
            let failure = await failure { try await connections.exchange(request(host, service.port)) }
            guard case .unreachable = failure else {
                Issue.record("\(String(describing: failure))")
                return
            }
        }
        #expect(service.requests.isEmpty)
        await service.stop()
    }

    @Test("a service that does not answer times out", arguments: ["h2", "http/1.1"])
    func silence(version: String) async throws {
        let service = try await PushServiceDouble.start(certificate, protocols: [version]) { _, _ in .silence }
        try await withConnections(timeIsOver: {
            try await eventually { service.requests.isEmpty ? "the push has not arrived" : nil }
        }) { connections in
            let failure = await failure { try await connections.exchange(request("push.example.org", service.port)) }
            #expect(failure == .timedOut)
        }
        await service.stop()
    }

    @Test("an endless answer times out, but its status is used", arguments: ["h2", "http/1.1"])
    func trickle(version: String) async throws {
        let service = try await PushServiceDouble.start(certificate, protocols: [version]) { _, _ in .trickle(410) }
        try await withConnections(timeIsOver: {
            try await eventually { service.pieces < 50 ? "only \(service.pieces) bytes came" : nil }
        }) { connections in
            do {
                let answer = try await connections.exchange(request("push.example.org", service.port))
                #expect(answer.status == 410 && answer.body.count < PushResponse.maxBodySize)
            } catch {
                // On a very busy machine, the timeout can expire before the status is read.
                #expect(error as? PushFailure == .timedOut)
            }
        }
        await service.stop()
    }

    @Test("only the beginning of an endless answer is read", arguments: ["h2", "http/1.1"])
    func flood(version: String) async throws {
        let service = try await PushServiceDouble.start(certificate, protocols: [version]) { _, _ in .flood(400) }
        try await withConnections { connections in
            let answer = try await connections.exchange(request("push.example.org", service.port))
            #expect(answer.status == 400 && answer.body.count == PushResponse.maxBodySize)
        }
        await service.stop()
    }

    @Test("a request that is waiting for a service can be canceled")
    func canceling() async throws {
        let service = try await PushServiceDouble.start(certificate) { _, _ in .silence }
        try await withConnections { connections in
            let port = service.port
            let waiting = Task { try await connections.exchange(request("push.example.org", port)) }
            try await eventually { service.requests.isEmpty ? "the push has not arrived" : nil }
            waiting.cancel()
            await #expect(throws: (any Error).self) { try await waiting.value }
        }
        await service.stop()
    }

    // MARK: End to end

    private func configuration(_ change: (inout ConfabConfiguration.Push) -> Void) -> ConfabConfiguration {
        var configuration = ConfabConfiguration()
        configuration.publicURL = "https://chat.example.org"
        configuration.push.allowPrivateAddresses = true
        configuration.push.authorities = certificate.authorities
        change(&configuration.push)
        return configuration
    }

    @Test("a push to a busy browser push service is signed, encrypted and retried")
    func webPush() async throws {
        let (browser, key) = (BrowserDouble(), P256.Signing.PrivateKey())
        let service = try await PushServiceDouble.start(certificate) { number, _ in
            number == 0 ? .answer(503, headers: [("retry-after", "1")]) : .answer(201)
        }
        let configuration = configuration { $0.services = ["localhost:\(service.port)"] }
        let endpoint = try PushServices(configuration.push).validate(
            browser.registration("https://localhost:\(service.port)/push/abc"))
        let directory = DirectoryDouble([PushSamples.identity: [endpoint]])
        let time = ManualTime()
        let sender = PushSender(
            configuration, keys: PushKeys(web: key), directory: directory,
            transport: PushConnections(
                .init(
                    timeout: .seconds(30), connectionsPerHost: 8, allowsPrivateAddresses: true,
                    authorities: certificate.authorities)),
            clock: time.clock, logger: PushSamples.silent)
        let running = Task { try await sender.run() }
        sender.send(PushSamples.notice(until: time.now + .seconds(45)), to: PushSamples.identity)
        try await eventually { service.requests.count == 2 ? nil : "\(service.requests.count) requests" }
        running.cancel()
        try await running.value
        let request = try #require(service.requests.last)
        #expect(request.uri == "/push/abc" && request["ttl"] == "44")
        let token = try ReadToken(vapid: request["authorization"], key: key.publicKey)
        #expect(token.claims["aud"] as? String == "https://localhost:\(service.port)")
        #expect(token.claims["sub"] as? String == "https://chat.example.org")
        #expect(try browser.open(request.body).text.contains(PushSamples.callText))
        await service.stop()
        certificate.remove()
    }

    @Test("Apple's service receives calls over HTTP/2, and unregistered devices are removed")
    func apns() async throws {
        let key = PushSamples.apnsKey()
        let gone = String(repeating: "0b", count: 32)
        let service = try await PushServiceDouble.start(certificate, protocols: ["h2"]) { _, request in
            request.uri.hasSuffix(gone)
                ? .answer(410, body: "{\"reason\":\"Unregistered\",\"timestamp\":1800000000000}") : .answer(200)
        }
        let configuration = configuration { $0.apnsServer = "https://localhost:\(service.port)" }
        let endpoints = try [PushSamples.device, gone].map {
            try PushEndpoint(PushRegistration(kind: .apns, endpoint: $0, sandbox: true))
        }
        let directory = DirectoryDouble([PushSamples.identity: endpoints])
        let time = ManualTime()
        let sender = PushSender(
            configuration, keys: PushKeys(web: .init(), apns: key), directory: directory, logger: PushSamples.silent
        ) { time.now }
        let running = Task { try await sender.run() }
        sender.send(PushSamples.notice(until: time.now + .seconds(45)), to: PushSamples.identity)
        try await eventually {
            let removed = await directory.removed.count
            return service.requests.count == 2 && removed == 1 ? nil : "\(service.requests.count), \(removed) removed"
        }
        running.cancel()
        try await running.value
        let request = try #require(service.requests.first { $0.uri == "/3/device/\(PushSamples.device)" })
        #expect(request.isHTTP2 && request.method == "POST")
        #expect(request["apns-topic"] == "org.example.chat.voip" && request["apns-push-type"] == "voip")
        #expect(request["apns-priority"] == "10" && request["apns-expiration"] == "1800000045")
        let token = try ReadToken(
            String(try #require(request["authorization"]).dropFirst("bearer ".count)), key: key.key.publicKey)
        #expect(token.claims["iat"] as? Int == 1_800_000_000 && token.header["kid"] as? String == "ABC123DEFG")
        let payload = try JSONSerialization.jsonObject(with: Data(request.body)) as? [String: String]
        #expect(payload == ["type": "call", "callId": PushSamples.callText, "kind": "incoming"])
        #expect(await directory.removed == [endpoints[1]])
        await service.stop()
        certificate.remove()
    }
}
