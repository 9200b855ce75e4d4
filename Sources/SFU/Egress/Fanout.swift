import RTC

/// The subscribers of one track on this event loop, and how far the track's packets were forwarded to them.
final class Fanout: FeedReader {
    unowned let track: FeedTrack
    private unowned let egress: Egress
    private(set) var subscribers: [OutgoingTrack] = []
    /// In the order of the track's feeds; created with a feed's first packet.
    private var lanes: [Lane] = []

    init(track: FeedTrack, egress: Egress) { (self.track, self.egress) = (track, egress) }

    /// The packets of one feed that wait to be forwarded to this loop's subscribers.
    final class Lane {
        unowned let fanout: Fanout
        unowned let feed: Feed
        /// The packets that arrived since the previous flush, in order of arrival.
        var pending: [FeedPacket] = []
        /// When the first of the pending packets arrived; nil once that packet was forwarded to a subscriber.
        var waitingSince: MediaTime?
        /// Whether the lane is in the egress's list of lanes with packets to forward.
        var isQueued = false
        /// Whether the pending packets' bytes are in the history rather than in the receive buffer.
        var isHeld = false
        /// How far the pending packets were forwarded, if the previous flush ended before all subscribers had received
        /// them; otherwise nil.
        var pass: ForwardingPass?

        init(fanout: Fanout, feed: Feed) {
            (self.fanout, self.feed) = (fanout, feed)
            pending.reserveCapacity(64)
        }

        /// Drops the packets that have not been forwarded.
        func forgetPending() {
            pending.removeAll(keepingCapacity: true)
            (pass, waitingSince, isHeld) = (nil, nil, false)
        }
    }

    /// The progress of forwarding: the number of pending packets in this pass, and the index of the subscriber that
    /// gets them next.
    struct ForwardingPass {
        var packets: Int
        var subscriber = 0
    }

    /// The maximum number of pending packets. The loop flushes after 64 packets, so normally no more are pending. If a flush
    /// leaves packets for the next one and many more have arrived, those beyond this maximum are dropped. It is half of the
    /// history's capacity, so all pending packets fit in the history.
    static let maxPending = 256

    func add(_ subscriber: OutgoingTrack) {
        subscribers.append(subscriber)
        track.needsSelection = true
    }

    func remove(_ subscriber: OutgoingTrack) {
        guard let index = subscribers.firstIndex(where: { $0 === subscriber }) else { return }
        subscribers.remove(at: index)
        // The subscribers after the removed one move up by one position. Adjust the unfinished passes that will
        // continue at one of them.
        for lane in lanes where index < lane.pass?.subscriber ?? 0 { lane.pass?.subscriber -= 1 }
        track.needsSelection = true
    }

    private func lane(_ feed: Feed) -> Lane {
        while lanes.count <= feed.index { lanes.append(Lane(fanout: self, feed: track.feeds[lanes.count])) }
        return lanes[feed.index]
    }

    // MARK: FeedReader

    var holdsPackets: Bool { true }

    func receive(_ packet: FeedPacket, of feed: Feed, arrivedAt: MediaTime) {
        let lane = lane(feed)
        guard lane.pending.count < Self.maxPending else {
            egress.output.counters.packetsDropped &+= 1
            return
        }
        if lane.pending.isEmpty { lane.waitingSince = arrivedAt }
        egress.addToFlush(lane)
        lane.pending.append(packet)
    }

    func restart(_ feed: Feed) {
        forget(feed)
        for subscriber in subscribers where subscriber.feed === feed { subscriber.pauseForwarding() }
    }

    func forget(_ feed: Feed) { if feed.index < lanes.count { lanes[feed.index].forgetPending() } }

    func pause() { for subscriber in subscribers { subscriber.pauseForwarding() } }

    func end() { egress.remove(self) }

    func select() { for subscriber in subscribers { egress.select(for: subscriber, of: track) } }

    func decoders(of codec: Int) -> Int {
        subscribers.count(where: { codec < $0.codecMap.count && $0.codecMap[codec].isDecodable })
    }
}
