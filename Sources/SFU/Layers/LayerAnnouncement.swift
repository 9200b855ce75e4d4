import RTC

/// Tells a publisher which encodings are wanted. A new one is announced at once. One that is no longer wanted is announced
/// after a delay, so that a subscriber who comes back does not wait for a keyframe. This also bounds the number of messages,
/// whatever subscribers do.
struct LayerAnnouncement: Sendable {
    /// An encoding that nobody has wanted for this long need not be sent.
    static let patience = MediaInterval.seconds(2)

    /// A bit for each encoding that somebody gets or should.
    var wanted: UInt8 = 0
    private var stream: Key?
    private var told: UInt8?
    private var begunAt: MediaTime?
    private var wantedAt = [MediaTime?](repeating: nil, count: IncomingTrack.mostEncodings)

    /// - Returns: what to tell now, if it is news.
    mutating func next(for stream: Key, now: MediaTime) -> UInt8? {
        if self.stream != stream {
            (self.stream, told, begunAt) = (stream, nil, now)
            for index in wantedAt.indices { wantedAt[index] = nil }
        }
        var current: UInt8 = 0
        for index in wantedAt.indices {
            let bit = UInt8(1) << UInt8(index)
            if wanted & bit != 0 { wantedAt[index] = now }
            if let at = wantedAt[index], now - at < Self.patience { current |= bit }
        }
        // Of a new stream it is not known what is made: it is told what is wanted, or after a while that nothing is.
        if told == nil, current == 0, let begunAt, now - begunAt < Self.patience { return nil }
        guard told != current else { return nil }
        told = current
        return current
    }
}
