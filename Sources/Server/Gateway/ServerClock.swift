import Signaling
import Synchronization
import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The clock of the hub and of all times that are stored or sent to clients (`docs/decisions/0027-clocks.md`).
final class ServerClock: Sendable {
    private let source: ClockSource
    private let start: ClockReading
    private let judge: Mutex<WallClockJudge>

    init(source: ClockSource = .system) {
        self.source = source
        start = source.reading
        judge = Mutex(WallClockJudge(start))
    }

    /// The time for timers, budgets and other state that exists only in memory. It never jumps or goes backward.
    var now: Timestamp { start.wall + (source.awake() - start.awake) }

    /// The time of day: for tokens, bans, and all times that are stored or sent.
    var wallNow: Timestamp { moment.wall }

    /// Both times, read at the same moment, and whether the time of day is reliable enough to delete stored data.
    var moment: Moment {
        let (awake, total) = (source.awake(), source.total())
        return judge.withLock { judge in
            Moment(
                now: start.wall + (awake - start.awake), wall: judge.wall(total: total),
                isConfirmed: judge.isConfirmed(awake: awake))
        }
    }

    /// Compares the system's clock with this one, and corrects this one if necessary. Call it every
    /// ``WallClockJudge/lookInterval``.
    ///
    /// - Returns: an event to report to the operator, if any.
    func look() -> WallClockJudge.Event? {
        let reading = source.reading
        return judge.withLock { $0.look(reading) }
    }
}

/// A reading of the system's clocks at one moment.
struct ClockReading: Equatable, Sendable {
    /// The time of day, which the operator and NTP may set.
    var wall: Timestamp
    /// The time since a fixed moment, excluding the time that the machine slept. Timers use this clock.
    var awake: Duration
    /// The time since the same moment, including the time that the machine slept.
    var total: Duration
}

/// Reads the system's clocks.
struct ClockSource: Sendable {
    var wall: @Sendable () -> Timestamp
    var awake: @Sendable () -> Duration
    var total: @Sendable () -> Duration

    var reading: ClockReading { ClockReading(wall: wall(), awake: awake(), total: total()) }

    static let system: ClockSource = {
        // `awake` and `total` may count from any fixed moment. Use the moment when this code first runs.
        let (awake, total) = (SuspendingClock.now, ContinuousClock.now)
        return ClockSource(
            wall: { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) },
            awake: { SuspendingClock.now - awake }, total: { ContinuousClock.now - total })
    }()
}

/// Decides which time of day the server uses.
///
/// The server's time of day is the reading of a clock that nobody can set, plus a correction. Differences from the
/// system's wall clock change the correction: a difference of at most ``tolerance`` immediately, because NTP
/// constantly corrects clocks in small steps, and a larger one after it has lasted for ``adoptionTime``. A clock that
/// is wrong for a few seconds thus has no effect. Stored data is deleted because of its age only if there was no jump
/// for ``confirmationTime``.
struct WallClockJudge: Equatable, Sendable {
    /// How often to compare the clocks.
    static let lookInterval: Duration = .seconds(5)
    /// The largest difference that does not count as a jump. It is harmless: tokens are accepted even if the issuer's
    /// clock differs by more.
    static let tolerance: Duration = .seconds(1)
    /// How long a jump must last until it is adopted. The time is long enough to skip a mistake that is corrected
    /// immediately. It is short, because if the clock was wrong before the jump, valid tokens are rejected until the
    /// jump is adopted.
    static let adoptionTime: Duration = .seconds(30)
    /// How long the clock must have been steady until stored data may be deleted because of its age. A machine without
    /// a battery-backed clock gets the time from the network within minutes.
    static let confirmationTime: Duration = .seconds(3600)

    /// What a comparison of the clocks found.
    enum Event: Equatable, Sendable {
        /// The system's clock differs by this much from the server's time, which is not changed yet.
        case jumped(Duration)
        /// The system's clock agrees with the server's time again.
        case returned
        /// The server's time has been corrected by this much.
        case adopted(Duration)
    }

    /// A jump of the system's clock that is not adopted yet.
    private struct Jump: Equatable, Sendable {
        var correction: Duration
        var since: Duration
    }

    private let start: ClockReading
    /// The correction to add to the time that has passed since this clock was started.
    private var correction: Duration = .zero
    private var jump: Jump?
    /// When the server's time last changed by a jump, on the `awake` clock; initially, when this clock was started.
    private var steadySince: Duration

    init(_ start: ClockReading) { (self.start, steadySince) = (start, start.awake) }

    /// Returns the server's time of day.
    func wall(total: Duration) -> Timestamp { start.wall + (total - start.total + correction) }

    /// Returns whether the server's time is reliable enough to delete stored data.
    func isConfirmed(awake: Duration) -> Bool { jump == nil && awake - steadySince >= Self.confirmationTime }

    mutating func look(_ reading: ClockReading) -> Event? {
        let measured = (reading.wall - start.wall) - (reading.total - start.total)
        let difference = measured - correction
        guard difference.magnitude > Self.tolerance else {
            // Readings are whole milliseconds, so ignore differences of up to a millisecond.
            if difference.magnitude > .milliseconds(1) { correction = measured }
            defer { jump = nil }
            return jump == nil ? nil : .returned
        }
        guard let jump, (measured - jump.correction).magnitude <= Self.tolerance else {
            jump = Jump(correction: measured, since: reading.awake)
            return .jumped(difference)
        }
        guard reading.awake - jump.since >= Self.adoptionTime else { return nil }
        (correction, self.jump, steadySince) = (measured, nil, reading.awake)
        return .adopted(difference)
    }
}

extension Duration {
    fileprivate var magnitude: Duration { self < .zero ? .zero - self : self }
}
