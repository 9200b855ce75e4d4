import RTC

/// RTCP (RFC 3550 §6, RFC 4585, RFC 5104) from and to clients. No RTCP packet is forwarded, because a subscriber's feedback is
/// about the server's stream, and a publisher's report uses the publisher's clock.
extension Router {
    func receiveControl(_ bytes: UnsafeRawBufferPointer, from peer: Peer, now: MediaTime) {
        guard let compound = RTCPCompound(bytes) else {
            counters.malformed &+= 1
            return
        }
        peer.heardAt = now
        for packet in compound {
            switch packet {
            case .senderReport(let report) where peer.side == .send: note(report.info, from: peer, now: now)
            case .nack(let nack) where peer.side == .receive: retransmit(nack, to: peer, now: now)
            case .pli(let request) where peer.side == .receive:
                receiveKeyframeRequest(request.media, from: peer, now: now)
            case .fir(let request) where peer.side == .receive:
                for entry in request.entries { receiveKeyframeRequest(entry.ssrc, from: peer, now: now) }
            case .transportFeedback(let report) where peer.side == .receive:
                receive(report, from: peer, now: now)
            case .remb(let estimate) where peer.side == .receive:
                peer.downlink?.control.receive(
                    remb: Bitrate(bitsPerSecond: Int64(clamping: estimate.bitrate)), now: now)
            case .receiverReport where peer.side == .receive: peer.downlink?.control.receiveReport(now: now)
            case .malformed: counters.malformed &+= 1
            // A BYE is ignored, because streams are ended through signaling.
            default: break
            }
        }
    }

    private func note(_ info: RTCP.SenderInfo, from peer: Peer, now: MediaTime) {
        guard let source = peer.sources[info.ssrc], !source.isRepair else { return }
        source.encoding.statistics?.receive(senderReport: info.ntp, at: now)
        source.encoding.report = SourceReport(ntp: info.ntp, timestamp: info.rtpTimestamp)
        // This is the offset from the publisher's clock to the server's. Keep the minimum, because the report with the least
        // network delay is the most accurate.
        let offset = wallClock(now) - info.ntp
        peer.clockOffset = peer.clockOffset.map { min($0, offset) } ?? offset
    }

    func wallClock(_ now: MediaTime) -> NTPTime { NTPTime(now, origin: settings.clockOrigin) }

    // MARK: Feedback from subscribers

    private func retransmit(_ nack: RTCP.NACK, to peer: Peer, now: MediaTime) {
        guard let track = peer.outgoingBySSRC[nack.media], let path = peer.transport.selectedPath, !track.isPaused
        else {
            return
        }
        for number in nack.lost {
            counters.nacksReceived &+= 1
            retransmit(number, of: track, on: path, now: now)
        }
    }

    private func retransmit(_ number: UInt16, of track: OutgoingTrack, on path: Path, now: MediaTime) {
        guard track.repairSSRC != nil, let encoding = track.encoding,
            let sequence = track.rewriting.source(of: number)
        else { return }
        guard let (bytes, packet) = encoding.history?.packet(sequence, now: now) else {
            // Request a keyframe if the packet is too old to be retransmitted. Do nothing if the packet has not
            // arrived from the publisher, because it may still arrive.
            if encoding.history?.isPast(sequence) ?? false { encoding.keyframes.packetTooOld(now: now) }
            return
        }
        guard mayRetransmit(sequence, bytes.count, of: track, encoding, now: now) else { return }
        let stored = StoredPacket(number: number, sequence: sequence, bytes: bytes, packet: packet)
        guard sendRepair(stored, of: track, on: path, now: now) > 0 else { return }
        counters.packetsRetransmitted &+= 1
    }

    /// Retransmits a packet in the stream of retransmissions (RFC 4588).
    /// - Returns: the length of the datagram; 0 if it could not be sent.
    func sendRepair(_ stored: StoredPacket, of track: OutgoingTrack, on path: Path, now: MediaTime) -> Int {
        let (bytes, packet) = (stored.bytes, stored.packet)
        guard let encoding = track.encoding, let repairSSRC = track.repairSSRC,
            let codec = encoding.track.codecIndex(packet.payloadType),
            codec < track.codecMap.count, track.codecMap[codec].repairPayloadType != 255
        else { return 0 }
        let memory = sink.prepare(bytes.count + Self.maxGrowth)
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
        let isVP8 = encoding.track.codecs[codec].kind == .vp8
        guard headerLength > 0,
            let length = writeRepair(
                stored.number, of: stored.sequence, isVP8 ? VP8Descriptor(payload) : nil, payload, memory, headerLength,
                track
            )
        else {
            withdrawTiming(of: track)
            return 0
        }
        sink.send(length, on: path)
        return length
    }

