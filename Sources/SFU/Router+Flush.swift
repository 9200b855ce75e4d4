import RTC

/// Forwarding in several passes, so that a keyframe for hundreds of subscribers does not delay all other streams.
extension Router {
    /// Forwards the packets that have arrived since the previous flush. At most `settings.longestFlush` packets of
    /// video are sent. If `hasMore` is true afterwards, the rest follows in the next flush. In either case, the memory
    /// of all datagrams may be reused after the call.
    public func flush(now: MediaTime) {
        var budget = settings.longestFlush
        var unfinished = 0
        for index in touched.indices {
            let encoding = touched[index]
            if encoding.pass != nil { hold(encoding, now: now) }
            guard !forward(encoding, &budget, now: now) else { continue }
            hold(encoding, now: now)
            touched[unfinished] = encoding
            unfinished += 1
        }
        touched.removeLast(touched.count - unfinished)
        // Move the encoding whose pass was interrupted behind the others, so that the others come first in the next
        // flush.
        if unfinished > 1 { touched.append(touched.removeFirst()) }
        guard !urgent.isEmpty else { return }
        for peer in urgent { requestKeyframes(peer, now: now) }
        urgent.removeAll(keepingCapacity: true)
    }

    /// Whether packets wait for the next flush.
    public var hasMore: Bool { !touched.isEmpty }

    /// Adds a packet that has just arrived to the next flush.
    func append(_ pending: PendingPacket, to encoding: IncomingEncoding) {
        if encoding.pending.isEmpty {
            touched.append(encoding)
            encoding.waitingSince = arrivedAt
        }
        encoding.pending.append(pending)
    }

    /// Returns the earliest arrival time of the packets that were forwarded to their first subscriber since the
    /// previous call; nil if there are none. The result shows how long one stream waits for the others, so packets
    /// that waited only for earlier packets of the same encoding do not count.
    public func takeOldestArrival() -> MediaTime? {
        defer { oldestArrival = nil }
        return oldestArrival
    }

    private func waitEnds(of encoding: IncomingEncoding) {
        guard let since = encoding.waitingSince else { return }
        encoding.waitingSince = nil
        oldestArrival = min(oldestArrival ?? since, since)
    }

    /// Forwards the pending packets of an encoding to its subscribers, as far as the budget allows.
    /// - Returns: true if all were forwarded.
    private func forward(_ encoding: IncomingEncoding, _ budget: inout Int, now: MediaTime) -> Bool {
        let track = encoding.track
        while !encoding.pending.isEmpty {
            let pass = encoding.pass ?? IncomingEncoding.ForwardingPass(packets: encoding.pending.count)
            var (end, isServing) = (track.subscribers.count, true)
            // Audio has no budget: its packets are small, and delays are audible.
            if track.kind == .video {
                // Serve at least one subscriber in the first pass of a flush, so that each flush makes progress even
                // if the budget is smaller than the burst.
                let most = max(budget / pass.packets, budget == settings.longestFlush ? 1 : 0)
                let served = track.end(of: pass, of: encoding, most)
                (end, isServing) = (served.end, served.count > 0)
                budget -= served.count * pass.packets
            }
            if pass.subscriber < end {
                if isServing { waitEnds(of: encoding) }
                forward(pass, upTo: end, of: encoding, now: now)
            }
            guard end == track.subscribers.count else {
                encoding.pass = IncomingEncoding.ForwardingPass(packets: pass.packets, subscriber: end)
                return false
            }
            encoding.pass = nil
            if encoding.isHeld { for pending in encoding.pending[..<pass.packets] { pending.restore() } }
            if pass.packets == encoding.pending.count {
                encoding.pending.removeAll(keepingCapacity: true)
            } else {
                encoding.pending.removeFirst(pass.packets)
            }
        }
        encoding.isHeld = false
        encoding.keyframes.passed()
        return true
    }

    private func forward(
        _ pass: IncomingEncoding.ForwardingPass, upTo end: Int, of encoding: IncomingEncoding, now: MediaTime
    ) {
        let subscribers = encoding.track.subscribers[pass.subscriber..<end]
        prefetch(subscribers)
        encoding.pending.withUnsafeBufferPointer { pending in
            let burst = UnsafeBufferPointer(rebasing: pending[..<pass.packets])
            for subscriber in subscribers where subscriber.encoding === encoding || subscriber.target === encoding {
                forward(burst, from: encoding, to: subscriber, now: now)
            }
        }
    }

    /// Makes the pending packets refer to the history instead of the receive buffer, which is about to be reused.
    /// Packets that are not in the history are dropped; subscribers detect the loss.
    private func hold(_ encoding: IncomingEncoding, now: MediaTime) {
        var (kept, turned) = (0, 0)
        for index in encoding.pending.indices {
            var pending = encoding.pending[index]
            guard let (bytes, packet) = encoding.history?.packet(pending.sequence, now: now),
                bytes.count == pending.bytes.count, packet.payloadRange == pending.packet.payloadRange
            else {
                counters.packetsDropped &+= 1
                continue
            }
            // The history may contain the picture ids of the subscriber that was served last. Restore the publisher's
            // ids, because retransmissions use the history.
            if pending.bytes.baseAddress == bytes.baseAddress { pending.restore() }
            pending.bytes = bytes
            encoding.pending[kept] = pending
            kept += 1
            if index < encoding.pass?.packets ?? 0 { turned += 1 }
        }
        encoding.pending.removeLast(encoding.pending.count - kept)
        encoding.isHeld = true
        encoding.pass?.packets = turned
        if turned == 0 { encoding.pass = nil }
    }
}

extension IncomingTrack {
    /// Finds the end of a pass that serves at most this many subscribers. Subscribers that receive another layer or are
    /// paused do not count.
    /// - Returns: the index after the last subscriber, and the number of subscribers served.
    func end(of pass: IncomingEncoding.ForwardingPass, of encoding: IncomingEncoding, _ most: Int) -> (
        end: Int, count: Int
    ) {
        var count = 0
        for index in pass.subscriber..<subscribers.count where subscribers[index].takes(encoding) {
            if count == most { return (index, count) }
            count += 1
        }
        return (subscribers.count, count)
    }
}

extension OutgoingTrack {
    /// Returns whether the subscriber is served in a pass of this encoding: it receives the encoding or will switch to
    /// it, is not paused, and has a path.
    @inline(__always)
    func takes(_ encoding: IncomingEncoding) -> Bool {
        (self.encoding === encoding || target === encoding) && !isPaused && transport.selectedPath != nil
    }
}
