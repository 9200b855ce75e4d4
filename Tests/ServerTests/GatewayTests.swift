import Confab
import Foundation
import Server
import Signaling
import TestSupport
import Testing
import Wire

@Suite("The gateway over real sockets", .ownThreads, .timeLimit(.minutes(3)))
struct GatewayTests {
    @Test("two strangers are matched and chat, and Next notifies the partner")
    func meeting() async throws {
        try await TestServer.run { server in
            let (ann, bob) = (try await server.client(), try await server.client())
            async let annMeets = ann.meet()
            async let bobMeets = bob.meet()
            let (first, second) = try await (annMeets, bobMeets)
            #expect(first.match == second.match)
            let joined = try await ann.join(first.publish)
            _ = try await bob.join(second.publish)
            #expect(joined.capabilities.signal)
            try await ann.say(.session(.signal(.init(session: joined.session, type: "chat", data: "hello <b>"))))
            let heard = try await bob.hear("chat") {
                if case .session(.signal(let signal)) = $0 { signal } else { nil }
            }
            #expect(heard.data == "hello <b>")
            #expect(heard.from == joined.connection.id)
            try await bob.say(.roulette(.next(.init())))
            let ended = try await ann.hear("end") { if case .roulette(.ended(let ended)) = $0 { ended } else { nil } }
            #expect(ended.reason == .partnerNext)
        }
    }

    @Test("a socket at an address without Confab closes at once and says why")
    func wrongAddress() async throws {
        try await TestServer.run { server in
            let (incoming, events) = AsyncStream.makeStream(of: SocketEvent.self)
            let socket = NIOSocket { events.yield($0) }
            let url = try #require(URL(string: "ws://127.0.0.1:\(server.port)/nothing"))
            await #expect(throws: NIOSocket.NotConfab.self) { try await socket.connect(to: HostEndpoint(url)) }
            for await event in incoming {
                if case .closed(.abnormal) = event { break }
            }
        }
    }

    @Test("a dropped client resumes without loss, and its partner is notified of the drop and of the return")
    func resuming() async throws {
        try await TestServer.run { server in
            let (ann, bob) = (
                try await SocketClient.connect(port: server.port), try await SocketClient.connect(port: server.port)
            )
            let welcome = try await ann.greet()
            try await bob.greet()
            async let annMeets = ann.meet()
            async let bobMeets = bob.meet()
            let (first, second) = try await (annMeets, bobMeets)
            _ = try await ann.join(first.publish)
            let session = try await bob.join(second.publish).session
            await ann.drop()
            _ = try await bob.hear("reconnecting") {
                if case .roulette(.partner(let partner)) = $0, partner.state == .reconnecting { true } else { nil }
            }
            try await bob.say(.session(.signal(.init(session: session, type: "chat", data: "are you there?"))))
            let resumed = try await ann.reconnect()
            #expect(resumed.resumed)
            #expect(resumed.connection == welcome.connection)
            let missed = try await ann.hear("what was missed") {
                if case .session(.signal(let signal)) = $0 { signal } else { nil }
            }
            #expect(missed.data == "are you there?")
            _ = try await bob.hear("connected") {
                if case .roulette(.partner(let partner)) = $0, partner.state == .connected { true } else { nil }
            }
        }
    }

