import RTC

/// The transport of one attempt of a relay, and how to send over it.
final class RelayConnection {
    let link: PeerLink
    let output: RouterOutput

    init(link: PeerLink, output: RouterOutput) { (self.link, self.output) = (link, output) }

    var transport: PeerTransport { link.transport }

    func send(_ message: RelayMessage) {
        sendControl { message.write(sender: link.ownSSRC, to: &$0) }
    }

    /// Sends a publisher's sender report. It begins with an empty report of this end, because SRTP keeps state for each SSRC with which
    /// a datagram of reports begins.
    func send(_ report: SourceReport, ssrc: UInt32) {
        sendControl { writer in
            RTCP.writeReceiverReport(sender: link.ownSSRC, blocks: [], to: &writer)
            RTCP.writeSenderReport(
                RTCP.SenderInfo(
                    ssrc: ssrc, ntp: report.ntp, rtpTimestamp: report.timestamp, packetCount: 0, octetCount: 0),
                to: &writer)
        }
    }

    private func sendControl(_ write: (inout ByteWriter) -> Void) {
        guard let path = transport.selectedPath else { return }
        output.sendControl(to: link, on: path) { writer in
            write(&writer)
            return true
        }
    }
}
