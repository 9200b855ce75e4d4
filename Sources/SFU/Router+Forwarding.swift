import RTC

/// Forwards media packets from a publisher's stream to the streams of its subscribers. No function in this file
/// allocates memory per packet.
extension Router {
    func receiveMedia(_ bytes: UnsafeRawBufferPointer, from peer: Peer, now: MediaTime) {
        guard peer.side == .send, let packet = RTPPacket(bytes) else {
            counters.malformed &+= 1
            return
        }
        counters.packetsIn &+= 1
        noteArrival(packet, bytes, peer)
        guard let source = peer.identify(packet, in: bytes) else {
            counters.packetsDropped &+= 1
            return
        }
        if source.isRepair {
            recover(packet, bytes, for: source.encoding, now: now)
        } else {
            accept(packet, bytes, of: source.encoding, isRecovered: false, now: now)
        }
    }

    /// Records the arrival of a packet of any kind, for the publisher's bandwidth estimation.
    private func noteArrival(_ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, _ peer: Peer) {
        guard peer.transportSequenceID != 0, let range = packet.headerExtension(peer.transportSequenceID, in: bytes),
            range.count >= 2
        else { return }
        peer.arrivals?.receive(bytes.bigEndian16(at: range.lowerBound), at: arrivedAt)
    }

    private func accept(
        _ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, of encoding: IncomingEncoding, isRecovered: Bool,
        now: MediaTime
    ) {
        let track = encoding.track
        guard let codec = track.codecIndex(packet.payloadType) else {
            counters.packetsDropped &+= 1
            return
        }
        guard let sequence = number(packet, of: encoding, isRecovered: isRecovered) else { return }
        // A retransmission can repeat an old packet, so it does not show that the encoding is alive.
        if !isRecovered {
            encoding.lastPacketAt = now
            if !track.layers[encoding.index].isAlive { track.needsSelection = true }
        }
        if track.kind == .video {
            let isRetransmission = isRecovered || track.codecs[codec].rtxPayloadType == nil
            encoding.missing.receive(sequence, at: now, isRetransmission: isRetransmission)
            // Ignore packets that were already received. Browsers retransmit such packets to probe the bandwidth, and
            // an original packet may arrive after its retransmission.
            if encoding.history?.isPast(sequence) ?? false { return }
            if isRecovered { counters.packetsRecovered &+= 1 }
            if encoding.codec != codec, !isRecovered { (encoding.codec, track.needsSelection) = (codec, true) }
        }
        var pending = describe(packet, bytes, sequence: sequence, codec: codec, of: track)
        // Browsers also retransmit to probe the bandwidth, so no subscriber should start with a retransmission.
        if isRecovered { pending.startsKeyframe = false }
        if pending.startsKeyframe { keyframeBegins(pending, of: encoding, now: now) }
        if !isRecovered {
            track.layers[encoding.index].rates.count(bytes: bytes.count + Downlink.overhead, pending.temporalLayer)
        }
        if packet.marker, !isRecovered { track.layers[encoding.index].rates.count(pending.temporalLayer) }
        if track.kind == .audio { hear(packet, bytes, track, now: now) }
        if track.needsSelection { select(track) }
        if case .red = track.codecs[codec].kind, !recoverAudio(before: pending, of: encoding) { return }
        guard encoding.isWatched, track.voice.isForwarded else {
            encoding.keyframes.passed()
            return encoding.missing.forgetAll(before: sequence)
        }
        guard encoding.pending.count < IncomingEncoding.maxPending else {
            counters.packetsDropped &+= 1
            return
        }
        encoding.keep(bytes, packet, sequence: sequence, isRecovered: isRecovered, now: now)
        append(pending, to: encoding)
    }

    /// Collects the information about a packet that forwarding needs.
    @inline(__always)
    func describe(
        _ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, sequence: Int64, codec: Int, of track: IncomingTrack
    ) -> PendingPacket {
        var pending = PendingPacket(
            bytes: bytes, packet: packet, sequence: sequence, codec: codec, startsKeyframe: false
        )
        inspect(&pending, track.codecs[codec].kind)
        if track.forwardedExtensions != 0 {
            packet.forEachHeaderExtension(in: bytes) { id, range in
                if track.forwardsExtension(id) { pending.extensions.add(id, range) }
            }
        }
        return pending
    }

    /// Returns the packet's extended sequence number. A retransmission is not counted as received. Returns nil if a
    /// retransmission is newer than every original packet.
    private func number(_ packet: RTPPacket, of encoding: IncomingEncoding, isRecovered: Bool) -> Int64? {
        if isRecovered {
            guard let number = encoding.statistics?.nearest(packet.sequenceNumber),
                number <= encoding.statistics?.unwrapper.highest ?? 0
            else { return nil }
            return number
        }
        return encoding.statistics?.receive(
            sequenceNumber: packet.sequenceNumber, timestamp: packet.timestamp, at: arrivedAt
        )
    }

