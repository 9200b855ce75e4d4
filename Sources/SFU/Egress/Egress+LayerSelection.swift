import RTC

/// Selects the encoding that each subscriber gets, and the encodings that the publisher must send.
///
/// The selection runs when a preference, a size, the codec or the liveness of an encoding changes, and when a
/// subscriber becomes able or unable to receive video. Subscribers that cannot receive video need no layer. A
/// subscriber switches at the next keyframe of the new encoding. Until then the previous encoding is forwarded, so
/// the video does not freeze.
extension Egress {
    /// Selects a layer for one subscriber of a track, without allocating memory, and adds it to what the track's
    /// subscribers demand.
    func select(for subscriber: OutgoingTrack, of track: FeedTrack) {
        let current = subscriber.target?.index
        let preference = subscriber.preference
        // The allocation limits the layers to those that the subscriber's connection carries.
        let allowed = subscriber.allowedLayers == 0 ? .max : subscriber.allowedLayers
        let ideal = Layer.best(
            of: track.layers, for: preference, current: current, aliveOnly: false, allowed: allowed)
        let living = Layer.best(
            of: track.layers, for: preference, current: current, aliveOnly: true, allowed: allowed)
        guard let ideal else { return }
        let index = living ?? current ?? ideal
        guard track.feeds.indices.contains(index) else { return }
        let target = track.feeds[index]
        guard subscriber.canTake(target) else {
            subscriber.target = nil
            guard !subscriber.decodes(target) else { return subscriber.pauseForwarding() }
            if subscriber.decodesAny {
                track.demand.refused |= 1 << UInt8(ideal) | 1 << UInt8(index)
            }
            return subscriber.refuse()
        }
        if subscriber.target !== target || subscriber.feed == nil {
            subscriber.target = target
            if track.kind == .video, subscriber.feed !== target {
                target.keyframes.subscriberSwitches()
                track.requestKeyframeSoon()
            }
        }
        let temporalLayer = track.layers[index].rates.temporalLayer(
            for: preference.frameRate, current: subscriber.temporalFilter.wanted
        )
        subscriber.temporalFilter.wanted = min(temporalLayer, subscriber.allowedTemporalLayer)
        target.isWatched = true
        subscriber.feed?.isWatched = true
        track.demand.wanted |= 1 << UInt8(ideal) | 1 << UInt8(index)
        if let feed = subscriber.feed { track.demand.wanted |= 1 << UInt8(feed.index) }
    }
}
