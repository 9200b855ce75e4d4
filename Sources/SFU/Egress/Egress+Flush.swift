import RTC

/// How a flush forwards the packets that wait: destination by destination if all of them fit in the flush, otherwise lane by
/// lane in several passes, so that a keyframe for hundreds of subscribers does not delay all other streams.
extension Egress {
    /// Forwards the pending packets of a lane to its subscribers, as far as the budget allows.
    /// - Returns: true if all were forwarded.
    func forward(_ lane: Fanout.Lane, _ budget: inout Int, now: MediaTime) -> Bool {
        let fanout = lane.fanout
        while !lane.pending.isEmpty {
            if lane.pass == nil { lane.equalize() }
            let pass = lane.pass ?? Fanout.ForwardingPass(packets: lane.pending.count)
            var (end, isServing) = (fanout.subscribers.count, true)
            // Audio has no budget: its packets are small, and delays are audible.
            if fanout.track.kind == .video {
                // Serve at least one subscriber in the first pass of a flush, so that each flush makes progress even
                // if the budget is smaller than the burst.
                let most = max(budget / pass.packets, budget == settings.longestFlush ? 1 : 0)
                let served = fanout.end(of: pass, of: lane.feed, most)
                (end, isServing) = (served.end, served.count > 0)
                budget -= served.count * pass.packets
            }
            if pass.subscriber < end {
                if isServing { waitEnds(of: lane) }
                forward(pass, upTo: end, of: lane, now: now)
            }
            guard end == fanout.subscribers.count else {
                lane.pass = Fanout.ForwardingPass(packets: pass.packets, subscriber: end)
                return false
            }
            lane.pass = nil
            if pass.packets == lane.pending.count {
                lane.pending.removeAll(keepingCapacity: true)
            } else {
                lane.pending.removeFirst(pass.packets)
            }
        }
        lane.isHeld = false
        return true
    }

    private func forward(_ pass: Fanout.ForwardingPass, upTo end: Int, of lane: Fanout.Lane, now: MediaTime) {
        let (subscribers, feed) = (lane.fanout.subscribers[pass.subscriber..<end], lane.feed)
        prefetch(subscribers)
        lane.pending.withUnsafeBufferPointer { pending in
            let burst = UnsafeBufferPointer(rebasing: pending[..<pass.packets])
            for subscriber in subscribers where subscriber.feed === feed || subscriber.target === feed {
                forward(burst, from: feed, to: subscriber, now: now)
            }
        }
    }

    // MARK: By destination

    /// Whether the packets of several lanes can be forwarded destination by destination: all of them fit in one flush.
    private var fitsInOneFlush: Bool {
        var count = 0
        for lane in unflushed {
            if lane.isHeld { return false }
            if lane.fanout.track.kind == .video { count += lane.pending.count * lane.fanout.subscribers.count }
        }
        return count <= settings.longestFlush
    }

    /// Forwards the packets of several lanes, all of one subscriber together. Most rooms have several publishers, and
    /// a message with several packets to one address costs much less than several messages. The packets in a message
    /// have the same size, but the last one may be shorter, so audio comes last.
    /// - Returns: false if there are too many packets.
    func forwardByDestination(now: MediaTime) -> Bool {
        guard unflushed.count > 1, fitsInOneFlush else { return false }
        for lane in unflushed where lane.fanout.track.kind == .video { collect(lane) }
        for lane in unflushed where lane.fanout.track.kind == .audio { collect(lane) }
        for subscriber in destinations {
            for due in subscriber.due {
                due.lane.pending.withUnsafeBufferPointer {
                    forward($0, from: due.lane.feed, to: due.track, now: now)
                }
            }
            subscriber.due.removeAll(keepingCapacity: true)
        }
        destinations.removeAll(keepingCapacity: true)
        for lane in unflushed {
            lane.pending.removeAll(keepingCapacity: true)
            lane.feed.keyframes.passed()
        }
        return true
    }

    /// Adds a lane's packets to what its subscribers get in this flush.
    private func collect(_ lane: Fanout.Lane) {
        guard !lane.pending.isEmpty else { return }
        lane.equalize()
        let (subscribers, feed) = (lane.fanout.subscribers, lane.feed)
        prefetch(subscribers[...])
        var isServing = false
        for track in subscribers where track.feed === feed || track.target === feed {
            if track.takes(feed) { isServing = true }
            let subscriber = track.owner
            if subscriber.due.isEmpty { destinations.append(subscriber) }
            subscriber.due.append(Subscriber.Due(track: track, lane: lane))
        }
        if isServing { waitEnds(of: lane) }
    }

    /// Makes the pending packets refer to the history instead of the receive buffer, which is about to be reused.
    /// Packets that are not in the history are dropped; subscribers detect the loss.
    /// - Returns: whether any packets are left.
    @discardableResult
    func hold(_ lane: Fanout.Lane, now: MediaTime) -> Bool {
        var (kept, turned) = (0, 0)
        for index in lane.pending.indices {
            var pending = lane.pending[index]
            guard let (bytes, packet) = lane.feed.history?.packet(pending.sequence, now: now),
                bytes.count == pending.bytes.count, packet.payloadRange == pending.packet.payloadRange
            else {
                output.counters.packetsDropped &+= 1
                continue
            }
            pending.move(to: bytes)
            lane.pending[kept] = pending
            kept += 1
            if index < lane.pass?.packets ?? 0 { turned += 1 }
        }
        lane.pending.removeLast(lane.pending.count - kept)
        lane.pass?.packets = turned
        if turned == 0 { lane.pass = nil }
        lane.isHeld = kept > 0
        return lane.isHeld
    }
}

extension Fanout {
    /// Finds the end of a pass that serves at most this many subscribers. Subscribers that receive another layer or are
    /// paused do not count.
    /// - Returns: the index after the last subscriber, and the number of subscribers served.
    func end(of pass: ForwardingPass, of feed: Feed, _ most: Int) -> (
        end: Int, count: Int
    ) {
        var count = 0
        for index in pass.subscriber..<subscribers.count where subscribers[index].takes(feed) {
            if count == most { return (index, count) }
            count += 1
        }
        return (subscribers.count, count)
    }
}

extension Fanout.Lane {
    func equalize() { if fanout.track.kind == .video { pending.equalize() } }
}

extension OutgoingTrack {
    /// Returns whether the subscriber is served in a pass of this feed: it receives the feed or will switch to
    /// it, is not paused, and has a path.
    @inline(__always)
    func takes(_ feed: Feed) -> Bool {
        (self.feed === feed || target === feed) && !isPaused && transport.selectedPath != nil
    }
}
