import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Layer selection")
struct LayerChoiceTests {
    private func layers(_ sizes: [(UInt16, UInt16)?], alive: Set<Int>? = nil) -> [Layer] {
        sizes.enumerated().map { index, size in
            var layer = Layer(size: size.map { PictureSize(width: $0, height: $1) })
            layer.isAlive = alive?.contains(index) ?? true
            return layer
        }
    }

    private func best(_ layers: [Layer], _ width: Int?, _ height: Int?, aliveOnly: Bool = true) -> Int? {
        Layer.best(
            of: layers, for: VideoPreference(width: width, height: height), current: nil, aliveOnly: aliveOnly
        )
    }

    @Test(
        "selects the smallest layer that fills the preferred box, or the largest layer if none does",
        arguments: [
            (nil, nil, 0), (1280, 720, 0), (1281, 721, 0), (640, 360, 1), (640, nil, 1), (nil, 360, 1),
            // Boxes with another aspect ratio, into which the picture fits without being enlarged.
            (640, 480, 1), (360, 640, 1), (321, 181, 1), (320, 240, 2), (1, 1, 2), (0, 0, 2),
            (16384, 16384, 0), (Int.max, Int.max, 0), (-1, nil, 2),
        ] as [(Int?, Int?, Int)])
    func bySize(_ width: Int?, _ height: Int?, _ expected: Int) {
        let known: [(UInt16, UInt16)?] = [(1280, 720), (640, 360), (320, 180)]
        #expect(best(layers(known), width, height) == expected)
        #expect(best(layers(known.reversed()), width, height) == 2 - expected)
    }

    @Test("skips inactive layers unless all are inactive")
    func living() {
        let known: [(UInt16, UInt16)?] = [(1280, 720), (640, 360), (320, 180)]
        #expect(best(layers(known, alive: [0, 2]), 640, 360) == 0)
        #expect(best(layers(known, alive: [2]), nil, nil) == 2)
        #expect(best(layers(known, alive: []), nil, nil) == nil)
        #expect(best(layers(known, alive: []), nil, nil, aliveOnly: false) == 0)
        #expect(best([], 1, 1, aliveOnly: false) == nil)
    }

    @Test("assumes that a layer of unknown size has half the size of the next larger one")
    func unknown() {
        #expect(best(layers([nil, nil, nil]), 320, 180) == 2)
        #expect(best(layers([(640, 480), nil, nil]), 160, 120) == 2)
        #expect(best(layers([nil, nil, (320, 180)]), 1280, 720) == 0)
        // The sizes are in ascending order, as the two known ones show.
        #expect(best(layers([(320, 180), (640, 360), nil]), nil, nil) == 2)
        #expect(best(layers([(320, 180), nil, (1280, 720), nil]), 640, 360) == 1)
        #expect(Layer.guess(3, among: layers([(1, 1), nil, nil, nil])) == PictureSize(width: 1, height: 1))
        #expect(Layer.guess(0, among: layers([nil, nil, nil, (65535, 65535)])).area > 0)
    }

    @Test("counts frames up to each temporal layer, and does not switch back and forth")
    func rates() {
        var rates = FrameRates()
        var now = MediaTime(nanoseconds: 0)
        func second(_ counts: [UInt8: Int]) {
            for (layer, count) in counts { for _ in 0..<count { rates.count(layer) } }
            now = now + .seconds(1)
            _ = rates.measure(now: now)
        }
        _ = rates.measure(now: now)
        #expect(rates.temporalLayer(for: 1, current: 255) == 255, "all layers pass before the first measurement")
        second([0: 8, 1: 7, 2: 15])
        #expect(rates.temporalLayer(for: nil, current: 255) == 255)
        #expect(rates.temporalLayer(for: 30, current: 255) == 255)
        #expect(rates.temporalLayer(for: 15, current: 255) == 1)
        #expect(rates.temporalLayer(for: 8, current: 1) == 0)
        #expect(rates.temporalLayer(for: 1, current: 0) == 0)
        #expect(
            rates.canMatch(8, isCurrent: false) && !rates.canMatch(7, isCurrent: false)
                && rates.canMatch(7, isCurrent: true))
        #expect(rates.canMatch(.max, isCurrent: true) && !rates.canMatch(.min, isCurrent: false))
        second([0: 9, 1: 8, 2: 16])
        #expect(rates.temporalLayer(for: 15, current: 1) == 1, "the current choice tolerates a slightly higher rate")
        #expect(rates.temporalLayer(for: 15, current: 255) == 0)
        second([255: 30])
        #expect(rates.temporalLayer(for: 15, current: 255) == 255, "there are no layers")
        #expect(!rates.canMatch(15, isCurrent: false))
        second([:])
        #expect(!rates.canMatch(15, isCurrent: false), "without frames the measured rates stay the same")
    }

    @Test("is announced to the publisher rarely, whatever subscribers do", arguments: 1...3 as ClosedRange<UInt64>)
    func announcement(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var (announcement, demand) = (LayerAnnouncement(), LayerDemand())
        var now = MediaTime(nanoseconds: 0)
        let stream = Key(high: 1, low: 1)
        var reported = 0
        for _ in 0..<50 * 60 {
            demand.wanted = UInt8.random(in: 0..<16, using: &random)
            if announcement.next(for: stream, demand, now: now) != nil { reported += 1 }
            now = now + Router.interval
        }
        #expect(reported < 60 * 4, "seed \(seed): \(reported) in a minute")
        demand.wanted = 0
        now = now + .seconds(2)
        #expect(announcement.next(for: stream, demand, now: now)?.layers == 0)
        #expect(announcement.next(for: stream, demand, now: now) == nil)
        demand.wanted = 2
        #expect(announcement.next(for: stream, demand, now: now)?.layers == 2)
        let other = Key(high: 1, low: 2)
        #expect(announcement.next(for: other, demand, now: now)?.layers == 2, "another stream is announced separately")
    }
}
