import RTC

/// Judges the quality of a publisher's connection from the packets that the server receives. The level changes only
/// after some seconds of better or worse measurements, so that one burst of losses has no effect.
struct UplinkQuality: Sendable {
    /// The measurements of one second of a stream.
    struct Second: Equatable, Sendable {
        /// The share of packets that were lost at first, 0 to 1. Retransmissions may have recovered them.
        var loss = 0.0
        var jitter = MediaInterval.zero
        /// Whether a layer that subscribers need is missing.
        var lacksLayer = false
    }

    /// The thresholds of the loss (0 to 1) and of the jitter. A second with at least this much counts as fair or poor.
    private static let loss = (fair: 0.03, poor: 0.10)
    private static let jitter = (fair: MediaInterval.milliseconds(60), poor: MediaInterval.milliseconds(200))
    /// The number of consecutive worse seconds after which the level gets worse, and of consecutive better seconds
    /// after which it gets better.
    private static let (secondsToWorse, secondsToBetter) = (2, 4)

    private(set) var level = UplinkLevel.good
    private(set) var trouble: UplinkTrouble?
    private var (candidate, trend): (UplinkLevel, Int) = (.good, 0)

    private static func judge(_ second: Second) -> (UplinkLevel, UplinkTrouble?) {
        if second.loss >= loss.poor { return (.poor, .loss) }
        if second.jitter >= jitter.poor { return (.poor, .delay) }
        if second.loss >= loss.fair { return (.fair, .loss) }
        if second.jitter >= jitter.fair { return (.fair, .delay) }
        return second.lacksLayer ? (.fair, .bandwidth) : (.good, nil)
    }

    /// Adds the measurements of one second.
    /// - Returns: true if the level changed.
    mutating func add(_ second: Second) -> Bool {
        let (judged, trouble) = Self.judge(second)
        guard judged != level else {
            trend = 0
            return false
        }
        // A second that is worse than the current level continues a downward trend, and a better one an upward trend,
        // even if its level differs from that of the previous second.
        let isSameSide = trend > 0 && (candidate < level) == (judged < level)
        trend = isSameSide ? trend + 1 : 1
        candidate = judged
        guard trend >= (judged < level ? Self.secondsToWorse : Self.secondsToBetter) else { return false }
        (level, self.trouble, trend) = (judged, trouble, 0)
        return true
    }
}

extension Ingress {
    /// Judges the streams of a publisher once a second, and reports changes.
    func judgeUplink(of publisher: Publisher, now: MediaTime) {
        for track in publisher.tracks {
            guard let publication = track.feedTrack.publication else { continue }
            let second = track.takeSecond(now: now)
            guard publication.mainMid == track.feedTrack.mid else { continue }
            if publication.judgedTrack !== track.feedTrack {
                publication.judgedTrack = track.feedTrack
                // Start over. Either video was turned on or off, so the measurements of this track are from an
                // earlier time, or the publisher's connection was replaced.
                track.uplink = UplinkQuality()
                reportUplink(of: publication, track.uplink)
            }
            if let second, track.uplink.add(second) { reportUplink(of: publication, track.uplink) }
        }
    }

    private func reportUplink(of publication: Publication, _ uplink: UplinkQuality) {
        guard publication.reportedUplink != uplink.level else { return }
        publication.reportedUplink = uplink.level
        output.report(
            .streamQuality(stream: publication.stream, session: publication.session, uplink.level, uplink.trouble))
    }
}

extension Publication {
    /// The MID of the transceiver used to judge the stream: of the video if it is forwarded, because it has the
    /// highest bitrate, otherwise of the audio. If there is only one of the two, that one is used.
    var mainMid: String? { forwardsVideo ? mids.video ?? mids.audio : mids.audio ?? mids.video }
}

extension IncomingTrack {
    /// Returns the measurements of the last second, at most once a second; nil before the second has ended, or if
    /// fewer than ten packets were expected in it. From the fifth such second in a row, returns a good measurement,
    /// because the publisher is probably muted.
    func takeSecond(now: MediaTime) -> UplinkQuality.Second? {
        if let judgedAt, now - judgedAt < .seconds(1) { return nil }
        judgedAt = now
        var (expected, lost): (Int64, Int64) = (0, 0)
        var second = UplinkQuality.Second()
        for encoding in encodings {
            guard let statistics = encoding.statistics else { continue }
            let (all, missing) = (statistics.received + statistics.lost, statistics.lost)
            expected += max(0, all - encoding.judgedPackets)
            lost += max(0, missing - encoding.judgedLosses)
            (encoding.judgedPackets, encoding.judgedLosses) = (all, missing)
            guard feedTrack.layers[encoding.feed.index].isAlive || encodings.count == 1 else { continue }
            let jitter = MediaInterval(
                nanoseconds: Int64(statistics.jitter) * 1_000_000_000 / Int64(feedTrack.clockRate))
            second.jitter = max(second.jitter, jitter)
        }
        guard expected >= 10 else {
            quietSeconds += 1
            return quietSeconds > 4 ? UplinkQuality.Second() : nil
        }
        quietSeconds = 0
        second.loss = Double(lost) / Double(expected)
        second.lacksLayer = feedTrack.layers.contains { $0.isMissingUntil.map { $0 > now } ?? false }
        return second
    }
}
