import RTC

/// RTCP (RFC 3550 §6, RFC 4585, RFC 5104): what clients report to us and what we report to them. Nothing is passed
/// through: a subscriber's complaint concerns our stream, and a publisher's report its own clock.
extension Router {
    func receiveControl(_ bytes: UnsafeRawBufferPointer, from peer: Peer, now: MediaTime) {
        guard let compound = RTCPCompound(bytes) else {
            counters.malformed &+= 1
            return
        }
        for packet in compound {
            switch packet {
            case .senderReport(let report) where peer.side == .send: note(report.info, from: peer, now: now)
            case .nack(let nack) where peer.side == .receive: sendAgain(nack, to: peer, now: now)
            case .pli(let request) where peer.side == .receive: complain(request.media, from: peer, now: now)
            case .fir(let request) where peer.side == .receive:
                for entry in request.entries { complain(entry.ssrc, from: peer, now: now) }
            case .malformed: counters.malformed &+= 1
            // Estimates and statistics are for a later layer selection; a BYE changes nothing: what ends is said by
            // signalling.
            default: break
            }
        }
    }

    private func note(_ info: RTCP.SenderInfo, from peer: Peer, now: MediaTime) {
        guard let source = peer.sources[info.ssrc], !source.isRepair else { return }
        source.encoding.statistics?.receive(senderReport: info.ntp, at: now)
        source.encoding.report = SourceReport(ntp: info.ntp, timestamp: info.rtpTimestamp)
        // The publisher's wall clock in ours: what travelled fastest is nearest to the truth.
        let offset = wallClock(now) - info.ntp
        peer.clockOffset = peer.clockOffset.map { min($0, offset) } ?? offset
    }

    func wallClock(_ now: MediaTime) -> NTPTime { NTPTime(now, origin: settings.clockOrigin) }

    // MARK: Complaints of subscribers

    private func complain(_ ssrc: UInt32, from peer: Peer, now: MediaTime) {
        guard let track = peer.outgoingBySSRC[ssrc], let encoding = track.encoding else { return }
        encoding.keyframes.complain(now: now)
    }

    private func sendAgain(_ nack: RTCP.NACK, to peer: Peer, now: MediaTime) {
        guard let track = peer.outgoingBySSRC[nack.media], let path = peer.transport.selectedPath, !track.isPaused
        else {
            return
        }
        for number in nack.lost {
            counters.nacksReceived &+= 1
            sendAgain(number, of: track, on: path, now: now)
        }
    }

    private func sendAgain(_ number: UInt16, of track: OutgoingTrack, on path: Path, now: MediaTime) {
        guard let repairSSRC = track.repairSSRC, let encoding = track.encoding,
            let sequence = track.rewriting.source(of: number)
        else { return }
        guard let (bytes, packet) = encoding.history?.packet(sequence, now: now) else {
            // What we miss ourselves may still come.
            if encoding.history?.isPast(sequence) ?? false { encoding.keyframes.complain(now: now) }
            return
        }
        guard let codec = encoding.track.codecIndex(packet.payloadType), codec < track.codecMap.count,
            track.codecMap[codec].repairPayloadType != 255,
            mayRepeat(sequence, bytes.count, of: track, encoding, now: now)
        else { return }
        let memory = sink.prepare(bytes.count + Self.mostGrowth)
        track.repairSequence &+= 1
        var header = RTPHeaderWriter(
            into: memory, payloadType: track.codecMap[codec].repairPayloadType, marker: packet.marker,
            sequenceNumber: track.repairSequence, timestamp: track.rewriting.timestamp(packet.timestamp),
            ssrc: repairSSRC, twoByteExtensions: packet.extensionProfile & 0xfff0 == 0x1000
        )
        copyExtensions(of: packet, bytes, to: &header, track)
        let headerLength = header.finish()
        let payload = UnsafeRawBufferPointer(rebasing: bytes[packet.payloadRange])
        let isVP8 = encoding.track.codecs[codec].kind == .vp8
        guard headerLength > 0,
            let length = writeRepair(
                number, of: sequence, isVP8 ? VP8Descriptor(payload) : nil, payload, memory, headerLength, track
            )
        else { return }
        sink.send(length, on: path)
        counters.packetsRepeated &+= 1
    }

