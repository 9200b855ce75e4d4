import Logging
import NIOCore
import NIOPosix
import Signaling
import Testing
import Wire

@testable import Server

@Suite("Bytes that a client causes to be stored", .timeLimit(.minutes(3)))
struct StoredBytesChargeTests: StorageFixtures {
    private static let slot = AddressBudgets.Slot(7)

    /// Budgets that refuse nothing, and note what is charged.
    private final class Ledger: ClientBudgets {
        private(set) var charged: [AddressBudgets.Slot: Int] = [:]
        private(set) var queries = 0
        /// True if something was charged to a slot that no query held any more.
        private(set) var wasChargedLate = false

        func storagePermit(_ slot: AddressBudgets.Slot?) -> StoragePermit { .all }
        func charge(storedBytes: Int, to slot: AddressBudgets.Slot) {
            if queries == 0 { wasChargedLate = true }
            charged[slot, default: 0] += storedBytes
        }
        func beginQuery(in slot: AddressBudgets.Slot) -> Bool {
            queries += 1
            return true
        }
        func endQuery(in slot: AddressBudgets.Slot) { queries -= 1 }
    }

    private final class Line: RunnerSocket {
        let slot: AddressBudgets.Slot? = StoredBytesChargeTests.slot
        func write(_ bytes: [UInt8]) {}
        func flush() {}
        func close(_ code: CloseCode, _ reason: String) {}
    }

    /// A runner with its budgets. Used only on its event loop.
    private final class Shell {
        let runner: HubRunner
        let ledger = Ledger()

        init(_ project: Project, _ storage: any Storage, _ eventLoop: any EventLoop) {
            runner = HubRunner(
                hubSettings: HubSettings(rules: Rules(), project: project), storage: storage, media: nil,
                trouble: StorageTrouble(busyLimit: .seconds(60), faultLimit: .seconds(10)), maxHeldBytes: 1 << 20,
                clock: ServerClock(), logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }),
                metrics: GatewayMetrics(), eventLoop: eventLoop)
            runner.clientBudgets = ledger
        }
    }

    @Test func `are not charged to its address if they are events for a webhook`() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let (storage, alice, now) = (try SQLiteStorage.inMemory(), alice, now)
        var project = try #require(
            Project(apiKey: "45000001", secret: "00112233445566778899aabbccddeeff0011223344556677"))
        project.hasWebhook = true
        let shell = try await loop.submit { [project] in
            NIOLoopBound(Shell(project, storage, loop), eventLoop: loop)
        }.get()
        try await loop.submit { [project] in
            let runner = shell.value.runner
            var random = SystemRandomNumberGenerator()
            let time = runner.wallNow
            let session = project.makeSessionID(mediaMode: .relayed, now: time, using: &random)
            let claims = SessionTokenClaims(session: session, role: .publisher, lifetime: .seconds(3600))
            let token = project.makeSessionToken(claims, now: time, using: &random)
            let socket = runner.register(Line())
            runner.submit(
                .arrived(Arrival(socket: socket, identity: Identity(id: alice), address: "203.0.113.1")))
            runner.submit(
                .message(socket, Envelope(seq: 1, message: .session(.join(.init(session: session, token: token))))))
        }.get()
        try await until("the join is not reported") {
            try await storage.webhookBacklogs()["45000001"]?.waiting == 2
        }
        let charged = try await loop.submit { shell.value.ledger.charged }.get()
        #expect(charged.isEmpty)
    }

    @Test func `are charged to its address even if it is gone when the lookup before the change is answered`()
        async throws
    {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let (storage, alice, bob, target) = (try SQLiteStorage.inMemory(), alice, bob, PersonID(high: 7, low: 2))
        try await storage.commit([.profile(bob, target, Profile(name: "Bob"), at: now)])
        let project = try #require(
            Project(apiKey: "45000001", secret: "00112233445566778899aabbccddeeff0011223344556677"))
        let shell = try await loop.submit { NIOLoopBound(Shell(project, storage, loop), eventLoop: loop) }.get()
        try await loop.submit {
            let runner = shell.value.runner
            let socket = runner.register(Line())
            runner.submit(
                .arrived(Arrival(socket: socket, identity: Identity(id: alice), address: "203.0.113.1")))
            runner.submit(.message(socket, Envelope(seq: 1, message: .presence(.block(.init(person: target))))))
            // The lookup is answered later, on the same loop.
            runner.unregister(socket, leaving: false)
        }.get()
        try await until("the block is not stored") { try await storage.person(alice, at: now).blocked == [bob] }
        let (charged, wasChargedLate, queries) = try await loop.submit {
            let ledger = shell.value.ledger
            return (ledger.charged, ledger.wasChargedLate, ledger.queries)
        }.get()
        #expect(charged == [Self.slot: StoredSize.row])
        #expect(!wasChargedLate, "the account must still exist")
        #expect(queries == 0)
    }
}
