import Signaling
import Testing
import Wire

@testable import Server

/// The errors of admission: their order and their texts.
@Suite("Admission of an address") struct AdmissionTests {
    @Test("each admission point runs its checks in order")
    func order() {
        #expect(Gateway.AdmissionPoint.upgrade.checks == [.room, .origin, .draining, .ban])
        #expect(Gateway.AdmissionPoint.hello.checks == [.rate])
        #expect(Gateway.AdmissionPoint.welcome.checks == [.draining, .ban])
        #expect(Gateway.AdmissionPoint.handshake.checks == [.draining, .ban, .rate, .room])
        #expect(Gateway.AdmissionPoint.transport.checks == [.draining, .ban])
        #expect(Gateway.AdmissionPoint.resource.checks == [.draining, .ban, .rate, .room])
        #expect(Gateway.AdmissionPoint.export.checks == [.rate])
        #expect(Gateway.AdmissionPoint.drawing.checks == [.rate])
        #expect(Gateway.AdmissionPoint.operation.checks == [.draining, .ban])
        #expect(Gateway.AdmissionPoint.file.checks == [.draining, .ban, .rate])
    }

    @Test("each admission point has its error texts")
    func sentences() {
        let wait = Duration.seconds(3)
        #expect(
            text(.upgrade) { $0.tooManyConnections }
                == "Too many connections from your network. Close some tabs or apps and try again. 10")
        #expect(
            text(.handshake) { $0.tooManyConnections }
                == "Too many connections. Close some tabs or apps and try again.")
        #expect(
            text(.resource) { $0.tooManyConnections } == "Too many connections from your network. Try again later. 10")
        #expect(text(.upgrade) { $0.draining } == "The server is restarting. Try again in a moment.")
        #expect(text(.handshake) { $0.draining } == "The server is restarting. Try again in a moment.")
        #expect(text(.transport) { $0.draining } == "The server is restarting. Try again in a moment.")
        #expect(
            text(.transport) { $0.tooManyConnections } == "Too many connections from your network. Try again later. 10")
        #expect(text(.resource) { $0.draining } == "The server is restarting. Try again in a moment. 5")
        for door in [Gateway.AdmissionPoint.hello, .handshake] {
            let error = text(door) { $0.tooOften(retryAfter: wait) }
            #expect(error == "Too many connection attempts from your network. Try again in a moment. 3")
        }
        for door in [Gateway.AdmissionPoint.transport, .resource, .export, .drawing, .operation, .file] {
            let error = text(door) { $0.tooOften(retryAfter: wait) }
            #expect(error == "Too many requests from your network. Try again in a moment. 3")
        }
        for door in Gateway.AdmissionPoint.allCases {
            let errors = [door.tooManyConnections, door.draining, door.tooOften(retryAfter: wait)]
            #expect(errors.map(\.code.rawValue) == ["too_many_connections", "draining", "rate_limited"])
            #expect(errors.map(\.retryable) == [true, true, true])
        }
    }

    /// Returns the error's text, followed by the number of seconds to wait if the error contains one.
    private func text(_ door: Gateway.AdmissionPoint, _ error: (Gateway.AdmissionPoint) -> WireError) -> String {
        let error = error(door)
        return error.retryAfter.map { "\(error.message) \($0.components.seconds)" } ?? error.message
    }
}

/// Tests each entrance over real sockets, with each check that applies to it.
@Suite("Admission over sockets", .ownThreads, .serialized, .timeLimit(.minutes(5))) struct DoorTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let entrance: Entrance
        let check: Gateway.Check
        var testDescription: String { "\(entrance.name): \(check)" }
    }

    private static let home = "https://chat.example.org"
    private static let cases = Entrance.all.flatMap { entrance in
        Gateway.Check.allCases.filter { check in
            entrance.door.checks.contains(check) || (check == .origin && entrance.checksOrigin)
        }.map { Case(entrance: entrance, check: $0) }
    }

    @Test("a client that passes all checks is admitted", arguments: Entrance.all)
    func admitted(_ entrance: Entrance) async throws {
        // Short, because the client that sends nothing after the upgrade waits for this timeout.
        try await run({ if entrance.door == .upgrade { $0.limits.handshakeTimeout = .milliseconds(200) } }) { server in
            let knock = try await entrance.approach(server, Self.home)
            #expect(try await knock() == nil)
        }
    }

    @Test("a client that fails a check is rejected", arguments: cases)
    func refused(_ refusal: Case) async throws {
        let (entrance, check) = (refusal.entrance, refusal.check)
        try await run({ Self.prepare(check, &$0) }) { server in
            let knock = try await entrance.approach(server, check == .origin ? "https://elsewhere.example" : Self.home)
            switch check {
            case .origin: #expect(try await knock() == .forbiddenOrigin)
            case .room:
                let other = try await SocketClient.connect(port: server.port, headers: [("Origin", Self.home)])
                try await other.greet()
                #expect(try await knock() == .tooManyConnections)
            case .rate:
                #expect(try await knock() == nil)
                #expect(try await knock() == .rateLimited)
            case .ban:
                try await ban(server)
                #expect(try await knock() == .banned)
            case .draining:
                // Keep a client connected, because a draining server closes its port once no client is connected.
                let other = try await SocketClient.connect(
                    port: server.port, headers: [("Origin", Self.home)], answersClose: false)
                try await other.greet()
                server.stop()
                #expect(try await other.hearClose() == CloseCode.goingAway.rawValue)
                #expect(try await knock() == .draining)
                await other.drop()
            }
        }
    }

    /// Configures the server so that a client can fail this check and no other.
    private static func prepare(_ check: Gateway.Check, _ configuration: inout ConfabConfiguration) {
        switch check {
        case .room: configuration.limits.socketsPerAddress = 1
        case .rate:
            configuration.limits.hellos = Budget.Rate(perSecond: 0.001, burst: 1)
            configuration.limits.files = configuration.limits.hellos
            configuration.limits.views = configuration.limits.hellos
        case .draining: configuration.shutdown.grace = .seconds(20)
        case .ban: configuration.storage.pollInterval = .milliseconds(20)
        case .origin: break
        }
    }

    private func run(
        _ configure: (inout ConfabConfiguration) -> Void, _ body: @escaping @Sendable (TestServer) async throws -> Void
    ) async throws {
        try await TestServer.run(
            {
                $0.allowedOrigins = [Self.home]
                configure(&$0)
            }, body)
    }

    /// Bans this machine and waits until the server applies the ban.
    private func ban(_ server: TestServer) async throws {
        let witness = try await SocketClient.connect(port: server.port, headers: [("Origin", Self.home)])
        try await witness.greet()
        let storage = try SQLiteStorage(directory: server.dataDirectory)
        let ban = Ban(subject: .address("127.0.0.0/8"), reason: "test", createdAt: Timestamp(milliseconds: 0))
        try await storage.addBan(ban)
        #expect(try await witness.hearClose() == CloseCode.forbidden.rawValue)
        try await storage.close()
    }
}
