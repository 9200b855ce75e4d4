import RTC
import Testing

@testable import Peers
@testable import Robots

@Suite("Loss in a load report") struct LoadReportTests {
    private func report(_ change: (inout LoadSample) -> Void) -> LoadReport {
        let start = LoadSample()
        var end = LoadSample()
        end.at = MediaTime(nanoseconds: 10_000_000_000)
        (end.expected, end.received, end.lost) = (100_000, 99_000, 1_000)
        change(&end)
        return LoadReport(from: start, to: end, fanOut: 9)
    }

    @Test("loss with no known cause counts as unexplained") func unexplained() {
        let report = report { _ in }
        #expect(report.lost == 1_000 && report.unexplained == 1_000)
        #expect(report.lostByServer == 0 && report.lostByMachine == 0)
        #expect(report.packetsPerSecond == 9_900)
    }

    @Test("a packet that the server did not read counts as lost once per subscriber") func server() {
        let report = report { end in
            end.serverDrops = 20
            end.counters.unsent = 3
        }
        #expect(report.lostByServer == 183 && report.unexplained == 817)
    }

    @Test("the server's loss is at most the total loss") func most() {
        let report = report { $0.serverDrops = 1_000_000 }
        #expect(report.lostByServer == 1_000 && report.unexplained == 0 && report.lostByMachine == 0)
    }

    @Test("other kernel drops explain the rest", arguments: ["here", "between", "unsent"])
    func machine(place: String) {
        let report = report { end in
            switch place {
            case "here": end.robotDrops = 5
            case "between": end.machineDrops = 5
            default: end.robotUnsent = 5
            }
            end.serverDrops = 1
        }
        #expect(report.lostByServer == 9 && report.lostByMachine == 991 && report.unexplained == 0)
    }

    @Test("duplicates are not loss") func twice() {
        let report = report { $0.lost = -4 }
        #expect(report.lost == -4 && report.lostByServer == 0 && report.unexplained == 0)
    }
}

@Suite("A server's media counters") struct LoadCountersTests {
    @Test("are read from its metrics") func exposition() {
        let counters = LoadCounters(
            exposition: """
                # HELP confab_media_packets_received Media packets from publishers.
                # TYPE confab_media_packets_received gauge
                confab_media_packets_received 154
                confab_media_packets_forwarded 7700.0
                confab_media_packets_dropped 1e3
                confab_media_packets_relayed_total 154
                confab_media_datagrams_unsent 2
                confab_sessions 1
                """)
        #expect(counters.taken == 154 && counters.forwarded == 7700)
        #expect(counters.dropped == 1000 && counters.unsent == 2 && counters.relayed == 154)
    }

    private static func waits(_ counts: [Int]) -> LoadCounters {
        let bounds = ["0.001", "0.01", "+Inf"]
        let lines = zip(bounds, counts).map { "confab_media_wait_seconds_bucket{le=\"\($0)\"} \($1)" }
        return LoadCounters(exposition: (lines + ["confab_media_wait_seconds_count 9"]).joined(separator: "\n"))
    }

    @Test("show how long media waited between two readings") func waits() {
        let (start, end) = (Self.waits([5, 6, 6]), Self.waits([25, 29, 30]))
        #expect(end.waits.map(\.bound) == [0.001, 0.01, .infinity])
        #expect(end.waits(since: start).map(\.count) == [20, 3, 1])
        #expect(end.waits(since: LoadCounters()).map(\.count) == [25, 4, 1])
        #expect(LoadCounters().waits(since: LoadCounters()).isEmpty)
    }

    @Test(
        "cannot be read from other text",
        arguments: [
            "", "x", "\n\n", "confab_media_packets_received NaN", "confab_media_wait_seconds_bucket 1",
            "confab_media_wait_seconds_bucket{le=\"x\"} 1",
        ])
    func other(text: String) {
        let counters = LoadCounters(exposition: text)
        #expect(counters.taken == 0 && counters.unsent == 0 && counters.waits.isEmpty)
    }
}

@Suite("The delay histogram") struct DelayHistogramTests {
    @Test("is accurate to 3 percent") func quantiles() {
        var delays = DelayHistogram()
        for number in 1...1000 { delays.add(.milliseconds(Int64(number))) }
        #expect(delays.count == 1000 && delays.most == .milliseconds(1000))
        for share in [0.01, 0.5, 0.99] {
            let expected = share * 1000
            let found = Double(delays.quantile(share).nanoseconds) / 1e6
            #expect(abs(found - expected) <= 0.035 * expected, "\(share)")
        }
        #expect(delays.quantile(1).nanoseconds <= delays.most.nanoseconds)
    }

    @Test("counts each delay in one band") func bands() {
        var delays = DelayHistogram()
        for microseconds: Int64 in [0, 999, 1000, 1999, 2000, 9999, 10_000, 19_999, 20_000, 60_000_000] {
            delays.add(MediaInterval(nanoseconds: microseconds * 1000 + 999))
        }
        #expect(DelayHistogram.bandBounds == [1, 2, 5, 10, 20])
        #expect(delays.bands == [2, 2, 1, 1, 2, 2])
    }

    @Test("without packets returns zero") func none() { #expect(DelayHistogram().quantile(0.5) == .zero) }
}
