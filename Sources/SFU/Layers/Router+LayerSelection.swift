import RTC

/// Selects the encoding that each subscriber gets, and the encodings that the publisher must send.
///
/// The selection runs when a preference, a size, the codec or the liveness of an encoding changes, and when a
/// subscriber becomes able or unable to receive video. Subscribers that cannot receive video need no layer. A
/// subscriber switches at the next keyframe of the new encoding. Until then the previous encoding is forwarded, so
/// the video does not freeze.
extension Router {
    /// Selects a layer for each subscriber of a track, without allocating memory.
    func select(_ track: IncomingTrack) {
        track.needsSelection = false
        track.updateLiveness()
        for encoding in track.encodings { encoding.isWatched = false }
        (track.announcement.wanted, track.announcement.refused) = (0, 0)
        for subscriber in track.subscribers { select(for: subscriber, of: track) }
        track.needsAdvice = track.announcement.refused != 0 || track.advice.payloadType != nil
    }

    private func select(for subscriber: OutgoingTrack, of track: IncomingTrack) {
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
        guard track.encodings.indices.contains(index) else { return }
        let target = track.encodings[index]
        guard subscriber.canTake(target) else {
            subscriber.target = nil
            guard !subscriber.decodes(target) else { return subscriber.pauseForwarding() }
            if subscriber.decodesAny {
                track.announcement.refused |= 1 << UInt8(ideal) | 1 << UInt8(index)
            }
            return subscriber.refuse()
        }
        if subscriber.target !== target || subscriber.encoding == nil {
            subscriber.target = target
            if track.kind == .video, subscriber.encoding !== target {
                target.keyframes.subscriberSwitches()
                urgent.append(track.peer)
            }
        }
        let temporalLayer = track.layers[index].rates.temporalLayer(
            for: preference.frameRate, current: subscriber.temporalFilter.wanted
        )
        subscriber.temporalFilter.wanted = min(temporalLayer, subscriber.allowedTemporalLayer)
        target.isWatched = true
        subscriber.encoding?.isWatched = true
        track.announcement.wanted |= 1 << UInt8(ideal) | 1 << UInt8(index)
        if let encoding = subscriber.encoding { track.announcement.wanted |= 1 << UInt8(encoding.index) }
    }

    /// Updates frame rates and liveness, selects layers again if any of these changed, and announces the result to the
    /// publisher.
    func updateLayers(of peer: Peer, now: MediaTime) {
        for track in peer.incoming where track.kind == .video {
            for index in track.layers.indices where track.layers[index].rates.measure(now: now) {
                track.needsSelection = true
            }
            if track.hasFallenSilent { track.needsSelection = true }
            track.noteMissingLayers(now: now)
            if track.needsSelection { select(track) }
            if track.needsAdvice || track.advice.isEnding { track.updateAdvice(now: now) }
            announce(track, now: now)
        }
    }

    private func announce(_ track: IncomingTrack, now: MediaTime) {
        // A video that the publisher has turned off has no subscribers either, but must not be announced as unneeded:
        // it has to start again at once when it is turned on.
        guard let publication = track.publication, publication.forwardsVideo, !track.encodings.isEmpty,
            let news = track.announcement.next(
                for: publication.stream, codec: track.advice.payloadType, isLayered: track.hasRIDs,
                wasTold: publication.wasToldAboutVideo, now: now)
        else { return }
        publication.wasToldAboutVideo = true
        let rids =
            !track.hasRIDs ? [] : track.encodings.filter { news.layers >> UInt8($0.index) & 1 == 1 }.compactMap(\.rid)
        events.append(
            .layersWanted(
                LayersWanted(
                    stream: publication.stream, session: publication.session, client: publication.client, rids: rids,
                    isVideoWanted: track.hasRIDs ? nil : news.layers != 0, payloadType: news.payloadType)))
    }
}
