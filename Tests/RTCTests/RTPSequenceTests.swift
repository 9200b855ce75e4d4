import Testing

@testable import RTC

@Suite struct RTPSequenceTests {
    private func unwrap(_ numbers: [UInt16]) -> [Int64] {
        var unwrapper = SequenceUnwrapper()
        let first = numbers.first.map { Int64($0) + 0x1_0000 } ?? 0
        return numbers.map { unwrapper.unwrap($0) - first }
    }

    @Test(
        arguments: [
            ([1, 2, 3], [0, 1, 2]),
            ([65_535, 0, 1], [0, 1, 2]),
            ([0, 65_535, 1], [0, -1, 1]),
            ([10, 12, 11, 13], [0, 2, 1, 3]),
            // Gaps. Two steps cover more than half of the sequence numbers.
            ([0, 30_000, 60_000, 24_464], [0, 30_000, 60_000, 90_000]),
            // A packet that is 1000 packets late, and single packets that are too late.
            ([5_000, 4_000, 5_001], [0, -1_000, 1]),
            ([5_000, 3_000, 5_001, 3_001, 5_002], [0, -2_000, 1, -1_999, 2]),
            // A late packet followed by the next number, which means that the sender has restarted.
            ([5_000, 3_000, 3_001, 3_002], [0, -2_000, 63_537, 63_538]),
        ] as [([UInt16], [Int64])])
    func numbersDoNotWrap(_ numbers: [UInt16], _ expected: [Int64]) {
        #expect(unwrap(numbers) == expected)
    }

    @Test func aRestartIsReported() {
        var unwrapper = SequenceUnwrapper()
        for number: UInt16 in [5_000, 3_000] { _ = unwrapper.unwrap(number) }
        #expect(!unwrapper.restarted)
        _ = unwrapper.unwrap(3_001)
        #expect(unwrapper.restarted)
        _ = unwrapper.unwrap(3_002)
        #expect(!unwrapper.restarted)
    }

    @Test func nearestChangesNothing() {
        var unwrapper = SequenceUnwrapper()
        _ = unwrapper.unwrap(65_000)
        let before = unwrapper
        #expect(unwrapper.nearest(10) == 0x2_000a)
        #expect(unwrapper.nearest(64_999) == 0x1_0000 + 64_999)
        #expect(unwrapper == before)
    }
}

@Suite struct RTPReceiverStatisticsTests {
    /// Passes packets of 20 ms at 48 kHz to the statistics.
    private func receive(
        _ numbers: some Sequence<Int>, into statistics: inout ReceiverStatistics, late: Int64 = 0
    ) {
        for number in numbers {
            statistics.receive(
                sequenceNumber: UInt16(truncatingIfNeeded: number),
                timestamp: UInt32(truncatingIfNeeded: number &* 960), at: .milliseconds(Int64(number) * 20 + late))
        }
    }

    @Test func withoutPacketsThereIsNoReport() {
        var statistics = ReceiverStatistics(ssrc: 7, clockRate: 48_000)
        #expect(answer(of: &statistics) { $0.reportBlock(at: .milliseconds(0)) } == nil)
        #expect(statistics.lost == 0)
    }

    @Test func theFractionLostIsSinceTheLastReport() throws {
        var statistics = ReceiverStatistics(ssrc: 7, clockRate: 48_000)
        receive((0..<100).filter { $0 % 4 != 1 }, into: &statistics)
        let first = try #require(answer(of: &statistics) { $0.reportBlock(at: .milliseconds(2_000)) })
        #expect(first.ssrc == 7)
        #expect(first.lost == 25)
        #expect(first.fractionLost == 64)
        #expect(first.highestSequenceNumber == 99)
        #expect(first.lastSenderReport == 0 && first.delaySinceLastSenderReport == 0)
        receive(100..<200, into: &statistics)
        let second = try #require(answer(of: &statistics) { $0.reportBlock(at: .milliseconds(4_000)) })
        #expect(second.lost == 25)
        #expect(second.fractionLost == 0)
        let third = try #require(answer(of: &statistics) { $0.reportBlock(at: .milliseconds(4_000)) })
        #expect(third.fractionLost == 0)
    }

