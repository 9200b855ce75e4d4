import RTC

/// RTCP to publishers (RFC 3550 §6, RFC 4585, RFC 5104). No RTCP packet is forwarded, because a subscriber's feedback is
/// about the server's stream, and a publisher's report uses the publisher's clock.
extension Ingress {
    /// Updates the layers of a publisher's tracks, and sends feedback to the publisher or its node: NACKs and keyframe requests as
    /// soon as they are due, transport-wide feedback every 100 ms, and a receiver report every second.
    func sendFeedback(to publisher: Publisher, now: MediaTime) {
        guard let path = publisher.link.transport.selectedPath else { return }
        sendArrivals(to: publisher, on: path, now: now)
        updateLayers(of: publisher, now: now)
        for track in publisher.tracks {
            for encoding in track.encodings where encoding.ssrc != 0 {
                sendNACK(encoding, publisher, on: path, now: now)
                requestKeyframe(encoding, publisher, on: path, now: now)
            }
        }
        if publisher.reportsAt.map({ now - $0 >= Self.reportInterval }) ?? true {
            sendReceiverReport(to: publisher, on: path, now: now)
        }
    }

    private static let reportInterval = MediaInterval.seconds(1)
    private static let arrivalInterval = MediaInterval.milliseconds(100)

    private func sendArrivals(to publisher: Publisher, on path: Path, now: MediaTime) {
        guard publisher.arrivals?.hasNews ?? false,
            publisher.feedbackAt.map({ now - $0 >= Self.arrivalInterval }) ?? true
        else { return }
        publisher.feedbackAt = now
        let isReduced = publisher.tracks.allSatisfy(\.hasReducedSizeRTCP)
        // The packets of a second need only a few feedback packets. The limit bounds the work if a client's sequence numbers
        // jump.
        for _ in 0..<8 {
            let wasWritten = output.sendControl(to: publisher.link, on: path) { writer in
                begin(&writer, for: publisher, isReduced: isReduced)
                return publisher.arrivals?.writeFeedback(
                    sender: publisher.link.ownSSRC, media: publisher.mediaSSRC, to: &writer) ?? false
            }
            guard wasWritten else { return }
        }
    }

    private func sendNACK(_ encoding: IncomingEncoding, _ publisher: Publisher, on path: Path, now: MediaTime) {
        guard encoding.feed.track.kind == .video, encoding.feed.isWatched else { return }
        lost.removeAll(keepingCapacity: true)
        if encoding.missing.outstanding > 0 {
            encoding.missing.forEachDue(at: now, roundTrip: encoding.missing.answerTime) { lost.append($0) }
        }
        // After a gap that is too large to request, no packet is missing but a keyframe is needed.
        if encoding.missing.takeKeyframeNeed() { encoding.feed.keyframes.lossGivenUp() }
        guard !lost.isEmpty, encoding.track.supportsNACK else { return }
        output.counters.nacksSent &+= UInt64(lost.count)
        output.sendControl(to: publisher.link, on: path) { writer in
            begin(&writer, for: publisher, isReduced: encoding.track.hasReducedSizeRTCP)
            RTCP.writeNACK(sender: publisher.link.ownSSRC, media: encoding.ssrc, lost: lost, to: &writer)
            return true
        }
    }

    /// Starts a compound RTCP packet, to which the caller adds feedback. Unless reduced-size RTCP was negotiated, the
    /// packet must begin with a report and the CNAME (RFC 3550 §6.1).
    private func begin(_ writer: inout ByteWriter, for publisher: Publisher, isReduced: Bool) {
        guard !isReduced else { return }
        RTCP.writeReceiverReport(sender: publisher.link.ownSSRC, blocks: [], to: &writer)
        RTCP.writeSourceDescription(ssrc: publisher.link.ownSSRC, cname: publisher.link.cname, to: &writer)
    }

    private func sendReceiverReport(to publisher: Publisher, on path: Path, now: MediaTime) {
        publisher.reportsAt = now
        var blocks: [RTCP.ReportBlock] = []
        for track in publisher.tracks {
            // A receiver report has room for 31 blocks.
            for encoding in track.encodings where blocks.count < 31 {
                if let block = encoding.statistics?.reportBlock(at: now) { blocks.append(block) }
            }
        }
        // An empty report shows a client that it is connected. A relay has heartbeats instead, and many of its publishers send nothing.
        guard !blocks.isEmpty || !publisher.isRemote else { return }
        output.sendControl(to: publisher.link, on: path) { writer in
            RTCP.writeReceiverReport(sender: publisher.link.ownSSRC, blocks: blocks, to: &writer)
            RTCP.writeSourceDescription(ssrc: publisher.link.ownSSRC, cname: publisher.link.cname, to: &writer)
            return true
        }
    }

    // MARK: Keyframes

    /// How long an encoding may be silent before no more keyframes are requested from it.
    private static let silence = MediaInterval.seconds(2)

    /// Requests the keyframes that are due.
    func requestKeyframes(_ publisher: Publisher, now: MediaTime) {
        guard let path = publisher.link.transport.selectedPath else { return }
        for track in publisher.tracks {
            for encoding in track.encodings where encoding.ssrc != 0 {
                requestKeyframe(encoding, publisher, on: path, now: now)
            }
        }
    }

    private func requestKeyframe(
        _ encoding: IncomingEncoding, _ publisher: Publisher, on path: Path, now: MediaTime
    ) {
        let feed = encoding.feed
        let isAlive = encoding.lastPacketAt.map { now - $0 < Self.silence } ?? publisher.isRemote
        guard feed.track.kind == .video, isAlive else { return }
        guard let need = feed.keyframes.takeDue(isWatched: feed.isWatched, now: now) else { return }
        output.counters.keyframesRequested &+= 1
        output.sendControl(to: publisher.link, on: path, limit: 128) { writer in
            begin(&writer, for: publisher, isReduced: encoding.track.hasReducedSizeRTCP)
            // The publisher's node combines the requests of its own subscribers with this one. It must know what for.
            if encoding.track.supportsPLI, !publisher.isRemote || need == .refresh {
                RTCP.writePLI(sender: publisher.link.ownSSRC, media: encoding.ssrc, to: &writer)
            } else {
                encoding.firSequence &+= 1
                RTCP.writeFIR(
                    sender: publisher.link.ownSSRC,
                    entries: [.init(ssrc: encoding.ssrc, sequenceNumber: encoding.firSequence)], to: &writer)
            }
            return true
        }
    }

    /// Handles the first packet of a keyframe that a publisher sent.
    func keyframeBegins(_ pending: FeedPacket, of encoding: IncomingEncoding, now: MediaTime) {
        let (track, feed) = (encoding.feed.track, encoding.feed)
        feed.keyframes.arrived(now: now)
        // Stop requesting packets lost before the keyframe, because they are no longer needed.
        encoding.missing.forgetAll(before: pending.sequence)
        guard let size = track.codecs[pending.codec].kind.payloadFormat?.pictureSize(pending.payload),
            track.layers[feed.index].size != size
        else { return }
        track.layers[feed.index].size = size
        track.needsSelection = true
    }
}
