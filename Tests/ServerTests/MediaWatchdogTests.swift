import Foundation
import Logging
import Signaling
import Synchronization
import Testing
import Wire

@testable import Server

@Suite("The watchdog of the media loops") struct MediaWatchdogTests {
    private typealias Snapshot = MediaActivity.Snapshot

    /// A watchdog as a reference, because `#expect` cannot mutate values.
    private final class Stage {
        private var watchdog: MediaWatchdog
        var loops: [Snapshot]

        init(_ count: Int) {
            watchdog = MediaWatchdog(loops: count)
            loops = Array(repeating: Snapshot(phase: .waiting), count: count)
        }

        func look() -> [MediaHang] { watchdog.look(at: loops) }

        /// Looks several times while nothing moves, and expects that no loop hangs.
        func lookInVain(_ count: Int) { for number in 0..<count { #expect(look() == [], "look \(number)") } }
    }

    @Test("a loop that moves between two looks does not hang, even in the same phase")
    func moving() {
        let stage = Stage(1)
        for _ in 0..<100 {
            stage.loops[0].moves += 1
            #expect(stage.look() == [])
        }
    }

    @Test("a loop that has not moved for the limit hangs, and the hang says in which request")
    func hanging() {
        let stage = Stage(1)
        stage.loops[0] = Snapshot(phase: .request, request: .publish, moves: 7)
        // The first look has nothing to compare with.
        stage.lookInVain(MediaWatchdog.limit)
        #expect(stage.look() == [MediaHang(loop: 0, activity: stage.loops[0], looks: MediaWatchdog.limit)])
    }

    @Test("a loop that waits hangs too, because a heartbeat should have woken it")
    func waiting() {
        let stage = Stage(1)
        stage.lookInVain(MediaWatchdog.limit)
        #expect(stage.look().map(\.activity.phase) == [.waiting])
    }

    @Test("a single move starts the count again")
    func recovering() {
        let stage = Stage(1)
        for _ in 0..<3 {
            stage.lookInVain(MediaWatchdog.limit)
            stage.loops[0].moves += 1
        }
        stage.lookInVain(MediaWatchdog.limit)
        #expect(stage.look().count == 1)
    }

    @Test("each loop is counted on its own, and two that wait for each other are both reported")
    func several() {
        let stage = Stage(3)
        for number in 0...MediaWatchdog.limit {
            // One moves, and two stopped at different times.
            stage.loops[0].moves += 1
            if number == 0 { stage.loops[2].moves += 1 }
            #expect(stage.look().map(\.loop) == (number == MediaWatchdog.limit ? [1, 2] : []))
        }
    }

    @Test("a loop that has ended does not hang")
    func ended() {
        let stage = Stage(1)
        stage.loops[0].phase = .ended
        stage.lookInVain(3 * MediaWatchdog.limit)
    }

    @Test("a server is not ready before its watchdog ends it")
    func limits() {
        #expect(MediaHeartbeat.limit < MediaWatchdog.period * MediaWatchdog.limit)
    }

    @Test("the word of a loop's activity keeps every phase and request apart")
    func activity() {
        let activity = MediaActivity()
        #expect(activity.snapshot == Snapshot())
        var moves: UInt64 = 0
        for phase in MediaActivity.Phase.allCases {
            for request in MediaRequestKind.allCases.map(Optional.some) + [nil] {
                activity.enter(phase, request)
                moves += 1
                #expect(activity.snapshot == Snapshot(phase: phase, request: request, moves: moves))
            }
        }
    }

    @Test("a hang is one line of the level critical")
    func line() {
        let lines = LogLines()
        let activity = Snapshot(phase: .request, request: .subscribe, moves: 3)
        MediaHang(loop: 2, activity: activity, looks: 10).log(to: lines.logger, period: .seconds(1))
        MediaHang(loop: 0, activity: Snapshot(phase: .sending), looks: 10).log(to: lines.logger, period: .seconds(1))
        #expect(lines.all.count == 2)
        #expect(lines.all[0].contains("critical") && lines.all[0].contains(" loop=2 phase=request request=subscribe"))
        #expect(lines.all[0].contains(#"for="10.0 seconds""#) && !lines.all[1].contains("request="))
    }
}

@Suite("The watchdog of a running media plane", .ownThreads, .timeLimit(.minutes(3))) struct MediaWatchdogProcessTests {
    /// Short, but so long that a loop that only waits for a processor moves within ten of them.
    private static let period: Duration = .milliseconds(200)

    private static func settings() -> MediaPlane.Settings {
        MediaPlane.Settings(port: 0, address: IPAddress("127.0.0.1"))
    }

    @Test("a request that does not end is logged and ends the process with SIGABRT")
    func hang() async throws {
        let result = await #expect(processExitsWith: .signal(SIGABRT), observing: [\.standardErrorContent]) {
            let logger = Logger(label: "media") { ServerLogHandler(label: $0, level: .info, format: .text) }
            let plane = try MediaPlane(
                MediaWatchdogProcessTests.settings(), logger: logger,
                watchdogPeriod: MediaWatchdogProcessTests.period
            ) { _ in
                // The media plane calls this on the loop's thread, within the request.
                DispatchSemaphore(value: 0).wait()
            }
            plane.perform(.estimate(ConnectionID(high: 0, low: 1), re: 1))
            // Fails, and so ends the process in another way, if the watchdog does not.
            try await eventually { "the watchdog has not ended the process" }
        }
        let log = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        let lines = log.split(separator: "\n").filter { $0.contains(" loop=") }
        #expect(lines.count == 1, "\(log)")
        for part in [" critical ", " loop=0 ", " phase=request ", " request=estimate"] {
            #expect(lines.first?.contains(part) == true, "\(part) is not in \(log)")
        }
    }

    @Test("a loop that hangs in a write to the log still ends the process")
    func hangInLog() async throws {
        await #expect(processExitsWith: .signal(SIGABRT)) {
            let never = DispatchSemaphore(value: 0)
            let output = LogOutput(now: { 0 }) { _ in never.wait() }
            let logger = Logger(label: "media") { label in
                ServerLogHandler(
                    label: label, format: .text, settings: LogSettings(.info, Scrubber()), output: output)
            }
            let plane = try MediaPlane(
                MediaWatchdogProcessTests.settings(), logger: logger,
                watchdogPeriod: MediaWatchdogProcessTests.period
            ) { _ in
                logger.warning("This write does not end.")
            }
            plane.perform(.estimate(ConnectionID(high: 0, low: 1), re: 1))
            try await eventually { "the watchdog has not ended the process" }
        }
    }

    @Test("a loop without packets lives through many looks")
    func quiet() async throws {
        let answers = Mutex(0)
        let plane = try MediaPlane(
            Self.settings(), logger: LogLines().logger, watchdogPeriod: Self.period
        ) { _ in
            answers.withLock { $0 += 1 }
        }
        // Each heartbeat wakes the loop once, and each look of the watchdog sends one.
        let before = plane.counters.wakeups
        try await eventually {
            let wakeups = plane.counters.wakeups - before
            return wakeups > UInt64(MediaWatchdog.limit) + 1 ? nil : "the loop woke up \(wakeups) times"
        }
        #expect(plane.isResponsive)
        plane.perform(.estimate(ConnectionID(high: 0, low: 1), re: 1))
        try await eventually { answers.withLock { $0 } == 1 ? nil : "the loop has not answered" }
        plane.stop()
    }
}
