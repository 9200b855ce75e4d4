import Foundation
import Logging
import NIOCore
import NIOPosix
import Signaling
import Synchronization
import Testing
import Wire

@testable import Server

/// The clocks of a machine, under a test's control.
private final class MachineClocks: Sendable {
    static let start = Timestamp(milliseconds: 1_790_000_000_000)

    private let state = Mutex(ClockReading(wall: start, awake: .seconds(100), total: .seconds(5000)))

    var source: ClockSource {
        ClockSource(
            wall: { self.state.withLock { $0.wall } }, awake: { self.state.withLock { $0.awake } },
            total: { self.state.withLock { $0.total } })
    }

    func pass(_ duration: Duration) {
        state.withLock {
            ($0.wall, $0.awake, $0.total) = ($0.wall + duration, $0.awake + duration, $0.total + duration)
        }
    }

    /// Sets the wall clock forward or back.
    func jump(_ duration: Duration) { state.withLock { $0.wall = $0.wall + duration } }

    func sleep(_ duration: Duration) {
        state.withLock { ($0.wall, $0.total) = ($0.wall + duration, $0.total + duration) }
    }
}

@Suite("The server's clock") struct ServerClockTests {
    private static let jumps: [Duration] = [5, -5, 3600, -3600, 366 * 86400, -366 * 86400].map { .seconds($0) }

    private let machine = MachineClocks()
    private let clock: ServerClock

    init() { clock = ServerClock(source: machine.source) }

    /// Passes time as a running server does, which looks at the clocks regularly.
    ///
    /// - Returns: what it found.
    @discardableResult
    private func run(for duration: Duration) -> [WallClockJudge.Event] {
        var (left, events) = (duration, [WallClockJudge.Event]())
        while left > .zero {
            let step = min(left, WallClockJudge.lookInterval)
            machine.pass(step)
            left -= step
            if let event = clock.look() { events.append(event) }
        }
        return events
    }

    @Test("timers run at the same speed whatever the wall clock shows", arguments: jumps)
    func timersIgnoreJumps(_ jump: Duration) {
        run(for: .seconds(10))
        machine.jump(jump)
        #expect(clock.now == MachineClocks.start + .seconds(10))
        run(for: .seconds(120))
        #expect(clock.now == MachineClocks.start + .seconds(130), "after it was adopted too")
        machine.jump(.zero - jump)
        run(for: .seconds(120))
        #expect(clock.now == MachineClocks.start + .seconds(250))
    }

    @Test("a wall clock that is wrong for seconds changes nothing", arguments: jumps)
    func wrongForSeconds(_ jump: Duration) {
        run(for: .seconds(10))
        machine.jump(jump)
        #expect(run(for: .seconds(25)) == [.jumped(jump)])
        #expect(clock.wallNow == MachineClocks.start + .seconds(35))
        machine.jump(.zero - jump)
        #expect(run(for: .seconds(300)) == [.returned])
        #expect(clock.wallNow == MachineClocks.start + .seconds(335))
    }

    @Test("a correction is adopted after it has lasted", arguments: jumps)
    func corrected(_ jump: Duration) {
        run(for: .seconds(10))
        machine.jump(jump)
        #expect(run(for: .seconds(40)) == [.jumped(jump), .adopted(jump)])
        #expect(clock.wallNow == MachineClocks.start + .seconds(50) + jump)
        #expect(run(for: .seconds(300)) == [])
    }

    @Test("a clock that jumps again and again is never adopted")
    func restless() {
        for _ in 0..<20 {
            machine.jump(.seconds(3600))
            run(for: .seconds(20))
        }
        #expect(clock.wallNow == MachineClocks.start + .seconds(400))
    }

    @Test("small corrections by NTP are followed without a word, and do not add up to a jump")
    func slewing() {
        var events: [WallClockJudge.Event] = []
        for _ in 0..<1000 {
            machine.jump(.milliseconds(5))
            events += run(for: .seconds(10))
        }
        #expect(events == [])
        #expect(clock.wallNow == MachineClocks.start + .seconds(10_005))
        #expect(clock.now == MachineClocks.start + .seconds(10_000))
        #expect(clock.moment.isConfirmed)
    }

    @Test("while the machine sleeps no timer runs, and the time of day is right at once when it wakes")
    func sleep() {
        run(for: .seconds(10))
        machine.sleep(.seconds(3600))
        #expect(clock.now == MachineClocks.start + .seconds(10))
        #expect(clock.wallNow == MachineClocks.start + .seconds(3610))
        #expect(run(for: .seconds(60)) == [], "this is no jump")
        #expect(!clock.moment.isConfirmed, "the sleep proves nothing about the clock")
    }

