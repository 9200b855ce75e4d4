import RTC

/// The subscribers' half of the router: reads the feeds, and for each subscriber selects layers, rewrites, paces and
/// encrypts the packets.
final class Egress {
    let settings: RouterSettings
    let output: RouterOutput
    /// The connections of all subscribers, by client.
    private var subscribers: [Key: Subscriber] = [:]
    /// The loop's readers of tracks that have or had subscribers, by track.
    private(set) var fanouts: [ObjectIdentifier: Fanout] = [:]
    /// Lanes with packets that have not been forwarded yet.
    private(set) var unflushed: [Fanout.Lane] = []
    /// The subscribers that the current flush forwards to; empty between flushes.
    var destinations: [Subscriber] = []
    /// The arrival time of the oldest packet forwarded since `takeOldestArrival`; nil if there is none.
    private var oldestArrival: MediaTime?
    /// The number of waiting packets that may still be sent in this tick.
    private(set) var waitingBudget = 0
    /// The sum of the values read in `prefetch`. It has no meaning, but keeps the compiler from removing the reads.
    private var warmth: UInt64 = 0
    /// A scratch buffer for one packet's VP8 descriptor with the picture ids of one subscriber.
    let descriptor = UnsafeMutableRawBufferPointer.allocate(byteCount: VP8Descriptor.maxLength, alignment: 8)
    /// A scratch buffer for the allocation: the videos that one subscriber requests.
    var requests: [VideoRequest] = []
    /// A scratch buffer for the allocation: the options for sending each of these videos.
    var steps: [LayerOption] = []

    /// How often a UDP subscriber is checked for reports and events that are due. Longer than a tick, because checking
    /// all subscribers in every tick would take much CPU time.
    private static let subscriberInterval = MediaInterval.milliseconds(100)

    init(settings: RouterSettings, output: RouterOutput) {
        (self.settings, self.output) = (settings, output)
        unflushed.reserveCapacity(256)
    }

    deinit { descriptor.deallocate() }

    // MARK: Subscribers

    func subscriber(_ client: Key) -> Subscriber? { subscribers[client] }

    func enter(_ subscriber: Subscriber) { subscribers[subscriber.link.client] = subscriber }

    /// Removes a subscriber, unless a later connection of the client has replaced it.
    func leave(_ subscriber: Subscriber) {
        let client = subscriber.link.client
        if subscribers[client] === subscriber { subscribers[client] = nil }
    }

    /// Switches a transceiver to another source, or to none. Video starts at the next keyframe of the new source. If
    /// the source is the same as before, updates only the maps of its codecs and extensions.
    func attach(_ slot: OutgoingTrack, to source: FeedTrack?) {
        // A track of another event loop may have ended before the list of its publisher's tracks arrives.
        let source = source?.isEnded == true ? nil : source
        let former = slot.source
        guard former !== source else {
            if let source { slot.remap(source) }
            return
        }
        if let former { fanouts[ObjectIdentifier(former)]?.remove(slot) }
        slot.attach(source)
        guard let source else { return }
        fanout(of: source).add(slot)
        slot.remap(source)
    }

    private func fanout(of track: FeedTrack) -> Fanout {
        if let known = fanouts[ObjectIdentifier(track)] { return known }
        let fanout = Fanout(track: track, egress: self)
        fanouts[ObjectIdentifier(track)] = fanout
        track.add(fanout)
        return fanout
    }

    /// Removes the reader of a track that has ended.
    func remove(_ fanout: Fanout) {
        for slot in fanout.subscribers { attach(slot, to: nil) }
        unflushed.removeAll { $0.fanout === fanout }
        fanouts[ObjectIdentifier(fanout.track)] = nil
    }

    /// Starts a tick, in which `waitingBudget` bounds the work for all subscribers.
    func beginTick() { waitingBudget = settings.longestFlush }

    func useWaitingBudget() { waitingBudget -= 1 }

