import Foundation
import Signaling
import Testing
import Wire

#if os(Linux)

/// A server whose wall clock the test can set, in whole seconds. A library that the server loads first adds the offset to what
/// the kernel says, so the machine's own clock stays as it is.
private final class SettableClock {
    private let directory: String
    private var library: String { directory + "/clock.so" }
    private var offset: String { directory + "/offset" }

    private static let source = """
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>

        static volatile long long *shared;

        __attribute__((constructor)) static void open_offset(void) {
            const char *path = getenv("TEST_CLOCK_OFFSET");
            int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
            void *memory = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(long long), PROT_READ, MAP_SHARED, file, 0);
            if (memory != MAP_FAILED) shared = memory;
            if (file >= 0) close(file);
        }

        int clock_gettime(clockid_t clock, struct timespec *time) {
            int status = (int)syscall(SYS_clock_gettime, clock, time);
            if (status == 0 && shared && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += *shared;
            return status;
        }

        int gettimeofday(struct timeval *time, void *zone) {
            struct timespec now;
            if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
            if (time) *time = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
            return 0;
        }

        time_t time(time_t *result) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            if (result) *result = now.tv_sec;
            return now.tv_sec;
        }
        """

    init() throws {
        directory = NSTemporaryDirectory() + "confab-clock-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try Self.source.write(toFile: directory + "/clock.c", atomically: true, encoding: .utf8)
        try Data(count: 8).write(to: URL(fileURLWithPath: offset))
        let log = directory + "/log"
        let compiler = try RunningProcess(
            "/usr/bin/env", ["cc", "-shared", "-fPIC", "-o", library, directory + "/clock.c"],
            environment: ProcessInfo.processInfo.environment, logFile: log)
        guard compiler.waits(within: .seconds(60)), compiler.misfortune == nil else {
            let output = FileManager.default.contents(atPath: log) ?? Data()
            throw TimedOut("cc did not build the library: \(String(decoding: output, as: UTF8.self))")
        }
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    var settings: [String: String] { ["LD_PRELOAD": library, "TEST_CLOCK_OFFSET": offset] }

    /// Sets the server's wall clock to this much ahead of the machine's.
    func set(_ seconds: Int64) throws {
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: offset))
        try file.write(contentsOf: withUnsafeBytes(of: seconds) { Data($0) })
        try file.close()
    }
}

extension Person {
    fileprivate func enter(_ name: String, persistent: Bool = true) throws {
        var options = RoomChanges()
        options.persistent = persistent
        let answer = try ask(.room(.join(.init(name: RoomName(name), displayName: name, options: options))))
        guard case .room(.joined) = answer else { throw TimedOut("not let in: \(answer)") }
    }

    /// Waits until another person in the room is gone.
    fileprivate func hearPersonLeave() throws {
        try hear("departure of a person") { message -> Bool? in
            if case .room(.person(let person)) = message, person.state == .left { true } else { nil }
        }
    }
}

extension Hostile {
    @Suite("Case 29: the clock jumps") struct ClockAttacks {
        private static let year: Int64 = 366 * 86400
        private static let grace: Duration = .milliseconds(1500)

        private static func rooms(_ server: ServerProcess) async throws -> String {
            let result = try await server.command(["room", "list"])
            guard result.status == 0 else { throw TimedOut("no list of rooms: \(result.errors)") }
            return result.output
        }

        @Test(
            "a clock that is a year ahead for a while, or at the start, deletes nothing and neither fires nor stalls a timer"
        )
        func yearAhead() async throws {
            let clock = try SettableClock()
            let settings = clock.settings.merging([
                "CONFAB_CONNECTION_RESUME_GRACE": "1500ms", "CONFAB_ROOMS_EMPTY_GRACE": "1s",
                "CONFAB_STORAGE_POLL_INTERVAL": "20ms",
            ]) { $1 }
            try await ServerProcess.run(settings) { server in
                let ban = try await server.command(["ban", "add", "198.51.100.7", "--expires", "1h"])
                #expect(ban.status == 0, "\(ban.errors)")
                let (ada, bob) = (try Person.arrive(port: server.port), try Person.arrive(port: server.port))
                let (cleo, dora) = (try Person.arrive(port: server.port), try Person.arrive(port: server.port))
                try ada.enter("used")
                try bob.enter("used")
                try cleo.enter("used")
                try dora.enter("empty")
                guard case .ok = try dora.ask(.room(.leave)) else { throw TimedOut("dora could not leave") }
                let token = try server.project().makeUserToken(
                    user: "eve", name: nil, now: Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)),
                    lifetime: .seconds(3600))

                // A timer that was set before the jump neither fires because of it nor waits for the time after it.
                let dropped = ContinuousClock.now
                bob.drop()
                try clock.set(Self.year)
                try ada.hearPersonLeave()
                #expect(ContinuousClock.now - dropped >= Self.grace)
                // Tokens are judged by the clock before the jump.
                _ = try Person.arrive(port: server.port, token: token)
                // A timer that was set during the jump is not affected by its end.
                let droppedAgain = ContinuousClock.now
                cleo.drop()
                try clock.set(0)
                try ada.hearPersonLeave()
                #expect(ContinuousClock.now - droppedAgain >= Self.grace)

                func isComplete() async throws -> Bool {
                    let (rooms, bans) = (try await Self.rooms(server), try await server.command(["ban", "list"]))
                    return rooms.contains("used") && rooms.contains("empty") && bans.output.contains("198.51.100.7")
                }
                #expect(try await isComplete())
                // A server that starts with a wrong clock. A room that ends shows that timers have fired.
                try clock.set(Self.year)
                try server.restart()
                let eve = try Person.arrive(port: server.port)
                try eve.enter("temporary", persistent: false)
                guard case .ok = try eve.ask(.room(.leave)) else { throw TimedOut("eve could not leave") }
                var list = try await Self.rooms(server)
                while list.contains("temporary") { list = try await Self.rooms(server) }
                try clock.set(0)
                try server.restart()
                #expect(try await isComplete())
            }
        }
    }
}

#endif
