import RTC

/// Retransmissions to subscribers that report losses (RFC 4585 §6.2.1, RFC 4588).
extension Egress {
    func retransmit(_ nack: RTCP.NACK, to subscriber: Subscriber, now: MediaTime) {
        guard let track = subscriber.track(ssrc: nack.media), let path = subscriber.link.transport.selectedPath,
            !track.isPaused
        else { return }
        for number in nack.lost {
            output.counters.nacksReceived &+= 1
            retransmit(number, of: track, on: path, now: now)
        }
    }

    private func retransmit(_ number: UInt16, of track: OutgoingTrack, on path: Path, now: MediaTime) {
        guard track.repairSSRC != nil, let feed = track.feed,
            let sequence = track.rewriting.source(of: number)
        else { return }
        guard let (bytes, packet) = feed.history?.packet(sequence, now: now) else {
            // Request a keyframe if the packet is too old to be retransmitted. Do nothing if the packet has not
            // arrived from the publisher, because it may still arrive.
            if feed.history?.isPast(sequence) ?? false { feed.keyframes.packetTooOld(now: now) }
            return
        }
        guard mayRetransmit(sequence, bytes.count, of: track, feed, now: now) else { return }
        let stored = StoredPacket(number: number, sequence: sequence, bytes: bytes, packet: packet)
        guard sendRepair(stored, of: track, on: path, now: now) > 0 else { return }
        output.counters.packetsRetransmitted &+= 1
    }

    /// Retransmits a packet in the stream of retransmissions (RFC 4588).
    /// - Returns: the length of the datagram; 0 if it could not be sent.
    func sendRepair(_ stored: StoredPacket, of track: OutgoingTrack, on path: Path, now: MediaTime) -> Int {
        let (bytes, packet) = (stored.bytes, stored.packet)
        guard let feed = track.feed, let repairSSRC = track.repairSSRC,
            let codec = feed.track.codecIndex(packet.payloadType),
            codec < track.codecMap.count, track.codecMap[codec].repairPayloadType != 255
        else { return 0 }
        let memory = output.sink.prepare(bytes.count + RouterOutput.maxGrowth)
        track.repairSequence &+= 1
        var header = RTPHeaderWriter(
            into: memory, payloadType: track.codecMap[codec].repairPayloadType, marker: packet.marker,
            sequenceNumber: track.repairSequence, timestamp: track.rewriting.timestamp(packet.timestamp),
            ssrc: repairSSRC, twoByteExtensions: packet.extensionProfile & 0xfff0 == 0x1000
        )
        copyExtensions(of: packet, bytes, to: &header, track)
        addTiming(packet.payloadRange.count + 2, to: &header, track, now: now)
        let headerLength = header.finish()
        let payload = UnsafeRawBufferPointer(rebasing: bytes[packet.payloadRange])
        let isVP8 = feed.track.codecs[codec].kind == .vp8
        guard headerLength > 0,
            let length = writeRepair(
                stored.number, of: stored.sequence, isVP8 ? VP8Descriptor(payload) : nil, payload, memory, headerLength,
                track
            )
        else {
            withdrawTiming(of: track)
            return 0
        }
        output.sink.send(length, on: path)
        return length
    }

    private func mayRetransmit(
        _ sequence: Int64, _ length: Int, of track: OutgoingTrack, _ feed: Feed, now: MediaTime
    ) -> Bool {
        // If the path is full, do not retransmit now: the receiver requests the packet again later.
        guard track.downlink?.control.mayAdd(bytes: length, now: now) ?? true else { return false }
        if track.retransmissionTimes == nil { track.retransmissionTimes = RetransmissionTimes() }
        guard track.retransmissionTimes?.take(sequence, now: now) ?? false else { return false }
        guard track.budget.spend(length + Self.repairGrowth) else {
            feed.keyframes.tooManyRetransmissions(now: now)
            return false
        }
        return true
    }

    /// The maximum number of bytes by which a retransmission exceeds the stored packet: two for the original sequence
    /// number, 16 for the longest SRTP tag. Its header is no longer than the publisher's.
    private static let repairGrowth = 2 + 16

    /// Writes and encrypts an RTX payload: the original sequence number (RFC 4588 §4), the VP8 descriptor as it was
    /// sent, and the rest of the payload.
    /// - Returns: the length of the datagram; nil if it cannot be sent.
    private func writeRepair(
        _ number: UInt16, of sequence: Int64, _ descriptor: VP8Descriptor?, _ payload: UnsafeRawBufferPointer,
        _ memory: UnsafeMutableRawBufferPointer, _ headerLength: Int, _ track: OutgoingTrack
    ) -> Int? {
        withUnsafeTemporaryAllocation(byteCount: 2 + VP8Descriptor.maxLength, alignment: 2) { prefix in
            prefix.storeBytes(of: number.bigEndian, as: UInt16.self)
            let length =
                descriptor?.rewrite(
                    into: UnsafeMutableRawBufferPointer(rebasing: prefix[2...]),
                    pictureID: track.rewriting.picture(descriptor?.pictureID ?? 0, in: sequence),
                    temporalLayerZeroIndex: track.rewriting.layerZero(descriptor?.temporalLayerZeroIndex ?? 0)
                ) ?? 0
            return track.transport.protect(
                memory, headerLength: headerLength, prefix: UnsafeRawBufferPointer(rebasing: prefix[..<(2 + length)]),
                payload: UnsafeRawBufferPointer(rebasing: payload[length...])
            )
        }
    }
}

/// The time of the most recent retransmission of each packet, indexed by the low bits of the sequence number. This takes a
/// fixed 1 kB.
struct RetransmissionTimes: Sendable {
    /// The minimum time in milliseconds between two retransmissions of a packet, however often the subscriber requests
    /// it.
    private static let interval = 20
    /// The times in milliseconds after `start`; 0 means never.
    private var times = ContiguousArray<UInt16>(repeating: 0, count: PacketHistory.capacity)
    private var start: MediaTime?

    /// Returns true if the packet may be retransmitted now, and records the retransmission.
    mutating func take(_ sequence: Int64, now: MediaTime) -> Bool {
        let index = Int(truncatingIfNeeded: sequence) & (PacketHistory.capacity - 1)
        let time = self.time(now)
        guard times[index] == 0 || time - Int(times[index]) >= Self.interval else { return false }
        times[index] = UInt16(time)
        return true
    }

    /// Returns the time as stored in `times`. When it no longer fits in 16 bits, all times are forgotten, so once in 65 s a
    /// packet may be retransmitted again too early.
    private mutating func time(_ now: MediaTime) -> Int {
        let passed = start.map { (now - $0).milliseconds } ?? -1
        guard passed < 0 || passed >= Int64(UInt16.max) else { return Int(passed) + 1 }
        for index in times.indices { times[index] = 0 }
        start = now
        return 1
    }
}

/// The number of bytes that may be retransmitted to a subscriber: as many as were originally sent to it, plus a burst. A
/// subscriber that requests all packets many times gets no more than that, so spoofed requests can at most double the traffic.
struct RetransmissionBudget: Sendable {
    /// The burst in bytes. It covers about 100 packets that are lost together.
    static let burst = 150_000

    private var bytes = burst

    mutating func earn(_ count: Int) { bytes = min(Self.burst, bytes + count) }

    mutating func spend(_ count: Int) -> Bool {
        guard bytes >= count else { return false }
        bytes -= count
        return true
    }
}