    private func mayRetransmit(
        _ sequence: Int64, _ length: Int, of track: OutgoingTrack, _ encoding: IncomingEncoding, now: MediaTime
    ) -> Bool {
        // If the path is full, do not retransmit now: the receiver requests the packet again later.
        guard track.downlink?.control.mayAdd(bytes: length, now: now) ?? true else { return false }
        if track.retransmissionTimes == nil { track.retransmissionTimes = RetransmissionTimes() }
        guard track.retransmissionTimes?.take(sequence, now: now) ?? false else { return false }
        guard track.budget.spend(length + Self.repairGrowth) else {
            encoding.keyframes.tooManyRetransmissions(now: now)
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
            return track.peer.transport.protect(
                memory, headerLength: headerLength, prefix: UnsafeRawBufferPointer(rebasing: prefix[..<(2 + length)]),
                payload: UnsafeRawBufferPointer(rebasing: payload[length...])
            )
        }
    }

    // MARK: Reports to subscribers

    /// Sends a sender report for each stream every second, so that the receiver can synchronize audio and video (RFC 3550
    /// §6.4.1). The first report is sent as soon as the publisher has sent one.
    func sendSenderReports(to peer: Peer, now: MediaTime) {
        guard let path = peer.transport.selectedPath else { return }
        for track in peer.outgoing {
            guard let encoding = track.encoding, track.packets > 0 else { continue }
            if let at = track.reportedAt, now - at < Self.reportInterval { continue }
            guard let info = senderInfo(track, encoding, now: now) else { continue }
            track.reportedAt = now
            let memory = sink.prepare(Self.maxReport)
            var writer = ByteWriter(memory)
            RTCP.writeSenderReport(info, to: &writer)
            RTCP.writeSourceDescription(ssrc: track.ssrc, cname: peer.cname, to: &writer)
            send(writer, in: memory, to: peer, on: path)
        }
    }

    private static let reportInterval = MediaInterval.seconds(1)
    /// The maximum length of the reports in a datagram in bytes, before encryption.
    static let maxReport = 1200

    /// Returns the publisher's most recent sender report, converted for the subscriber: with the time on the server's
    /// clock, and with the SSRC, RTP timestamp, packet count and byte count of the subscriber's track. Returns nil if
    /// the publisher has sent no report.
    private func senderInfo(_ track: OutgoingTrack, _ encoding: IncomingEncoding, now: MediaTime) -> RTCP.SenderInfo? {
        guard let report = encoding.report, let offset = encoding.track.peer.clockOffset else { return nil }
        let wallClock = wallClock(now)
        // The time since the report, on the publisher's clock. The media clock has advanced by the same amount.
        let elapsed = (wallClock - report.ntp) - offset
        let rate = Int64(encoding.track.clockRate)
        let ticks = UInt32(truncatingIfNeeded: elapsed.nanoseconds / 1000 &* rate / 1_000_000)
        return RTCP.SenderInfo(
            ssrc: track.ssrc, ntp: wallClock, rtpTimestamp: track.rewriting.timestamp(report.timestamp &+ ticks),
            packetCount: track.packets, octetCount: track.octets
        )
    }

    /// Encrypts the written RTCP packets and sends them.
    func send(_ writer: ByteWriter, in memory: UnsafeMutableRawBufferPointer, to peer: Peer, on path: Path) {
        guard !writer.overflowed, writer.count > 0,
            let length = peer.transport.protectControl(memory, length: writer.count)
        else { return }
        sink.send(length, on: path)
    }

    // MARK: Feedback to publishers

