import Testing
import Wire

@Suite struct TimestampTests {
    private let latest = Timestamp(milliseconds: .max)
    private let earliest = Timestamp(milliseconds: .min)

    @Test func addingSaturatesInsteadOfOverflowing() {
        #expect(latest + .seconds(1) == latest)
        #expect(earliest - .seconds(1) == earliest)
        #expect(Timestamp(milliseconds: 0) + .seconds(Int64.max) == latest)
        #expect(Timestamp(milliseconds: 0) - .seconds(Int64.max) == earliest)
        #expect(Timestamp(milliseconds: -1000) + .seconds(Int64.min) == earliest)
        #expect(latest + .seconds(-1) == Timestamp(milliseconds: .max - 1000))
    }

    @Test func differencesSaturateToo() {
        #expect(latest - earliest == .milliseconds(Int64.max))
        #expect(earliest - latest == .milliseconds(Int64.min))
        #expect(Timestamp(milliseconds: 1500) - Timestamp(milliseconds: 500) == .seconds(1))
        #expect(Timestamp(milliseconds: 500) - Timestamp(milliseconds: 1500) == .seconds(-1))
    }

    @Test func secondsAreRoundedDownOnBothSidesOf1970() {
        #expect(Timestamp(milliseconds: 1999).seconds == 1)
        #expect(Timestamp(milliseconds: 0).seconds == 0)
        #expect(Timestamp(milliseconds: -1).seconds == -1)
        #expect(Timestamp(milliseconds: -1000).seconds == -1)
        #expect(Timestamp(milliseconds: -1001).seconds == -2)
        #expect(earliest.seconds == Int64.min / 1000 - 1, "the rounding must not overflow at the very beginning")
        #expect(latest.seconds == Int64.max / 1000)
    }

    @Test func wholeMillisecondsRoundTowardZeroAndSaturate() {
        #expect(Duration.microseconds(1999).wholeMilliseconds == 1)
        #expect(Duration.microseconds(-1999).wholeMilliseconds == -1)
        #expect(Duration.seconds(Int64.max).wholeMilliseconds == .max)
        #expect(Duration.seconds(Int64.min).wholeMilliseconds == .min)
    }
}