    /// Performs the work that is due for a subscriber.
    func tick(_ subscriber: Subscriber, now: MediaTime) {
        updateDownlink(of: subscriber, now: now)
        reportSubscriptions(of: subscriber, now: now)
        sendSenderReports(to: subscriber, now: now)
        let transport = subscriber.link.transport
        // A TCP connection does not become idle, because its queue must be checked at every tick. UDP has no queue.
        guard transport.selectedPath?.isTCP == false, !isProbing(subscriber) else { return }
        let rest = now + Self.subscriberInterval
        subscriber.idleUntil = transport.nextTimeout.map { min($0, rest) } ?? rest
    }

    /// Returns the bytes sent to the subscribers of each session since the previous call.
    func takeSentBytes() -> [String: Int] {
        var sent: [String: Int] = [:]
        for subscriber in subscribers.values {
            for track in subscriber.tracks {
                let packets = track.packets &- track.metered.packets
                let bytes = track.octets &- track.metered.octets
                track.metered = (track.packets, track.octets)
                guard packets > 0, let session = track.subscription?.publication.session else { continue }
                sent[session, default: 0] &+= Int(bytes) &+ Int(packets) &* Int(CapacityMeter.overhead)
            }
        }
        return sent
    }

    // MARK: Flush

    /// Adds a lane to the next flush, unless it is in it already.
    func addToFlush(_ lane: Fanout.Lane) {
        guard !lane.isQueued else { return }
        lane.isQueued = true
        unflushed.append(lane)
    }

    /// Forwards the packets that have arrived since the previous flush. At most `settings.longestFlush` packets of
    /// video are sent. If `hasMore` is true afterwards, the rest follows in the next flush. In either case, the memory
    /// of all datagrams may be reused after the call.
    func flush(now: MediaTime) {
        if forwardByDestination(now: now) {
            for lane in unflushed { lane.isQueued = false }
            return unflushed.removeAll(keepingCapacity: true)
        }
        var budget = settings.longestFlush
        var unfinished = 0
        for index in unflushed.indices {
            let lane = unflushed[index]
            // A packet in the history may have been replaced by a newer one since the previous flush.
            if lane.isHeld { hold(lane, now: now) }
            guard !forward(lane, &budget, now: now), hold(lane, now: now) else {
                lane.isQueued = false
                lane.feed.keyframes.passed()
                continue
            }
            unflushed[unfinished] = lane
            unfinished += 1
        }
        unflushed.removeLast(unflushed.count - unfinished)
        // Move the lane whose pass was interrupted behind the others, so that the others come first in the next flush.
        if unfinished > 1 { unflushed.append(unflushed.removeFirst()) }
    }

    /// Whether packets wait for the next flush.
    var hasMore: Bool { !unflushed.isEmpty }

    /// Returns the earliest arrival time of the packets that were forwarded to their first subscriber since the
    /// previous call; nil if there are none. The result shows how long one stream waits for the others, so packets
    /// that waited only for earlier packets of the same feed do not count.
    func takeOldestArrival() -> MediaTime? {
        defer { oldestArrival = nil }
        return oldestArrival
    }

    func waitEnds(of lane: Fanout.Lane) {
        guard let since = lane.waitingSince else { return }
        lane.waitingSince = nil
        oldestArrival = min(oldestArrival ?? since, since)
    }

    /// For each subscriber, prefetches the memory that forwarding needs. Between two packets of a stream, other work evicts that
    /// memory from the caches. Without this loop, forwarding would wait for each read in turn. Here the processor fetches the
    /// cache lines of many subscribers in parallel.
    func prefetch(_ subscribers: ArraySlice<OutgoingTrack>) {
        subscribers.withUnsafeBufferPointer { all in
            var sum: UInt64 = 0
            for index in all.indices { sum &+= all[index].prefetch() }
            for index in all.indices { sum &+= all[index].transport.prefetch(all[index].ssrc) }
            warmth &+= sum
        }
    }
}