    private func mayRepeat(
        _ sequence: Int64, _ length: Int, of track: OutgoingTrack, _ encoding: IncomingEncoding, now: MediaTime
    ) -> Bool {
        if track.repeats == nil { track.repeats = RepeatTimes() }
        guard track.repeats?.take(sequence, now: now) ?? false else { return false }
        guard track.budget.spend(length + Self.repairGrowth) else {
            // So much is lost that a new picture costs less than the old one.
            encoding.keyframes.complain(now: now)
            return false
        }
        return true
    }

    /// The original's number, and the longest tag: our header is no longer than the publisher's.
    private static let repairGrowth = 2 + 16

    /// The original's number (RFC 4588 §4), its descriptor as it was sent, and the rest.
    private func writeRepair(
        _ number: UInt16, of sequence: Int64, _ descriptor: VP8Descriptor?, _ payload: UnsafeRawBufferPointer,
        _ memory: UnsafeMutableRawBufferPointer, _ headerLength: Int, _ track: OutgoingTrack
    ) -> Int? {
        withUnsafeTemporaryAllocation(byteCount: 2 + VP8Descriptor.mostLength, alignment: 2) { prefix in
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

    // MARK: To subscribers

    /// A report a second on each stream, so that sound and picture can be brought together (RFC 3550 §6.4.1). The first
    /// comes as soon as there is something to report.
    func sendReports(to peer: Peer, now: MediaTime) {
        guard let path = peer.transport.selectedPath else { return }
        for track in peer.outgoing {
            guard let encoding = track.encoding, track.packets > 0 else { continue }
            if let at = track.reportedAt, now - at < Self.reportInterval { continue }
            guard let info = senderInfo(track, encoding, now: now) else { continue }
            track.reportedAt = now
            let memory = sink.prepare(Self.mostReport)
            var writer = ByteWriter(memory)
            RTCP.writeSenderReport(info, to: &writer)
            RTCP.writeSourceDescription(ssrc: track.ssrc, cname: peer.cname, to: &writer)
            send(writer, in: memory, to: peer, on: path)
        }
    }

    private static let reportInterval = MediaInterval.seconds(1)
    /// What a datagram may have, less encryption.
    private static let mostReport = 1200

    /// The publisher's last report in our clock and the subscriber's numbers; nil before there was one.
    private func senderInfo(_ track: OutgoingTrack, _ encoding: IncomingEncoding, now: MediaTime) -> RTCP.SenderInfo? {
        guard let report = encoding.report, let offset = encoding.track.peer.clockOffset else { return nil }
        let wallClock = wallClock(now)
        // How long ago, by the publisher's clock, the report was made: the media clock has gone on since.
        let elapsed = (wallClock - report.ntp) - offset
        let rate = Int64(encoding.track.clockRate)
        let ticks = UInt32(truncatingIfNeeded: elapsed.nanoseconds / 1000 &* rate / 1_000_000)
        return RTCP.SenderInfo(
            ssrc: track.ssrc, ntp: wallClock, rtpTimestamp: track.rewriting.timestamp(report.timestamp &+ ticks),
            packetCount: track.packets, octetCount: track.octets
        )
    }

    /// Encrypts what was written and sends it.
    func send(_ writer: ByteWriter, in memory: UnsafeMutableRawBufferPointer, to peer: Peer, on path: Path) {
        guard !writer.overflowed, writer.count > 0,
            let length = peer.transport.protectControl(memory, length: writer.count)
        else { return }
        sink.send(length, on: path)
    }

    // MARK: To publishers

    /// Losses at once, arrivals every 100 ms, a report every second.
    func sendFeedback(to peer: Peer, now: MediaTime) {
        guard let path = peer.transport.selectedPath else { return }
        sendArrivals(to: peer, on: path, now: now)
        attendLayers(of: peer, now: now)
        for track in peer.incoming {
            for encoding in track.encodings where encoding.ssrc != 0 {
                askAgain(encoding, peer, on: path, now: now)
                askForKeyframe(encoding, peer, on: path, now: now)
            }
        }
        if peer.reportsAt.map({ now - $0 >= Self.reportInterval }) ?? true {
            sendReceptions(to: peer, on: path, now: now)
        }
    }

    private static let arrivalInterval = MediaInterval.milliseconds(100)

    private func sendArrivals(to peer: Peer, on path: Path, now: MediaTime) {
        guard peer.arrivals?.hasNews ?? false, peer.feedbackAt.map({ now - $0 >= Self.arrivalInterval }) ?? true else {
            return
        }
        peer.feedbackAt = now
        // A second of packets fills a few; a client that jumps in its numbering does not make us write for ever.
        for _ in 0..<8 {
            let memory = sink.prepare(Self.mostReport + Self.mostGrowth)
            var writer = ByteWriter(UnsafeMutableRawBufferPointer(rebasing: memory[..<Self.mostReport]))
            guard peer.arrivals?.writeFeedback(sender: peer.ownSSRC, media: peer.mediaSSRC, to: &writer) ?? false else {
                return
            }
            send(writer, in: memory, to: peer, on: path)
        }
    }

    private func askAgain(_ encoding: IncomingEncoding, _ peer: Peer, on path: Path, now: MediaTime) {
        guard encoding.track.kind == .video, encoding.isWatched, encoding.missing.outstanding > 0 else { return }
        let memory = sink.prepare(Self.mostReport + Self.mostGrowth)
        var writer = ByteWriter(UnsafeMutableRawBufferPointer(rebasing: memory[..<Self.mostReport]))
        lost.removeAll(keepingCapacity: true)
        encoding.missing.forEachDue(at: now, roundTrip: .milliseconds(50)) { lost.append($0) }
        if encoding.missing.takeKeyframeNeed() { encoding.keyframes.want() }
        guard !lost.isEmpty, encoding.track.repairs else { return }
        RTCP.writeNACK(sender: peer.ownSSRC, media: encoding.ssrc, lost: lost, to: &writer)
        counters.nacksSent &+= UInt64(lost.count)
        send(writer, in: memory, to: peer, on: path)
    }

    /// Where somebody waits for one; the tick would do it too, some milliseconds later.
    func askForKeyframes(_ peer: Peer, now: MediaTime) {
        guard let path = peer.transport.selectedPath else { return }
        for track in peer.incoming {
            for encoding in track.encodings where encoding.ssrc != 0 {
                askForKeyframe(encoding, peer, on: path, now: now)
            }
        }
    }

    private func askForKeyframe(_ encoding: IncomingEncoding, _ peer: Peer, on path: Path, now: MediaTime) {
        guard encoding.track.kind == .video, encoding.isAlive(at: now), encoding.keyframes.isDue(now: now) else {
            return
        }
        let memory = sink.prepare(Self.mostReport)
        var writer = ByteWriter(UnsafeMutableRawBufferPointer(rebasing: memory[..<64]))
        if encoding.track.takesPLI {
            RTCP.writePLI(sender: peer.ownSSRC, media: encoding.ssrc, to: &writer)
        } else {
            encoding.firSequence &+= 1
            RTCP.writeFIR(
                sender: peer.ownSSRC,
                entries: [.init(ssrc: encoding.ssrc, sequenceNumber: encoding.firSequence)], to: &writer
            )
        }
        counters.keyframesRequested &+= 1
        send(writer, in: memory, to: peer, on: path)
    }

    private func sendReceptions(to peer: Peer, on path: Path, now: MediaTime) {
        peer.reportsAt = now
        var blocks: [RTCP.ReportBlock] = []
        for track in peer.incoming {
            // As many as one packet has room for.
            for encoding in track.encodings where blocks.count < 31 {
                if let block = encoding.statistics?.reportBlock(at: now) { blocks.append(block) }
            }
        }
        let memory = sink.prepare(Self.mostReport + Self.mostGrowth)
        var writer = ByteWriter(UnsafeMutableRawBufferPointer(rebasing: memory[..<Self.mostReport]))
        RTCP.writeReceiverReport(sender: peer.ownSSRC, blocks: blocks, to: &writer)
        RTCP.writeSourceDescription(ssrc: peer.ownSSRC, cname: peer.cname, to: &writer)
        send(writer, in: memory, to: peer, on: path)
    }
}
