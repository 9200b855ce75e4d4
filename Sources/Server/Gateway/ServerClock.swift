import Synchronization
import Wire

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The only place where the server reads the time.
final class ServerClock: Sendable {
    private let start = ContinuousClock.now
    private let follower: Mutex<WallClockFollower>

    init() {
        follower = Mutex(WallClockFollower(wall: Self.wall, monotonic: .zero))
    }

    /// The time of day in milliseconds. Never goes back while the server runs.
    var now: Timestamp {
        let wall = Self.wall
        return follower.withLock { $0.advance(wall: wall, monotonic: ContinuousClock.now - start) }
    }

    private static var wall: Timestamp { Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000)) }
}

/// A clock that follows the wall clock but never goes back.
///
/// Timers and deadlines need a clock that only moves forward. Tokens, TURN credentials and stored deadlines need the time of
/// day, which an operator or NTP may correct while the server runs. This clock therefore keeps its own time and moves it toward
/// the wall clock. If it is behind, it gains at most one extra second per second. If it is ahead, it runs at half speed. A
/// forward correction of more than ``step`` is applied immediately, because tokens could not be verified until a slow
/// correction had caught up. Timers in the skipped time then fire immediately.
struct WallClockFollower: Equatable, Sendable {
    static let step: Duration = .seconds(60)

    /// The time since 1970. It is a `Duration`, because readings less than a millisecond apart must add up.
    private var time: Duration
    private var monotonic: Duration

    /// - Parameters:
    ///   - wall: the time of day.
    ///   - monotonic: the time since any fixed moment.
    init(wall: Timestamp, monotonic: Duration) {
        time = .milliseconds(wall.milliseconds)
        self.monotonic = monotonic
    }

    /// Returns the time for these readings of the two clocks. Never returns less than before.
    mutating func advance(wall: Timestamp, monotonic: Duration) -> Timestamp {
        let elapsed = max(.zero, monotonic - self.monotonic)
        self.monotonic += elapsed
        time += elapsed
        let difference = .milliseconds(wall.milliseconds) - time
        if difference > Self.step {
            time += difference
        } else if difference > .milliseconds(1) {
            // The wall clock was read in whole milliseconds, so ignore a difference below one millisecond.
            time += min(difference, elapsed)
        } else if difference < .milliseconds(-1) {
            time -= min(.zero - difference, elapsed / 2)
        }
        return Timestamp(milliseconds: time.wholeMilliseconds)
    }
}
