import TestSupport
import Testing

@testable import RTC

@Suite struct SlidingLinearFitTests {
    /// The slope by its definition.
    private func slope(_ points: ArraySlice<SIMD2<Double>>) -> Double {
        let mean = points.reduce(.zero, +) / Double(points.count)
        let offsets = points.map { $0 - mean }
        return offsets.reduce(0) { $0 + $1.x * $1.y } / offsets.reduce(0) { $0 + $1.x * $1.x }
    }

    @Test("the slope is that of the latest points, also after a day", arguments: 1...3 as ClosedRange<UInt64>)
    func latest(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var line = SlidingLinearFit()
        var points: [SIMD2<Double>] = []
        var (time, delay) = (0.0, 0.0)
        for index in 0..<5000 {
            if index == 2500 { time += 86_400_000 }
            time += Double(Int.random(in: 1...400, using: &random)) / 4
            delay += Double.random(in: -20...21, using: &random)
            points.append(SIMD2(time, delay))
            line.add(SIMD2(time, delay))
            guard points.count >= SlidingLinearFit.window else {
                #expect(line.slope == nil)
                continue
            }
            let expected = slope(points.suffix(SlidingLinearFit.window))
            let found = try #require(line.slope)
            #expect(abs(found - expected) <= max(1e-6, abs(expected) * 1e-6), "seed \(seed), point \(index)")
        }
    }

    @Test("points with one x have no slope, and one step of the receiver's clock is enough for one")
    func oneTime() throws {
        var line = SlidingLinearFit()
        for index in 0..<50 { line.add(SIMD2(1000.25, Double(index))) }
        #expect(line.slope == nil)
        line.add(SIMD2(1000.5, 100))
        #expect(try #require(line.slope) > 0)
    }
}
