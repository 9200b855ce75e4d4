import Logging
import NIOCore
import NIOPosix
import Signaling
import Testing
import Wire

@testable import Server

/// Rooms that are read from storage again, because one of their changes was not stored.
@Suite("Rooms that are read again", .timeLimit(.minutes(3)))
struct RoomReloadTests: StorageFixtures {
    /// A client that notes what operators are answered.
    private final class Line: RunnerSocket {
        var answers: [OperatorReply] = []
        var slot: AddressBudgets.Slot? { nil }
        func write(_ bytes: [UInt8]) {}
        func flush() {}
        func close(_ code: CloseCode, _ reason: String) {}
        func answer(_ reply: OperatorReply) { answers.append(reply) }
    }

    /// A runner with a person in a persistent room. Used only on its event loop.
    private final class Shell {
        let runner: HubRunner
        private let line = Line()
        private let socket: SocketID
        private var requests: UInt64 = 0

        init(_ project: Project, _ storage: any Storage, _ person: IdentityID, _ eventLoop: any EventLoop) {
            runner = HubRunner(
                hubSettings: HubSettings(rules: Rules(), project: project), storage: storage, media: nil,
                trouble: StorageTrouble(busyLimit: .seconds(60), faultLimit: .seconds(10)), maxHeldBytes: 1 << 20,
                clock: ServerClock(), logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
                metrics: GatewayMetrics(), eventLoop: eventLoop)
            socket = runner.register(line)
            runner.submit(.arrived(Arrival(socket: socket, identity: Identity(id: person), address: "203.0.113.1")))
            var join = RoomVerb.Join(name: RoomName("Tea"), displayName: "Ada")
            var options = RoomChanges()
            options.persistent = true
            join.options = options
            ask(.room(.join(join)))
        }

        private func ask(_ message: ClientMessage) {
            requests += 1
            runner.submit(.message(socket, Envelope(seq: requests, message: message)))
        }

        func lock() {
            var options = RoomChanges()
            options.locked = true
            ask(.room(.set(.init(options: options))))
        }

        /// The room as it is in memory, once what it says is stored.
        var summary: RoomSummary? {
            let operators = Line()
            let asker = runner.register(operators)
            runner.submit(.operated(OperatorRequest(socket: asker, .list(after: nil, limit: 1))))
            runner.unregister(asker, leaving: true)
            guard case .rooms(let list)? = operators.answers.first else { return nil }
            return list.rooms.first
        }
    }

    /// Otherwise memory would lose a change that is stored, until the next restart brings it back.
    @Test("keep a change that they made during the reading", arguments: [false, true])
    func change(isStored: Bool) async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let (storage, alice) = (try SQLiteStorage.inMemory(), alice)
        let project = try #require(
            Project(apiKey: "45000001", secret: "00112233445566778899aabbccddeeff0011223344556677"))
        let shell = try await loop.submit { NIOLoopBound(Shell(project, storage, alice, loop), eventLoop: loop) }.get()
        func settled() async throws {
            try await until("a change waits for storage") {
                try await loop.submit { shell.value.runner.isSettled }.get()
            }
        }
        try await settled()
        let read = try await storage.rooms().rooms
        let room = try #require(read.first)
        #expect(!room.options.locked)
        let start = try await loop.submit { shell.value.runner.roomChanges.number }.get()
        if isStored {
            try await loop.submit { shell.value.lock() }.get()
            try await settled()
        }
        try await loop.submit {
            if !isStored { shell.value.lock() }
            shell.value.runner.reload([room.id], from: read, since: start)
        }.get()
        // The people in a room that is loaded again must join it again.
        try await until("the room was not read again") {
            try await loop.submit { shell.value.summary?.peopleCount == 0 }.get()
        }
        #expect(try await storage.rooms().rooms.first?.options.locked == true)
        #expect(try await loop.submit { shell.value.summary?.options.locked }.get() == true)
    }
}
