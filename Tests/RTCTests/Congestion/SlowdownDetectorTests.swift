import Testing

@testable import RTC

@Suite("The first sign that a path has become slow")
struct SlowdownDetectorTests {
    private let mean = Bitrate.kilobits(1600)

    /// Adds packets of 1000 bytes that are sent every 5 ms, which is the mean bitrate.
    private func detector(_ delays: [Int64]) -> SlowdownDetector {
        var detector = SlowdownDetector()
        for (index, delay) in delays.enumerated() {
            detector.add(
                bytes: 1000, oneWay: .milliseconds(delay), arrival: .milliseconds(Int64(index) * 5 + delay))
        }
        return detector
    }

    @Test("is a growing delay of packets that arrive slower than usual")
    func slow() {
        // 1000 bytes take 16 ms at 500 kbit/s, so each packet waits 11 ms longer than the one before.
        #expect(detector([20, 20, 20, 31, 42, 53, 64]).suspects(base: .milliseconds(20), mean: mean))
        #expect(detector([20, 20, 20, 21, 32, 43, 54]).suspects(base: .milliseconds(20), mean: mean), "just begun")
        #expect(!detector([20, 20, 20, 21, 26, 33, 40]).suspects(base: .milliseconds(20), mean: mean), "too short")
        #expect(!detector([20, 31, 42]).suspects(base: .milliseconds(20), mean: mean), "too few packets")
    }

    @Test("is not a burst that arrives at the usual bitrate")
    func burst() {
        var detector = SlowdownDetector()
        for index in 1...4 as ClosedRange<Int64> {
            detector.add(bytes: 1000, oneWay: .milliseconds(20 + 5 * index), arrival: .milliseconds(5 * index))
        }
        #expect(!detector.suspects(base: .milliseconds(20), mean: mean))
    }

    @Test("is not a pause of the receiver, before, while and after it delivers what it held back")
    func pause() {
        let delays: [Int64] = [20, 20, 20, 60, 55, 50, 45, 40, 35, 30, 25, 20, 20]
        for count in 4...delays.count {
            #expect(!detector(Array(delays.prefix(count))).suspects(base: .milliseconds(20), mean: mean))
        }
    }

    @Test("no arrival times make the detector trap")
    func hostile() {
        var detector = SlowdownDetector()
        for arrival in [.max, .min, 0, .max, .min, -1, 1, .max, .max] as [Int64] {
            detector.add(
                bytes: 2047, oneWay: MediaInterval(nanoseconds: arrival), arrival: MediaInterval(nanoseconds: arrival))
            _ = detector.suspects(base: MediaInterval(nanoseconds: -1), mean: mean)
        }
    }
}
