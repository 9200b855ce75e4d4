import Logging
import NIOCore
import NIOPosix
import Signaling
import Testing
import Wire

@testable import Server

/// The rules of a node of a cluster while its lease is not valid.
@Suite("Frozen rules", .timeLimit(.minutes(1)))
struct FreezingTests: StorageFixtures {
    /// A client that counts what it is sent.
    private final class Line: RunnerSocket {
        var messages = 0
        var slot: AddressBudgets.Slot? { nil }
        func write(_ bytes: [UInt8]) { messages += 1 }
        func flush() {}
        func close(_ code: CloseCode, _ reason: String) {}
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

        func ask(_ number: UInt64) {
            runner.submit(.message(socket, Envelope(seq: number, message: .roulette(.count))))
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
