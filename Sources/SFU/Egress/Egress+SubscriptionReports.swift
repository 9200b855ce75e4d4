import RTC

/// Reports to subscribers which video they get, and why.
extension Egress {
    /// The minimum time between two events for a subscription, in case a publisher changes its codec with every packet.
    private static let eventInterval = MediaInterval.seconds(1)

    /// Reports which of the subscriber's videos were paused, resumed or switched to another layer, and which have a
    /// new warning or limit.
    func reportSubscriptions(of subscriber: Subscriber, now: MediaTime) {
        for track in subscriber.tracks where track.kind == .video {
            guard let subscription = track.subscription else { continue }
            let state = state(of: track, since: subscription.reported)
            guard state != subscription.reported,
                subscription.reportedAt.map({ now - $0 >= Self.eventInterval }) ?? true
            else { continue }
            let former = subscription.reported
            subscription.reported = state
            // The first layer of a video is not reported as a change, unless a better layer did not fit in the
            // bandwidth.
            if former.layer == nil, state.pause == former.pause, !state.isWarned, !state.isLimited,
                track.reason != .bandwidth
            {
                track.reason = .publisher
                continue
            }
            subscription.reportedAt = now
            report(subscription, of: track, from: former, to: state)
        }
    }

    private func state(of track: OutgoingTrack, since former: ReportedSubscription) -> ReportedSubscription {
        var state = former
        state.pause = track.pause
        state.isWarned = track.isAtRisk && track.pause == nil
        // After bandwidth has become available again, continue to report the limit until the subscriber has been
        // switched to the better layer.
        let isSwitching = track.feed != nil && track.feed !== track.target
        state.isLimited = track.isLimited || former.isLimited && isSwitching
        guard track.pause == nil, let feed = track.feed else { return state }
        state.layer = feed.index
        let hasTemporalLayers = feed.track.layers[feed.index].rates.hasTemporalLayers
        state.temporalLayer = hasTemporalLayers ? track.temporalFilter.wanted : FeedPacket.noLayer
        return state
    }

    private func report(
        _ subscription: Subscription, of track: OutgoingTrack, from former: ReportedSubscription,
        to state: ReportedSubscription
    ) {
        let isNews = state.isWarned != former.isWarned || state.isLimited != former.isLimited
        var reason = isNews ? SubscriptionReason.bandwidth : track.reason
        if state.pause != former.pause { reason = state.pause ?? former.pause ?? .slow }
        if state.layer != former.layer || state.temporalLayer != former.temporalLayer {
            if state.pause == former.pause { reason = track.reason }
            track.reason = .publisher
        }
        count(reason)
        let isPaused = state.pause != nil
        let hasLayers = track.source.map { $0.feeds.count > 1 } ?? false
        output.report(
            .subscriptionChanged(
                SubscriptionChange(
                    stream: subscription.publication.stream, session: subscription.publication.session,
                    client: subscription.client, isPaused: isPaused, reason: reason,
                    rid: isPaused || !hasLayers ? nil : state.layer.flatMap { track.source?.rid(of: $0) },
                    temporalLayer: isPaused || state.temporalLayer > 3 ? nil : Int(state.temporalLayer),
                    warning: state.isWarned == former.isWarned ? nil : state.isWarned,
                    isLimited: state.isLimited == former.isLimited ? nil : state.isLimited)))
    }

    private func count(_ reason: SubscriptionReason) {
        switch reason {
        case .slow: output.counters.changesForSlowness &+= 1
        case .codec: output.counters.changesForCodec &+= 1
        case .bandwidth: output.counters.changesForBandwidth &+= 1
        case .size: output.counters.changesForSize &+= 1
        case .publisher: output.counters.changesForPublisher &+= 1
        }
    }
}

extension FeedTrack {
    fileprivate func rid(of layer: Int) -> String? { feeds.indices.contains(layer) ? feeds[layer].rid : nil }
}
