import RTC

/// Congestion control toward subscribers: processes their feedback, and sends padding to probe the path.
extension Egress {
    func receive(_ report: TransportFeedbackReport, from subscriber: Subscriber, now: MediaTime) {
        guard let downlink = subscriber.downlink, report.statusCount <= Self.maxStatuses,
            downlink.mayHandle(report.statusCount, now: now)
        else { return }
        let isSmaller = downlink.control.receive(report, now: now)
        // Do not wait for the next tick, because the queue grows until the video waits.
        if !downlink.isPacing, downlink.control.isHoldingVideo(now: now) { downlink.setPacing(true, for: subscriber) }
        guard isSmaller else { return }
        // Allocate again at the next tick: a video that no longer fits must stop at once, because its queue delays
        // the audio.
        subscriber.wake()
        downlink.allocatedAt = nil
    }

    /// The maximum number of packets that a report may cover, twice as many as `SentPackets` stores. A report of a
    /// few bytes can claim to cover far more.
    private static let maxStatuses = 2 * SentPackets.capacity

    /// Updates the bitrate estimate of the subscriber's connection. If the estimate or a long queue limits the
    /// bitrate, divides it among the subscriber's videos. Sends waiting packets, and padding to probe the path.
    func updateDownlink(of subscriber: Subscriber, now: MediaTime) {
        updateQueue(of: subscriber)
        let downlink = subscriber.downlink
        let status = downlink?.control.handleTimeout(now: now)
        if let downlink, let status { measure(subscriber, downlink, status, now: now) }
        let budget = subscriber.isBehind ? .zero : status?.budget
        if budget != nil || subscriber.isLimited { updateAllocation(of: subscriber, budget, now: now) }
        if let downlink, let status {
            let isLimited = status.estimate != nil || status.isHoldingVideo
            sendWaiting(to: subscriber, downlink, isLimited: isLimited, now: now)
        }
        pad(subscriber, now: now)
    }

    private func updateAllocation(of subscriber: Subscriber, _ budget: Bitrate?, now: MediaTime) {
        if let at = subscriber.downlink?.allocatedAt, budget != nil, now - at < Downlink.interval { return }
        subscriber.downlink?.allocatedAt = now
        allocate(budget, to: subscriber, now: now)
    }

    /// Updates whether the queue of a TCP connection is too long. Once it is, it counts as too long until it has
    /// shrunk to half of the limit.
    private func updateQueue(of subscriber: Subscriber) {
        guard let path = subscriber.link.transport.selectedPath, path.isTCP || subscriber.isBehind else { return }
        let queued = output.sink.queuedTime(on: path)
        subscriber.isBehind = subscriber.isBehind ? queued * 2 > settings.longestQueue : queued > settings.longestQueue
    }

    /// Decides whether to send redundant audio. Every `Downlink.measurement`, also measures the bitrates of all media
    /// and of the audio, including the overhead of the link. Counts only the tracks that the estimate covers.
    private func measure(
        _ subscriber: Subscriber, _ downlink: Downlink, _ status: CongestionControl.Status, now: MediaTime
    ) {
        // Decide about redundancy at every tick, not only when the bitrates are measured. Until the next measurement,
        // redundant copies would make a queue longer.
        downlink.updateRedundancy(status)
        guard let at = downlink.measuredAt else { return downlink.measuredAt = now }
        guard now - at >= Downlink.measurement else { return }
        downlink.measuredAt = now
        var (all, audio) = (0, 0)
        // Firefox accepts transport-wide sequence numbers for video only. Its feedback then shows the bitrate
        // available in addition to the audio, so count only the numbered tracks.
        let isNumbered = subscriber.tracks.contains { $0.transportNumberID != 0 }
        for track in subscriber.tracks {
            let bytes = Int(track.octets &- track.measuredOctets)
            let packets = Int(track.packets &- track.measuredPackets)
            (track.measuredOctets, track.measuredPackets) = (track.octets, track.packets)
            guard !isNumbered || track.transportNumberID != 0 else { continue }
            let count = bytes + packets * (RTPPacket.fixedHeaderLength + FeedPacket.linkOverhead)
            all += count
            if track.kind == .audio { audio += count }
        }
        downlink.media = Bitrate(bytes: all, in: now - at)
        downlink.audio = Bitrate(bytes: audio, in: now - at)
    }

    /// Returns whether the subscriber's ticks must not be skipped, because packets are waiting or the path has to be
    /// probed.
    func isProbing(_ subscriber: Subscriber) -> Bool {
        guard subscriber.isLimited, let downlink = subscriber.downlink, let estimate = downlink.control.estimate else {
            return false
        }
        return downlink.hasWaiting || estimate < downlink.wanted * 1.1
    }

    // MARK: Padding

