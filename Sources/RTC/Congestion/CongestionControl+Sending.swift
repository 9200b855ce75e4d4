/// Decides how much may be sent now: retransmissions, video and padding. Audio is never delayed.
extension CongestionControl {
    /// Returns whether a retransmission may be sent now. If not, the receiver requests it again later.
    public mutating func mayAdd(bytes: Int, now: MediaTime) -> Bool {
        guard let estimate else { return true }
        // Media may use the floor, so retransmissions may use it too. Otherwise one lost packet would freeze the
        // video.
        return pacer.room(at: estimate, in: max(budget(now: now) ?? estimate, floor), now: now) >= bytes
    }

    /// Returns whether another packet of video may be sent now. If not, the packet must wait, so that a burst does not
    /// delay the audio, or because the path may have become slow (`isHoldingVideo`).
    /// - Parameters:
    ///   - media: the mean bitrate of the media to send. The video is never paced below this bitrate, because the
    ///     caller chooses media that fit in the budget.
    ///   - isLate: whether the packet has waited for a long time. It may then use the whole estimate even while a
    ///     queue is drained, because otherwise the video would freeze.
    public mutating func maySendVideo(media: Bitrate, isLate: Bool = false, now: MediaTime) -> Bool {
        guard let estimate, let budget = budget(now: now) else { return !isHoldingVideo(now: now) }
        // While a probe is being sent, allow video up to the probe's bitrate. Media counts toward the probe, so
        // padding must not displace it.
        let probed = probing.probe.map { $0.isSending ? $0.target : .zero } ?? .zero
        // While packets are queued on the path, do not multiply the floor by the pacing factor, because a long burst
        // would lengthen the queue.
        let hasQueue = queueDelay > Self.drained
        return pacer.hasRoomForVideo(
            at: max(budget, media, probed, hasQueue ? .zero : floor), orAt: isLate ? max(estimate, floor) : floor,
            now: now)
    }

    /// Returns the number of padding bytes to send now in addition to media, to probe the path or to verify the result
    /// of a probe. Must be called at every tick while `wanted` is above the estimate.
    /// - Parameters:
    ///   - wanted: the bitrate that would be sent if the path carried it.
    ///   - media: the bitrate of the media being sent.
    public mutating func padding(wanted: Bitrate, media: Bitrate, now: MediaTime) -> Int {
        defer { paddingDue.updatedAt = now }
        forgetLimit(wanted: wanted, now: now)
        // Probe only if the estimate is limited by the delay. If it is limited by losses or by the receiver (REMB), a
        // probe would reveal nothing.
        guard let estimate, feedbackAt != nil, wanted > estimate, estimate == rates.estimate, !isDraining(now: now)
        else {
            probing.cancel()
            return paddingDue.none()
        }
        probing.endIfDue(before: sentPackets.count, now: now)
        probing.begin(wanted: wanted, estimate: estimate, next: sentPackets.count, now: now)
        let isProbing = probing.probe?.isSending ?? false
        guard isProbing || probing.isVerifying(now: now) else { return paddingDue.none() }
        return paddingDue.add(to: media, upTo: isProbing ? probing.probe?.target ?? estimate : estimate, now: now)
    }

    /// Makes the estimate unlimited again once it has sufficed for the wanted bitrate for 30 s. Otherwise a connection
    /// that was once congested, or seemed to be, would stay limited to the bitrate sent since.
    private mutating func forgetLimit(wanted: Bitrate, now: MediaTime) {
        guard let estimate, wanted <= estimate * 1.1, remb.bitrate == nil else { return sufficientSince = nil }
        guard let since = sufficientSince else { return sufficientSince = now }
        guard now - since >= Self.sufficient else { return }
        (rates, loss, sufficientSince) = (RateControl(estimate: Self.unlimited), LossBasedEstimator(), nil)
        probing.retry(now: now)
    }

    /// Must be called with the number of bytes of padding that were sent.
    public mutating func padded(bytes: Int) { paddingDue.sent(bytes) }
}
