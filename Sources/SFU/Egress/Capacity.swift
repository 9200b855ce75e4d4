import RTC

/// Tracks whether a measured bitrate has reached its limit. Once it has, the session or server counts as full until
/// the bitrate is clearly lower, so that new publishers and subscribers are not alternately accepted and refused.
struct Capacity: Equatable, Sendable {
    /// The time between measurements.
    static let interval = MediaInterval.seconds(1)
    /// The share of the limit below which new traffic is accepted again.
    static let room = 0.9

    private(set) var isFull = false

    /// Updates `isFull` from a new measurement.
    /// - Parameters:
    ///   - rate: the measured bitrate in bits per second.
    ///   - limit: the limit in bits per second; nil for none.
    mutating func update(rate: Int, limit: Int?) {
        guard let limit else { return isFull = false }
        isFull = rate >= limit || isFull && Double(rate) >= Double(limit) * Self.room
    }
}

/// The bitrates that the router sends, measured against the limits of each session and of the server.
final class CapacityMeter {
    /// The bytes of each packet that the tracks' counters do not include: the headers of IPv4, UDP, RTP with
    /// extensions, and the SRTP tag.
    static let overhead: UInt32 = 64

    private let settings: RouterSettings
    private let output: RouterOutput
    /// Whether all sessions together have reached the server's limit.
    private var total = Capacity()
    private var sessions: [String: Capacity] = [:]
    /// Whether this router reports which sessions are full. Of several routers, only one does.
    private var isReporter = false
    /// The sessions last reported as full.
    private var reported: Set<String> = []
    private var measuredAt: MediaTime?
    /// The bitrates that other routers send in each session, by event loop, and when they were measured.
    private var elsewhere: [Int: (sent: [String: Int], at: MediaTime)] = [:]
    /// How long the bitrates of another router are used. A router without clients measures nothing.
    private static let maxAge = Capacity.interval * 3

    init(settings: RouterSettings, output: RouterOutput) { (self.settings, self.output) = (settings, output) }

    /// Whether the bitrate of all sessions has reached `settings.totalBitrate` and has not dropped clearly below it
    /// since.
    var isFull: Bool { total.isFull }

    /// Records the bitrates that another router sends in each session, in bits per second.
    func receive(_ sent: [String: Int], from loop: Int, now: MediaTime) {
        elsewhere[loop] = (sent, now)
        // This router may not measure, because it has no clients. It must refuse the first one if the others alone send
        // as much as the server may.
        let rate = elsewhere.values.reduce(0) { $1.sent.values.reduce($0, &+) }
        if let limit = settings.totalBitrate, rate >= limit { total.update(rate: rate, limit: limit) }
    }

    /// Whether no session is full or reported as full. Until then, the router must keep measuring.
    var isSettled: Bool { !total.isFull && reported.isEmpty && !sessions.values.contains { $0.isFull } }

    /// Measures the bitrates of the latest interval, and adds those of the other routers. Reports all sessions that are
    /// full, and those that accept traffic again. While the server is full, every session is reported as full. If
    /// several routers measure, only the one with the lowest index reports.
    /// - Parameters:
    ///   - egress: counts the bytes.
    ///   - streams: knows which sessions exist.
    ///   - pipes: where to send the measurement.
    func update(_ egress: Egress, _ streams: Streams, _ pipes: Pipes, now: MediaTime) {
        guard settings.sessionBitrate != nil || settings.totalBitrate != nil else { return }
        guard let measuredAt else { return self.measuredAt = now }
        let elapsed = now - measuredAt
        guard elapsed >= Capacity.interval else { return }
        self.measuredAt = now
        let milliseconds = max(1, Int(elapsed.milliseconds))
        var rates = egress.takeSentBytes().mapValues { $0 &* 8000 / milliseconds }
        pipes.broadcast(.sent(rates))
        elsewhere = elsewhere.filter { now - $0.value.at < Self.maxAge }
        for other in elsewhere.values { rates.merge(other.sent, uniquingKeysWith: &+) }
        total.update(rate: rates.values.reduce(0, &+), limit: settings.totalBitrate)
        let present = streams.sessions
        sessions = sessions.filter { present.contains($0.key) }
        for session in present {
            sessions[session, default: Capacity()].update(rate: rates[session] ?? 0, limit: settings.sessionBitrate)
        }
        // A router does not report while it is idle.
        let wasReporter = isReporter && elapsed < Self.maxAge
        isReporter = elsewhere.keys.allSatisfy { $0 > pipes.loop }
        guard isReporter else {
            output.counters.fullSessions = 0
            return reported = []
        }
        // This router does not know what another one has reported. Report each session that is not full once.
        if pipes.isConnected, !wasReporter { reported = present }
        report(present)
    }

    private func report(_ present: Set<String>) {
        let full = present.filter { total.isFull || sessions[$0]?.isFull ?? false }
        // A session that has no streams now is not measured. Report it as no longer full as soon as the server as a
        // whole is not full.
        let former = reported
        // Report every full session after each measurement, because a session that ended and started again has not
        // received the earlier report.
        for session in full.sorted() { output.report(.full(session: session, true)) }
        let freed = former.subtracting(full).filter { present.contains($0) || !total.isFull }
        for session in freed.sorted() { output.report(.full(session: session, false)) }
        reported = full.union(former.subtracting(freed))
        output.counters.fullSessions = UInt64(reported.count)
    }
}