    /// Updates the layers of a publisher's tracks, and sends feedback to the publisher: NACKs and keyframe requests as
    /// soon as they are due, transport-wide feedback every 100 ms, and a receiver report every second.
    func sendFeedback(to peer: Peer, now: MediaTime) {
        guard let path = peer.transport.selectedPath else { return }
        sendArrivals(to: peer, on: path, now: now)
        updateLayers(of: peer, now: now)
        for track in peer.incoming {
            for encoding in track.encodings where encoding.ssrc != 0 {
                sendNACK(encoding, peer, on: path, now: now)
                requestKeyframe(encoding, peer, on: path, now: now)
            }
        }
        if peer.reportsAt.map({ now - $0 >= Self.reportInterval }) ?? true {
            sendReceiverReport(to: peer, on: path, now: now)
        }
    }

    private static let arrivalInterval = MediaInterval.milliseconds(100)

    private func sendArrivals(to peer: Peer, on path: Path, now: MediaTime) {
        guard peer.arrivals?.hasNews ?? false, peer.feedbackAt.map({ now - $0 >= Self.arrivalInterval }) ?? true else {
            return
        }
        peer.feedbackAt = now
        // The packets of a second need only a few feedback packets. The limit bounds the work if a client's sequence numbers
        // jump.
        for _ in 0..<8 {
            let memory = sink.prepare(Self.maxReport + Self.maxGrowth)
            var writer = ByteWriter(UnsafeMutableRawBufferPointer(rebasing: memory[..<Self.maxReport]))
            begin(&writer, for: peer, isReduced: peer.incoming.allSatisfy(\.hasReducedSizeRTCP))
            guard peer.arrivals?.writeFeedback(sender: peer.ownSSRC, media: peer.mediaSSRC, to: &writer) ?? false else {
                return
            }
            send(writer, in: memory, to: peer, on: path)
        }
    }

    private func sendNACK(_ encoding: IncomingEncoding, _ peer: Peer, on path: Path, now: MediaTime) {
        guard encoding.track.kind == .video, encoding.isWatched else { return }
        lost.removeAll(keepingCapacity: true)
        if encoding.missing.outstanding > 0 {
            encoding.missing.forEachDue(at: now, roundTrip: encoding.missing.answerTime) { lost.append($0) }
        }
        // After a gap that is too large to request, no packet is missing but a keyframe is needed.
        if encoding.missing.takeKeyframeNeed() { encoding.keyframes.lossGivenUp() }
        guard !lost.isEmpty, encoding.track.supportsNACK else { return }
        let memory = sink.prepare(Self.maxReport + Self.maxGrowth)
        var writer = ByteWriter(UnsafeMutableRawBufferPointer(rebasing: memory[..<Self.maxReport]))
        begin(&writer, for: peer, isReduced: encoding.track.hasReducedSizeRTCP)
        RTCP.writeNACK(sender: peer.ownSSRC, media: encoding.ssrc, lost: lost, to: &writer)
        counters.nacksSent &+= UInt64(lost.count)
        send(writer, in: memory, to: peer, on: path)
    }

    /// Starts a compound RTCP packet, to which the caller adds feedback. Unless reduced-size RTCP was negotiated, the
    /// packet must begin with a report and the CNAME (RFC 3550 §6.1).
    func begin(_ writer: inout ByteWriter, for peer: Peer, isReduced: Bool) {
        guard !isReduced else { return }
        RTCP.writeReceiverReport(sender: peer.ownSSRC, blocks: [], to: &writer)
        RTCP.writeSourceDescription(ssrc: peer.ownSSRC, cname: peer.cname, to: &writer)
    }

    private func sendReceiverReport(to peer: Peer, on path: Path, now: MediaTime) {
        peer.reportsAt = now
        var blocks: [RTCP.ReportBlock] = []
        for track in peer.incoming {
            // A receiver report has room for 31 blocks.
            for encoding in track.encodings where blocks.count < 31 {
                if let block = encoding.statistics?.reportBlock(at: now) { blocks.append(block) }
            }
        }
        let memory = sink.prepare(Self.maxReport + Self.maxGrowth)
        var writer = ByteWriter(UnsafeMutableRawBufferPointer(rebasing: memory[..<Self.maxReport]))
        RTCP.writeReceiverReport(sender: peer.ownSSRC, blocks: blocks, to: &writer)
        RTCP.writeSourceDescription(ssrc: peer.ownSSRC, cname: peer.cname, to: &writer)
        send(writer, in: memory, to: peer, on: path)
    }
}