    @Test("the clock is confirmed an hour after the start or after a correction, and not during a jump")
    func confirmation() {
        run(for: .seconds(3590))
        #expect(!clock.moment.isConfirmed)
        run(for: .seconds(10))
        #expect(clock.moment.isConfirmed)
        machine.jump(.seconds(366 * 86400))
        run(for: .seconds(5))
        #expect(clock.moment.confirmedWall == nil)
        machine.jump(.seconds(-366 * 86400))
        run(for: .seconds(5))
        #expect(clock.moment.confirmedWall == MachineClocks.start + .seconds(3610), "it was right all the time")
        machine.jump(.seconds(366 * 86400))
        run(for: .seconds(3600))
        #expect(!clock.moment.isConfirmed)
        run(for: .seconds(60))
        #expect(clock.moment.isConfirmed)
    }

    @Test("a server that starts with a wrong clock uses the right one soon after it was corrected")
    func wrongAtStart() throws {
        let project = try #require(
            Project(apiKey: "45000001", secret: String(repeating: "0", count: 48)))
        let right = MachineClocks.start + .seconds(56 * 365 * 86400)
        func isAccepted() -> Bool {
            let token = project.makeUserToken(user: "ada", name: nil, now: right, lifetime: .seconds(600))
            return (try? project.verifyUserToken(token, now: clock.wallNow)) != nil
        }
        #expect(!isAccepted())
        machine.jump(right - MachineClocks.start)
        run(for: .seconds(40))
        #expect(isAccepted())
    }
}

/// The deletion of old records, with a clock under the test's control.
@Suite("Retention") struct RetentionTests: StorageFixtures {
    private let machine = MachineClocks()

    private func pass(_ duration: Duration, _ clock: ServerClock) {
        for _ in 0..<Int(duration / WallClockJudge.lookInterval) {
            machine.pass(WallClockJudge.lookInterval)
            _ = clock.look()
        }
    }

    private func storage() async throws -> SQLiteStorage {
        let (storage, start) = (try SQLiteStorage.inMemory(), MachineClocks.start)
        var report = report()
        report.createdAt = start
        let revocation = Revocation(
            session: SessionID("1_session")!, fingerprint: [1], expiresAt: start + .seconds(86400), by: .member(alice),
            of: bob,
            at: start)
        try await storage.commit([.report(report), .revoked(revocation)])
        try await storage.addBan(
            Ban(subject: .identity(bob), reason: "", createdAt: start, expiresAt: start + .seconds(86400)),
            recording: nil)
        return storage
    }

    /// The numbers of records: reports, bans, sessions with revoked tokens.
    private func counts(_ storage: SQLiteStorage) async throws -> [Int] {
        let reports = try await storage.reports(includingClosed: true, limit: 10).count
        let bans = try await storage.bans(at: .distantPast).count
        return [reports, bans, try await storage.moderation(at: .distantPast).count]
    }

