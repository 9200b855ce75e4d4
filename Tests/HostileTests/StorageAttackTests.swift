import Foundation
import Synchronization
import TestSupport
import Testing
import Wire

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A person who changes their name and blocks others, one request after the other, and remembers what the server answered.
private final class Keeper: Sendable {
    private struct Journal: Sendable {
        var identity: String?
        var requestedName = 0
        var answeredName = 0
        var requestedBlocks = 0
        var answeredBlocks = 0
        /// Why the last connection ended.
        var ending = "it works"
    }

    private let number: Int
    private let targets: [PersonID]
    private let journal = Mutex(Journal())
    private let answers: Counter

    init(_ number: Int, targets: [PersonID], answers: Counter) {
        (self.number, self.targets, self.answers) = (number, targets, answers)
    }

    private func name(_ name: Int) -> String { "keeper \(number) name \(name)" }

    /// Connects as the same person as before, and goes online.
    func arrive(port: Int) throws -> Person {
        let person = try Person.arrive(port: port, identity: journal.withLock { $0.identity })
        let isNew = journal.withLock { journal in
            defer { journal.identity = journal.identity ?? person.welcome.identity }
            return journal.identity == nil
        }
        // A restarted server does not know that this person was online.
        _ = try person.appear(isNew ? Appearance(name: name(0)) : Appearance())
        return person
    }

    /// Sends requests until the connection ends.
    func work(_ person: Person) {
        do {
            while true {
                let hasTarget = journal.withLock { $0.requestedBlocks < targets.count }
                if answers.count.isMultiple(of: 2), hasTarget { try block(person) } else { try rename(person) }
                answers.add()
                person.forget()
            }
        } catch {
            // Normally the server was killed. The next visit checks the consequences.
            journal.withLock { $0.ending = "\(error)" }
        }
    }

    var ending: String { journal.withLock { $0.ending } }

    func rename(_ person: Person) throws {
        let next = journal.withLock { journal in
            journal.requestedName += 1
            return journal.requestedName
        }
        guard case .presence(.own) = try person.ask(.presence(.set(Appearance(name: name(next))))) else {
            throw TimedOut("the name was not changed: \(person.errors)")
        }
        journal.withLock { $0.answeredName = next }
    }

    private func block(_ person: Person) throws {
        let next = journal.withLock { journal in
            journal.requestedBlocks += 1
            return journal.requestedBlocks - 1
        }
        guard case .ok = try person.ask(.presence(.block(.init(person: targets[next])))) else {
            throw TimedOut("nobody was blocked: \(person.errors)")
        }
        journal.withLock { $0.answeredBlocks += 1 }
    }

    /// Returns what is missing of what was answered, and what is stored without a request.
    func faults(_ person: Person) throws -> [String] {
        let own = try person.appear()
        guard case .presence(.blocked(let list)) = try person.ask(.presence(.blocked)) else {
            throw TimedOut("no list of blocked people: \(person.errors)")
        }
        return journal.withLock { journal in
            var faults: [String] = []
            // One name follows the other, so the stored one is the last that was answered, or one that was requested later.
            if !(journal.answeredName...journal.requestedName).contains(where: { own.name == name($0) }) {
                faults.append("name \(journal.answeredName) was answered, and \(own.name) is stored")
            }
            if !(journal.answeredBlocks...journal.requestedBlocks).contains(list.people.count) {
                faults.append("\(journal.answeredBlocks) blocks were answered, and \(list.people.count) are stored")
            }
            return faults
        }
    }
}

extension Hostile {
    /// Short forms of `Benchmarks/run drill`. Whatever the server answered must be stored, and people who store nothing must not
    /// notice.
    @Suite("Case 26: storage fails") struct StorageAttacks {
        private static let settings = UndisturbedPair.settings.merging([
            "CONFAB_LIMITS_PERSON_REQUESTS_PER_SECOND": "1000", "CONFAB_LIMITS_PERSON_REQUEST_BURST": "10000",
        ]) { $1 }
        private static let keepers = 3
        private static let targets = 40
        private static let kills = 3
        /// The messages of the pair that show that it continues during a fault. They take about three seconds.
        private static let messagesDuringFault = 400

        private static func keepers(_ server: ServerProcess, _ answers: Counter) throws -> [Keeper] {
            let targets = try (0..<Self.targets).map { number in
                let (person, id) = try Person.present("target \(number)", port: server.port)
                try person.close()
                return id
            }
            return (0..<Self.keepers).map { Keeper($0, targets: targets, answers: answers) }
        }

