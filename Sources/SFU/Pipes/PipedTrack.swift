import RTC

/// A track whose publisher belongs to another event loop. It fills the feeds from what the other router sends, and sends back
/// what this router's subscribers demand.
final class PipedTrack: FeedSource {
    let id: UInt32
    let feedTrack: FeedTrack
    private unowned let pipe: RouterPipe
    private var state: PipedState?
    private var demand = PipedDemand()

    init(id: UInt32, mid: String, kind: MediaKind, pipe: RouterPipe) {
        (self.id, self.pipe) = (id, pipe)
        feedTrack = FeedTrack(mid: mid, kind: kind, loop: pipe.loop)
        feedTrack.source = self
    }

    // MARK: From the publisher's router

    func receive(_ state: PipedState) {
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

    func receive(_ piped: UnsafePointer<PipeRing.Packet>, now: MediaTime) {
        guard feedTrack.feeds.indices.contains(piped.pointee.feed) else { return }
        let feed = feedTrack.feeds[piped.pointee.feed]
        update()
        if piped.pointee.packet.startsKeyframe { feed.keyframes.arrived(now: now) }
        guard feed.isWatched else { return feed.keyframes.passed() }
        feed.write(piped.pointee.packet, arrivedAt: piped.pointee.arrivedAt, now: now)
    }

    func restart(feed: Int) { if feedTrack.feeds.indices.contains(feed) { feedTrack.feeds[feed].restart() } }

    /// Selects layers if necessary.
    func update() { if feedTrack.needsSelection { feedTrack.select() } }

    // MARK: FeedSource

    /// The publisher's router says which layers are alive.
    func updateLiveness() {}

    func demandChanged() {
        var news = PipedDemand(layers: feedTrack.demand)
        for feed in feedTrack.feeds where feed.isWatched { news.watched |= 1 << UInt8(feed.index) }
        // Free the packets of video that is no longer watched. A later subscriber starts with a new keyframe.
        for feed in feedTrack.feeds where !feed.isWatched { feed.forgetHistory() }
        let decoders = feedTrack.codecs.indices.map { feedTrack.decoders(of: $0) }
        if decoders.contains(where: { $0 > 0 }) { news.decoders = decoders }
        guard news != demand else { return }
        demand = news
        pipe.send(.demand(id, news))
    }

    func requestKeyframeSoon() { pipe.requestKeyframesSoon(of: self) }

    /// Sends the keyframe requests that are due to the publisher's router, which combines them with those of other
    /// loops.
    func requestKeyframes(now: MediaTime) {
        guard feedTrack.kind == .video else { return }
        for feed in feedTrack.feeds {
            guard let need = feed.keyframes.takeDue(isWatched: feed.isWatched, now: now) else { continue }
            pipe.send(.keyframe(id, feed: feed.index, need))
        }
    }
}
