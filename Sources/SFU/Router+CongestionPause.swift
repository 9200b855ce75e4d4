import RTC

/// Congestion control for slow subscribers. Layers are not selected by bandwidth yet, so a subscriber's video is paused while
/// the queue of data to send is too long.
extension Router {
    /// Pauses the video to a subscriber whose queue is too long, and resumes it once the queue is half that long. Audio
    /// continues.
    func updateCongestionPause(of peer: Peer, now: MediaTime) {
        guard let path = peer.transport.selectedPath, path.isTCP || peer.isBehind else { return }
        let queued = sink.queuedTime(on: path)
        let isBehind = peer.isBehind ? queued * 2 > settings.longestQueue : queued > settings.longestQueue
        guard isBehind != peer.isBehind else { return }
        peer.isBehind = isBehind
        for track in peer.outgoing where track.kind == .video {
            track.isPaused = isBehind
            if isBehind { track.pauseForwarding() }
            // The selection requests the keyframe with which the video resumes.
            track.source?.needsSelection = true
        }
    }

    /// The minimum time between two pause events for a subscription, in case a publisher changes its codec with every packet.
    private static let pauseEventInterval = MediaInterval.seconds(1)

    /// Reports which of the subscriber's videos were paused or resumed.
    func reportPauses(of peer: Peer, now: MediaTime) {
        for track in peer.outgoing where track.kind == .video {
            guard let subscription = track.subscription, subscription.reportedPause != track.pause,
                subscription.pauseReportedAt.map({ now - $0 >= Self.pauseEventInterval }) ?? true
            else { continue }
            let former = subscription.reportedPause
            (subscription.reportedPause, subscription.pauseReportedAt) = (track.pause, now)
            events.append(
                .videoPaused(
                    stream: subscription.publication.stream, session: subscription.publication.session,
                    client: subscription.client, paused: track.pause != nil, track.pause ?? former ?? .slow
                )
            )
        }
    }
}
