import RTC

/// A track whose publisher belongs to another event loop. It fills the feeds from what the other router sends, and sends back
/// what this router's subscribers demand.
final class RelayedTrack: FeedSource {
    let id: UInt32
    let feedTrack: FeedTrack
    private unowned let link: RelayLink
    private var state: RelayedState?
    private var demand = RelayedDemand()

    init(id: UInt32, mid: String, kind: MediaKind, link: RelayLink) {
        (self.id, self.link) = (id, link)
        feedTrack = FeedTrack(mid: mid, kind: kind, loop: link.loop)
        feedTrack.source = self
    }

    // MARK: From the publisher's router

    func receive(_ state: RelayedState) {
        let former = self.state
        self.state = state
        if former?.codecs != state.codecs || former?.extensions != state.extensions {
            feedTrack.update(codecs: state.codecs, extensions: state.extensions)
        }
        for feed in state.feeds.dropFirst(feedTrack.feeds.count) { _ = feedTrack.addFeed(rid: feed.rid) }
        for (feed, news) in zip(feedTrack.feeds, state.feeds) { feed.note(codec: news.codec, report: news.report) }
        feedTrack.layers = state.layers
        feedTrack.clockOffset = state.clockOffset
        if state.needsSelection(after: former) { feedTrack.needsSelection = true }
        update()
    }

    func receive(_ relayed: UnsafePointer<RelayRing.Packet>, now: MediaTime) {
        guard feedTrack.feeds.indices.contains(relayed.pointee.feed) else { return }
        let feed = feedTrack.feeds[relayed.pointee.feed]
        update()
        if relayed.pointee.packet.startsKeyframe { feed.keyframes.arrived(now: now) }
        guard feed.isWatched else { return feed.keyframes.passed() }
        feed.write(relayed.pointee.packet, arrivedAt: relayed.pointee.arrivedAt, now: now)
    }

    func restart(feed: Int) { if feedTrack.feeds.indices.contains(feed) { feedTrack.feeds[feed].restart() } }

    /// Selects layers if necessary.
    func update() { if feedTrack.needsSelection { feedTrack.select() } }

    // MARK: FeedSource

    /// The publisher's router says which layers are alive.
    func updateLiveness() {}

    func demandChanged() {
        var news = RelayedDemand(layers: feedTrack.demand)
        for feed in feedTrack.feeds where feed.isWatched { news.watched |= 1 << UInt8(feed.index) }
        // Free the packets of video that is no longer watched. A later subscriber starts with a new keyframe.
        for feed in feedTrack.feeds where !feed.isWatched { feed.forgetHistory() }
        let decoders = feedTrack.codecs.indices.map { feedTrack.decoders(of: $0) }
        if decoders.contains(where: { $0 > 0 }) { news.decoders = decoders }
        guard news != demand else { return }
        demand = news
        link.send(.demand(id, news))
    }

    func requestKeyframeSoon() { link.requestKeyframesSoon(of: self) }

    /// Sends the keyframe requests that are due to the publisher's router, which combines them with those of other
    /// loops.
    func requestKeyframes(now: MediaTime) {
        guard feedTrack.kind == .video else { return }
        for feed in feedTrack.feeds {
            guard feed.isWatched else {
                feed.keyframes.cancel()
                continue
            }
            if let need = feed.keyframes.takeDue(now: now) { link.send(.keyframe(id, feed: feed.index, need)) }
        }
    }
}
