import Cluster
import Logging
import NIOCore
import NIOPosix
import Signaling
import Testing
import Wire

@testable import Server

/// The rules of a node of a cluster while its lease is not valid.
@Suite("Frozen rules", .timeLimit(.minutes(3)))
struct FreezingTests: StorageFixtures {
    /// A client that counts what it is sent.
    private final class Line: RunnerSocket {
        var messages = 0
        var closed: CloseCode?
        var slot: AddressBudgets.Slot? { nil }
        func write(_ bytes: [UInt8]) { messages += 1 }
        func flush() {}
        func close(_ code: CloseCode, _ reason: String) { closed = code }
    }

    private final class Reader: PausedReader {
        var isPaused = true
        func resumeReading() { isPaused = false }
    }

    /// A runner with one client. Used only on its event loop.
    private final class Shell {
        let runner: HubRunner
        let line = Line()
        let reader = Reader()
        let socket: SocketID
        var isLeaseValid = true
        /// What was called for letters of other nodes.
        var receipts: [String] = []

        init(_ project: Project, _ storage: any Storage, _ person: IdentityID, _ eventLoop: any EventLoop) {
            runner = HubRunner(
                hubSettings: HubSettings(rules: Rules(), project: project), storage: storage, media: nil,
                trouble: StorageTrouble(busyLimit: .seconds(60), faultLimit: .seconds(10)), maxHeldBytes: 1 << 20,
                clock: ServerClock(), logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
                metrics: GatewayMetrics(), eventLoop: eventLoop)
            socket = runner.register(line)
            runner.mayAct = { [unowned self] in isLeaseValid }
            runner.submit(.arrived(Arrival(socket: socket, identity: Identity(id: person), address: "203.0.113.1")))
        }

        func ask(_ number: UInt64) { ask(number, .roulette(.count)) }

        func ask(_ number: UInt64, _ message: ClientMessage) {
            runner.submit(.message(socket, Envelope(seq: number, message: message)))
        }

        /// Joins a room that storage keeps.
        func openRoom(_ number: UInt64) {
            var join = RoomVerb.Join(name: RoomName("Tea"), displayName: "Ada")
            var options = RoomChanges()
            options.persistent = true
            join.options = options
            ask(number, .room(.join(join)))
        }
    }

