import RTC

/// Judges how well a publisher's stream reaches the server, from what the server itself receives. A level changes only after
/// it has lasted for some seconds, so that one burst of losses shows nothing.
struct UplinkQuality: Sendable {
    /// What a second of a stream looked like.
    struct Second: Equatable, Sendable {
        /// The part of the packets that did not arrive at first, 0 to 1; retransmissions may have repaired it.
        var loss = 0.0
        var jitter = MediaInterval.zero
        /// Whether the publisher does not send a layer that subscribers need.
        var lacksLayer = false
    }

    /// From these values on, a second is fair or poor.
    private static let loss = (fair: 0.03, poor: 0.10)
    private static let jitter = (fair: MediaInterval.milliseconds(60), poor: MediaInterval.milliseconds(200))
    /// How many seconds a worse level and a better level must last.
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

    /// - Returns: true if the level changed.
    mutating func add(_ second: Second) -> Bool {
        let (judged, trouble) = Self.judge(second)
        guard judged != level else {
            trend = 0
            return false
        }
        // A level that is worse still, or better still, continues the trend.
        let isSameSide = trend > 0 && (candidate < level) == (judged < level)
        trend = isSameSide ? trend + 1 : 1
        candidate = judged
        guard trend >= (judged < level ? Self.secondsToWorse : Self.secondsToBetter) else { return false }
        (level, self.trouble, trend) = (judged, trouble, 0)
        return true
    }
}

extension Router {
    /// Judges the streams of a publisher once a second, and reports changes.
    func judgeUplink(of peer: Peer, now: MediaTime) {
        for track in peer.incoming {
            guard let publication = track.publication else { continue }
            let second = track.takeSecond(now: now)
            guard publication.mainMid == track.mid else { continue }
            if publication.judgedTrack !== track {
                publication.judgedTrack = track
                // Video was turned on or off, and what is known of this track is from an earlier time; or the publisher's
                // connection was replaced.
                track.uplink = UplinkQuality()
                reportUplink(of: publication, track.uplink)
            }
            if let second, track.uplink.add(second) { reportUplink(of: publication, track.uplink) }
        }
    }

    private func reportUplink(of publication: Publication, _ uplink: UplinkQuality) {
        guard publication.reportedUplink != uplink.level else { return }
        publication.reportedUplink = uplink.level
        events.append(
            .streamQuality(stream: publication.stream, session: publication.session, uplink.level, uplink.trouble))
    }
}

extension Publication {
    /// The transceiver by which the stream is judged: the video, which takes the most, or else the audio.
    var mainMid: String? { forwardsVideo ? mids.video ?? mids.audio : mids.audio ?? mids.video }
}

extension IncomingTrack {
    /// Returns what the last second looked like, once a second; nil before its end, and if little arrived. A publisher that
    /// sends little for some seconds, because it is muted, has no trouble.
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
            guard layers[encoding.index].isAlive || encodings.count == 1 else { continue }
            let jitter = MediaInterval(nanoseconds: Int64(statistics.jitter) * 1_000_000_000 / Int64(clockRate))
            second.jitter = max(second.jitter, jitter)
        }
        guard expected >= 10 else {
            quietSeconds += 1
            return quietSeconds > 4 ? UplinkQuality.Second() : nil
        }
        quietSeconds = 0
        second.loss = Double(lost) / Double(expected)
        second.lacksLayer = layers.contains { $0.isMissingUntil.map { $0 > now } ?? false }
        return second
    }
}
