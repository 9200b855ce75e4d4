/// What may be sent now, besides audio, which is never delayed.
extension CongestionControl {
    /// Whether a retransmission may be sent now. If not, the receiver asks again later.
    public mutating func mayAdd(bytes: Int, now: MediaTime) -> Bool {
        guard let estimate else { return true }
        // Media may take the floor. Without as much for repairs, one lost packet would stop the picture that it is for.
        return pacer.room(at: estimate, in: max(budget(now: now) ?? estimate, floor), now: now) >= bytes
    }

    /// Whether another packet of video may be sent now. If not, it waits, so that a burst does not delay the audio.
    /// - Parameters:
    ///   - media: the mean bitrate of the media to be sent. Pacing does not limit it; the sender chooses media that fit.
    ///   - isLate: whether it has waited for long. Then it may use the whole estimate even while a queue is being drained, because
    ///     otherwise the picture would freeze.
    public mutating func maySendVideo(media: Bitrate, isLate: Bool = false, now: MediaTime) -> Bool {
        guard let estimate, let budget = budget(now: now) else { return true }
        // The padding of a probe must not displace the media that the probe counts.
        let probed = probing.probe.map { $0.isSending ? $0.target : .zero } ?? .zero
        // Behind a queue, the floor is not multiplied by the pacing factor: a long burst would make the queue grow.
        let hasQueue = queueDelay > Self.drained
        return pacer.hasRoomForVideo(
            at: max(budget, media, probed, hasQueue ? .zero : floor), orAt: isLate ? max(estimate, floor) : floor,
            now: now)
    }

    /// Returns how many bytes of padding to send now, in addition to media: to probe the path, or to verify what a probe found.
    /// Must be called at every tick while `wanted` is above the estimate.
    /// - Parameters:
    ///   - wanted: the bitrate that would be sent if the path carried it.
    ///   - media: the bitrate of media that is sent now.
    public mutating func padding(wanted: Bitrate, media: Bitrate, now: MediaTime) -> Int {
        defer { paddingDue.updatedAt = now }
        forgetLimit(wanted: wanted, now: now)
        // A probe shows nothing about losses, or about a limit that the receiver has set.
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

    /// Removes the limit after a long time in which it was not needed. Otherwise a line that was once full, or seemed to be,
    /// would stay limited to what was sent since.
    private mutating func forgetLimit(wanted: Bitrate, now: MediaTime) {
        guard let estimate, wanted <= estimate * 1.1, remb.bitrate == nil else { return sufficientSince = nil }
        guard let since = sufficientSince else { return sufficientSince = now }
        guard now - since >= Self.sufficient else { return }
        (rates, loss, sufficientSince) = (RateControl(estimate: Self.unlimited), LossBound(), nil)
        probing.retry(now: now)
    }

    /// Must be called with the number of bytes of padding that were sent.
    public mutating func padded(bytes: Int) { paddingDue.sent(bytes) }
}
