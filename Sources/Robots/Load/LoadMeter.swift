import RTC

/// How long many packets took, in a fixed number of steps: exact to three hundredths, from a microsecond to minutes.
struct DelayHistogram: Sendable {
    /// Steps to each doubling.
    private static let steps = 32
    private static let doublings = 28
    private var counts = [UInt64](repeating: 0, count: steps * doublings)
    private(set) var count: UInt64 = 0
    private(set) var most = MediaInterval.zero

    mutating func add(_ delay: MediaInterval) {
        counts[Self.index(delay.nanoseconds / 1000)] &+= 1
        count &+= 1
        if delay > most { most = delay }
    }

    private static func index(_ microseconds: Int64) -> Int {
        guard microseconds >= Int64(steps) else { return Int(max(0, microseconds)) }
        let doubling = 63 - microseconds.leadingZeroBitCount - 5
        let rest = Int(microseconds >> Int64(doubling)) & (steps - 1)
        return min((doubling + 1) * steps + rest, steps * doublings - 1)
    }

    /// The delay that this share of the packets did not exceed.
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

/// Hears what all subscribers of one thread get.
final class LoadMeter: RobotHandler {
    /// Packets that came at once, and those repeated.
    private(set) var packets: UInt64 = 0
    private(set) var repeats: UInt64 = 0
    var delays = DelayHistogram()
    /// Whether delays are taken down.
    var isMeasuring = false
    private(set) var connected = 0
    private(set) var failures: [String] = []

    func received(_ packet: RobotPacket, of reception: RobotReception, over connection: RobotConnection) {
        guard !packet.isRepeat else { return repeats &+= 1 }
        packets &+= 1
        guard isMeasuring, let sent = LoadSource.sentAt(packet.payload, reception.kind) else { return }
        delays.add(packet.at - sent)
    }

    func stateChanged(of connection: RobotConnection) {
        switch connection.state {
        case .connected: connected += 1
        case .failed, .disconnected: failures.append("\(connection.state)")
        case .new, .connecting, .closed: break
        }
    }
}
