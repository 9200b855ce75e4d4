import Foundation
import Logging
import Signaling
import Synchronization
import Testing
import Wire

@testable import Server

@Suite("What a reload changes") struct ConfigurationChangeTests {
    /// A valid value for each setting that is not its default, for those that can be set alone.
    private static let values = [
        "7", "3", "7s", "3s", "7KiB", "3KiB", "true", "false", "relayed", "json", "debug", "https://a.example",
        "10.0.0.0/8", "stun:s.example", "turn:t.example", "192.0.2.1", "/tmp/x", "12345678",
        "00112233445566778899aabbccddeeff0011223344556677", "mailto:a@b.example", "a.example", "20s", "ABCDEFGHIJ",
        "postgresql://", "7Mbit/s", "operators", "5", "nearby", "redis://a.example",
        "ask", "tls", "720", "0.5", "x-a=b",
    ]

    private static func other(_ setting: Setting) -> ConfabConfiguration? {
        for value in values {
            var configuration = ConfabConfiguration()
            guard setting.store([value], &configuration), configuration != ConfabConfiguration() else { continue }
            return configuration
        }
        return nil
    }

    @Test("each key either applies and is copied, or waits for a restart and is not")
    func eachKey() throws {
        var untried: [String] = []
        for setting in Setting.all {
            guard let loaded = Self.other(setting) else {
                untried.append(setting.key.name)
                continue
            }
            let change = ConfigurationChange(from: ConfabConfiguration(), to: loaded)
            let name = setting.key.name
            #expect(change.unchanged == Setting.all.count - 1, "\(name)")
            #expect(change.applied.map(\.key) == (setting.key.isLive ? [name] : []), "\(name)")
            #expect(change.pending.map(\.key) == (setting.key.isLive ? [] : [name]), "\(name)")
            #expect(change.result == (setting.key.isLive ? loaded : ConfabConfiguration()), "\(name)")
        }
        #expect(untried.isEmpty)
    }

