import RTC

// What a connection says and hears in RTCP.
extension RobotConnection {
    // MARK: Hearing

    func hear(_ bytes: UnsafeRawBufferPointer, _ now: MediaTime) {
        guard let compound = RTCPCompound(bytes) else { return malformed += 1 }
        for packet in compound {
            switch packet {
            case .senderReport(let report):
                reception(of: report.info.ssrc)?.take(senderReport: report.info, at: now)
                take(report.blocks)
            case .receiverReport(let report): take(report.blocks)
            case .pli(let request): wantKeyframe(of: request.media)
            case .fir(let request): for entry in request.entries { wantKeyframe(of: entry.ssrc) }
            case .nack(let nack):
                guard let track = tracks.first(where: { $0.ssrc == nack.media }) else { continue }
                for sequence in nack.lost { sendAgain(sequence, of: track) }
            case .malformed: malformed += 1
            case .sourceDescription, .bye, .remb, .transportFeedback, .unknown: break
            }
        }
        // A source may make the keyframe at once.
        reschedule()
    }

    private func take(_ blocks: RTCP.ReportBlocks) {
        for block in blocks { tracks.first { $0.ssrc == block.ssrc }?.lastReport = block }
    }

    private func wantKeyframe(of ssrc: UInt32) {
        guard let track = tracks.first(where: { $0.ssrc == ssrc }) else { return }
        track.keyframesAsked += 1
        source?.keyframeWanted(of: track)
    }

    // MARK: Saying

    /// Asks for a keyframe (PLI), but not again at once.
    public func askForKeyframe(of reception: RobotReception, now: MediaTime) {
        guard let ssrc = reception.ssrc, isConnected else { return }
        if let last = reception.keyframeAskedAt, now - last < RobotReception.keyframeInterval { return }
        reception.keyframeAskedAt = now
        reception.keyframesAsked += 1
        sendControl { writer in
            RTCP.writeReceiverReport(sender: reportSSRC, blocks: [], to: &writer)
            RTCP.writePLI(sender: reportSSRC, media: ssrc, to: &writer)
        }
    }

    /// Asks for what is missing.
    func complain(_ now: MediaTime) {
        var next: MediaTime?
        for reception in receptions where reception.nacks != nil {
            guard let ssrc = reception.ssrc else { continue }
            var lost: [UInt16] = []
            reception.nacks?.forEachDue(at: now, roundTrip: RobotReception.roundTrip) { lost.append($0) }
            if reception.nacks?.takeKeyframeNeed() == true { reception.wantsKeyframe = true }
            if !lost.isEmpty {
                reception.asked += lost.count
                sendControl { writer in
                    RTCP.writeReceiverReport(sender: reportSSRC, blocks: [], to: &writer)
                    RTCP.writeNACK(sender: reportSSRC, media: ssrc, lost: lost, to: &writer)
                }
            }
            if reception.wantsKeyframe { askForKeyframe(of: reception, now: now) }
            var due = reception.complaintDue
            if reception.wantsKeyframe {
                let again = now + RobotReception.keyframeInterval
                due = min(due ?? again, again)
            }
            if let due { next = min(next ?? due, due) }
        }
        expectComplaint(at: next)
    }

    /// Each second: what was sent, and how what came did.
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
            // A compound begins with a report, be it an empty one (RFC 3550 §6.1).
            if sending.isEmpty || !blocks.isEmpty {
                RTCP.writeReceiverReport(sender: reportSSRC, blocks: blocks, to: &writer)
            }
            RTCP.writeSourceDescription(ssrc: sending.first?.ssrc ?? reportSSRC, cname: Self.cname, to: &writer)
        }
    }

    func farewell() {
        let sources = tracks.filter { $0.packetsSent > 0 }.map(\.ssrc)
        guard !sources.isEmpty else { return }
        sendControl { writer in
            RTCP.writeReceiverReport(sender: reportSSRC, blocks: [], to: &writer)
            RTCP.writeBye(sources: sources, to: &writer)
        }
    }

    static let cname = "robot"
}
