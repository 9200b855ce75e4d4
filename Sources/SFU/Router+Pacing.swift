import RTC

/// Spreads bursts of video, such as keyframes, over time while a subscriber's path is limited. A burst that is sent at once fills
/// the queue of the path, and the audio waits behind it.
///
/// Packets that must wait are not queued. They are in the publisher's history already, which all subscribers share, so a
/// subscriber only needs to know how far it has got.
extension Router {
    /// Forwards a burst of video as far as the path takes it now. The rest follows with the next ticks.
    func pace(
        _ burst: UnsafeBufferPointer<PendingPacket>, from encoding: IncomingEncoding, to subscriber: OutgoingTrack,
        over sender: SRTPSender, on path: Path, now: MediaTime
    ) {
        guard let first = burst.baseAddress, let downlink = subscriber.downlink else { return }
        for index in burst.indices {
            let packet = first + index
            if subscriber.encoding === encoding, waits(packet.pointee.sequence, subscriber, downlink, now: now) { continue }
            forwardPaced(packet, from: encoding, to: subscriber, over: sender, on: path, arrivedAt: now, now: now)
        }
    }

    /// Whether a packet must wait, because earlier ones do or because the path is full. One that fills an earlier gap does not.
    private func waits(
        _ sequence: Int64, _ subscriber: OutgoingTrack, _ downlink: Downlink, now: MediaTime
    ) -> Bool {
        guard subscriber.encoding?.history?.isPast(sequence) ?? false else { return false }
        if let waiting = subscriber.waiting {
            guard sequence >= waiting.next else { return false }
            subscriber.waiting?.last = max(waiting.last, sequence)
            return true
        }
        guard subscriber.rewriting.isNewest(sequence), !downlink.maySendVideo(now: now) else { return false }
        subscriber.waiting = WaitingPackets(next: sequence, last: sequence, since: now)
        downlink.hasWaiting = true
        subscriber.peer.idleUntil = MediaTime(nanoseconds: .min)
        return true
    }

    /// Sends what waits, as far as the path takes it now.
    /// - Parameter isLimited: whether the path has a limit. Without one, all of it is sent.
    func sendWaiting(to peer: Peer, _ downlink: Downlink, isLimited: Bool, now: MediaTime) {
        if downlink.isPacing != isLimited {
            downlink.isPacing = isLimited
            for track in peer.outgoing { track.updatePacing() }
        }
        guard downlink.hasWaiting else { return }
        downlink.hasWaiting = false
        for track in peer.outgoing {
            guard let waiting = track.waiting else { continue }
            track.waiting = sendWaiting(waiting, of: track, downlink, now: now)
            downlink.hasWaiting = downlink.hasWaiting || track.waiting != nil
        }
    }

    /// - Returns: what still waits; nil if nothing does.
    private func sendWaiting(
        _ waiting: WaitingPackets, of track: OutgoingTrack, _ downlink: Downlink, now: MediaTime
    ) -> WaitingPackets? {
        guard let encoding = track.encoding, let path = track.transport.selectedPath,
            let sender = track.transport.mediaSender
        else { return nil }
        var waiting = waiting
        while waiting.next <= waiting.last {
            guard waiting.isOverdue(now: now) || downlink.maySendVideo(now: now) else {
                return waiting
            }
            // A packet that is still missing is forwarded when it arrives.
            if let history = encoding.history, let (bytes, packet) = history.packet(waiting.next, now: now),
                let codec = encoding.track.codecIndex(packet.payloadType)
            {
                var pending = describe(packet, bytes, sequence: waiting.next, codec: codec, of: encoding.track)
                let arrivedAt = history.storedAt(waiting.next)
                forwardPaced(
                    &pending, from: encoding, to: track, over: sender, on: path, arrivedAt: arrivedAt, now: now)
                // The history serves others, too.
                pending.restore()
                guard track.encoding === encoding else { return nil }
            }
            waiting.next += 1
        }
        return nil
    }
}

/// The packets of a video that wait until a subscriber's path has room, as numbers of the publisher's history.
struct WaitingPackets: Equatable, Sendable {
    var next: Int64
    var last: Int64
    /// When the first of them arrived.
    var since: MediaTime

    /// The longest time that a video waits. Then all of it is sent: the history forgets old packets.
    private static let longest = MediaInterval.milliseconds(400)

    func isOverdue(now: MediaTime) -> Bool { now - since > Self.longest }
}