    private func withShell(_ body: @escaping @Sendable (NIOLoopBound<Shell>) async throws -> Void) async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let (storage, alice) = (try SQLiteStorage.inMemory(), alice)
        let project = try #require(
            Project(apiKey: "45000001", secret: "00112233445566778899aabbccddeeff0011223344556677"))
        try await body(
            try await loop.submit { NIOLoopBound(Shell(project, storage, alice, loop), eventLoop: loop) }.get())
    }

    @Test("report a change that storage committed meanwhile only afterwards")
    func settle() async throws {
        try await withShell { shell in
            let loop = shell.eventLoop
            let before = try await loop.submit {
                shell.value.openRoom(1)
                shell.value.isLeaseValid = false
                return shell.value.line.messages
            }.get()
            try await until("the change is committed") {
                try await loop.submit { shell.value.runner.unsettled != nil }.get()
            }
            try await loop.submit {
                #expect(shell.value.line.messages == before)
                #expect(!shell.value.runner.isSettled)
                shell.value.isLeaseValid = true
                shell.value.runner.thaw()
                #expect(shell.value.line.messages > before, "the room is not confirmed")
                #expect(shell.value.runner.isSettled)
            }.get()
        }
    }

    @Test("let letters of other nodes wait, which are carried out when what was stored with them is committed")
    func letters() async throws {
        try await withShell { shell in
            let loop = shell.eventLoop
            try await loop.submit {
                shell.value.isLeaseValid = false
                let sender = NodeTag(node: 2, life: 2)!
                let letter = Letter.call(CallID(high: 0, low: 1), .rings(devices: 1))
                shell.value.runner.submit(
                    received: [.letter(letter, from: sender), .lost(sender)],
                    handled: { shell.value.receipts.append("handled") },
                    carriedOut: { shell.value.receipts.append("carried out") })
                shell.value.openRoom(1)
                #expect(shell.value.receipts.isEmpty)
                shell.value.isLeaseValid = true
                shell.value.runner.thaw()
                #expect(shell.value.receipts == ["handled"])
            }.get()
            try await until("the room is stored") {
                try await loop.submit { shell.value.receipts == ["handled", "carried out"] }.get()
            }
        }
    }

    @Test("keep only the latest news of a session")
    func news() async throws {
        try await withShell { shell in
            try await shell.eventLoop.submit {
                shell.value.isLeaseValid = false
                shell.value.ask(1)
                let session = SessionID("1_tea")!
                for number in UInt64(1)...1000 {
                    shell.value.runner.submit(.media(.speaking(session, StreamID(high: 0, low: number))))
                }
                #expect(shell.value.runner.inputs.count == 2)
                #expect(
                    shell.value.runner.inputs.last
                        == .media(.speaking(session, StreamID(high: 0, low: 1000))))
            }.get()
        }
    }

    @Test("disconnect clients without media, those in rooms excepted")
    func disconnect() async throws {
        try await withShell { shell in
            let loop = shell.eventLoop
            try await loop.submit { shell.value.openRoom(1) }.get()
            try await until("the room is open") { try await loop.submit { shell.value.runner.isSettled }.get() }
            try await loop.submit {
                let (idle, runner) = (Line(), shell.value.runner)
                let socket = runner.register(idle)
                shell.value.isLeaseValid = false
                runner.submit(
                    .arrived(
                        Arrival(
                            socket: socket, identity: Identity(id: IdentityID(high: 2, low: 2)),
                            address: "203.0.113.2")))
                runner.closeSocketsWithoutMedia()
                #expect(idle.closed == .serviceRestart)
                #expect(shell.value.line.closed == nil)
            }.get()
        }
    }

    // MARK: Claims

    /// The places of a cluster, as the runner asks for them.
    private final class Places: MachinePlaces {
        var reached: [PlaceKey] = []
        func reach(_ key: PlaceKey, _ machine: PlacedMachine, claims: Bool) { reached.append(key) }
        func release(_ key: PlaceKey) {}
    }

    @Test("read a record again that was changed after it was read for a claim", arguments: [false, true])
    func claim(isChanged: Bool) async throws {
        let alice = alice
        try await withShell { shell in
            let loop = shell.eventLoop
            let key = PlaceKey(.person, "alice")
            let places = try await loop.submit { NIOLoopBound(Places(), eventLoop: loop) }.get()
            let start = try await loop.submit {
                shell.value.runner.places = places.value
                let start = shell.value.runner.lookupStart
                if isChanged {
                    shell.value.ask(1, .presence(.appear(.init(name: "Ada"))))
                }
                return start
            }.get()
            try await until("the change is stored") { try await loop.submit { shell.value.runner.isSettled }.get() }
            try await loop.submit {
                shell.value.runner.submit(
                    claimOf: key, .person(alice), .person(PersonRecord()), lookupStart: start)
                #expect(places.value.reached == (isChanged ? [key] : []))
                // What was read after that counts.
                shell.value.runner.submit(
                    claimOf: key, .person(alice), .person(PersonRecord()),
                    lookupStart: shell.value.runner.lookupStart)
                #expect(places.value.reached.count == (isChanged ? 1 : 0))
            }.get()
        }
    }

    @Test("answer nothing and read no socket while the lease is not valid, and answer all that has waited afterwards")
    func freeze() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let (storage, alice) = (try SQLiteStorage.inMemory(), alice)
        let project = try #require(
            Project(apiKey: "45000001", secret: "00112233445566778899aabbccddeeff0011223344556677"))
        try await loop.submit {
            let shell = Shell(project, storage, alice, loop)
            shell.ask(1)
            let before = shell.line.messages
            #expect(before >= 2, "no welcome and no answer")
            #expect(!shell.runner.isCongested(shell.socket))

            shell.isLeaseValid = false
            shell.ask(2)
            shell.ask(3)
            #expect(shell.line.messages == before)
            #expect(shell.runner.isCongested(shell.socket))
            shell.runner.pause(shell.reader)
            // A renewal that arrived too late does not help.
            shell.runner.thaw()
            #expect(shell.line.messages == before)
            #expect(shell.reader.isPaused)

            shell.isLeaseValid = true
            shell.runner.thaw()
            #expect(shell.line.messages == before + 2)
            #expect(!shell.reader.isPaused)
            #expect(!shell.runner.isCongested(shell.socket))
        }.get()
    }
}