    @Test("differences name both values, but never a secret")
    func texts() throws {
        var loaded = ConfabConfiguration()
        loaded.rules.verbs.burst = 7
        loaded.ice.turnSecret = SecretText("hunter2hunter2")
        loaded.port = 1
        let change = ConfigurationChange(from: ConfabConfiguration(), to: loaded)
        #expect(
            change.applied == [
                .init(key: "ice.turnSecret", before: "unset", after: "[redacted]"),
                .init(key: "limits.requestBurst", before: "100", after: "7"),
            ])
        #expect(change.pending == [.init(key: "port", before: "8080", after: "1")])
    }

    @Test("every retention applies without a restart, because the hourly deletion reads them all")
    func retentions() {
        let retentions = Setting.all.map(\.key).filter { $0.name.hasSuffix("Retention") }
        #expect(retentions.count == 5)
        for key in retentions { #expect(key.isLive, "\(key.name)") }
    }

    /// The pool and the directory keep their rules, so these keys must not claim to apply.
    @Test("settings that the pool or the directory reads need a restart")
    func keptRules() {
        let kept = [
            "roulette.interestWait", "roulette.rematchWait", "roulette.entriesPerAddress",
            "roulette.candidatesPerAttempt", "roulette.retryInterval", "nearby.updateInterval",
            "nearby.refreshesPerSecond",
        ]
        for name in kept { #expect(Setting.all.first { $0.key.name == name }?.key.isLive == false, "\(name)") }
    }
}

@Suite("Reloading the configuration of a running server", .ownThreads, .timeLimit(.minutes(3))) struct ReloadTests {
    /// The file that the server reads, and a way to make it read.
    private final class File: Sendable {
        private let text = Mutex("")
        private let requests: AsyncStream<Void>
        private let request: AsyncStream<Void>.Continuation

        init() { (requests, request) = AsyncStream.makeStream(of: Void.self) }

        /// Keeps the settings that the test server needs.
        func reloading(_ base: @escaping @Sendable () -> ConfabConfiguration) -> Reloading {
            Reloading(requests: requests) { [self] in
                let loaded = try ConfabConfiguration.load(
                    overrides: [:], environment: [:], yaml: text.withLock { $0 }, named: "confab.yaml")
                // Everything that the test did not write into the file is as the server was started.
                var result = base()
                for setting in Setting.all where !setting.text(loaded).isEmpty {
                    if setting.text(loaded) != setting.key.defaultText { setting.copy(loaded, &result) }
                }
                return result
            }
        }

        func write(_ yaml: String) {
            text.withLock { $0 = yaml }
            request.yield()
        }
    }

    private func run(
        _ lines: LogLines, _ body: @escaping @Sendable (TestServer, File) async throws -> Void
    ) async throws {
        let (file, started) = (File(), Started())
        try await TestServer.run(
            logger: lines.logger, log: lines.settings, reloading: file.reloading { started.configuration },
            { configuration in
                configuration.storage.pollInterval = .milliseconds(20)
                started.keep(configuration)
            }
        ) { server in try await body(server, file) }
    }

    /// The configuration that the server was started with.
    private final class Started: Sendable {
        private let state = Mutex(ConfabConfiguration())
        var configuration: ConfabConfiguration { state.withLock { $0 } }
        func keep(_ configuration: ConfabConfiguration) { state.withLock { $0 = configuration } }
    }

    private func reloaded(_ lines: LogLines, times: Int = 1) async throws {
        try await eventually {
            let count = lines.all.count { $0.contains("Configuration reloaded") || $0.contains("was not reloaded") }
            return count >= times ? nil : "the reload has not ended: \(lines.all)"
        }
    }

    @Test("settings that apply do so at once, those that do not are named, and nobody is disconnected")
    func applying() async throws {
        let lines = LogLines()
        try await run(lines) { server, file in
            let ann = try await server.client()
            let place = try WHIPPlace(server)
            #expect(try await place.ask("GET", "/socket.io/1/?t=1").status == 200)
            file.write(
                "log:\n  level: debug\nlimits:\n  requestBurst: 50\nallowedOrigins: [https://a.example]\n"
                    + "media:\n  relayedFallback: 3s\nsocketIO:\n  enabled: false\n"
                    + "ice:\n  stunServers: [stun:s.example]\n")
            try await reloaded(lines)
            #expect(lines.settings.level == .debug)
            for key in [
                "log.level", "limits.requestBurst", "allowedOrigins", "socketIO.enabled", "ice.stunServers",
            ] {
                #expect(lines.contains("Setting changed") && lines.contains("setting=\(key)"), "\(key)")
            }
            #expect(lines.all.count { $0.contains("Restart the server to apply this setting") } == 1)
            #expect(lines.contains("setting=media.relayedFallback"))
            #expect(lines.contains("changed=5 needRestart=1 unchanged=\(Setting.all.count - 6)"), "\(lines.all)")

            let foreign = try await SocketClient.connect(port: server.port, headers: [("Origin", "https://b.example")])
            #expect(try await foreign.hearClose() == 4403)
            let refused = try await place.ask("GET", "/socket.io/1/?t=1", ["Origin": "https://a.example"])
            #expect(refused.status == 404, "Socket.IO is off")
            // The new limit counts the first client, which stays.
            file.write("limits:\n  socketsPerAddress: 1\nallowedOrigins: [https://a.example]\n")
            try await reloaded(lines, times: 2)
            let second = try await SocketClient.connect(port: server.port, headers: [("Origin", "https://a.example")])
            #expect(try await second.hearClose() == 4429)
            try await ann.ask(.roulette(.count))
            file.write("limits:\n  socketsPerAddress: 5\n")
            try await reloaded(lines, times: 3)
            await ann.drop()
            let back = try await ann.reconnect()
            #expect(back.resumed)
            #expect(back.ice.servers.isEmpty, "the STUN server was removed again")
        }
    }

    @Test("the operator's page follows a reload of the trusted proxies")
    func operatorsProxies() async throws {
        let (lines, file, started, admin) = (LogLines(), File(), Started(), AdminPort())
        try await TestServer.run(
            logger: lines.logger, log: lines.settings, reloading: file.reloading { started.configuration },
            admin: admin,
            { configuration in
                configuration.admin.port = 0
                started.keep(configuration)
            }
        ) { server in
            let page = "http://127.0.0.1:\(try await admin.opened())/admin/api/overview"
            let place = try WHIPPlace(server)
            func guess(_ address: String) async throws -> Int {
                try await place.ask("GET", page, token: "wrong", ["X-Forwarded-For": address]).status
            }
            // No proxy is trusted, so all guesses are from this machine.
            for number in 1...10 { #expect(try await guess("203.0.113.\(number)") == 401) }
            #expect(try await guess("203.0.113.11") == 429)
            file.write("trustedProxies: [127.0.0.1]\n")
            try await reloaded(lines)
            for number in 1...12 { #expect(try await guess("203.0.113.\(number)") == 401, "another address") }
        }
    }

    @Test("moderators may record as soon as the setting is reloaded, also those who had joined before")
    func recording() async throws {
        let (lines, file, started) = (LogLines(), File(), Started())
        let directory = NSTemporaryDirectory() + "confab-reload-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await TestServer.run(
            dataDirectory: directory, logger: lines.logger, log: lines.settings,
            reloading: file.reloading { started.configuration }, recorder: TestRecorder.maker(directory),
            { started.keep($0) }
        ) { server in
            let place = try WHIPPlace(server)
            func enter() async throws -> (SocketClient, ArchiveOutput?) {
                let client = try await server.client()
                let answer = try await client.ask(
                    .session(.join(.init(session: place.session, token: place.token(.moderator)))))
                guard case .session(.joined(let joined)) = answer else {
                    throw SocketClient.TimedOut(description: "\(answer)")
                }
                return (client, joined.moderatorArchives)
            }
            let start = ClientMessage.session(.startArchive(.init(session: place.session, output: .individual)))
            let (ann, before) = try await enter()
            #expect(before == nil)
            let refused = await #expect(throws: WireError.self) { try await ann.ask(start) }
            #expect(refused?.code == .notPermitted)
            file.write("recording:\n  moderatorsMayRecord: true\n")
            try await reloaded(lines)
            #expect(try await enter().1 != nil)
            #expect(try await ann.ask(start).type == "ok")
        }
    }

    @Test(
        "a node's next life is reloaded too, also if that was requested between two lives, and keeps what was reloaded")
    func lives() async throws {
        let (lines, file, started) = (LogLines(), File(), Started())
        let reloading = file.reloading { started.configuration }
        for life in 1...3 {
            try await TestServer.run(
                logger: lines.logger, log: lines.settings, reloading: reloading,
                { configuration in
                    let directory = configuration.dataDirectory
                    configuration = reloading.latest ?? configuration
                    configuration.dataDirectory = directory
                    if life == 1 { started.keep(configuration) }
                    #expect(configuration.rules.verbs.burst == (life == 1 ? Rules().verbs.burst : Double(48 + life)))
                }
            ) { _ in
                // The third life finds a request that was made before it began.
                if life < 3 { file.write("limits:\n  requestBurst: \(49 + life)\n") }
                try await reloaded(lines, times: life)
            }
            if life == 2 {
                file.write("limits:\n  requestBurst: 7\n")
                try await eventually { reloading.isPending ? nil : "the request was not noticed" }
            }
        }
        #expect(reloading.latest?.rules.verbs.burst == 7)
    }

    @Test("an invalid file, or a file with a project that cannot be used, changes nothing and is logged")
    func invalid() async throws {
        let lines = LogLines()
        try await run(lines) { server, file in
            let secret = "secret-that-is-not-valid.env"
            file.write(
                "limits:\n  socketsPerAddress: 1\n  requestBurst: many\napiSecret: \(secret)\nlog:\n  level: debug\n")
            try await reloaded(lines)
            #expect(lines.contains("The current one stays in use") && lines.contains("limits.requestBurst"))
            #expect(!lines.contains(secret))
            #expect(lines.settings.level == .info)
            let project = server.dataDirectory + "/project.json"
            let bytes = try #require(FileManager.default.contents(atPath: project))
            try Data("{}".utf8).write(to: URL(fileURLWithPath: project))
            file.write("limits:\n  socketsPerAddress: 1\nlog:\n  level: debug\n")
            try await eventually {
                let count = lines.all.count { $0.contains("The current one stays in use") }
                return count == 2 ? nil : "the second reload has not ended"
            }
            #expect(lines.settings.level == .info)
            try bytes.write(to: URL(fileURLWithPath: project))
            for _ in 0..<2 { _ = try await server.client() }
        }
    }

    @Test("a secret from the configuration is replaced at once")
    func secret() async throws {
        let lines = LogLines()
        try await run(lines) { server, file in
            let ann = try await server.client()
            let text = String(repeating: "s3", count: 20)
            file.write("apiSecret: \(text)\n")
            try await reloaded(lines)
            #expect(!lines.contains(text))
            var configuration = ConfabConfiguration()
            (configuration.dataDirectory, configuration.apiSecret) = (server.dataDirectory, SecretText(text))
            let token = try ProjectFile.open(configuration).project.makeUserToken(
                user: "ada", name: nil, now: Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)))
            try await SocketClient.connect(port: server.port).greet(token: token)
            let old = try server.project.project.makeUserToken(
                user: "ada", name: nil, now: Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)))
            let refused = try await SocketClient.connect(port: server.port)
            await #expect(throws: SocketClient.TimedOut.self) { try await refused.greet(token: old) }
            try await ann.ask(.roulette(.count))
        }
    }
}
