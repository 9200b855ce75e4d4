import RTC
import Testing

@testable import Robots

@Suite("Nodes under load") struct LoadNodesTests {
    @Test("clients of a room, or rooms, are distributed among the nodes in turn", arguments: LoadSpread.allCases)
    func spread(_ spread: LoadSpread) {
        let load = RoomLoad(servers: ["a", "b", "c"], spread: spread, size: 4)
        let nodes = (0..<8).map { load.node(room: $0 / 4, number: $0) }
        switch spread {
        case .clients: #expect(nodes == [0, 1, 2, 0, 1, 2, 0, 1])
        case .rooms: #expect(nodes == [0, 0, 0, 0, 1, 1, 1, 1])
        }
    }

    @Test("a report has what each node did, and how long its visitors waited") func report() {
        var (start, end) = (LoadSample(), LoadSample())
        (start.nodeSeconds, end.nodeSeconds) = ([1, 2], [1.5, 4])
        let counters = [(10, 20), (110, 320)].map { taken, forwarded in
            LoadCounters(
                exposition: "confab_media_packets_received \(taken)\nconfab_media_packets_forwarded \(forwarded)")
        }
        // The metrics of the first node are not readable.
        (start.nodeCounters, end.nodeCounters) = ([nil, counters[0]], [nil, counters[1]])
        let visits = [5, 30, 20].map { LoadVisit(node: 1, time: .milliseconds($0)) }
        let report = LoadNodeReport(LoadNode(server: "b"), at: 1, from: start, to: end, visits)
        #expect(report.processorSeconds == 2 && report.taken == 100 && report.forwarded == 300 && report.relayed == 0)
        #expect(report.visits == 3 && report.firstFramesMedian == 20 && report.firstFramesMost == 30)
        let first = LoadNodeReport(LoadNode(server: "a"), at: 0, from: start, to: end, visits)
        #expect(first.processorSeconds == 0.5 && first.taken == 0 && first.forwarded == 0 && first.visits == 0)
        let other = LoadNodeReport(LoadNode(server: "c"), at: 2, from: start, to: end, visits)
        #expect(other.processorSeconds.isNaN && other.taken == 0 && other.visits == 0)
    }
}
