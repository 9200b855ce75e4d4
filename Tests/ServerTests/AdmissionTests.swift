import Signaling
import Testing
import Wire

@testable import Server

/// What outsiders see of admission: which error comes first, and what it says.
@Suite("Admission of an address") struct AdmissionTests {
    @Test("each door makes its checks in its order")
    func order() {
        #expect(Gateway.Door.upgrade.checks == [.room, .origin, .draining, .ban])
        #expect(Gateway.Door.hello.checks == [.rate])
        #expect(Gateway.Door.welcome.checks == [.draining, .ban])
        #expect(Gateway.Door.handshake.checks == [.draining, .ban, .rate, .room])
        #expect(Gateway.Door.resource.checks == [.draining, .ban, .rate, .room])
        #expect(Gateway.Door.export.checks == [.rate])
        #expect(Gateway.Door.drawing.checks == [.rate])
    }

    @Test("what a client is told at each door")
    func sentences() {
        let wait = Duration.seconds(3)
        #expect(
            told(.upgrade) { $0.tooManyConnections } == "Too many connections from your network; close some tabs. 10")
        #expect(told(.handshake) { $0.tooManyConnections } == "Too many connections; close some tabs.")
        #expect(told(.resource) { $0.tooManyConnections } == "Too many connections from your network. 10")
        #expect(told(.upgrade) { $0.draining } == "The server is restarting.")
        #expect(told(.handshake) { $0.draining } == "The server is restarting; try again.")
        #expect(told(.resource) { $0.draining } == "The server is restarting; try again. 5")
        for door in [Gateway.Door.hello, .handshake] {
            let error = told(door) { $0.tooOften(retryAfter: wait) }
            #expect(error == "Too many visits from your network; wait a little. 3")
        }
        for door in [Gateway.Door.resource, .export, .drawing] {
            let error = told(door) { $0.tooOften(retryAfter: wait) }
            #expect(error == "Too many requests from your network; wait a little. 3")
        }
        for door in Gateway.Door.allCases {
            let errors = [door.tooManyConnections, door.draining, door.tooOften(retryAfter: wait)]
            #expect(errors.map(\.code.rawValue) == ["too_many_connections", "draining", "rate_limited"])
            #expect(errors.map(\.retryable) == [true, true, true])
        }
    }

    /// The sentence, and the seconds to wait if the error names them.
    private func told(_ door: Gateway.Door, _ error: (Gateway.Door) -> WireError) -> String {
        let error = error(door)
        return error.retryAfter.map { "\(error.message) \($0.components.seconds)" } ?? error.message
    }
}

/// Each entrance, as clients come to it, against each check that is made there.
@Suite("Doors, over sockets", .ownThreads, .serialized, .timeLimit(.minutes(5))) struct DoorTests {
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

    @Test("who fails no check is let in", arguments: Entrance.all)
    func admitted(_ entrance: Entrance) async throws {
        // A client that sends nothing after the upgrade waits for this timeout.
        try await run({ if entrance.door == .upgrade { $0.limits.handshakeTimeout = .milliseconds(200) } }) { server in
            let knock = try await entrance.approach(server, Self.home)
            #expect(try await knock() == nil)
        }
    }

    @Test("who fails a check is refused", arguments: cases)
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
                // As long as somebody does not go, the port is open.
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

    /// Makes it possible to fail this check, and no other.
    private static func prepare(_ check: Gateway.Check, _ configuration: inout ConfabConfiguration) {
        switch check {
        case .room: configuration.limits.socketsPerAddress = 1
        case .rate: configuration.limits.hellos = Budget.Rate(perSecond: 0.001, burst: 1)
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

    /// Bans this machine, and waits until the server knows.
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
