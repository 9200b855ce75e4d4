import RTC

/// Measures the layers that publishers send, and announces to publishers which layers subscribers need.
extension Ingress {
    /// Updates frame rates and liveness, selects layers again if any of these changed, and announces the result to the
    /// publisher.
    func updateLayers(of publisher: Publisher, now: MediaTime) {
        guard !publisher.isRemote else { return selectLayers(of: publisher) }
        for track in publisher.tracks where track.feedTrack.kind == .video {
            let feed = track.feedTrack
            for index in feed.layers.indices where feed.layers[index].rates.measure(now: now) {
                feed.needsSelection = true
            }
            if track.hasFallenSilent { feed.needsSelection = true }
            track.noteMissingLayers(now: now)
            if feed.needsSelection { feed.select() }
            if track.needsAdvice || track.advice.isEnding { track.updateAdvice(now: now) }
            announce(track, now: now)
        }
    }

    /// Selects layers again where necessary. The publisher's own node measures them, and announces to the publisher which are needed.
    private func selectLayers(of publisher: Publisher) {
        for track in publisher.tracks where track.feedTrack.needsSelection { track.feedTrack.select() }
    }

    private func announce(_ track: IncomingTrack, now: MediaTime) {
        // A video that the publisher has turned off has no subscribers either, but must not be announced as unneeded:
        // it has to start again at once when it is turned on.
        guard let publication = track.feedTrack.publication, publication.forwardsVideo, !track.encodings.isEmpty,
            let news = track.announcement.next(
                for: publication.stream, track.feedTrack.demand, codec: track.advice.payloadType,
                isLayered: track.hasRIDs,
                wasAnnounced: publication.hasAnnouncedVideo, now: now)
        else { return }
        publication.hasAnnouncedVideo = true
        let rids =
            !track.hasRIDs
            ? [] : track.feedTrack.feeds.filter { news.layers >> UInt8($0.index) & 1 == 1 }.compactMap(\.rid)
        output.report(
            .layersWanted(
                LayersWanted(
                    stream: publication.stream, session: publication.session, client: publication.client, rids: rids,
                    isVideoWanted: track.hasRIDs ? nil : news.layers != 0, payloadType: news.payloadType)))
    }
}