    /// Reads the information that forwarding needs from the payload: whether a decoder can start here, and the picture ids.
    private func inspect(_ pending: inout PendingPacket, _ codec: Codec.Kind) {
        let payload = UnsafeRawBufferPointer(rebasing: pending.bytes[pending.packet.payloadRange])
        if case .vp8 = codec {
            guard let descriptor = VP8Descriptor(payload) else { return }
            pending.startsKeyframe = descriptor.isKeyframeStart
            pending.picture = descriptor.pictureID
            pending.temporalLayer = descriptor.temporalLayer ?? PendingPacket.noLayer
            pending.isLayerSync = descriptor.isLayerSync
            pending.startsPicture = descriptor.isFrameStart
            pending.layerZero = descriptor.temporalLayerZeroIndex
            if pending.picture != nil || pending.layerZero != nil { pending.descriptor = descriptor }
        } else if case .h264 = codec {
            // Let subscribers start only with parameter sets, because a decoder cannot use an IDR slice without them.
            pending.startsKeyframe = H264Payload(payload)?.hasSequenceParameterSet ?? false
        } else {
            pending.startsKeyframe = codec.payloadFormat?.isKeyframeStart(payload) ?? false
        }
    }

    /// Restores the original packet from a retransmission (RFC 4588 §4) and processes it.
    private func recover(
        _ packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, for encoding: IncomingEncoding, now: MediaTime
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
        accept(repaired, UnsafeRawBufferPointer(shifted), of: encoding, isRecovered: true, now: now)
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

    /// Forwards a burst to one subscriber, so that data shared by all its packets is looked up only once.
    func forward(
        _ burst: UnsafeBufferPointer<PendingPacket>, from encoding: IncomingEncoding, to subscriber: OutgoingTrack,
        now: MediaTime
    ) {
        guard !subscriber.isPaused else { return }
        let transport = subscriber.transport
        guard let path = transport.selectedPath, let sender = transport.mediaSender else {
            if subscriber.encoding != nil { subscriber.pauseForwarding() }
            return
        }
        guard let first = burst.baseAddress else { return }
        if subscriber.isPaced {
            return pace(burst, from: encoding, to: subscriber, over: sender, on: path, now: now)
        }
        for index in burst.indices {
            forward(first + index, from: encoding, to: subscriber, over: sender, on: path, arrivedAt: now, now: now)
        }
    }

    /// Forwards one packet of a paced video. Not inlined, because only the unpaced loop needs an inlined `forward`.
    /// - Parameter arrivedAt: when the packet arrived, which is before `now` if it had to wait.
    @inline(never)
    func forwardPaced(
        _ packet: UnsafePointer<PendingPacket>, from encoding: IncomingEncoding, to subscriber: OutgoingTrack,
        over sender: SRTPSender, on path: Path, arrivedAt: MediaTime, now: MediaTime
    ) {
        forward(packet, from: encoding, to: subscriber, over: sender, on: path, arrivedAt: arrivedAt, now: now)
    }

    /// Forwards one packet to a subscriber, unless the subscriber must wait for a keyframe or does not get the
    /// packet's temporal layer.
    ///
    /// - Parameters:
    ///   - packet: a pointer, to avoid copying the 200 bytes for each subscriber.
    ///   - arrivedAt: when the packet arrived. Timestamps of later segments continue from it.
    @inline(__always)
    private func forward(
        _ packet: UnsafePointer<PendingPacket>, from encoding: IncomingEncoding, to subscriber: OutgoingTrack,
        over sender: SRTPSender, on path: Path, arrivedAt: MediaTime, now: MediaTime
    ) {
        guard packet.pointee.codec < subscriber.codecMap.count else { return }
        let codec = subscriber.codecMap[packet.pointee.codec]
        let (sequence, timestamp) = (packet.pointee.sequence, packet.pointee.packet.timestamp)
        guard codec.isDecodable else { return subscriber.refuse() }
        if subscriber.encoding === encoding, subscriber.rewriting.exceedsMaxGap(sequence) {
            subscriber.pauseForwarding()
        }
        if subscriber.encoding !== encoding {
            guard begins(subscriber, with: encoding, packet.pointee, now: now) else { return }
            subscriber.rewriting.begin(
                sequence: sequence, timestamp: timestamp, picture: packet.pointee.picture,
                layerZero: packet.pointee.layerZero, clockRate: codec.clockRate, arrivedAt: arrivedAt
            )
        }
        if subscriber.temporalFilter.drops(packet.pointee),
            subscriber.rewriting.drop(sequence: sequence, picture: packet.pointee.picture)
        {
            return
        }
        guard
            let numbers = subscriber.rewriting.numbers(
                sequence: sequence, timestamp: timestamp, picture: packet.pointee.picture,
                layerZero: packet.pointee.layerZero, arrivedAt: arrivedAt
            )
        else { return }
        guard let length = write(packet, as: codec, numbers, to: subscriber, over: sender, now: now) else {
            counters.packetsDropped &+= 1
            return
        }
        sink.send(length, on: path)
        counters.packetsForwarded &+= 1
        subscriber.packets &+= 1
        subscriber.budget.earn(length)
    }

    /// Switches the subscriber to this encoding if it can start with this packet, and returns whether it did.
    private func begins(
        _ subscriber: OutgoingTrack, with encoding: IncomingEncoding, _ pending: PendingPacket, now: MediaTime
    ) -> Bool {
        guard subscriber.target === encoding else { return false }
        guard encoding.track.kind == .audio || pending.startsKeyframe else {
            encoding.keyframes.subscriberWaits()
            return false
        }
        subscriber.follow(encoding)
        return true
    }

    @inline(__always)
    private func write(
        _ packet: UnsafePointer<PendingPacket>, as codec: MappedCodec, _ numbers: RTPRewriter.Numbers,
        to subscriber: OutgoingTrack, over sender: SRTPSender, now: MediaTime
    ) -> Int? {
        let bytes = packet.pointee.bytes
        let memory = sink.prepare(bytes.count + Self.maxGrowth)
        let isPlain =
            codec.isUnwrapped
            || codec.plainPayloadType != 255 && !(subscriber.downlink?.takesRedundantAudio ?? true)
        var header = RTPHeaderWriter(
            into: memory, payloadType: isPlain ? codec.plainPayloadType : codec.payloadType,
            marker: packet.pointee.packet.marker, sequenceNumber: UInt16(truncatingIfNeeded: numbers.sequence),
            timestamp: numbers.timestamp, ssrc: subscriber.ssrc,
            twoByteExtensions: packet.pointee.packet.extensionProfile & 0xfff0 == 0x1000
        )
        switch packet.pointee.extensions {
        case .none: break
        case .one(let id, let range): copyExtension(id, bytes, range, to: &header, subscriber)
        case .several: copyExtensions(of: packet.pointee.packet, bytes, to: &header, subscriber)
        }
        packet.pointee.renumber(numbers)
        var payload = UnsafeRawBufferPointer(rebasing: bytes[packet.pointee.packet.payloadRange])
        if isPlain {
            guard let plain = RedundantAudio.primary(payload) else { return nil }
            payload = plain
        }
        addTiming(payload.count, to: &header, subscriber, now: now)
        let headerLength = header.finish()
        guard headerLength > 0,
            let length = sender.protect(
                memory, headerLength: headerLength, prefix: UnsafeRawBufferPointer(start: nil, count: 0),
                payload: payload)
        else {
            withdrawTiming(of: subscriber)
            return nil
        }
        subscriber.octets &+= UInt32(truncatingIfNeeded: payload.count)
        return length
    }

    /// The maximum number of bytes by which a packet can grow: longer header extensions, the original sequence number
    /// of a retransmission, and the SRTP tag.
    static let maxGrowth = 128

    func copyExtensions(
        of packet: RTPPacket, _ bytes: UnsafeRawBufferPointer, to header: inout RTPHeaderWriter,
        _ subscriber: OutgoingTrack
    ) {
        guard !packet.extensionRange.isEmpty else { return }
        packet.forEachHeaderExtension(in: bytes) { copyExtension($0, bytes, $1, to: &header, subscriber) }
    }

    @inline(__always)
    private func copyExtension(
        _ id: UInt8, _ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, to header: inout RTPHeaderWriter,
        _ subscriber: OutgoingTrack
    ) {
        let ours = subscriber.extensionMap[Int(id)]
        guard ours != 0 else { return }
        header.addExtension(id: ours, bytes: UnsafeRawBufferPointer(rebasing: bytes[range]))
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Moves the first `length` bytes of the buffer up by `distance` bytes. Does nothing if they would not fit.
    func moveHeader(length: Int, by distance: Int) {
        guard let base = baseAddress, length + distance <= count else { return }
        // The two ranges may overlap (memmove).
        (base + distance).copyMemory(from: base, byteCount: length)
    }
}
