import Cluster
import Foundation
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import Signaling
import Synchronization
import Testing
import Wire

@testable import Server

@Suite("The lives of a node", .timeLimit(.minutes(2))) struct NodeLivesTests {
    /// What a script of lives does, and the pauses between them.
    private final class Script: Sendable {
        private let state: Mutex<(lives: [Bool?], pauses: [Duration], begun: Int)>

        /// - Parameter lives: whether each life has acted when it is declared dead; nil if it ends by itself.
        init(_ lives: [Bool?]) { state = Mutex((lives, [], 0)) }

        var pauses: [Duration] { state.withLock(\.pauses) }
        var begun: Int { state.withLock(\.begun) }
        func pause(_ duration: Duration) { state.withLock { $0.pauses.append(duration) } }

        func begin() { state.withLock { $0.begun += 1 } }

        func serve() throws {
            let life = state.withLock { $0.lives.isEmpty ? nil : $0.lives.removeFirst() }
            if let life { throw NodeFenced(hasActed: life) }
        }

        func run(_ stop: StopSignal = StopSignal()) async throws {
            var lives = NodeLives(stop: stop, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
            lives.sleep = { self.pause($0) }
            try await lives.run(begin: { self.begin() }, serve: { try self.serve() })
        }
    }

    @Test func `a life that has acted is followed by another one at once`() async throws {
        let script = Script([true, true, true, nil])
        try await script.run()
        #expect(script.begun == 4 && script.pauses.isEmpty)
    }

    @Test func `lives that never act follow each other after pauses that double, up to eight seconds`() async throws {
        let script = Script([Bool?](repeating: false, count: 9) + [nil])
        try await script.run()
        #expect(script.begun == 10)
        let ceilings = [250, 500, 1000, 2000, 4000, 8000, 8000, 8000, 8000].map { Duration.milliseconds($0) }
        #expect(script.pauses.count == ceilings.count)
        for (pause, ceiling) in zip(script.pauses, ceilings) {
            #expect(pause >= ceiling / 2 && pause <= ceiling, "\(pause) \(ceiling)")
        }
    }

    @Test func `a life that has acted ends the series of pauses`() async throws {
        let script = Script([false, false, false, true, false, nil])
        try await script.run()
        #expect(script.pauses.count == 4)
        #expect(try #require(script.pauses.last) <= .milliseconds(250))
    }

    @Test func `a stop ends the pause between two lives, and the beginning of a life that blocks`() async throws {
        for blocksAtBeginning in [false, true] {
            let (stop, script) = (StopSignal(), Script([false]))
            var lives = NodeLives(stop: stop, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
            lives.sleep = { _ in
                stop.signal()
                // Only cancellation ends this pause.
                let (pause, end) = AsyncStream<Never>.makeStream()
                for await _ in pause {}
                withExtendedLifetime(end) {}
                try Task.checkCancellation()
            }
            try await lives.run {
                script.begin()
                guard blocksAtBeginning else { return }
                stop.signal()
                await withCheckedContinuation { (forever: CheckedContinuation<Void, Never>) in
                    // Nothing cancels this, as nothing cancels a call that blocks.
                    Self.kept.withLock { $0.append(forever) }
                }
            } serve: {
                try script.serve()
            }
            #expect(script.begun == 1)
        }
        for continuation in Self.kept.withLock({ $0 }) { continuation.resume() }
    }

    private static let kept = Mutex<[CheckedContinuation<Void, Never>]>([])

    @Test func `a stop while a life ends is not followed by another life`() async throws {
        let (stop, script) = (StopSignal(), Script([]))
        let lives = NodeLives(stop: stop, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        try await lives.run {
            script.begin()
        } serve: {
            stop.signal()
            throw NodeFenced(hasActed: true)
        }
        #expect(script.begun == 1)
    }

    @Test func `an error of a life ends the process`() async throws {
        struct Failure: Error {}
        let lives = NodeLives(
            stop: StopSignal(), logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        await #expect(throws: Failure.self) {
            try await lives.run {
            } serve: {
                throw Failure()
            }
        }
        await #expect(throws: Failure.self) {
            try await lives.run {
                throw Failure()
            } serve: {
                ()
            }
        }
    }

    // MARK: Renewing during the start

    /// A ledger that answers renewals.
    private final class Renewals: Ledger {
        private let count = Mutex(0)
        let fencedAfter: Int
        init(fencedAfter: Int = .max) { self.fencedAfter = fencedAfter }
        var number: Int { count.withLock { $0 } }

        func renew(_ tag: NodeTag) async throws(LedgerError) -> Renewal {
            let number = count.withLock { count in
                count += 1
                return count
            }
            if number == 1 { throw LedgerError(.unreachable, "") }
            return number >= fencedAfter ? .fenced(heir: nil) : .renewed
        }

        func begin(node: UInt16, former: NodeTag?) async throws(LedgerError) -> Beginning { throw Self.unused }
        func look() async throws(LedgerError) -> LedgerView { throw Self.unused }
        func fence(_ tag: NodeTag, heir: NodeTag) async throws(LedgerError) -> Bool { throw Self.unused }
        func beginEpoch(of store: String, by tag: NodeTag) async throws(LedgerError) { throw Self.unused }
        func register(_ tag: NodeTag, under epoch: Epoch) async throws(LedgerError) -> Bool { throw Self.unused }
        func fenceUnregistered(heir: NodeTag) async throws(LedgerError) { throw Self.unused }
        func request(_ state: NodeRecord.State, of tag: NodeTag) async throws(LedgerError) -> Bool { throw Self.unused }
        func noteCarriedOut(_ state: NodeRecord.State, by tag: NodeTag) async throws(LedgerError) { throw Self.unused }
        private static let unused = LedgerError(.unusable, "")
    }

    @Test func `a lease is renewed while the server starts, also after an error, until the life is over`() async throws
    {
        let tag = try #require(NodeTag(node: 1, life: 1))
        let ledger = Renewals(fencedAfter: 4)
        let renewal = StartupRenewal(of: tag, in: ledger, every: .milliseconds(1))
        try await eventually { ledger.number == 4 ? nil : "\(ledger.number) renewals" }
        renewal.stop()
        #expect(ledger.number == 4)
    }

    // MARK: Closing

    private final class Line: GatewayConnection {
        let address = IPAddress("192.0.2.1")!
        var group = 0
        var slot: AddressBudgets.Slot?
        var excess: Budget?
        var queuedBytes: Int { 0 }
        let closed: @Sendable (CloseCode) -> Void
        init(_ closed: @escaping @Sendable (CloseCode) -> Void) { self.closed = closed }
        func drop() {}
        func tick() {}
        func expel(_ error: WireError, _ code: CloseCode) {}
        func goAway(_ code: CloseCode) { closed(code) }
    }

    @Test(arguments: [false, true]) func `a fenced node closes its sockets with 1012, and another server with 1001`(
        isFenced: Bool
    ) async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let project = try #require(Project(apiKey: "45000001", secret: String(repeating: "b", count: 40)))
        let codes = Mutex<[CloseCode]>([])
        var configuration = ConfabConfiguration()
        configuration.shutdown.closeTimeout = .zero
        let (gateway, line) = try await loop.submit {
            let gateway = try Gateway.forTests(project, on: loop)
            let line = Line { code in codes.withLock { $0.append(code) } }
            gateway.register(line)
            return (NIOLoopBound(gateway, eventLoop: loop), NIOLoopBound(line, eventLoop: loop))
        }.get()
        let fence = FenceSignal()
        if isFenced { fence.signal() }
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let drain = Drain(
            gateway: gateway, live: LiveConfiguration(configuration), supervisor: nil, fence: fence, logger: logger)
        let group = ServiceGroup(services: [drain], logger: logger)
        await group.triggerGracefulShutdown()
        try await group.run()
        #expect(codes.withLock { $0 } == [isFenced ? .serviceRestart : .goingAway])
        try await loop.submit { gateway.value.release(line.value) }.get()
    }

    // MARK: A start that fails

    @Test func `what a server has opened is closed once, the last part first`() async {
        let parts = OpenedParts()
        let closed = Mutex<[Int]>([])
        for part in 1...3 { parts.add { closed.withLock { $0.append(part) } } }
        await parts.closeAll()
        await parts.closeAll()
        #expect(closed.withLock { $0 } == [3, 2, 1])
    }

    @Test func `a server that cannot start throws, and closes what it has opened`() async throws {
        var configuration = ConfabConfiguration()
        (configuration.port, configuration.media.port) = (0, 0)
        configuration.dataDirectory = NSTemporaryDirectory() + "confab-test-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: configuration.dataDirectory) }
        let project = try ProjectFile.open(configuration)
        configuration.tls.certificate = "/nowhere/certificate.pem"
        configuration.tls.privateKey = "/nowhere/key.pem"
        let server = try ConfabServer(
            configuration: configuration, project: project,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        await #expect(throws: (any Error).self) { try await server.run(signals: false) }
    }
}
