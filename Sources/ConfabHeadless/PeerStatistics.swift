import Confab
import Peers
import RTC

extension RobotPeer {
    /// Returns the counters of all tracks. Call this on the connection's thread.
    func statistics(at now: MediaTime) -> [Statistic] {
        connection.tracks.compactMap { statistic(of: $0, at: now) }
            + connection.receptions.compactMap { statistic(of: $0) }
    }

    private func statistic(of track: RobotTrack, at now: MediaTime) -> Statistic? {
        guard let kind = TrackKind(track.kind) else { return nil }
        var statistic = Statistic(.sent, kind, mid: track.mid, rid: track.rid)
        (statistic.packets, statistic.bytes) = (UInt64(track.packetsSent), UInt64(track.bytesSent))
        (statistic.frames, statistic.keyFrames) = (UInt64(track.framesSent), UInt64(track.keyframesSent))
        if kind == .video { statistic.size = transceivers.first { $0.mid == track.mid }?.media?.size }
        if let report = track.lastReport {
            statistic.packetsLost = Int64(report.lost)
            statistic.jitter = Self.duration(report.jitter, rate: track.codec.clockRate)
        }
        statistic.roundTripTime = track.roundTripTime.map { .nanoseconds($0.nanoseconds) }
        return statistic
    }

    private func statistic(of reception: RobotReception) -> Statistic? {
        guard let kind = TrackKind(reception.kind) else { return nil }
        var statistic = Statistic(.received, kind, mid: reception.mid)
        (statistic.packets, statistic.bytes) = (UInt64(reception.packets), UInt64(reception.bytes))
        statistic.packetsLost = reception.lost
        statistic.jitter = Self.duration(reception.jitter, rate: reception.codecs.first?.clockRate ?? 90_000)
        if kind == .video, let receiver = arrivals[reception.mid]?.receiver {
            (statistic.frames, statistic.keyFrames) = (receiver.frames, receiver.keyFrames)
            statistic.size = receiver.size
        }
        return statistic
    }

    private static func duration(_ ticks: UInt32, rate: UInt32) -> Duration {
        .nanoseconds(Int64(ticks) * 1_000_000_000 / Int64(max(rate, 1)))
    }
}
