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

/// Follows the wall clock without ever going back.
///
/// Timers and deadlines need time that only grows. Tokens, TURN credentials and stored deadlines need the time of day, which an
/// operator or NTP may correct while the server runs. This value keeps its own time and moves it towards the wall clock: forward
/// by at most one extra second for each second that passes, backward by running at half speed. A correction forward of more than
/// ``step`` is taken at once, because no token would verify until a slow correction had caught up; timers that it skips are due
/// at once.
struct WallClockFollower: Equatable, Sendable {
    static let step: Duration = .seconds(60)

    /// Since 1970. A `Duration`, because readings less than a millisecond apart must add up.
    private var time: Duration
    private var monotonic: Duration

    /// - Parameters:
    ///   - wall: the time of day.
    ///   - monotonic: the time since any fixed moment.
    init(wall: Timestamp, monotonic: Duration) {
        time = .milliseconds(wall.milliseconds)
        self.monotonic = monotonic
    }

    /// Returns the time at these readings of the two clocks: never less than what it returned before.
    mutating func advance(wall: Timestamp, monotonic: Duration) -> Timestamp {
        let elapsed = max(.zero, monotonic - self.monotonic)
        self.monotonic += elapsed
        time += elapsed
        let difference = .milliseconds(wall.milliseconds) - time
        if difference > Self.step {
            time += difference
        } else if difference > .milliseconds(1) {
            // The wall clock was read in whole milliseconds: less than one is no difference.
            time += min(difference, elapsed)
        } else if difference < .milliseconds(-1) {
            time -= min(.zero - difference, elapsed / 2)
        }
        return Timestamp(milliseconds: time.wholeMilliseconds)
    }
}
