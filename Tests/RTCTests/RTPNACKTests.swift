import TestSupport
import Testing

@testable import RTC

@Suite struct RTPNACKTests {
    private static let roundTrip = MediaInterval.milliseconds(50)

    private func due(_ generator: inout NACKGenerator, at milliseconds: Int64) -> [UInt16] {
        var numbers: [UInt16] = []
        generator.forEachDue(at: .milliseconds(milliseconds), roundTrip: Self.roundTrip) { numbers.append($0) }
        return numbers
    }

    @Test func missingPacketsAreRequestedAfterADelay() {
        var generator = NACKGenerator()
        generator.receive(10, at: .milliseconds(0))
        generator.receive(13, at: .milliseconds(5))
        #expect(generator.nextTimeout == .milliseconds(20))
        #expect(due(&generator, at: 19) == [])
        #expect(due(&generator, at: 20) == [11, 12])
        #expect(generator.nextTimeout == .milliseconds(70))
        #expect(due(&generator, at: 69) == [])
        #expect(due(&generator, at: 70) == [11, 12])
        #expect(!answer(of: &generator) { $0.takeKeyframeNeed() })
    }

    @Test func reorderedPacketsAreNotRequested() {
        var generator = NACKGenerator()
        for (number, time) in [(10, 0), (12, 5), (11, 15), (13, 20)] as [(Int64, Int64)] {
            #expect(answer(of: &generator) { $0.receive(number, at: .milliseconds(time)) } == (number == 11))
        }
        #expect(generator.nextTimeout == nil)
        #expect(due(&generator, at: 1_000) == [])
    }

    @Test func aRetransmissionEndsTheRequests() {
        var generator = NACKGenerator()
        generator.receive(65_534, at: .milliseconds(0))
        generator.receive(65_538, at: .milliseconds(0))
        #expect(due(&generator, at: 15) == [65_535, 0, 1])
        #expect(answer(of: &generator) { $0.receive(65_536, at: .milliseconds(40)) })
        #expect(!answer(of: &generator) { $0.receive(65_536, at: .milliseconds(40)) })
        #expect(due(&generator, at: 65) == [65_535, 1])
    }

    @Test func afterTenRequestsAKeyframeIsNeeded() {
        var generator = NACKGenerator()
        generator.receive(1, at: .milliseconds(0))
        generator.receive(3, at: .milliseconds(0))
        var asked = 0
        for time in Int64(0)..<2_000 where !due(&generator, at: time).isEmpty { asked += 1 }
        #expect(asked == NACKGenerator.maxTries)
        #expect(generator.outstanding == 0)
        #expect(answer(of: &generator) { $0.takeKeyframeNeed() })
        #expect(!answer(of: &generator) { $0.takeKeyframeNeed() })
    }

    @Test func whileTheRoundTripIsUnknownRequestsBecomeRarer() {
        var generator = NACKGenerator()
        generator.receive(1, at: .milliseconds(0))
        generator.receive(3, at: .milliseconds(0))
        var times: [Int64] = []
        for time in Int64(0)..<3_000 {
            generator.forEachDue(at: .milliseconds(time), roundTrip: nil) { _ in times.append(time) }
        }
        #expect(times == [15, 65, 165, 365, 765])
        #expect(generator.outstanding == 0)
        #expect(answer(of: &generator) { $0.takeKeyframeNeed() })
    }

    @Test func theRoundTripIsMeasuredByRetransmissions() {
        var generator = NACKGenerator()
        generator.receive(0, at: .milliseconds(0))
        #expect(generator.answerTime == nil)
        for round in Int64(1)...50 {
            let start = round * 10_000
            generator.receive(round * 2, at: .milliseconds(start))
            #expect(due(&generator, at: start + 15) == [UInt16(round * 2 - 1)])
            // A late original does not answer the request.
            let isRetransmission = round != 1
            generator.receive(
                round * 2 - 1, at: .milliseconds(start + 615), isRetransmission: isRetransmission)
            #expect(generator.answerTime?.milliseconds == (isRetransmission ? 750 : nil))
        }
        for round in Int64(51)...100 {
            generator.receive(round * 2, at: .milliseconds(round * 10_000))
            _ = due(&generator, at: round * 10_000 + 15)
            generator.receive(round * 2 - 1, at: .milliseconds(round * 10_000 + 55), isRetransmission: true)
        }
        #expect((50...55).contains(generator.answerTime?.milliseconds ?? 0), "it follows the network")
        // Nothing answers, so what was measured may be wrong.
        generator.receive(1_000, at: .milliseconds(2_000_000))
        for time in Int64(2_000_000)..<2_002_000 { _ = due(&generator, at: time) }
        #expect(generator.answerTime == nil)
    }

    @Test func aLargeGapIsGivenUp() {
        var generator = NACKGenerator()
        generator.receive(1, at: .milliseconds(0))
        generator.receive(3, at: .milliseconds(0))
        generator.receive(1_004, at: .milliseconds(0))
        #expect(generator.outstanding == 0)
        #expect(answer(of: &generator) { $0.takeKeyframeNeed() })
        generator.receive(1_006, at: .milliseconds(0))
        #expect(due(&generator, at: 100) == [1_005])
    }

    @Test func onlyTheNewestOfTooManyLossesAreRequested() {
        var generator = NACKGenerator()
        generator.receive(0, at: .milliseconds(0))
        for number in stride(from: Int64(2), through: 500, by: 2) { generator.receive(number, at: .milliseconds(0)) }
        #expect(generator.outstanding == 250)
        #expect(!answer(of: &generator) { $0.takeKeyframeNeed() })
        generator.receive(502, at: .milliseconds(0))
        #expect(answer(of: &generator) { $0.takeKeyframeNeed() })
        #expect(due(&generator, at: 15).first == 3)
        generator.receive(1_000, at: .milliseconds(0))
        #expect(generator.outstanding == 250)
        #expect(due(&generator, at: 15) == Array(750...999))
        #expect(answer(of: &generator) { $0.takeKeyframeNeed() })
    }

    @Test func lossesBeforeAKeyframeAreForgotten() {
        var generator = NACKGenerator()
        for number: Int64 in [1, 4, 10, 12] { generator.receive(number, at: .milliseconds(0)) }
        generator.forget(before: 10)
        #expect(due(&generator, at: 15) == [11])
        generator.forget(before: 1_000)
        #expect(generator.outstanding == 0)
    }

    @Test func anythingMayCome() {
        let seed = UInt64.random(in: 0 ... .max)
        print("NACKs: seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            var generator = NACKGenerator()
            var missing: Set<Int64> = []
            var highest: Int64?
            for step in Int64(0)..<500 {
                let reach = Int64.random(in: 0...8, using: &random) == 0 ? Int64(1_200) : 4
                let number = (highest ?? 70_000) + .random(in: -reach...reach, using: &random)
                let was = generator.receive(number, at: .milliseconds(step))
                #expect(!was || missing.contains(number), "seed \(seed)")
                if let last = highest, number > last + 1 { missing.formUnion(last + 1..<number) }
                missing.remove(number)
                highest = max(highest ?? number, number)
                let asked = due(&generator, at: step)
                #expect(asked.count <= NACKGenerator.maxOutstanding)
                for number in asked {
                    let behind = Int64(UInt16(truncatingIfNeeded: highest ?? 0) &- number)
                    #expect(missing.contains((highest ?? 0) - behind), "seed \(seed)")
                }
            }
        }
        var generator = NACKGenerator()
        for number: Int64 in [.min, .max, 0, .min, .max] { generator.receive(number, at: .milliseconds(0)) }
        #expect(generator.outstanding == 0)
    }
}
