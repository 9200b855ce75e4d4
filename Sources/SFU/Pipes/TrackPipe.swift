import RTC

/// Passes a track of this router's publishers to the router of another event loop, as far as its subscribers watch it.
final class TrackPipe: FeedReader {
    let id: UInt32
    unowned let track: FeedTrack
    private unowned let pipe: RouterPipe
    private let output: RouterOutput
    private var sent: PipedState?
    private var demand = PipedDemand()

    init(_ track: FeedTrack, id: UInt32, pipe: RouterPipe, output: RouterOutput) {
        (self.id, self.track, self.pipe, self.output) = (id, track, pipe, output)
    }

    /// Whether the other router has subscribers of the track.
    var isWatched: Bool { demand.watched != 0 }

    /// Sends the track's state if it has changed.
    func update() {
        let state = PipedState(of: track)
        guard state != sent else { return }
        sent = state
        pipe.send(.track(id, mid: track.mid, kind: track.kind, state))
    }

    /// The demand of the other router's subscribers has changed.
    func receive(_ demand: PipedDemand) {
        guard self.demand != demand else { return }
        self.demand = demand
        track.select()
    }

    /// A subscriber of the other router needs a keyframe.
    func receive(_ need: KeyframeRequests.Need, feed: Int, now: MediaTime) {
        guard track.feeds.indices.contains(feed) else { return }
        track.feeds[feed].keyframes.subscriberElsewhere(need, now: now)
        track.requestKeyframeSoon()
    }

    // MARK: FeedReader

    var holdsPackets: Bool { false }

    func receive(_ packet: FeedPacket, of feed: Feed, arrivedAt: MediaTime) {
        guard demand.watched >> UInt8(feed.index) & 1 == 1 else { return }
        if pipe.send(packet, track: id, feed: feed.index, arrivedAt: arrivedAt) {
            output.counters.packetsPiped &+= 1
        } else {
            output.counters.packetsDropped &+= 1
            // The other router cannot retransmit the packet, because it never had it.
            if track.kind == .video { feed.keyframes.subscriberElsewhere(.refresh, now: arrivedAt) }
        }
    }

    func restart(_ feed: Feed) {
        update()
        pipe.send(.restart(id, feed: feed.index))
    }

    /// The other router drops its packets itself when it receives the new codecs.
    func forget(_ feed: Feed) {}

    func pause() { pipe.send(.pause(id)) }

    func end() { pipe.remove(self) }

    func select() {
        // The other router must know a feed before it receives the feed's packets.
        update()
        track.demand.wanted |= demand.layers.wanted
        track.demand.refused |= demand.layers.refused
        for feed in track.feeds where demand.watched >> UInt8(feed.index) & 1 == 1 { feed.isWatched = true }
    }

    func decoders(of codec: Int) -> Int { demand.decoders.indices.contains(codec) ? demand.decoders[codec] : 0 }
}
