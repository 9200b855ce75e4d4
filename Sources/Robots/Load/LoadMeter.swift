import Peers
import RTC

/// A histogram of packet delays with fixed buckets, from one microsecond to minutes, accurate to about 3 percent.
struct DelayHistogram: Sendable {
    /// The number of buckets per power of two.
    private static let steps = 32
    private static let doublings = 28
    private var counts = [UInt64](repeating: 0, count: steps * doublings)
    private(set) var count: UInt64 = 0
    private(set) var most = MediaInterval.zero
    /// The upper bounds of `bands` in milliseconds.
    static let bandBounds: [Int64] = [1, 2, 5, 10, 20]
    /// The number of packets in each of a few bands, for a report that people read. A band includes values below its
    /// bound and not below the previous bound; the last band has no upper bound.
    private(set) var bands = [UInt64](repeating: 0, count: bandBounds.count + 1)

    mutating func add(_ delay: MediaInterval) {
        counts[Self.index(delay.nanoseconds / 1000)] &+= 1
        count &+= 1
        if delay > most { most = delay }
        bands[Self.bandBounds.firstIndex { delay < .milliseconds($0) } ?? Self.bandBounds.count] &+= 1
    }

    private static func index(_ microseconds: Int64) -> Int {
        guard microseconds >= Int64(steps) else { return Int(max(0, microseconds)) }
        let doubling = 63 - microseconds.leadingZeroBitCount - 5
        let rest = Int(microseconds >> Int64(doubling)) & (steps - 1)
        return min((doubling + 1) * steps + rest, steps * doublings - 1)
    }

    /// Returns the delay that this share of the packets did not exceed; zero without packets.
    func quantile(_ share: Double) -> MediaInterval {
        var left = UInt64((Double(count) * share).rounded(.up))
        guard left > 0 else { return .zero }
        for (index, some) in counts.enumerated() {
            guard some < left else { return Self.delay(index) }
            left -= some
        }
        return most
    }

    private static func delay(_ index: Int) -> MediaInterval {
        guard index >= steps else { return MediaInterval(nanoseconds: Int64(index) * 1000) }
        let doubling = Int64(index / steps - 1)
        return MediaInterval(nanoseconds: Int64(steps + index % steps) << doubling * 1000)
    }
}

/// Counts the packets of all subscribers on one thread and measures their delays.
final class LoadMeter: RobotHandler {
    /// The number of original packets.
    private(set) var packets: UInt64 = 0
    /// The number of retransmissions.
    private(set) var retransmissions: UInt64 = 0
    var delays = DelayHistogram()
    /// The media between the nodes of a cluster. Measures nothing if there is one server.
    let paths = LoadPaths()
    /// Whether delays are recorded.
    var isMeasuring = false
    private(set) var connected = 0
    private(set) var failures: [String] = []

    func received(_ packet: RobotPacket, of reception: RobotReception, over connection: RobotConnection) {
        paths.count(packet, of: reception, isMeasuring: isMeasuring)
        guard !packet.isRetransmission else { return retransmissions &+= 1 }
        packets &+= 1
        guard isMeasuring, let sent = LoadSource.sentAt(packet.payload, reception.kind) else { return }
        delays.add(packet.at - sent)
        paths.add(packet.at - sent, of: reception)
    }

    func stateChanged(of connection: RobotConnection) {
        switch connection.state {
        case .connected: connected += 1
        case .failed, .disconnected: failures.append("\(connection.state)")
        case .new, .connecting, .closed: break
        }
    }
}
