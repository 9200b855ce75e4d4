import RTC

extension FuzzTarget {
    /// Fuzzes a compound RTCP packet. Packets of types that we also write are encoded again.
    static let rtcpPackets = FuzzTarget("rtcp-packets", longestInput: 600) { input throws(BrokenProperty) in
        for copy in try compounds(of: input) {
            let again = try compounds(of: copy)
            try require(again == [copy], "\(copy) is written as \(again)")
        }
    }

    /// Encodes each packet in a compound packet separately. Skips packets of types that we do not write.
    private static func compounds(of input: [UInt8]) throws(BrokenProperty) -> [[UInt8]] {
        let copies: Result<[[UInt8]], BrokenProperty> = input.withUnsafeBytes { bytes in
            guard let compound = RTCPCompound(bytes) else { return .success([]) }
            var copies: [[UInt8]] = []
            var count = 0
            for packet in compound {
                count += 1
                do throws(BrokenProperty) {
                    let copy = try written(packet, most: input.count)
                    if !copy.isEmpty { copies.append(copy) }
                } catch {
                    return .failure(error)
                }
            }
            return count <= RTCPCompound.maxPackets
                ? .success(copies) : .failure(BrokenProperty(description: "one datagram has \(count) packets"))
        }
        return try copies.get()
    }

    private static func written(_ packet: RTCP.Packet, most: Int) throws(BrokenProperty) -> [UInt8] {
        switch packet {
        case .senderReport(let report):
            return try writing { RTCP.writeSenderReport(report.info, blocks: Array(report.blocks), to: &$0) }
        case .receiverReport(let report):
            return try writing {
                RTCP.writeReceiverReport(sender: report.ssrc, blocks: Array(report.blocks), to: &$0)
            }
        case .bye(let bye): return try writing { RTCP.writeBye(sources: Array(bye.sources), to: &$0) }
        case .pli(let request):
            return try writing { RTCP.writePLI(sender: request.sender, media: request.media, to: &$0) }
        case .fir(let request):
            return try writing { RTCP.writeFIR(sender: request.sender, entries: Array(request.entries), to: &$0) }
        case .remb(let limit):
            return try writing {
                RTCP.writeREMB(
                    sender: limit.sender, bitrate: limit.bitrate, sources: Array(limit.sources), to: &$0)
            }
        case .nack(let nack):
            let lost = Array(nack.lost)
            try require(
                lost.count <= min(RTCP.LostSequenceNumbers.most, most / 4 * 17), "\(lost.count) packets are requested")
            return []
        case .sourceDescription(let chunks):
            for chunk in chunks { try require((chunk.cname?.count ?? 0) <= 255, "a name is too long") }
            return []
        case .transportFeedback(let report):
            try check(report, most: most)
            return []
        case .application(let packet):
            return try writing {
                RTCP.writeApplication(
                    sender: packet.sender, subtype: packet.subtype, name: packet.name, to: &$0
                ) { $0.append(packet.data) }
            }
        case .unknown, .malformed: return []
        }
    }

    private static func check(_ report: TransportFeedbackReport, most: Int) throws(BrokenProperty) {
        var found = 0
        var arrived = 0
        report.forEachPacket { _, arrival in
            found += 1
            if arrival != nil { arrived += 1 }
        }
        try require(
            found == report.statusCount, "the report contains \(found) packets but announces \(report.statusCount)")
        try require(found <= TransportFeedbackReport.maxStatuses, "\(found) packets are reported")
        try require(arrived <= most, "\(arrived) packets arrived, but there are \(most) bytes")
    }

    private static func writing(_ write: (inout ByteWriter) -> Void) throws(BrokenProperty) -> [UInt8] {
        var memory = [UInt8](repeating: 0, count: 2_000)
        var overflowed = false
        let count = memory.withUnsafeMutableBytes { bytes in
            var writer = ByteWriter(bytes)
            write(&writer)
            overflowed = writer.overflowed
            return writer.count
        }
        try require(!overflowed, "a received compound does not fit into a datagram")
        return Array(memory.prefix(count))
    }
}
