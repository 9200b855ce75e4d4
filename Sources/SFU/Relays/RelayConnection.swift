import RTC

/// The transport of one attempt of a relay, and how to send over it.
final class RelayConnection {
    let link: PeerLink
    let output: RouterOutput
    private let onLimit: (RelayLimit) -> Void

    /// - Parameter onLimit: called for each client or encoding that exceeds a limit.
    init(link: PeerLink, output: RouterOutput, onLimit: @escaping (RelayLimit) -> Void = { _ in }) {
        (self.link, self.output, self.onLimit) = (link, output, onLimit)
    }

    var transport: PeerTransport { link.transport }

    /// Counts a client or an encoding that exceeds a limit.
    func reached(_ limit: RelayLimit) {
        switch limit {
        case .clients, .demands: output.counters.relayClientsOverLimit &+= 1
        case .encodings: output.counters.relayEncodingsOverLimit &+= 1
        }
        onLimit(limit)
    }

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
