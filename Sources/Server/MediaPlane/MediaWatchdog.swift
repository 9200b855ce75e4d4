import Datagrams
import Dispatch
import Foundation
import Logging

/// Decides whether a media loop hangs: whether it stayed in one phase for ``limit`` looks in a row.
///
/// A loop that waits for packets would look the same, so each loop must get a heartbeat request before each look, which
/// wakes it.
///
/// The rule counts looks and does not read a clock. While the process is stopped or the machine sleeps there are no
/// looks, so this time does not count.
struct MediaWatchdog: Sendable {
    /// The time between two looks. A pass of a loop takes milliseconds.
    static let period: Duration = .seconds(1)
    /// The number of looks after which a loop hangs. It is larger than needed for ``MediaHeartbeat/limit``, so that the
    /// server is not ready first, and restarts only if the loop does not recover.
    static let limit = 10

    /// What earlier looks saw of a loop.
    private struct Loop {
        var last: MediaActivity.Snapshot?
        /// The number of looks since the last move.
        var looks = 0
    }

    private var loops: [Loop]

    init(loops: Int) { self.loops = Array(repeating: Loop(), count: loops) }

    /// Compares the loops with the previous look.
    /// - Parameter snapshots: one per loop, always in the same order.
    /// - Returns: the loops that hang.
    mutating func look(at snapshots: [MediaActivity.Snapshot]) -> [MediaHang] {
        for (index, snapshot) in zip(loops.indices, snapshots) {
            let isStill = snapshot == loops[index].last && snapshot.phase != .ended
            loops[index].looks = isStill ? loops[index].looks + 1 : 0
            loops[index].last = snapshot
        }
        return loops.enumerated().compactMap { index, loop in
            guard let last = loop.last, loop.looks >= Self.limit else { return nil }
            return MediaHang(loop: index, activity: last, looks: loop.looks)
        }
    }
}

/// A media loop that hangs.
struct MediaHang: Equatable, Sendable {
    /// The loop's index.
    var loop: Int
    var activity: MediaActivity.Snapshot
    /// The number of looks since the loop last moved.
    var looks: Int

    /// - Parameter period: the time between two looks.
    func log(to logger: Logger, period: Duration) {
        var metadata: Logger.Metadata = [
            "loop": "\(loop)", "phase": "\(activity.phase)", "for": "\(period * looks)",
        ]
        metadata["request"] = activity.request.map { "\($0)" }
        logger.critical("A media loop hangs. The server ends so that its supervisor restarts it.", metadata: metadata)
    }
}

/// The thread that looks at the media loops and ends the process if one of them hangs.
final class MediaWatchdogThread: Sendable {
    /// How long to wait for the log before the process ends.
    private static let logTimeout = DispatchTimeInterval.seconds(1)

    private let isStopped = DispatchSemaphore(value: 0)

    /// Starts the thread, which runs until `stop`.
    /// - Parameter period: the time between two looks. Tests pass a shorter one.
    init(_ inboxes: [MediaInbox], period: Duration = MediaWatchdog.period, logger: Logger) {
        let thread = Thread { [isStopped] in
            setNameOfCurrentThread("confab-watchdog")
            let pause = DispatchTimeInterval.nanoseconds(Int(period / Duration.nanoseconds(1)))
            var watchdog = MediaWatchdog(loops: inboxes.count)
            while true {
                for inbox in inboxes { inbox.askForSignOfLife() }
                guard isStopped.wait(timeout: .now() + pause) == .timedOut else { return }
                let hangs = watchdog.look(at: inboxes.map(\.activity.snapshot))
                if !hangs.isEmpty { Self.end(hangs, period, logger) }
            }
        }
        thread.start()
    }

    func stop() { isStopped.signal() }

    /// Logs the loops and ends the process with SIGABRT, as systemd's watchdog does. Supervisors count this as a
    /// failure and restart the server. If core dumps are enabled, one shows where the loop hangs.
    private static func end(_ hangs: [MediaHang], _ period: Duration, _ logger: Logger) -> Never {
        // The loop may hang with a lock that the rest of this function needs, such as that of the allocator. Then the
        // signal ends the process.
        alarm(5)
        // Log on another thread: the loop may hang in a write to the log, which holds the log's lock.
        let isLogged = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            for hang in hangs { hang.log(to: logger, period: period) }
            isLogged.signal()
        }
        _ = isLogged.wait(timeout: .now() + logTimeout)
        abort()
    }
}
