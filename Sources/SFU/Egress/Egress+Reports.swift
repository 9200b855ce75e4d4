import RTC

/// RTCP from and to subscribers (RFC 3550 §6, RFC 4585, RFC 5104).
extension Egress {
    func receive(_ packet: RTCP.Packet, from subscriber: Subscriber, now: MediaTime) {
        switch packet {
        case .nack(let nack): retransmit(nack, to: subscriber, now: now)
        case .pli(let request): receiveKeyframeRequest(request.media, from: subscriber, now: now)
        case .fir(let request):
            for entry in request.entries { receiveKeyframeRequest(entry.ssrc, from: subscriber, now: now) }
        case .transportFeedback(let report): receive(report, from: subscriber, now: now)
        case .remb(let estimate):
            subscriber.downlink?.control.receive(
                remb: Bitrate(bitsPerSecond: Int64(clamping: estimate.bitrate)), now: now)
        case .receiverReport: subscriber.downlink?.control.receiveReport(now: now)
        // A BYE is ignored, because streams are ended through signaling.
        default: break
        }
    }

    /// Handles a PLI or FIR.
    private func receiveKeyframeRequest(_ ssrc: UInt32, from subscriber: Subscriber, now: MediaTime) {
        subscriber.track(ssrc: ssrc)?.feed?.keyframes.subscriberCannotDecode(now: now)
    }

    // MARK: Reports to subscribers

    /// Sends a sender report for each stream every second, so that the receiver can synchronize audio and video (RFC 3550
    /// §6.4.1). The first report is sent as soon as the publisher has sent one.
    func sendSenderReports(to subscriber: Subscriber, now: MediaTime) {
        guard let path = subscriber.link.transport.selectedPath else { return }
        for track in subscriber.tracks {
            guard let feed = track.feed, track.packets > 0 else { continue }
            if let at = track.reportedAt, now - at < Self.reportInterval { continue }
            guard let info = senderInfo(track, feed, now: now) else { continue }
            track.reportedAt = now
            output.sendControl(to: subscriber.link, on: path) { writer in
                RTCP.writeSenderReport(info, to: &writer)
                RTCP.writeSourceDescription(ssrc: track.ssrc, cname: subscriber.link.cname, to: &writer)
                return true
            }
        }
    }

    private static let reportInterval = MediaInterval.seconds(1)

    /// Returns the publisher's most recent sender report, converted for the subscriber: with the time on the server's
    /// clock, and with the SSRC, RTP timestamp, packet count and byte count of the subscriber's track. Returns nil if
    /// the publisher has sent no report.
    private func senderInfo(_ track: OutgoingTrack, _ feed: Feed, now: MediaTime) -> RTCP.SenderInfo? {
        guard let report = feed.report, let offset = feed.track.clockOffset else { return nil }
        let wallClock = settings.wallClock(now)
        // The time since the report, on the publisher's clock. The media clock has advanced by the same amount.
        let elapsed = (wallClock - report.ntp) - offset
        let timestamp = report.advanced(by: elapsed, clockRate: feed.track.clockRate).timestamp
        return RTCP.SenderInfo(
            ssrc: track.ssrc, ntp: wallClock, rtpTimestamp: track.rewriting.timestamp(timestamp),
            packetCount: track.packets, octetCount: track.octets
        )
    }
}
