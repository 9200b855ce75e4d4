import RTC

/// The publishers' half of the router: identifies the packets that arrive, restores lost ones, and fills the feeds.
/// Toward publishers, it sends feedback and requests what subscribers demand. No function in this file allocates
/// memory per packet.
final class Ingress {
    let settings: RouterSettings
    let output: RouterOutput
    private let feeds: FeedTable
    private let speakers: Speakers
    private let pipes: Pipes
    /// Publishers to which keyframe requests are sent at the next flush, if they are due, instead of at the next tick.
    private var urgent: [Publisher] = []
    /// The lost sequence numbers in one NACK, stored here to reuse the memory.
    var lost: [UInt16] = []

    init(settings: RouterSettings, output: RouterOutput, feeds: FeedTable, speakers: Speakers, pipes: Pipes) {
        (self.settings, self.output, self.feeds, self.speakers) = (settings, output, feeds, speakers)
        self.pipes = pipes
    }

    // MARK: Publishers

    func enter(_ publisher: Publisher) {
        set(publisher.tracks.map(\.feedTrack), of: publisher.link.client)
    }

    /// Removes the tracks of a publisher, unless those of a later connection of the client have replaced them.
    func leave(_ publisher: Publisher) {
        let client = publisher.link.client
        let present = feeds.tracks(of: client)
        if publisher.tracks.contains(where: { track in present.contains { $0 === track.feedTrack } }) {
            set([], of: client)
        }
        urgent.removeAll { $0 === publisher }
    }

    private func set(_ tracks: [FeedTrack], of client: Key) {
        feeds.set(tracks, of: client)
        pipes.announce(tracks, of: client)
    }

    func requestKeyframesSoon(from publisher: Publisher) {
        // Many subscribers may start at once.
        if urgent.last !== publisher { urgent.append(publisher) }
    }

    /// Sends the keyframe requests that cannot wait for the next tick, to save new subscribers some milliseconds.
    func sendUrgentRequests(now: MediaTime) {
        guard !urgent.isEmpty else { return }
        for publisher in urgent { requestKeyframes(publisher, now: now) }
        urgent.removeAll(keepingCapacity: true)
    }

    /// Performs the work that is due for a publisher.
    func tick(_ publisher: Publisher, now: MediaTime) {
        sendFeedback(to: publisher, now: now)
        // The publisher's own node judges its connection.
        if !publisher.isRemote { judgeUplink(of: publisher, now: now) }
    }

    // MARK: Packets

    /// Processes a packet.
    /// - Parameter spare: how many bytes after the packet may be overwritten.
    func receive(
        _ bytes: UnsafeRawBufferPointer, spare: Int, from publisher: Publisher, now: MediaTime, arrivedAt: MediaTime
    ) {
        guard let packet = RTPPacket(bytes) else {
            output.counters.malformed &+= 1
            return
        }
        output.counters.packetsIn &+= 1
        publisher.noteArrival(packet, bytes, at: arrivedAt)
        guard let source = publisher.identify(packet, in: bytes) else {
            output.counters.packetsDropped &+= 1
            return
        }
        let arrival = Arrival(at: arrivedAt, now: now, spare: spare)
        if source.isRepair {
            recover(packet, bytes, for: source.encoding, arrival)
        } else {
            accept(packet, bytes, of: source.encoding, arrival)
        }
    }

    /// How and when a packet arrived.
    private struct Arrival {
        /// When the datagram arrived.
        var at: MediaTime
        /// When the datagram is processed.
        var now: MediaTime
        /// How many bytes after the packet may be overwritten.
        var spare: Int
        /// Whether the packet arrived as a retransmission.
        var isRecovered = false
    }

    private func accept(
        _ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, of encoding: IncomingEncoding, _ arrival: Arrival
    ) {
        let (track, feed, isRecovered) = (encoding.feed.track, encoding.feed, arrival.isRecovered)
        guard let codec = track.codecIndex(packet.payloadType) else {
            output.counters.packetsDropped &+= 1
            return
        }
        guard let sequence = number(packet, of: encoding, arrival) else { return }
        // A retransmission can repeat an old packet, so it does not show that the encoding is alive.
        if !isRecovered {
            encoding.lastPacketAt = arrival.now
            // The node of a remote publisher says which layers are alive. A selection changes nothing until it does.
            if !track.layers[feed.index].isAlive, !track.isRemote { track.needsSelection = true }
        }
        if track.kind == .video, !isNew(sequence, codec, of: encoding, arrival) { return }
        var pending = FeedPacket(packet, bytes, sequence: sequence, codec: codec, of: track)
        pending.spare = UInt8(clamping: arrival.spare)
        // Browsers also retransmit to probe the bandwidth, so no subscriber should start with a retransmission.
        pending.isRecovered = isRecovered
        if isRecovered { pending.startsKeyframe = false }
        if pending.startsKeyframe { keyframeBegins(pending, of: encoding, now: arrival.now) }
        if !isRecovered {
            track.layers[feed.index].rates.count(bytes: bytes.count + FeedPacket.linkOverhead, pending.temporalLayer)
            if packet.marker { track.layers[feed.index].rates.count(pending.temporalLayer) }
        }
        if track.kind == .audio { hear(packet, bytes, encoding.track, now: arrival.now) }
        if track.needsSelection { track.select() }
        if case .red = track.codecs[codec].kind, !recoverAudio(before: pending, of: encoding, at: arrival.at) { return }
        guard feed.isWatched, track.voice.isForwarded else {
            feed.keyframes.passed()
            return encoding.missing.forgetAll(before: sequence)
        }
        feed.write(pending, arrivedAt: arrival.at, now: arrival.now)
        if pending.startsKeyframe, !track.holdsPackets { feed.keyframes.passed() }
    }

