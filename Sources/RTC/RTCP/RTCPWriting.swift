// Each function appends one packet to a writer, or as many packets as its list needs. All packets in a writer form a
// compound packet (RFC 3550 §6.1). Callers check `overflowed` at the end, so a truncated packet is never sent.

extension RTCP {
    /// The maximum of the five-bit count in a packet's header (RFC 3550 §6.4.1).
    static let maxInHeader = 31

    /// Writes the header of a packet, with a length that `end` fills in later.
    ///
    /// - Returns: the packet's start offset, to be passed to `end`.
    static func begin(_ type: PacketType, count: UInt8, to writer: inout ByteWriter) -> Int {
        let start = writer.count
        writer.u8(0x80 | count & 0x1f)
        writer.u8(type.rawValue)
        writer.u16(0)
        return start
    }

    /// Writes the length of the packet that starts at offset `start`.
    static func end(_ start: Int, in writer: inout ByteWriter) {
        writer.patch16(UInt16(truncatingIfNeeded: (writer.count - start) / 4 - 1), at: start + 2)
    }

    /// Writes a sender report. Blocks that do not fit in it are written in receiver reports after it (RFC 3550 §6.4.1).
    public static func writeSenderReport(_ info: SenderInfo, blocks: [ReportBlock] = [], to writer: inout ByteWriter) {
        let own = blocks.prefix(maxInHeader)
        let start = begin(.senderReport, count: UInt8(own.count), to: &writer)
        writer.u32(info.ssrc)
        writer.u64(info.ntp.value)
        writer.u32(info.rtpTimestamp)
        writer.u32(info.packetCount)
        writer.u32(info.octetCount)
        for block in own { write(block, to: &writer) }
        end(start, in: &writer)
        if blocks.count > own.count {
            writeReceiverReport(sender: info.ssrc, blocks: Array(blocks.dropFirst(own.count)), to: &writer)
        }
    }

    /// Writes receiver reports with up to 31 blocks each, and at least one report.
    public static func writeReceiverReport(sender: UInt32, blocks: [ReportBlock], to writer: inout ByteWriter) {
        var rest = blocks[...]
        repeat {
            let some = rest.prefix(maxInHeader)
            rest = rest.dropFirst(maxInHeader)
            let start = begin(.receiverReport, count: UInt8(some.count), to: &writer)
            writer.u32(sender)
            for block in some { write(block, to: &writer) }
            end(start, in: &writer)
        } while !rest.isEmpty && !writer.overflowed
    }

    private static func write(_ block: ReportBlock, to writer: inout ByteWriter) {
        writer.u32(block.ssrc)
        writer.u8(block.fractionLost)
        writer.u24(UInt32(bitPattern: block.lost) & 0xff_ffff)
        writer.u32(block.highestSequenceNumber)
        writer.u32(block.jitter)
        writer.u32(block.lastSenderReport)
        writer.u32(block.delaySinceLastSenderReport)
    }

    /// Writes one chunk with a CNAME (RFC 3550 §6.5.1), cut to 255 bytes.
    public static func writeSourceDescription(ssrc: UInt32, cname: String, to writer: inout ByteWriter) {
        var cname = cname
        let start = begin(.sourceDescription, count: 1, to: &writer)
        writer.u32(ssrc)
        writer.u8(1)
        cname.withUTF8 {
            let text = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer($0).prefix(255))
            writer.u8(UInt8(text.count))
            writer.append(text)
        }
        // At least one zero ends the list of items.
        writer.zeros(4 - (writer.count - start) & 3)
        end(start, in: &writer)
    }

    /// Writes a BYE for at most 31 sources.
    public static func writeBye(sources: [UInt32], to writer: inout ByteWriter) {
        let sources = sources.prefix(maxInHeader)
        let start = begin(.bye, count: UInt8(sources.count), to: &writer)
        for ssrc in sources { writer.u32(ssrc) }
        end(start, in: &writer)
    }

    /// Writes an application-defined packet (RFC 3550 §6.7).
    ///
    /// - Parameters:
    ///   - subtype: 0 to 31.
    ///   - name: four ASCII characters, the first in the highest byte.
    ///   - body: writes the content, which is then padded with zeros to whole words.
    public static func writeApplication(
        sender: UInt32, subtype: UInt8, name: UInt32, to writer: inout ByteWriter,
        _ body: (inout ByteWriter) -> Void
    ) {
        let start = begin(.application, count: subtype, to: &writer)
        writer.u32(sender)
        writer.u32(name)
        body(&writer)
        writer.zeros((4 - (writer.count - start) & 3) & 3)
        end(start, in: &writer)
    }

    private static func beginFeedback(
        _ type: PacketType, format: UInt8, sender: UInt32, media: UInt32, to writer: inout ByteWriter
    ) -> Int {
        let start = begin(type, count: format, to: &writer)
        writer.u32(sender)
        writer.u32(media)
        return start
    }

    /// Writes a NACK, or nothing if `lost` is empty.
    ///
    /// - Parameter lost: the sequence numbers in ascending order, which may wrap. At most `NACKGenerator.maxOutstanding` items
    ///   of up to 17 numbers are written.
    public static func writeNACK(
        sender: UInt32, media: UInt32, lost: some Sequence<UInt16>, to writer: inout ByteWriter
    ) {
        var numbers = lost.makeIterator()
        guard var first = numbers.next() else { return }
        let start = beginFeedback(
            .transportLayerFeedback, format: nackFormat, sender: sender, media: media, to: &writer)
        var mask: UInt16 = 0
        var items = 1
        while let number = numbers.next() {
            let step = number &- first
            if step == 0 { continue }
            if step <= 16 {
                mask |= 1 << (step - 1)
                continue
            }
            guard items < NACKGenerator.maxOutstanding else { break }
            writer.u16(first)
            writer.u16(mask)
            items += 1
            (first, mask) = (number, 0)
        }
        writer.u16(first)
        writer.u16(mask)
        end(start, in: &writer)
    }

    public static func writePLI(sender: UInt32, media: UInt32, to writer: inout ByteWriter) {
        let start = beginFeedback(
            .payloadSpecificFeedback, format: pliFormat, sender: sender, media: media, to: &writer)
        end(start, in: &writer)
    }

    /// Writes a FIR. The media SSRC in its header is unused and must be 0 (RFC 5104 §4.3.1.2).
    public static func writeFIR(sender: UInt32, entries: [FullIntraRequest.Entry], to writer: inout ByteWriter) {
        let start = beginFeedback(.payloadSpecificFeedback, format: firFormat, sender: sender, media: 0, to: &writer)
        for entry in entries {
            writer.u32(entry.ssrc)
            writer.u8(entry.sequenceNumber)
            writer.u24(0)
        }
        end(start, in: &writer)
    }

    /// Writes the estimated maximum bitrate of these sources together (REMB, draft-alvestrand-rmcat-remb-03).
    ///
    /// - Parameters:
    ///   - bitrate: the bits per second of all sources together.
    ///   - sources: the SSRCs, at most 255.
    public static func writeREMB(sender: UInt32, bitrate: UInt64, sources: [UInt32], to writer: inout ByteWriter) {
        let sources = sources.prefix(255)
        let start = beginFeedback(
            .payloadSpecificFeedback, format: applicationFormat, sender: sender, media: 0, to: &writer)
        writer.u32(rembIdentifier)
        writer.u8(UInt8(sources.count))
        writer.u24(scaled(bitrate: bitrate))
        for ssrc in sources { writer.u32(ssrc) }
        end(start, in: &writer)
    }
}
