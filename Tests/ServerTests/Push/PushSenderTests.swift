import Crypto
import Foundation
import NIOConcurrencyHelpers
import Signaling
import Testing
import Wire

@testable import Server

/// Tests of the sender without sockets and with simulated time.
@Suite("Push sender", .timeLimit(.minutes(3))) struct PushSenderTests {
    private let browser = BrowserDouble()
    private let time = ManualTime()
    private let webKey = P256.Signing.PrivateKey()
    private let apnsKey = PushSamples.apnsKey()

    private func endpoint(_ path: String = "/x") throws -> PushEndpoint {
        try PushEndpoint(browser.registration("https://push.example.org" + path))
    }

    private func device() throws -> PushEndpoint {
        try PushEndpoint(PushRegistration(kind: .apns, endpoint: PushSamples.device))
    }

    private func sender(
        _ transport: TransportDouble, _ directory: DirectoryDouble = DirectoryDouble(),
        change: (inout ConfabConfiguration) -> Void = { _ in }
    ) -> PushSender {
        var configuration = ConfabConfiguration()
        configuration.push.services = ["push.example.org"]
        change(&configuration)
        return PushSender(
            configuration, keys: PushKeys(web: webKey, apns: apnsKey), directory: directory, transport: transport,
            clock: time.clock, logger: PushSamples.silent)
    }

    private func job(_ kind: PushNotice.Kind = .incoming, for duration: Duration = .seconds(45)) -> PushJob {
        PushJob(PushSamples.notice(kind, until: time.now + duration), to: PushSamples.identity)
    }

    @Test("a browser gets the call's ID and kind, and the push expires when the call stops ringing")
    func webRequest() async throws {
        let transport = TransportDouble { _, _ in PushResponse(status: 201, retryAfter: nil) }
        let sender = sender(transport)
        #expect(await sender.deliver(job(for: .milliseconds(44_001)), to: try endpoint("/a?b=c")) == .sent)
        let request = try #require(await transport.requests.first)
        #expect(request.host == "push.example.org" && request.port == 443 && request.path == "/a?b=c")
        #expect(request["ttl"] == "45" && request["urgency"] == "high" && request["topic"] == PushSamples.callText)
        #expect(request["content-encoding"] == "aes128gcm")
        let token = try ReadToken(vapid: request["authorization"], key: webKey.publicKey)
        #expect(token.claims["aud"] as? String == "https://push.example.org")
        let text = try browser.open(request.body).text
        #expect(text == "{\"type\":\"call\",\"callId\":\"\(PushSamples.callText)\",\"kind\":\"incoming\"}")
    }

    @Test("Apple gets a VoIP push with a signed token")
    func apnsRequest() async throws {
        let transport = TransportDouble { _, _ in PushResponse(status: 200, retryAfter: nil) }
        let sender = sender(transport)
        #expect(await sender.deliver(job(), to: try device()) == .sent)
        let request = try #require(await transport.requests.first)
        #expect(request.host == "api.push.apple.com" && request.path == "/3/device/\(PushSamples.device)")
        #expect(request["apns-topic"] == "org.example.chat.voip" && request["apns-push-type"] == "voip")
        #expect(request["apns-priority"] == "10" && request["apns-expiration"] == "1800000045")
        let token = try #require(request["authorization"])
        _ = try ReadToken(String(token.dropFirst("bearer ".count)), key: apnsKey.key.publicKey)
        #expect(request.body.count <= APNS.maxPayloadSize)
        #expect(String(decoding: request.body, as: UTF8.self).contains(PushSamples.callText))
    }

    @Test("apps get pushes only for incoming calls, because iOS would terminate them otherwise")
    func appsGetIncomingCallsOnly() async throws {
        let transport = TransportDouble { _, _ in PushResponse(status: 200, retryAfter: nil) }
        let sender = sender(transport)
        #expect(await sender.deliver(job(.over), to: try device()) == .untold)
        #expect(await sender.deliver(job(.missed), to: try device()) == .untold)
        #expect(await transport.requests.isEmpty)
    }

    @Test("an endpoint that is gone is removed", arguments: [404, 410])
    func deadBrowser(status: Int) async throws {
        let endpoint = try endpoint()
        let directory = DirectoryDouble([PushSamples.identity: [endpoint]])
        let transport = TransportDouble { _, _ in PushResponse(status: status, retryAfter: nil) }
        #expect(await sender(transport, directory).deliver(job(), to: endpoint) == .removed)
        #expect(await directory.removed == [endpoint])
    }

    @Test(
        "an unregistered device is removed, but a device token that belongs to another app is not",
        arguments: [
            (400, "BadDeviceToken", PushOutcome.removed), (410, "Unregistered", .removed),
            (410, "ExpiredToken", .removed),
            (400, "DeviceTokenNotForTopic", .failed), (403, "InvalidProviderToken", .failed), (404, "BadPath", .failed),
            (413, "PayloadTooLarge", .failed),
        ])
    func deadApp(status: Int, reason: String, outcome: PushOutcome) async throws {
        let device = try device()
        let directory = DirectoryDouble([PushSamples.identity: [device]])
        let transport = TransportDouble { _, _ in
            PushResponse(status: status, retryAfter: nil, body: Array("{\"reason\":\"\(reason)\"}".utf8))
        }
        #expect(await sender(transport, directory).deliver(job(), to: device) == outcome)
        #expect(await directory.removed == (outcome == .removed ? [device] : []))
        #expect(await transport.requests.count == 1)
    }

    @Test("permanent failures are not retried", arguments: [301, 302, 307, 308, 400, 401, 403, 413])
    func refused(status: Int) async throws {
        let transport = TransportDouble { _, _ in PushResponse(status: status, retryAfter: "1") }
        #expect(await sender(transport).deliver(job(), to: try endpoint()) == .failed)
        #expect(await transport.requests.count == 1)
    }

    @Test("a busy service is retried after its Retry-After, with backoff")
    func retrying() async throws {
        let transport = TransportDouble { number, _ in
            switch number {
            case 0: PushResponse(status: 429, retryAfter: "7")
            case 1: PushResponse(status: 503, retryAfter: nil)
            case 2: throw PushFailure.timedOut
            default: PushResponse(status: 201, retryAfter: nil)
            }
        }
        #expect(await sender(transport).deliver(job(), to: try endpoint()) == .sent)
        #expect(time.pauses == [.seconds(7), .seconds(2), .seconds(4)])
        let ttls = await transport.requests.map { $0["ttl"] }
        #expect(ttls == ["45", "38", "36", "32"])
    }

    @Test(
        "there are no retries after the call has stopped ringing",
        arguments: [nil, "3600", "99999999999999999999", "-5", "x"])
    func expiry(retryAfter: String?) async throws {
        let transport = TransportDouble { _, _ in PushResponse(status: 503, retryAfter: retryAfter) }
        let start = time.now
        #expect(await sender(transport).deliver(job(), to: try endpoint()) == .expired)
        #expect(time.now < start + .seconds(45))
        #expect(await transport.requests.count == (retryAfter == "3600" ? 1 : 6), "after 1, 2, 4, 8 and 16 s")
        #expect(await sender(transport).deliver(job(for: .zero), to: try endpoint()) == .expired)
    }

    @Test("a long-lived notice fails after the maximum number of retries")
    func exhaustion() async throws {
        let transport = TransportDouble { _, _ in throw PushFailure.unreachable("down") }
        #expect(await sender(transport).deliver(job(.missed, for: .seconds(86400)), to: try endpoint()) == .failed)
        #expect(await transport.requests.count == PushRetries.maxRetries + 1)
    }

    @Test("a token that Apple rejects as expired is replaced once")
    func expiredToken() async throws {
        let transport = TransportDouble { number, _ in
            number == 1 || number > 2
                ? PushResponse(status: 403, retryAfter: nil, body: Array("{\"reason\":\"ExpiredProviderToken\"}".utf8))
                : PushResponse(status: 200, retryAfter: nil)
        }
        let sender = sender(transport)
        #expect(await sender.deliver(job(), to: try device()) == .sent)
        time.advance(by: .seconds(30 * 60))
        #expect(await sender.deliver(job(), to: try device()) == .sent)
        let tokens = await transport.requests.map { $0["authorization"] }
        #expect(tokens.count == 3 && tokens[0] == tokens[1] && tokens[1] != tokens[2])
        time.advance(by: .seconds(30 * 60))
        #expect(await sender.deliver(job(), to: try device()) == .failed, "the token is replaced only once")
        #expect(await transport.requests.count == 5)
    }

    @Test("private addresses fail permanently, and stored endpoints are validated again")
    func notAllowedAnyMore() async throws {
        let transport = TransportDouble { _, request in throw PushFailure.addressRefused(request.host) }
        #expect(await sender(transport).deliver(job(), to: try endpoint()) == .failed)
        #expect(await transport.requests.count == 1)
        let strict = sender(transport) { $0.push.services = ["other.example.org"] }
        #expect(await strict.deliver(job(), to: try endpoint()) == .failed)
        #expect(await transport.requests.count == 1)
    }

    @Test("a notice goes to all devices of the person")
    func everyDevice() async throws {
        let endpoints = [try endpoint("/1"), try endpoint("/2"), try device()]
        let directory = DirectoryDouble([PushSamples.identity: endpoints])
        let transport = TransportDouble { _, _ in PushResponse(status: 200, retryAfter: nil) }
        let sender = sender(transport, directory)
        let running = Task { try await sender.run() }
        sender.send(PushSamples.notice(until: time.now + .seconds(45)), to: PushSamples.identity)
        sender.send(PushSamples.notice(until: time.now + .seconds(45)), to: IdentityID(high: 9, low: 9))
        try await eventually {
            let paths = Set(await transport.requests.map(\.path))
            return paths.count == 3 ? nil : "only \(paths) were sent to"
        }
        running.cancel()
        try await running.value
        #expect(await transport.isClosed)
    }

    @Test("a newer notice about a call waits for the notice being sent and cancels that notice's retries")
    func order() async throws {
        let endpoint = try endpoint()
        let directory = DirectoryDouble([PushSamples.identity: [endpoint]])
        let gate = Once<Bool>()
        let transport = TransportDouble { number, _ in
            if number == 0 { _ = await gate.value() }
            return PushResponse(status: number == 0 ? 503 : 201, retryAfter: nil)
        }
        let sender = sender(transport, directory)
        let running = Task { try await sender.run() }
        let expires = time.now + .seconds(45)
        sender.send(PushSamples.notice(until: expires), to: PushSamples.identity)
        try await eventually { await transport.requests.count == 1 ? nil : "the first has not started" }
        sender.send(PushSamples.notice(.over, until: expires), to: PushSamples.identity)
        sender.send(PushSamples.notice(.missed, until: expires), to: PushSamples.identity)
        gate.settle(true)
        try await eventually {
            let last = await transport.requests.last.map { try? browser.open($0.body).text }
            return last??.contains("missed") == true ? nil : "the last is \(last as Any)"
        }
        let kinds = try await transport.requests.map { try browser.open($0.body).text }
        #expect(kinds.first?.contains("incoming") == true)
        #expect(kinds.filter { $0.contains("incoming") }.count <= 2, "one retry may have started before the call ended")
        running.cancel()
        try await running.value
    }

    @Test("concurrent requests and the queue are limited, and a slow service does not block others")
    func bounds() async throws {
        let gate = NIOLockedValueBox<[Once<Bool>]>([])
        let now = NIOLockedValueBox((current: 0, most: 0))
        let transport = TransportDouble { _, request in
            let isSlow = request.host == "push.example.org"
            if isSlow { now.withLockedValue { $0 = ($0.current + 1, max($0.most, $0.current + 1)) } }
            let turn = Once<Bool>()
            gate.withLockedValue { $0.append(turn) }
            _ = await turn.value()
            if isSlow { now.withLockedValue { $0.current -= 1 } }
            return PushResponse(status: isSlow ? 201 : 200, retryAfter: nil)
        }
        let slow = try (0..<10).map { try endpoint("/\($0)") }
        let other = IdentityID(high: 7, low: 7)
        let directory = DirectoryDouble([PushSamples.identity: slow, other: [try device()]])
        let sender = sender(transport, directory) {
            $0.push.concurrency = 4
            $0.push.queue = 3
        }
        let running = Task { try await sender.run() }
        let expires = time.now + .seconds(45)
        sender.send(PushSamples.notice(until: expires), to: PushSamples.identity)
        try await eventually { now.withLockedValue { $0.current == 2 ? nil : "\($0) running" } }
        for _ in 0..<5 { sender.send(PushSamples.notice(until: expires), to: other) }
        try await eventually {
            await transport.requests.contains { $0.host == APNS.host } ? nil : "the other service waits"
        }
        try await eventually {
            for turn in gate.withLockedValue({ $0 }) { turn.settle(true) }
            let count = await transport.requests.count { $0.host == "push.example.org" }
            return count == 10 ? nil : "\(count) were sent"
        }
        #expect(now.withLockedValue { $0.most } == 2)
        #expect(await transport.requests.count { $0.host == APNS.host } <= 2, "the queue holds at most three notices")
        running.cancel()
        try await running.value
    }
}