    @Test func cyclesAreCounted() throws {
        var statistics = ReceiverStatistics(ssrc: 7, clockRate: 48_000)
        receive(65_000..<140_000, into: &statistics)
        let block = try #require(answer(of: &statistics) { $0.reportBlock(at: .milliseconds(0)) })
        #expect(block.highestSequenceNumber == 139_999)
        #expect(block.lost == 0)
    }

    @Test func duplicatesMakeTheLossNegative() throws {
        var statistics = ReceiverStatistics(ssrc: 7, clockRate: 48_000)
        receive([1, 1, 2, 2, 3], into: &statistics)
        let block = try #require(answer(of: &statistics) { $0.reportBlock(at: .milliseconds(0)) })
        #expect(block.lost == -2)
        #expect(block.fractionLost == 0)
    }

    @Test func aRestartOfTheSenderIsNoLoss() throws {
        var statistics = ReceiverStatistics(ssrc: 7, clockRate: 48_000)
        receive([30_000, 30_001, 30_004], into: &statistics)
        receive([10, 11, 12, 14], into: &statistics)
        #expect(statistics.lost == 3)
        let block = try #require(answer(of: &statistics) { $0.reportBlock(at: .milliseconds(0)) })
        #expect(block.highestSequenceNumber & 0xffff == 14)
        #expect(block.fractionLost == 51)
    }

    @Test func aTotalLossIsTheHighestFraction() throws {
        var statistics = ReceiverStatistics(ssrc: 7, clockRate: 48_000)
        receive([1], into: &statistics)
        _ = statistics.reportBlock(at: .milliseconds(0))
        receive([30_001], into: &statistics)
        #expect(answer(of: &statistics) { $0.reportBlock(at: .milliseconds(0)) }?.fractionLost == 255)
        for step in 1...600 { receive([30_001 + step * 30_000], into: &statistics) }
        #expect(answer(of: &statistics) { $0.reportBlock(at: .milliseconds(0)) }?.lost == 0x7f_ffff)
    }

    @Test func theJitterFollowsTheFormula() throws {
        var statistics = ReceiverStatistics(ssrc: 7, clockRate: 90_000)
        var expected = 0.0
        var last: Double?
        for index in 0..<2_000 {
            let late = Int64(index * 7_919 % 13) * 1_000
            let arrival = Int64(index) * 10_000 + late
            statistics.receive(
                sequenceNumber: UInt16(index), timestamp: UInt32(truncatingIfNeeded: index * 900 - 50_000),
                at: .microseconds(arrival))
            let transit = Double(arrival) * 0.09 - Double(index * 900)
            if let last { expected += (abs(transit - last) - expected) / 16 }
            last = transit
        }
        #expect(abs(Double(statistics.jitter) - expected) < 2, "\(statistics.jitter), \(expected)")
    }

    @Test func aTimestampJumpIsNoJitter() {
        var statistics = ReceiverStatistics(ssrc: 7, clockRate: 48_000)
        receive(0..<10, into: &statistics)
        statistics.receive(sequenceNumber: 10, timestamp: 0x8000_0000, at: .milliseconds(200))
        statistics.receive(sequenceNumber: 11, timestamp: 0x8000_0000 + 960, at: .milliseconds(220))
        #expect(statistics.jitter == 0)
        statistics.receive(sequenceNumber: 12, timestamp: 0, at: MediaTime(nanoseconds: .min))
        statistics.receive(sequenceNumber: 13, timestamp: 0, at: MediaTime(nanoseconds: .max))
    }

    @Test func aReportContainsTheDelaySinceTheSenderReport() throws {
        var statistics = ReceiverStatistics(ssrc: 7, clockRate: 48_000)
        receive(0..<10, into: &statistics)
        let sent = NTPTime(0x0000_1234_5678_9abc)
        statistics.receive(senderReport: sent, at: .milliseconds(1_000))
        let block = try #require(answer(of: &statistics) { $0.reportBlock(at: .milliseconds(1_500)) })
        #expect(block.lastSenderReport == 0x1234_5678)
        #expect(block.delaySinceLastSenderReport == 0x8000)
        // The sender gets this report 600 ms after its own. The delay in between was 500 ms, so the round trip took 100
        // ms.
        let roundTrip = try #require(block.roundTrip(at: sent + .milliseconds(600)))
        #expect(roundTrip.milliseconds == 99 || roundTrip.milliseconds == 100)
        #expect(block.roundTrip(at: sent + .milliseconds(400)) == nil)
    }
}