    private func retention(
        _ storage: SQLiteStorage, _ clock: ServerClock, _ configuration: ConfabConfiguration = ConfabConfiguration()
    ) -> Retention {
        Retention(
            storage: storage, clock: clock, live: LiveConfiguration(configuration),
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    }

    @Test("a clock that is a year ahead, at the start or for a while, deletes nothing")
    func wrongClock() async throws {
        let storage = try await storage()
        machine.jump(.seconds(366 * 86400))
        let clock = ServerClock(source: machine.source)
        let retention = retention(storage, clock)
        #expect(await !retention.deleteOld())
        pass(.seconds(600), clock)
        #expect(await !retention.deleteOld())
        machine.jump(.seconds(-366 * 86400))
        pass(.seconds(4000), clock)
        #expect(await retention.deleteOld())
        machine.jump(.seconds(366 * 86400))
        pass(.seconds(3000), clock)
        #expect(await !retention.deleteOld(), "adopted, but not confirmed")
        machine.jump(.seconds(-366 * 86400))
        pass(.seconds(4000), clock)
        #expect(await retention.deleteOld())
        #expect(try await counts(storage) == [1, 1, 1])
    }

    @Test("what is old is deleted, an hour after the start")
    func old() async throws {
        let storage = try await storage()
        machine.jump(.seconds(2 * 86400))
        let clock = ServerClock(source: machine.source)
        pass(.seconds(3600), clock)
        #expect(await retention(storage, clock).deleteOld())
        #expect(try await counts(storage) == [1, 0, 0])
        machine.jump(.seconds(366 * 86400))
        pass(.seconds(3700), clock)
        #expect(await retention(storage, clock).deleteOld())
        #expect(try await counts(storage) == [0, 0, 0])
    }

    @Test(
        "the entry of an uploaded archive is kept as long as archives are, for 30 days at least",
        arguments: [(0, [true, true]), (3, [true, false]), (30, [true, false]), (90, [true, true])] as [(Int64, [Bool])]
    )
    func uploaded(days: Int64, isKept: [Bool]) async throws {
        let storage = try SQLiteStorage.inMemory()
        var configuration = ConfabConfiguration()
        configuration.archives.retention = .seconds(days * 86400)
        var archive = ArchiveRecord(
            id: ArchiveID(high: 5, low: 1), project: "1000", session: SessionID("2_session")!,
            request: ArchiveRequest(), createdAt: MachineClocks.start)
        archive.status = .uploaded
        try await storage.commit([.archiveStored(archive)])
        for (passed, isKept) in zip([29, 31] as [Int64], isKept) {
            let machine = MachineClocks()
            machine.jump(.seconds(passed * 86400))
            let clock = ServerClock(source: machine.source)
            for _ in 0..<Int(Duration.seconds(3700) / WallClockJudge.lookInterval) {
                machine.pass(WallClockJudge.lookInterval)
                _ = clock.look()
            }
            #expect(await retention(storage, clock, configuration).deleteOld())
            #expect(try await storage.archive(archive.id) == (isKept ? archive : nil), "after \(passed) days")
        }
    }

    private var failed: [ArchiveRecord] {
        ([1, 2] as [UInt64]).map { number in
            var archive = ArchiveRecord(
                id: ArchiveID(high: 5, low: number), project: "1000", session: SessionID("2_session")!,
                request: ArchiveRequest(), createdAt: MachineClocks.start)
            archive.status = .failed
            return archive
        }
    }

    /// Lets archives expire, and returns the statuses of those that have a row, and which have files.
    private func expire(
        _ archives: [ArchiveRecord], _ retention: Duration, after days: Int, in directory: String
    ) async throws -> (statuses: [ArchiveStatus?], files: [Bool]) {
        let (machine, storage) = (MachineClocks(), try SQLiteStorage.inMemory())
        try await storage.commit(archives.map { .archiveStored($0) })
        let folders = archives.map { "\(directory)/\($0.id)" }
        for folder in folders {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data([1]).write(to: URL(filePath: "\(folder)/x.webm"))
        }
        machine.jump(.seconds(days * 86400))
        let clock = ServerClock(source: machine.source)
        for _ in 0..<Int(Duration.seconds(3700) / WallClockJudge.lookInterval) {
            machine.pass(WallClockJudge.lookInterval)
            _ = clock.look()
        }
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let project = try #require(
            Project(apiKey: "45000001", secret: "00112233445566778899aabbccddeeff0011223344556677"))
        let gateway = try await loop.submit {
            NIOLoopBound(try Gateway.forTests(project, on: loop), eventLoop: loop)
        }.get()
        var configuration = ConfabConfiguration()
        configuration.archives.retention = retention
        let logger = Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        let expiry = ArchiveExpiry(
            gateway: gateway, parts: ArchiveParts(storage: storage, folder: directory, node: "", logger: logger),
            clock: clock, live: LiveConfiguration(configuration))
        #expect(await expiry.expire())
        var statuses: [ArchiveStatus?] = []
        for archive in archives { statuses.append(try await storage.archive(archive.id)?.status) }
        return (statuses, folders.map { FileManager.default.fileExists(atPath: $0) })
    }

    @Test("what was recorded of a failed archive is deleted with its row, unless files are kept forever")
    func failedArchives() async throws {
        try await withDirectory { directory in
            for days in [10, 29] {
                let early = try await expire(failed, .seconds(10 * 86400), after: days, in: directory)
                #expect(early.statuses == [.failed, .failed] && early.files == [true, true])
            }
            let kept = try await expire(failed, .zero, after: 31, in: directory)
            #expect(kept.statuses == [nil, nil] && kept.files == [true, true])
            let waiting = try await expire(failed, .seconds(90 * 86400), after: 31, in: directory)
            #expect(waiting.statuses == [.failed, .failed] && waiting.files == [true, true])
            let late = try await expire(failed, .seconds(10 * 86400), after: 31, in: directory)
            #expect(late.statuses == [nil, nil] && late.files == [false, false])
        }
    }

    @Test("an archive that waits for ffmpeg or disk space expires, but not one that another process composes")
    func waitingArchives() async throws {
        let obstacles: [ComposingObstacle?] = [.ffmpeg, .diskSpace, .otherProcess, nil]
        let archives = obstacles.enumerated().map { number, obstacle in
            var archive = ArchiveRecord(
                id: ArchiveID(high: 5, low: UInt64(number)), project: "1000", session: SessionID("2_session")!,
                request: ArchiveRequest(), createdAt: MachineClocks.start)
            (archive.status, archive.obstacle) = (.stopped, obstacle)
            return archive
        }
        let all: [ArchiveStatus?] = [.stopped, .stopped, .stopped, .stopped]
        try await withDirectory { directory in
            let early = try await expire(archives, .seconds(10 * 86400), after: 9, in: directory)
            #expect(early.statuses == all && early.files == [true, true, true, true])
            let kept = try await expire(archives, .zero, after: 99, in: directory)
            #expect(kept.statuses == all && kept.files == [true, true, true, true])
            let late = try await expire(archives, .seconds(10 * 86400), after: 11, in: directory)
            #expect(late.statuses == [.expired, .expired, .stopped, .stopped])
            #expect(late.files == [false, false, true, true])
        }
    }
}
