import RTC

/// Subscribers that are too slow: until layers are chosen by bandwidth, their video stops while too much of it waits.
extension Router {
    /// Pauses the video to a subscriber whose queue is too long, and resumes it when half of the queue is gone. Audio goes on.
    func updateCongestionPause(of peer: Peer, now: MediaTime) {
        guard let path = peer.transport.selectedPath, path.isTCP || peer.isBehind else { return }
        let queued = sink.queuedTime(on: path)
        let isBehind = peer.isBehind ? queued * 2 > settings.longestQueue : queued > settings.longestQueue
        guard isBehind != peer.isBehind else { return }
        peer.isBehind = isBehind
        for track in peer.outgoing where track.kind == .video {
            track.isPaused = isBehind
            if isBehind { track.pauseForwarding() }
            if !isBehind { track.target?.keyframes.want() }
        }
    }

    /// A publisher that changes its codec with every packet does not cause a message for each.
    private static let pauseEventInterval = MediaInterval.seconds(1)

    /// Tells the subscriber which of its videos have paused, and which go on.
    func reportPauses(of peer: Peer, now: MediaTime) {
        for track in peer.outgoing where track.kind == .video {
            guard let subscription = track.subscription, subscription.toldPaused != track.pause,
                subscription.toldAt.map({ now - $0 >= Self.pauseEventInterval }) ?? true
            else { continue }
            let former = subscription.toldPaused
            (subscription.toldPaused, subscription.toldAt) = (track.pause, now)
            events.append(
                .videoPaused(
                    stream: subscription.publication.stream, session: subscription.publication.session,
                    client: subscription.client, paused: track.pause != nil, track.pause ?? former ?? .slow
                )
            )
        }
    }
}
