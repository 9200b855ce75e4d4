import Peers
import RTC

/// Measures the media between the nodes of a cluster: on each path from the node of a publisher to the node of a subscriber. Used only
/// on the thread of the robots' loop.
final class LoadPaths {
    /// Two nodes of a load test, by their places among its servers. They are the same if publisher and subscriber are on one node.
    struct Path: Hashable, Sendable {
        var from: Int
        var to: Int
    }

    /// What one section of a subscriber's connection receives.
    private struct Flow {
        let path: Path
        let isVideo: Bool
        var packets = 0
        var retransmissions = 0
        var frames = FrameTally()
        var lastAt: MediaTime?
        var longestGap = MediaInterval.zero
    }

    /// All flows. The tag of a reception is the place of its flow, counted from 1.
    private var flows: [Flow] = []
    private var delays: [Path: DelayHistogram] = [:]

    /// Begins to measure the sections of a connection.
    ///
    /// - Parameters:
    ///   - mids: the sections in which the connection receives each stream.
    ///   - publishers: the node of each stream's publisher, in the same order.
    ///   - node: the subscriber's node.
    func measure(_ connection: RobotConnection, _ mids: [MidPair], from publishers: [Int], to node: Int) {
        for (mids, publisher) in zip(mids, publishers) {
            for (mid, isVideo) in [(mids.audio, false), (mids.video, true)] {
                guard let reception = connection.reception(mid) else { continue }
                flows.append(Flow(path: Path(from: publisher, to: node), isVideo: isVideo))
                reception.tag = flows.count
            }
        }
    }

    /// Counts a packet.
    ///
    /// - Parameter isMeasuring: whether the measured window has begun and not ended.
    func count(_ packet: RobotPacket, of reception: RobotReception, isMeasuring: Bool) {
        guard reception.tag > 0 else { return }
        let index = reception.tag - 1
        if flows[index].isVideo { flows[index].frames.add(packet.number, endsFrame: packet.header.marker) }
        guard isMeasuring else { return }
        if packet.isRetransmission { flows[index].retransmissions += 1 } else { flows[index].packets += 1 }
        if let last = flows[index].lastAt { flows[index].longestGap = max(flows[index].longestGap, packet.at - last) }
        flows[index].lastAt = packet.at
    }

    /// Adds the delay of a packet that is no retransmission.
    func add(_ delay: MediaInterval, of reception: RobotReception) {
        guard reception.tag > 0 else { return }
        delays[flows[reception.tag - 1].path, default: DelayHistogram()].add(delay)
    }

    /// Begins the measured window.
    func begin(at now: MediaTime) {
        delays = [:]
        for index in flows.indices {
            (flows[index].packets, flows[index].retransmissions) = (0, 0)
            (flows[index].lastAt, flows[index].longestGap) = (now, .zero)
            flows[index].frames.beginCounting()
        }
    }

    /// Returns the figures of each path until now, sorted by publisher and subscriber.
    func reports(at now: MediaTime) -> [LoadPathReport] {
        Dictionary(grouping: flows, by: \.path).map { path, flows in
            var report = LoadPathReport(from: path.from + 1, to: path.to + 1)
            for flow in flows {
                report.packets += flow.packets
                report.retransmissions += flow.retransmissions
                report.missing += flow.frames.missing
                report.late += flow.frames.late
                report.frames += flow.frames.complete + flow.frames.incomplete
                report.incompleteFrames += flow.frames.incomplete
                // In a large room, only the loudest streams are forwarded, so gaps in audio mean nothing.
                guard flow.isVideo, let last = flow.lastAt else { continue }
                report.longestGap = max(report.longestGap, max(flow.longestGap, now - last).inMilliseconds)
            }
            let histogram = delays[path] ?? DelayHistogram()
            report.delayMedian = histogram.quantile(0.5).inMilliseconds
            report.delay99 = histogram.quantile(0.99).inMilliseconds
            report.delayMost = histogram.most.inMilliseconds
            return report
        }.sorted { ($0.from, $0.to) < ($1.from, $1.to) }
    }
}

/// The sections in which a connection receives one stream.
struct MidPair: Hashable, Sendable {
    let audio: String
    let video: String

    /// - Parameter slot: the stream's place on the connection.
    init(slot: Int) { (audio, video) = ("a\(slot)", "v\(slot)") }
}