    /// Records the arrival of a packet of video.
    /// - Returns: false if the packet was already received. Browsers retransmit such packets to probe the bandwidth,
    ///   and an original packet may arrive after its retransmission.
    private func isNew(_ sequence: Int64, _ codec: Int, of encoding: IncomingEncoding, _ arrival: Arrival) -> Bool {
        let (track, feed) = (encoding.feed.track, encoding.feed)
        let isRetransmission = arrival.isRecovered || track.codecs[codec].rtxPayloadType == nil
        encoding.missing.receive(sequence, at: arrival.now, isRetransmission: isRetransmission)
        if feed.history?.isPast(sequence) ?? false { return false }
        if arrival.isRecovered {
            output.counters.packetsRecovered &+= 1
        } else if feed.note(codec: codec) {
            track.needsSelection = true
        }
        return true
    }

    /// Returns the packet's extended sequence number. A retransmission is not counted as received. Returns nil if a
    /// retransmission is newer than every original packet.
    private func number(_ packet: RTPPacket, of encoding: IncomingEncoding, _ arrival: Arrival) -> Int64? {
        if arrival.isRecovered {
            guard let number = encoding.statistics?.nearest(packet.sequenceNumber),
                number <= encoding.statistics?.unwrapper.highest ?? 0
            else { return nil }
            return number
        }
        return encoding.statistics?.receive(
            sequenceNumber: packet.sequenceNumber, timestamp: packet.timestamp, at: arrival.at
        )
    }

    /// Restores the original packet from a retransmission (RFC 4588 §4) and processes it.
    private func recover(
        _ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, for encoding: IncomingEncoding, _ arrival: Arrival
    ) {
        let range = packet.payloadRange
        // A retransmission without a payload is only a bandwidth probe, so ignore it.
        guard range.count > 2, encoding.ssrc != 0, let payloadType = encoding.track.repaired(packet.payloadType) else {
            return
        }
        let original = bytes.bigEndian16(at: range.lowerBound)
        // Restore the packet in place: move the header over the two bytes of the original sequence number, and write the
        // original payload type, sequence number and SSRC into the header.
        let memory = UnsafeMutableRawBufferPointer(mutating: bytes)
        memory.moveHeader(length: packet.headerLength, by: 2)
        let shifted = UnsafeMutableRawBufferPointer(rebasing: memory[2..<range.upperBound])
        shifted[0] &= 0b1101_1111
        shifted[1] = shifted[1] & 0x80 | payloadType
        shifted.storeBytes(of: original.bigEndian, toByteOffset: 2, as: UInt16.self)
        shifted.storeBytes(of: encoding.ssrc.bigEndian, toByteOffset: 8, as: UInt32.self)
        guard let repaired = RTPPacket(UnsafeRawBufferPointer(shifted)) else { return }
        var recovered = arrival
        recovered.isRecovered = true
        accept(repaired, UnsafeRawBufferPointer(shifted), of: encoding, recovered)
    }

    /// Records a packet's audio level (RFC 6464) for the active speaker and the choice of the loudest audio. A packet
    /// without a level counts as `Voice.unknownLevel`, but only for the loudest audio.
    private func hear(_ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, _ track: IncomingTrack, now: MediaTime) {
        guard let publication = track.feedTrack.publication, publication.forwardsAudio else { return }
        guard track.audioLevelID != 0, let range = packet.headerExtension(track.audioLevelID, in: bytes),
            let level = HeaderExtensions.AudioLevel(UnsafeRawBufferPointer(rebasing: bytes[range]))
        else { return track.feedTrack.hear(Voice.unknownLevel, now: now) }
        track.feedTrack.hear(level.level, now: now)
        speakers.hear(publication, level: level.level, now: now)
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Moves the first `length` bytes of the buffer up by `distance` bytes. Does nothing if they would not fit.
    fileprivate func moveHeader(length: Int, by distance: Int) {
        guard let base = baseAddress, length + distance <= count else { return }
        // The two ranges may overlap (memmove).
        (base + distance).copyMemory(from: base, byteCount: length)
    }
}
