import RTC

/// Forwards packets from a feed to its subscribers. No function in this file allocates memory per packet.
extension Egress {
    /// Forwards a burst to one subscriber, so that data shared by all its packets is looked up only once.
    func forward(
        _ burst: UnsafeBufferPointer<FeedPacket>, from feed: Feed, to subscriber: OutgoingTrack,
        now: MediaTime
    ) {
        guard !subscriber.isPaused else { return }
        let transport = subscriber.transport
        guard let path = transport.selectedPath, let sender = transport.mediaSender else {
            if subscriber.feed != nil { subscriber.pauseForwarding() }
            return
        }
        guard let first = burst.baseAddress else { return }
        if subscriber.isPaced {
            return pace(burst, from: feed, to: subscriber, over: sender, on: path, now: now)
        }
        for index in burst.indices {
            forward(first + index, from: feed, to: subscriber, over: sender, on: path, arrivedAt: now, now: now)
        }
    }

    /// Forwards one packet of a paced video. Not inlined, because only the unpaced loop needs an inlined `forward`.
    /// - Parameter arrivedAt: when the packet arrived, which is before `now` if it had to wait.
    @inline(never)
    func forwardPaced(
        _ packet: UnsafePointer<FeedPacket>, from feed: Feed, to subscriber: OutgoingTrack,
        over sender: SRTPSender, on path: Path, arrivedAt: MediaTime, now: MediaTime
    ) {
        forward(packet, from: feed, to: subscriber, over: sender, on: path, arrivedAt: arrivedAt, now: now)
    }

    /// Forwards one packet to a subscriber, unless the subscriber must wait for a keyframe or does not get the
    /// packet's temporal layer.
    ///
    /// - Parameters:
    ///   - packet: a pointer, to avoid copying the 200 bytes for each subscriber.
    ///   - arrivedAt: when the packet arrived. Timestamps of later segments continue from it.
    @inline(__always)
    private func forward(
        _ packet: UnsafePointer<FeedPacket>, from feed: Feed, to subscriber: OutgoingTrack,
        over sender: SRTPSender, on path: Path, arrivedAt: MediaTime, now: MediaTime
    ) {
        guard packet.pointee.codec < subscriber.codecMap.count else { return }
        let codec = subscriber.codecMap[packet.pointee.codec]
        let (sequence, timestamp) = (packet.pointee.sequence, packet.pointee.packet.timestamp)
        guard codec.isDecodable else { return subscriber.refuse() }
        if subscriber.feed === feed, subscriber.rewriting.exceedsMaxGap(sequence) {
            subscriber.pauseForwarding()
        }
        if subscriber.feed !== feed {
            guard begins(subscriber, with: feed, packet.pointee, now: now) else { return }
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
            output.counters.packetsDropped &+= 1
            return
        }
        output.sink.send(length, on: path)
        output.counters.packetsForwarded &+= 1
        subscriber.packets &+= 1
        subscriber.budget.earn(length)
    }

    /// Switches the subscriber to this feed if it can start with this packet, and returns whether it did.
    private func begins(
        _ subscriber: OutgoingTrack, with feed: Feed, _ pending: FeedPacket, now: MediaTime
    ) -> Bool {
        guard subscriber.target === feed else { return false }
        guard feed.track.kind == .audio || pending.startsKeyframe else {
            feed.keyframes.subscriberWaits()
            return false
        }
        subscriber.follow(feed)
        return true
    }

    @inline(__always)
    private func write(
        _ packet: UnsafePointer<FeedPacket>, as codec: MappedCodec, _ numbers: RTPRewriter.Numbers,
        to subscriber: OutgoingTrack, over sender: SRTPSender, now: MediaTime
    ) -> Int? {
        let bytes = packet.pointee.bytes
        let memory = output.sink.prepare(bytes.count + RouterOutput.maxGrowth)
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
        var payload = packet.pointee.payload
        if isPlain {
            guard let plain = RedundantAudio.primary(payload) else { return nil }
            payload = plain
        }
        addTiming(payload.count + Int(packet.pointee.padding), to: &header, subscriber, now: now)
        let headerLength = header.finish()
        let prefix = renumbered(packet, numbers)
        let padding = Int(packet.pointee.padding)
        if padding > 0 { memory[0] |= 0x20 }
        guard headerLength > 0,
            let length = sender.protect(
                memory, headerLength: headerLength, prefix: prefix,
                payload: UnsafeRawBufferPointer(
                    start: payload.baseAddress.map { $0 + prefix.count }, count: payload.count - prefix.count + padding)
            )
        else {
            withdrawTiming(of: subscriber)
            return nil
        }
        subscriber.octets &+= UInt32(truncatingIfNeeded: payload.count)
        return length
    }

    /// Returns the packet's VP8 descriptor with the picture ids of one subscriber, valid until the next call; empty if
    /// the descriptor has no picture ids. The publisher's packet does not change, because all subscribers read it.
    @inline(__always)
    private func renumbered(
        _ packet: UnsafePointer<FeedPacket>, _ numbers: RTPRewriter.Numbers
    ) -> UnsafeRawBufferPointer {
        guard let original = packet.pointee.descriptor else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let length = original.rewrite(
            into: descriptor, pictureID: numbers.picture, temporalLayerZeroIndex: numbers.layerZero)
        return UnsafeRawBufferPointer(rebasing: descriptor[..<length])
    }

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
        let ours = subscriber.extensionMap[id]
        guard ours != 0 else { return }
        header.addExtension(id: ours, bytes: UnsafeRawBufferPointer(rebasing: bytes[range]))
    }
}
