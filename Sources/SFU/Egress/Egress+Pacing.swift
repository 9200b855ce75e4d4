import RTC

/// Paces bursts of video, such as keyframes, while a subscriber's path is limited. A burst sent at once would fill the
/// queue of the path, and the audio would wait behind it.
///
/// Waiting packets are not copied into a queue. They are already in the publisher's history, which all subscribers
/// share, so each subscriber only stores its position. The ticks send waiting packets, oldest first.
extension Egress {
    /// Forwards as much of a burst of video as the path accepts now. The rest waits.
    func pace(
        _ burst: UnsafeBufferPointer<FeedPacket>, from feed: Feed, to subscriber: OutgoingTrack,
        over sender: SRTPSender, on path: Path, now: MediaTime
    ) {
        guard let first = burst.baseAddress, let downlink = subscriber.downlink else { return }
        for index in burst.indices {
            let packet = first + index
            // Always send the first packet of a segment, so that only packets of one feed wait.
            if subscriber.feed === feed, putOff(packet.pointee.sequence, subscriber, downlink, now: now) {
                continue
            }
            forwardPaced(packet, from: feed, to: subscriber, over: sender, on: path, arrivedAt: now, now: now)
        }
    }

    /// Makes a packet wait if others are waiting or if the path is full. A packet that fills an earlier gap does not
    /// wait, and neither does one that is too long for the history.
    /// - Returns: true if the packet waits.
    private func putOff(
        _ sequence: Int64, _ subscriber: OutgoingTrack, _ downlink: Downlink, now: MediaTime
    ) -> Bool {
        guard subscriber.feed?.history?.isPast(sequence) ?? false else { return false }
        if let waiting = subscriber.waiting {
            guard sequence >= waiting.next else { return false }
            subscriber.waiting?.extend(to: sequence)
            return true
        }
        guard subscriber.rewriting.isNewest(sequence), downlink.hasWaiting || !downlink.maySendVideo(now: now) else {
            return false
        }
        subscriber.waiting = WaitingPackets(next: sequence, last: sequence)
        downlink.hasWaiting = true
        subscriber.owner.wake()
        return true
    }

    /// Sends as many waiting packets as the path accepts now.
    /// - Parameter isLimited: whether the path is limited. If not, all waiting packets are sent.
    func sendWaiting(to subscriber: Subscriber, _ downlink: Downlink, isLimited: Bool, now: MediaTime) {
        if downlink.isPacing != isLimited { downlink.setPacing(isLimited, for: subscriber) }
        guard downlink.hasWaiting else { return }
        // The budget bounds the work, because many subscribers may be waiting for the same keyframe.
        while waitingBudget > 0 {
            guard let (track, arrivedAt) = oldestWaiting(of: subscriber, now: now) else {
                return downlink.hasWaiting = false
            }
            switch isLimited ? WaitingPackets.urgency(after: now - arrivedAt) : .overdue {
            case .usual: guard downlink.maySendVideo(now: now) else { return }
            case .late: guard downlink.maySendVideo(isLate: true, now: now) else { return }
            case .overdue: break
            }
            sendNext(of: track, arrivedAt: arrivedAt, now: now)
            useWaitingBudget()
        }
    }

    private func oldestWaiting(of subscriber: Subscriber, now: MediaTime) -> (OutgoingTrack, MediaTime)? {
        var oldest: (track: OutgoingTrack, arrivedAt: MediaTime)?
        for track in subscriber.tracks where track.waiting != nil {
            guard let arrivedAt = track.skipMissing(now: now) else { continue }
            if oldest.map({ arrivedAt < $0.arrivedAt }) ?? true { oldest = (track, arrivedAt) }
        }
        return oldest
    }

    private func sendNext(of track: OutgoingTrack, arrivedAt: MediaTime, now: MediaTime) {
        guard var waiting = track.waiting, let feed = track.feed, let path = track.transport.selectedPath,
            let sender = track.transport.mediaSender, let history = feed.history,
            let (bytes, packet) = history.packet(waiting.next, now: now),
            let codec = feed.track.codecIndex(packet.payloadType)
        else { return track.waiting = nil }
        var pending = FeedPacket(packet, bytes, sequence: waiting.next, codec: codec, of: feed.track)
        // Do not begin a segment with a packet that arrived as a retransmission.
        if history.isRecovered(waiting.next) { pending.startsKeyframe = false }
        forwardPaced(&pending, from: feed, to: track, over: sender, on: path, arrivedAt: arrivedAt, now: now)
        waiting.next += 1
        // If the packet began a new segment of the same feed, the packets after it continue to wait. If it could
        // not begin one, the subscriber no longer receives the feed, so no packets wait.
        let isForwarding = track.feed === feed
        track.waiting = isForwarding && waiting.next <= waiting.last ? waiting : nil
    }
}

extension Downlink {
    func setPacing(_ isPacing: Bool, for subscriber: Subscriber) {
        self.isPacing = isPacing
        for track in subscriber.tracks { track.updatePacing() }
    }
}

extension OutgoingTrack {
    /// Updates `isPaced`. A track can be paced only if the pacer counts its packets: those with a transport-wide
    /// sequence number, or all of them if the client sends only REMB.
    func updatePacing() {
        guard kind == .video, let downlink, downlink.isPacing else { return isPaced = false }
        isPaced = transportNumberID != 0 || downlink.control.followsReceiver
    }

    /// Advances past sequence numbers whose packets are too old, or have not arrived from the publisher yet. The
    /// latter are forwarded when they arrive.
    /// - Returns: when the next waiting packet arrived; nil if none is left.
    fileprivate func skipMissing(now: MediaTime) -> MediaTime? {
        guard let history = feed?.history, var waiting else { return nil }
        while waiting.next <= waiting.last, history.packet(waiting.next, now: now) == nil { waiting.next += 1 }
        self.waiting = waiting.next <= waiting.last ? waiting : nil
        return self.waiting.map { history.storedAt($0.next) }
    }
}

/// Paced packets of one video: a range of sequence numbers in the publisher's packet history.
struct WaitingPackets: Equatable, Sendable {
    var next: Int64
    var last: Int64

    /// How urgently a waiting packet must be sent.
    enum Urgency: Equatable, Sendable {
        case usual
        /// The packet has waited so long that it is no longer held back to drain a queue.
        case late
        /// The packet has waited so long that it is sent even if the path is full.
        case overdue
    }

    /// After this time, a packet is no longer held back to drain a queue.
    static let late = MediaInterval.milliseconds(400)
    /// The maximum time that a packet waits for the path to have capacity. Then it is sent even if the path is full,
    /// because later video would be of no use in a conversation.
    static let longest = MediaInterval.milliseconds(800)

    static func urgency(after waited: MediaInterval) -> Urgency {
        waited > longest ? .overdue : waited > late ? .late : .usual
    }

    /// Extends the range. A publisher's numbers may jump, so packets that the history no longer contains are removed.
    mutating func extend(to sequence: Int64) {
        last = max(last, sequence)
        next = max(next, last - Int64(PacketHistory.capacity) + 1)
    }
}
