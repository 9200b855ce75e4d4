import Testing
import Wire

@testable import Server

@Suite("The server's clock") struct WallClockFollowerTests {
    private static let start = Timestamp(milliseconds: 1_700_000_000_000)

    /// Reads the clock once per millisecond for this many milliseconds, while the wall clock is off by `offset`.
    private func run(_ follower: inout WallClockFollower, from: Int64, for count: Int64, offset: Int64) -> [Timestamp] {
        (from..<from + count).map { millisecond in
            follower.advance(
                wall: Timestamp(milliseconds: Self.start.milliseconds + millisecond + offset),
                monotonic: .milliseconds(millisecond))
        }
    }

    @Test("time passes at the wall clock's speed, even if the clock is read more than once per millisecond")
    func sameSpeed() {
        var follower = WallClockFollower(wall: Self.start, monotonic: .zero)
        var last = Self.start
        for microsecond in stride(from: Int64(0), through: 3_000_000, by: 100) {
            last = follower.advance(
                wall: Timestamp(milliseconds: Self.start.milliseconds + microsecond / 1000),
                monotonic: .microseconds(microsecond))
        }
        #expect(last == Self.start + .seconds(3))
    }

    @Test("when the wall clock is set back, time slows down until both agree, and never goes back")
    func setBack() {
        var follower = WallClockFollower(wall: Self.start, monotonic: .zero)
        let times = run(&follower, from: 0, for: 3000, offset: -1000)
        #expect(times == times.sorted())
        #expect(times[1000] - Self.start < .milliseconds(550))
        #expect(
            times[2999] == Self.start + .milliseconds(2999 - 1000)
                || times[2999] == Self.start + .milliseconds(2999 - 999))
    }

    @Test("when the wall clock is set forward by seconds, time catches up at twice the speed")
    func setForward() {
        var follower = WallClockFollower(wall: Self.start, monotonic: .zero)
        let times = run(&follower, from: 0, for: 3000, offset: 2000)
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 <= .milliseconds(2) })
        #expect(times[2999] - Self.start >= .milliseconds(2999 + 1998))
    }

    @Test("when the wall clock is corrected by hours, time follows at once, so that tokens can be verified")
    func wrongAtStart() {
        var follower = WallClockFollower(wall: Self.start, monotonic: .zero)
        let corrected = follower.advance(wall: Self.start + .seconds(7200), monotonic: .seconds(1))
        #expect(corrected == Self.start + .seconds(7200))
    }
}
