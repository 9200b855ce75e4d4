import RTC

// Sends and receives a connection's RTCP packets.
extension RobotConnection {
    // MARK: Receiving

    func receiveControl(_ bytes: UnsafeRawBufferPointer, _ now: MediaTime) {
        guard let compound = RTCPCompound(bytes) else { return malformed += 1 }
        for packet in compound {
            switch packet {
            case .senderReport(let report):
                reception(of: report.info.ssrc)?.take(senderReport: report.info, at: now)
                take(report.blocks, now)
            case .receiverReport(let report): take(report.blocks, now)
            case .pli(let request): wantKeyframe(of: request.media)
            case .fir(let request): for entry in request.entries { wantKeyframe(of: entry.ssrc) }
            case .nack(let nack):
                guard let track = tracks.first(where: { $0.ssrc == nack.media }) else { continue }
                for sequence in nack.lost { retransmit(sequence, of: track) }
            case .malformed: malformed += 1
            case .sourceDescription, .bye, .remb, .transportFeedback, .application, .unknown: break
            }
        }
        // Reschedule, because the source may have produced the keyframe immediately.
        reschedule()
    }

    private func take(_ blocks: RTCP.ReportBlocks, _ now: MediaTime) {
        let arrived = NTPTime(now, origin: clockOrigin).middle32
        for block in blocks {
            guard let track = tracks.first(where: { $0.ssrc == block.ssrc }) else { continue }
            track.lastReport = block
            guard block.lastSenderReport != 0 else { continue }
            // Compute the round-trip time (RFC 3550 §6.4.1). A rounded delay can make the result negative, which
            // counts as zero.
            let passed = Int32(bitPattern: arrived &- block.lastSenderReport &- block.delaySinceLastSenderReport)
            track.roundTripTime = MediaInterval(ntpShort: UInt32(max(passed, 0)))
        }
    }

    private func wantKeyframe(of ssrc: UInt32) {
        guard let track = tracks.first(where: { $0.ssrc == ssrc }) else { return }
        track.keyframesRequested += 1
        source?.keyframeWanted(of: track)
    }

    // MARK: Sending

    /// Sends a PLI, rate-limited per received section.
    public func requestKeyframe(of reception: RobotReception, now: MediaTime) {
        guard let ssrc = reception.ssrc, isConnected else { return }
        if let last = reception.keyframeRequestedAt, now - last < RobotReception.keyframeInterval { return }
        reception.keyframeRequestedAt = now
        reception.keyframesRequested += 1
        sendControl { writer in
            RTCP.writeReceiverReport(sender: reportSSRC, blocks: [], to: &writer)
            RTCP.writePLI(sender: reportSSRC, media: ssrc, to: &writer)
        }
    }

    /// Requests missing packets and keyframes.
    func sendFeedback(_ now: MediaTime) {
        var next: MediaTime?
        for reception in receptions where reception.nacks != nil {
            guard let ssrc = reception.ssrc else { continue }
            var lost: [UInt16] = []
            reception.nacks?.forEachDue(at: now, roundTrip: RobotReception.roundTrip) { lost.append($0) }
            if reception.nacks?.takeKeyframeNeed() == true { reception.wantsKeyframe = true }
            if !lost.isEmpty {
                reception.retransmissionsRequested += lost.count
                sendControl { writer in
                    RTCP.writeReceiverReport(sender: reportSSRC, blocks: [], to: &writer)
                    RTCP.writeNACK(sender: reportSSRC, media: ssrc, lost: lost, to: &writer)
                }
            }
            if reception.wantsKeyframe { requestKeyframe(of: reception, now: now) }
            var due = reception.feedbackDue
            if reception.wantsKeyframe {
                let again = now + RobotReception.keyframeInterval
                due = min(due ?? again, again)
            }
            if let due { next = min(next ?? due, due) }
        }
        scheduleFeedback(at: next)
    }

    /// Reports the arrivals of packets. A few reports cover a second; the limit of eight bounds the work if sequence
    /// numbers jump.
    func sendArrivals() {
        for _ in 0..<8 where arrivals?.hasNews ?? false {
            sendControl { writer in
                _ = arrivals?.writeFeedback(
                    sender: reportSSRC, media: receptions.lazy.compactMap(\.ssrc).first ?? 0, to: &writer)
            }
        }
    }

    /// Sends sender and receiver reports. Called once per second.
    func report(_ now: MediaTime) {
        let blocks = receptions.compactMap { $0.reportBlock(at: now) }
        let clock = NTPTime(now, origin: clockOrigin)
        let sending = tracks.filter { $0.packetsSent > 0 }
        sendControl { writer in
            for track in sending {
                let info = RTCP.SenderInfo(
                    ssrc: track.ssrc, ntp: clock, rtpTimestamp: track.timestamp(at: now),
                    packetCount: track.packetsSent, octetCount: track.bytesSent)
                RTCP.writeSenderReport(info, to: &writer)
            }
            // A compound packet must begin with a report, even if the report is empty (RFC 3550 §6.1).
            if sending.isEmpty || !blocks.isEmpty {
                RTCP.writeReceiverReport(sender: reportSSRC, blocks: blocks, to: &writer)
            }
            RTCP.writeSourceDescription(ssrc: sending.first?.ssrc ?? reportSSRC, cname: Self.cname, to: &writer)
        }
    }

    func sendBye() {
        let sources = tracks.filter { $0.packetsSent > 0 }.map(\.ssrc)
        guard !sources.isEmpty else { return }
        sendControl { writer in
            RTCP.writeReceiverReport(sender: reportSSRC, blocks: [], to: &writer)
            RTCP.writeBye(sources: sources, to: &writer)
        }
    }

    static let cname = "robot"
}