    /// Sends padding to probe the path while the subscriber gets less than it requests: retransmits recent video
    /// packets, and sends padding-only packets if those are not enough.
    private func pad(_ subscriber: Subscriber, now: MediaTime) {
        guard let downlink = subscriber.downlink, subscriber.isLimited, !subscriber.isBehind,
            !downlink.isTrying(now: now),
            let path = subscriber.link.transport.selectedPath
        else { return }
        let due = downlink.control.padding(wanted: downlink.wanted * 1.1, media: downlink.media, now: now)
        guard due > 0 else { return }
        // Waiting media probes the path as well as padding would, so send no padding, but count it as sent.
        guard !downlink.hasWaiting else { return downlink.control.padded(bytes: due) }
        var sent = 0
        for track in subscriber.tracks where sent < due { sent += pad(track, upTo: due - sent, on: path, now: now) }
        if let track = subscriber.tracks.first(where: { $0.repairSSRC != nil && $0.repairPayloadType != nil }) {
            for _ in 0..<Self.maxPadding where sent < due { sent += sendPadding(track, on: path, now: now) }
        }
        output.counters.paddingBytes &+= UInt64(sent)
        downlink.control.padded(bytes: sent)
    }

    /// The maximum number of padding-only packets in a tick, and of packets of one video that are retransmitted as
    /// padding. A padding-only packet has at most 255 bytes of padding (RFC 3550 §5.1).
    private static let maxPadding = 64

    /// Retransmits recent packets of a video as padding, the newest first, until `room` bytes are sent, `maxPadding`
    /// packets are sent, or a packet is not stored.
    /// - Returns: the number of bytes sent.
    private func pad(_ track: OutgoingTrack, upTo room: Int, on path: Path, now: MediaTime) -> Int {
        guard track.repairSSRC != nil, let feed = track.feed else { return 0 }
        var sent = 0
        for back in 0..<Int64(Self.maxPadding) where sent < room {
            let number = UInt16(truncatingIfNeeded: track.rewriting.lastSequence - back)
            guard let sequence = track.rewriting.source(of: number),
                let (bytes, packet) = feed.history?.packet(sequence, now: now)
            else { break }
            let stored = StoredPacket(number: number, sequence: sequence, bytes: bytes, packet: packet)
            sent += sendRepair(stored, of: track, on: path, now: now)
        }
        return sent
    }

    /// Sends a padding packet in the stream of retransmissions, for subscribers without recent video to retransmit.
    /// - Returns: the number of bytes sent. A packet that cannot be sent counts as `maxReport` bytes, so that the
    ///   caller does not repeat the attempt too often.
    private func sendPadding(_ track: OutgoingTrack, on path: Path, now: MediaTime) -> Int {
        guard let repairSSRC = track.repairSSRC, let payloadType = track.repairPayloadType else {
            return RouterOutput.maxReport
        }
        let memory = output.sink.prepare(RouterOutput.maxReport)
        track.repairSequence &+= 1
        var header = RTPHeaderWriter(
            into: memory, payloadType: payloadType, marker: false, sequenceNumber: track.repairSequence,
            timestamp: track.rewriting.lastTimestamp, ssrc: repairSSRC
        )
        addTiming(255, to: &header, track, now: now)
        let headerLength = header.finish()
        memory[0] |= 0x20
        let length = withUnsafeTemporaryAllocation(byteCount: 255, alignment: 1) { padding -> Int? in
            padding.initializeMemory(as: UInt8.self, repeating: 0)
            padding[254] = 255
            return track.transport.protect(
                memory, headerLength: headerLength, prefix: UnsafeRawBufferPointer(start: nil, count: 0),
                payload: UnsafeRawBufferPointer(padding)
            )
        }
        guard let length else {
            withdrawTiming(of: track)
            return RouterOutput.maxReport
        }
        output.sink.send(length, on: path)
        return length
    }

    // MARK: Header extensions

    /// Numbers a packet for the subscriber's feedback, or writes its send time if the subscriber estimates the bitrate.
    /// - Parameter payload: the number of bytes after the header.
    @inline(__always)
    func addTiming(
        _ payload: Int, to header: inout RTPHeaderWriter, _ subscriber: OutgoingTrack, now: MediaTime
    ) {
        guard let downlink = subscriber.unretainedDownlink else { return }
        let bytes = payload + RTPPacket.fixedHeaderLength + 8 + FeedPacket.linkOverhead
        if subscriber.transportNumberID != 0 {
            let number = downlink._withUnsafeGuaranteedRef { $0.control.sent(bytes: bytes, at: now) }
            header.addTransportSequenceNumber(number, id: subscriber.transportNumberID)
            return
        }
        downlink._withUnsafeGuaranteedRef { $0.control.sentUnnumbered(bytes: bytes) }
        if subscriber.sendTimeID != 0 {
            header.addAbsoluteSendTime(settings.wallClock(now).absoluteSendTime, id: subscriber.sendTimeID)
        }
    }

    /// Withdraws the number of a packet that could not be encrypted. Otherwise it would count as lost.
    func withdrawTiming(of subscriber: OutgoingTrack) {
        guard subscriber.transportNumberID != 0 else { return }
        subscriber.downlink?.control.withdraw()
    }
}
