import RTC

/// Whether a measured bitrate has reached its limit. What was full becomes free only when the bitrate is clearly lower, so that
/// the answer to new publishers and subscribers does not change every second.
struct Capacity: Equatable, Sendable {
    /// The time between measurements.
    static let interval = MediaInterval.seconds(1)
    /// The share of the limit below which there is room again.
    static let room = 0.9

    private(set) var isFull = false

    /// - Parameters:
    ///   - rate: the measured bitrate in bits per second.
    ///   - limit: the limit in bits per second; nil for none.
    mutating func update(rate: Int, limit: Int?) {
        guard let limit else { return isFull = false }
        isFull = rate >= limit || isFull && Double(rate) >= Double(limit) * Self.room
    }
}

/// What the router sends, measured against the limits of each session and of all together.
struct CapacityMeter: Sendable {
    /// The bytes of a packet that a track does not count: the headers of IPv4, UDP, RTP with extensions, and the SRTP tag.
    static let overhead: UInt32 = 64

    /// Of all sessions together.
    var total = Capacity()
    var sessions: [String: Capacity] = [:]
    /// The sessions that were reported as full.
    var reported: Set<String> = []
    var measuredAt: MediaTime?
}

extension Router {
    /// Whether everything that the server sends has reached `settings.totalBitrate`. New connections should be refused then.
    public var isFull: Bool { capacity.total.isFull }

    /// Whether the client has this one of its two connections.
    public func hasConnection(_ client: Key, _ side: Side) -> Bool { peer(client, side) != nil }

    /// Measures what was sent in the latest interval, and reports which sessions have become full or have room again. While the
    /// server is full, every session is.
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
        // A session without streams has room as soon as the server has.
        let former = capacity.reported
        // Said again each time, because a session that ended and began again does not know.
        for session in full.sorted() { events.append(.full(session: session, true)) }
        let freed = former.subtracting(full).filter { present.contains($0) || !capacity.total.isFull }
        for session in freed.sorted() { events.append(.full(session: session, false)) }
        capacity.reported = full.union(former.subtracting(freed))
        counters.fullSessions = UInt64(capacity.reported.count)
    }
}
