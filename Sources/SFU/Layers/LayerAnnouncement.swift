import RTC

/// Decides when to tell a publisher which encodings subscribers need. A newly needed encoding is announced immediately. An
/// encoding that is no longer needed is announced after a delay, so that a subscriber who returns soon does not wait for a
/// keyframe. The delay also bounds the number of messages, whatever subscribers do.
struct LayerAnnouncement: Sendable {
    /// How long an encoding must have no subscribers before the publisher may stop sending it.
    static let layerReleaseDelay = MediaInterval.seconds(2)

    /// One bit per encoding. Set if a subscriber receives the encoding or should receive it.
    var wanted: UInt8 = 0
    private var stream: Key?
    private var announced: UInt8?
    private var begunAt: MediaTime?
    private var wantedAt = [MediaTime?](repeating: nil, count: IncomingTrack.maxEncodings)

    /// - Returns: the encodings to announce, one bit each; nil if they have not changed.
    mutating func next(for stream: Key, now: MediaTime) -> UInt8? {
        if self.stream != stream {
            (self.stream, announced, begunAt) = (stream, nil, now)
            for index in wantedAt.indices { wantedAt[index] = nil }
        }
        var current: UInt8 = 0
        for index in wantedAt.indices {
            let bit = UInt8(1) << UInt8(index)
            if wanted & bit != 0 { wantedAt[index] = now }
            if let at = wantedAt[index], now - at < Self.layerReleaseDelay { current |= bit }
        }
        // At first it is unknown what a new stream sends. Announce encodings that are needed immediately, but wait for the
        // delay before announcing that none are.
        if announced == nil, current == 0, let begunAt, now - begunAt < Self.layerReleaseDelay { return nil }
        guard announced != current else { return nil }
        announced = current
        return current
    }
}
