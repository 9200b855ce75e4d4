import RTC
import Testing

@testable import SFU

@Suite("A rewritten stream made of segments of other streams")
struct RTPRewriterTests {
    @Test("has no gap in its numbers when its source changes, and its timestamps follow the clock")
    func goesOn() throws {
        var rewriting = RTPRewriter(sequence: 100, timestamp: 5000)
        let start = MediaTime(nanoseconds: 0)
        rewriting.begin(sequence: 70_000, timestamp: 9, picture: 3, layerZero: 1, clockRate: 90_000, arrivedAt: start)
        let numbers = rewriting.numbers(sequence: 70_000, timestamp: 9, picture: 3, layerZero: 1, arrivedAt: start)
        let first = try #require(numbers)
        #expect(UInt16(truncatingIfNeeded: first.sequence) == 101)
        let later = start + .milliseconds(500)
        rewriting.begin(
            sequence: 99, timestamp: 1 << 31, picture: 0x7fff, layerZero: 255, clockRate: 90_000, arrivedAt: later)
        let others = rewriting.numbers(
            sequence: 99, timestamp: 1 << 31, picture: 0x7fff, layerZero: 255, arrivedAt: later)
        let second = try #require(others)
        #expect(second.sequence == first.sequence + 1)
        #expect(second.timestamp == first.timestamp &+ 45_000)
        #expect(second.picture == first.picture &+ 1)
        #expect(second.layerZero == first.layerZero &+ 1)
    }

    @Test("drops packets that precede the first forwarded packet of a source")
    func nothingOld() {
        var rewriting = RTPRewriter(sequence: 0, timestamp: 0)
        let now = MediaTime(nanoseconds: 0)
        rewriting.begin(sequence: 10, timestamp: 0, picture: nil, layerZero: nil, clockRate: 48_000, arrivedAt: now)
        #expect(rewriting.numbers(sequence: 9, timestamp: 0, picture: nil, layerZero: nil, arrivedAt: now) == nil)
    }
}
