/// The receiver's own estimate of the bitrate of everything that it receives (REMB, draft-alvestrand-rmcat-remb-03).
struct ReceiverEstimate: Sendable {
    /// How long an estimate is valid. libwebrtc repeats it about once per second, with its reports.
    private static let lifetime = MediaInterval.seconds(5)

    private(set) var bitrate: Bitrate?
    private var receivedAt = MediaTime(nanoseconds: 0)

    mutating func receive(_ bitrate: Bitrate, now: MediaTime) { (self.bitrate, receivedAt) = (bitrate, now) }

    /// Handles a receiver report. If a receiver still sends reports but has sent no estimate for `lifetime`, it no
    /// longer has one, so the last estimate is dropped. If no reports arrive either, the estimate is kept, because
    /// the path may be blocked.
    mutating func receiveReport(now: MediaTime) {
        if now - receivedAt > Self.lifetime { bitrate = nil }
    }
}