    @Test("a bad token closes with token_* and 4401, a bad hello with 4400")
    func refusals() async throws {
        try await TestServer.run { server in
            let forged = try await SocketClient.connect(port: server.port)
            await #expect(throws: SocketClient.TimedOut.self) { try await forged.greet(token: "a.b.c") }
            #expect(try await forged.hearClose() == 4401)
            #expect(await forged.heard.contains { if case .error(let e) = $0 { e.error.code.isToken } else { false } })

            let rude = try await SocketClient.connect(port: server.port)
            try await rude.say(.roulette(.next(.init())))
            #expect(try await rude.hearClose() == 4400)

            let old = try await SocketClient.connect(port: server.port)
            var hello = Hello()
            hello.version = 0
            try await old.say(.hello(hello))
            #expect(try await old.hearClose() == 4400)
            #expect(
                await old.heard.contains {
                    if case .error(let e) = $0 { e.error.code == .versionUnsupported } else { false }
                })
        }
    }

    /// Uses a separate server with a short timeout. On a busy machine, the other tests' clients may take longer to send
    /// hello.
    @Test("a client that sends no hello is closed with 4408")
    func silence() async throws {
        try await TestServer.run({ $0.limits.handshakeTimeout = .milliseconds(200) }) { server in
            let silent = try await SocketClient.connect(port: server.port)
            #expect(try await silent.hearClose() == 4408)
        }
    }

    @Test("blocks, bans and reports survive a restart")
    func restart() async throws {
        let directory = NSTemporaryDirectory() + "confab-restart-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let secrets = try await TestServer.run(dataDirectory: directory) { server in
            let (ann, bob) = (
                try await SocketClient.connect(port: server.port), try await SocketClient.connect(port: server.port)
            )
            let (annWelcome, bobWelcome) = (try await ann.greet(), try await bob.greet())
            async let annMeets = ann.meet()
            async let bobMeets = bob.meet()
            let (first, _) = try await (annMeets, bobMeets)
            _ = try await ann.join(first.publish)
            try await ann.say(.session(.signal(.init(session: first.publish.session, type: "chat", data: "go away"))))
            try await ann.ask(.roulette(.report(.init(reason: "rude"))))
            try await ann.ask(.roulette(.block(.init())))
            return [annWelcome.identity, bobWelcome.identity]
        }
        let storage = try SQLiteStorage(directory: directory)
        let reports = try await storage.reports(includingClosed: false, limit: 10)
        #expect(reports.count == 1)
        #expect(reports.first?.report.lines.map(\.text) == ["go away"])
        try await storage.close()
        try await TestServer.run(
            dataDirectory: directory,
            {
                $0.rules.rematchWait = .milliseconds(1)
                $0.rules.interestWait = .milliseconds(1)
            }
        ) { server in
            let ann = try await server.client(identity: secrets[0])
            let bob = try await server.client(identity: secrets[1])
            let third = try await server.client()
            try await ann.say(.roulette(.start(.init())))
            try await ann.hear("waiting") { if case .roulette(.waiting) = $0 { true } else { nil } }
            try await bob.say(.roulette(.start(.init())))
            try await bob.hear("waiting") { if case .roulette(.waiting) = $0 { true } else { nil } }
            // The third person is matched with the oldest entry. Without the block, the first two would already be matched.
            let met = try await third.meet()
            let annMet = try await ann.hear("match") {
                if case .roulette(.matched(let matched)) = $0 { matched } else { nil }
            }
            #expect(met.match == annMet.match)
        }
    }

    @Test("a ban by a command closes the client with 4403 and keeps it out")
    func ban() async throws {
        try await TestServer.run({ $0.storage.pollInterval = .milliseconds(20) }) { server in
            let ann = try await SocketClient.connect(port: server.port)
            let welcome = try await ann.greet()
            let keys = try server.project.project
            let identity = try keys.verifyIdentitySecret(try #require(welcome.identity)).id
            let storage = try SQLiteStorage(directory: server.dataDirectory)
            let ban = Ban(subject: .identity(identity), reason: "test", createdAt: Timestamp(milliseconds: 0))
            try await storage.addBan(ban)
            #expect(try await ann.hearClose() == 4403)
            let again = try await SocketClient.connect(port: server.port)
            await #expect(throws: SocketClient.TimedOut.self) { try await again.greet(identity: welcome.identity) }
            #expect(try await again.hearClose() == 4403)
            try await storage.close()
        }
    }

    @Test("a banned address is disconnected, and its next socket is rejected")
    func addressBan() async throws {
        try await TestServer.run({ $0.storage.pollInterval = .milliseconds(20) }) { server in
            let ann = try await server.client()
            let storage = try SQLiteStorage(directory: server.dataDirectory)
            let ban = Ban(subject: .address("127.0.0.0/8"), reason: "test", createdAt: Timestamp(milliseconds: 0))
            try await storage.addBan(ban)
            #expect(try await ann.hearClose() == 4403)
            let again = try await SocketClient.connect(port: server.port)
            #expect(try await again.hearClose() == 4403)
            try await storage.close()
        }
    }

    @Test("sockets are limited per address, and per client behind a trusted proxy")
    func socketsPerAddress() async throws {
        try await TestServer.run({
            $0.limits.socketsPerAddress = 2
            $0.trustedProxies = TrustedProxies([CIDRBlock("127.0.0.1/32")!])
        }) { server in
            for _ in 0..<2 { _ = try await server.client() }
            let third = try await SocketClient.connect(port: server.port)
            #expect(try await third.hearClose() == 4429)
            let other = try await SocketClient.connect(port: server.port, headers: [("X-Forwarded-For", "203.0.113.9")])
            try await other.greet()
        }
    }

    @Test("a stopping server closes all connections with 1001")
    func goingAway() async throws {
        let client = try await TestServer.run { server in
            let client = try await server.client()
            return client
        }
        #expect(try await client.hearClose() == 1001)
    }
}