        @Test("whatever was answered before kill -9 is stored")
        func kills() async throws {
            try await ServerProcess.run(Self.settings) { server in
                var random = Random(ofCase: 26)
                let answers = Counter()
                let keepers = try Self.keepers(server, answers)
                for _ in 0..<Self.kills {
                    let people = try keepers.map { try $0.arrive(port: server.port) }
                    let enough = answers.count + Int.random(in: 10...60, using: &random)
                    let work = zip(keepers, people).map { keeper, person in Background { keeper.work(person) } }
                    try eventually("only \(answers.count) requests were answered: \(keepers.map(\.ending))") {
                        answers.count >= enough
                    }
                    server.kill()
                    for work in work { try work.join() }
                    try server.restart()
                    let faults = try keepers.flatMap { keeper in try keeper.faults(keeper.arrive(port: server.port)) }
                    #expect(faults.isEmpty, "\(faults)")
                }
                print("hostile 26 | \(Self.kills) kills, \(answers.count) answers, nothing missing")
            }
        }

        @Test("a lock of another process for some seconds delays only requests that store something, and loses none")
        func lock() async throws {
            try await ServerProcess.run(Self.settings) { server in
                try await Self.fault(server, "the lock") {
                    DatabaseLock(server)
                } mend: {
                    $0.release()
                }
            }
        }

        @Test(
            "a disk that fails for some seconds delays only requests that store something, and loses none",
            .enabled(if: DiskFailure.isAvailable, "Needs Linux and the command prlimit."))
        func disk() async throws {
            DiskFailure.prepare()
            // The server must outlast the fault on a slow computer too.
            let settings = Self.settings.merging(["CONFAB_STORAGE_FAULT_TIMEOUT": "60s"]) { $1 }
            try await ServerProcess.run(settings) { server in
                try await Self.fault(server, "the disk's failure") {
                    try DiskFailure(server)
                } mend: {
                    try $0.end()
                }
            }
        }

        @Test(
            "a server whose disk fails for too long stops, and what it answered is stored",
            .enabled(if: DiskFailure.isAvailable, "Needs Linux and the command prlimit."))
        func stop() async throws {
            DiskFailure.prepare()
            let settings = Self.settings.merging(["CONFAB_STORAGE_FAULT_TIMEOUT": "200ms"]) { $1 }
            try await ServerProcess.run(settings) { server in
                let keeper = Keeper(0, targets: [], answers: Counter())
                let person = try keeper.arrive(port: server.port)
                try keeper.rename(person)
                _ = try DiskFailure(server)
                #expect(throws: TimedOut.self) { try keeper.rename(person) }
                try eventually("the server runs without a disk") { !server.isRunning }
                try server.restart()
                #expect(try keeper.faults(keeper.arrive(port: server.port)) == [])
            }
        }

        /// Breaks storage while a person stores something and two others chat, mends it, and restarts the server.
        private static func fault<Fault>(
            _ server: ServerProcess, _ name: String, break: () throws -> Fault, mend: (Fault) throws -> Void
        ) async throws {
            let keeper = Keeper(0, targets: [], answers: Counter())
            let person = try keeper.arrive(port: server.port)
            try keeper.rename(person)
            let pair = try UndisturbedPair.start(server)
            person.forget()
            let fault = try `break`()
            let request = Background { try keeper.rename(person) }
            let enough = pair.messages + messagesDuringFault
            try eventually("the pair said only \(pair.messages) lines", within: .seconds(60)) {
                pair.messages >= enough || !pair.isChatting
            }
            #expect(!request.isFinished, "a request was answered during \(name)")
            try mend(fault)
            try request.join()
            let report = try pair.finish()
            print("hostile 26 | \(name) | \(report.text)")
            server.kill()
            try server.restart()
            #expect(try keeper.faults(keeper.arrive(port: server.port)) == [])
        }
    }
}

/// Holds the write lock of the server's database, as another process could. SQLite's lock for writers in WAL mode is byte 120 of
/// the file `-shm` (https://sqlite.org/walformat.html#locks).
private struct DatabaseLock {
    private let file: Int32

    init(_ server: ServerProcess) {
        file = open(server.dataDirectory + "/confab.sqlite-shm", O_RDWR)
        var lock = flock()
        (lock.l_type, lock.l_whence, lock.l_start, lock.l_len) = (Int16(F_WRLCK), Int16(SEEK_SET), 120, 1)
        // Waits for a transaction of the server.
        #expect(fcntl(file, F_SETLKW, &lock) == 0, "the lock was not granted: \(errno)")
    }

    func release() { close(file) }
}

/// Makes every write of the server to a file fail, with a limit of the size of its files.
private struct DiskFailure {
    private static let command = "/usr/bin/prlimit"
    private let server: ServerProcess

    static var isAvailable: Bool { FileManager.default.isExecutableFile(atPath: command) }

    /// Lets servers that start later survive the signal for such a write. The write then fails with an error.
    static func prepare() { signal(SIGXFSZ, SIG_IGN) }

    init(_ server: ServerProcess) throws {
        self.server = server
        try limit("1")
    }

    func end() throws { try limit("unlimited") }

    private func limit(_ size: String) throws {
        // Only the soft limit, so that it can be raised again.
        let result = try ChildProgram.run(Self.command, ["--pid", "\(server.processID)", "--fsize=\(size):"])
        guard result.status == 0 else { throw TimedOut("prlimit failed: \(result.standardError)") }
    }
}
