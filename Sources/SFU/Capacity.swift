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
struct CapacityMeter: Sendable {
    /// The bytes of each packet that the tracks' counters do not include: the headers of IPv4, UDP, RTP with
    /// extensions, and the SRTP tag.
    static let overhead: UInt32 = 64

    /// Whether all sessions together have reached the server's limit.
    var total = Capacity()
    var sessions: [String: Capacity] = [:]
    /// The sessions last reported as full.
    var reported: Set<String> = []
    var measuredAt: MediaTime?
}

extension Router {
    /// Whether the bitrate that the server sends has reached `settings.totalBitrate` and has not dropped clearly below
    /// it since. While this is true, new connections should be refused.
    public var isFull: Bool { capacity.total.isFull }

    /// Returns whether the client has a peer connection for this side.
    public func hasConnection(_ client: Key, _ side: Side) -> Bool { peer(client, side) != nil }

    /// Measures the bitrates of the latest interval. Reports all sessions that are full, and those that accept traffic
    /// again. While the server is full, every session is reported as full.
    func updateCapacity(now: MediaTime) {
        guard settings.sessionBitrate != nil || settings.totalBitrate != nil else { return }
        guard let measuredAt = capacity.measuredAt else { return capacity.measuredAt = now }
        let elapsed = now - measuredAt
        guard elapsed >= Capacity.interval else { return }
        capacity.measuredAt = now
        let sent = takeSentBytes()
        let milliseconds = max(1, Int(elapsed.milliseconds))
        func rate(_ bytes: Int) -> Int { bytes &* 8000 / milliseconds }
        capacity.total.update(rate: rate(sent.values.reduce(0, &+)), limit: settings.totalBitrate)
        let present = Set(publications.values.lazy.map(\.session))
        capacity.sessions = capacity.sessions.filter { present.contains($0.key) }
        for session in present {
            capacity.sessions[session, default: Capacity()].update(
                rate: rate(sent[session] ?? 0), limit: settings.sessionBitrate)
        }
        reportCapacity(present)
    }

    /// Returns the bytes sent to the subscribers of each session since the previous call.
    private func takeSentBytes() -> [String: Int] {
        var sent: [String: Int] = [:]
        for peer in peers where peer.side == .receive {
            for track in peer.outgoing {
                let packets = track.packets &- track.metered.packets
                let bytes = track.octets &- track.metered.octets
                track.metered = (track.packets, track.octets)
                guard packets > 0, let session = track.subscription?.publication.session else { continue }
                sent[session, default: 0] &+= Int(bytes) &+ Int(packets) &* Int(CapacityMeter.overhead)
            }
        }
        return sent
    }

    private func reportCapacity(_ present: Set<String>) {
        let full = present.filter { capacity.total.isFull || capacity.sessions[$0]?.isFull ?? false }
        // A session that has no streams now is not measured. Report it as no longer full as soon as the server as a
        // whole is not full.
        let former = capacity.reported
        // Report every full session after each measurement, because a session that ended and started again has not
        // received the earlier report.
        for session in full.sorted() { events.append(.full(session: session, true)) }
        let freed = former.subtracting(full).filter { present.contains($0) || !capacity.total.isFull }
        for session in freed.sorted() { events.append(.full(session: session, false)) }
        capacity.reported = full.union(former.subtracting(freed))
        counters.fullSessions = UInt64(capacity.reported.count)
    }
}
