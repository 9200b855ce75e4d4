import Foundation
import RTC
import TestSupport
import Testing

@testable import Peers
@testable import Robots

@Suite("Keyframes for a crowd") struct KeyframeReportTests {
    @Test("are sent about once a second, whole and as large as asked") func keyframes() throws {
        let world = try RobotWorld(seed: 3)
        let witness = Witness()
        let publisher = try world.publisher(1)
        let subscriber = try world.subscriber(2, of: [1], handler: witness)
        #expect(world.network.run(for: .seconds(10)) { publisher.isConnected && subscriber.isConnected })
        world.network.run(for: .seconds(1))
        let source = try #require(publisher.source as? LoadSource)
        let (sent, before) = (source.keyframes, witness.arrivals.count)
        source.sendKeyframes(of: 60)
        world.network.run(for: .milliseconds(5500))
        #expect(source.keyframes - sent == 6)
        let video = witness.arrivals[before...].filter { $0.mid == "v0" }
        let frames = Dictionary(grouping: video, by: \.timestamp).values.sorted { $0[0].number < $1[0].number }
        let sizes = frames.filter { $0.contains(where: \.startsKeyframe) }.map(\.count)
        #expect(sizes == Array(repeating: 60, count: 6))
        #expect(frames.allSatisfy { $0.count == 60 || $0.count == LoadSource.packetsPerFrame })
        #expect(witness.missing("v0").isEmpty && source.pauses == 0)
    }

    private static func sample(
        _ seconds: Int64, _ change: (inout KeyframeReport.Sample) -> Void
    ) -> KeyframeReport.Sample {
        var sample = KeyframeReport.Sample()
        sample.pair.at = MediaTime(nanoseconds: seconds * 1_000_000_000)
        change(&sample)
        return sample
    }

    private static let report: KeyframeReport = {
        let first = sample(10) { sample in
            sample.pair.received = 100
            sample.pair.serverSeconds = 1
        }
        let second = sample(20) { sample in
            (sample.pair.received, sample.pair.lost) = (1640, 2)
            sample.pair.serverSeconds = 2
            sample.pair.delays.add(.milliseconds(3))
            sample.publisher.pauses = 4
        }
        let third = sample(30) { sample in
            (sample.publisher.sent, sample.publisher.keyframes, sample.publisher.pauses) = (1000, 1, 9)
            sample.pair.serverSeconds = 3
            sample.pair.counters.waits = [(0.01, 3), (.infinity, 3)]
        }
        let fourth = sample(40) { sample in
            (sample.publisher.sent, sample.publisher.keyframes, sample.publisher.pauses) = (3000, 11, 10)
            sample.crowd.received = 99_000
            sample.crowd.broken = 1
            sample.pair.serverSeconds = 8
            sample.pair.counters.waits = [(0.01, 8), (.infinity, 10)]
            for _ in 0..<99 { sample.pair.delays.add(MediaInterval(nanoseconds: 500_000)) }
            sample.pair.delays.add(.milliseconds(12))
        }
        return KeyframeReport(
            crowd: 50, keyframePackets: 60, alone: .init(start: first, end: second),
            beside: .init(start: third, end: fourth))
    }()

    @Test("are reported with what the crowd received and how long the other room waited") func report() {
        let report = Self.report
        #expect(report.seconds == 10 && report.keyframes == 10)
        #expect(report.expected == 100_000 && report.received == 99_000)
        #expect(report.alone.packets == 1540 && report.alone.lost == 2)
        #expect(report.alone.counts == [0, 0, 1, 0, 0, 0] && report.beside.counts == [99, 0, 0, 0, 1, 0])
        #expect(report.alone.most == 3 && report.beside.most == 12 && report.beside.late < 1)
        #expect(report.alone.serverLoad == 0.1 && report.beside.serverLoad == 0.5)
        #expect(report.serverBounds == [0.01] && report.beside.serverCounts == [5, 2])
        #expect(report.broken == 1 && report.pauses == 5)
    }

    @Test("are reported as JSON whose inner objects hold numbers and lists only") func json() throws {
        // Benchmarks/keyframe reads them with a regular expression.
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let text = String(decoding: try encoder.encode(Self.report), as: UTF8.self)
        let inner = try #require(text.firstMatch(of: /"beside":\{([^{}"]|"[a-zA-Z]+":)*\}/))
        #expect(inner.output.0.contains("\"most\":12") && inner.output.0.contains("\"counts\":[99,0,0,0,1,0]"))
    }
}
