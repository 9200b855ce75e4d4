/// The RTCP packets in one datagram (RFC 3550 §6.1, or reduced-size RTCP, RFC 5506).
///
/// ```swift
/// guard var compound = RTCPCompound(bytes) else { return dropped() }
/// while let packet = compound.next() {
///     if case .pli(let request) = packet { … }
/// }
/// ```
public struct RTCPCompound: Sequence, IteratorProtocol {
    /// The maximum number of packets in a datagram. Browsers send four or five.
    public static let maxPackets = 32

    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    /// Returns nil if the version is not 2, if the packet lengths do not match the datagram, if there are more than
    /// `maxPackets`, or if a packet other than the last one has padding (RFC 3550 A.2). Transport layer feedback may
    /// have padding at any position.
    ///
    /// - Parameter bytes: the complete datagram, decrypted; must outlive all packets read from it.
    public init?(_ bytes: UnsafeRawBufferPointer) {
        var position = 0
        var packets = 0
        var isPadded = false
        repeat {
            guard bytes.count - position >= RTCP.headerLength, bytes[position] >> 6 == 2, !isPadded,
                packets < Self.maxPackets
            else { return nil }
            isPadded = bytes[position] & 0x20 != 0 && !Self.isOddlyPadded(bytes[position + 1])
            packets += 1
            position += Self.length(in: bytes, at: position)
            guard position <= bytes.count else { return nil }
        } while position < bytes.count
        self.bytes = bytes
    }

    /// Returns whether packets of this type may have unaligned padding. Browsers pad transport-wide feedback by one to
    /// three bytes, because libwebrtc does, although RFC 3550 §6.4.1 allows only multiples of four.
    private static func isOddlyPadded(_ type: UInt8) -> Bool { type == RTCP.PacketType.transportLayerFeedback.rawValue }

    private static func length(in bytes: UnsafeRawBufferPointer, at position: Int) -> Int {
        (Int(bytes.bigEndian16(at: position + 2)) + 1) * 4
    }

    public mutating func next() -> RTCP.Packet? {
        guard position < bytes.count else { return nil }
        let first = bytes[position]
        let type = bytes[position + 1]
        var end = position + Self.length(in: bytes, at: position)
        let start = position + RTCP.headerLength
        position = end
        if first & 0x20 != 0 {
            // The last byte of the padding is its length, including that byte (RFC 3550 §6.4.1).
            let padding = Int(bytes[end - 1])
            guard padding > 0, padding & 3 == 0 || Self.isOddlyPadded(type), padding <= end - start else {
                return .malformed(type: type)
            }
            end -= padding
        }
        let body = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
        guard let known = RTCP.PacketType(rawValue: type) else { return .unknown(type: type, format: first & 0x1f) }
        return RTCP.Packet(known, count: first & 0x1f, body: body) ?? .malformed(type: type)
    }
}

extension RTCP.Packet {
    /// Parses one packet of a compound packet.
    ///
    /// - Parameters:
    ///   - count: the number of blocks, sources or chunks, or the feedback format, as read from the packet's header.
    ///   - body: the bytes of the packet after the header, without padding.
    @inline(__always)
    fileprivate init?(_ type: RTCP.PacketType, count: UInt8, body: UnsafeRawBufferPointer) {
        var reader = ByteReader(body)
        switch type {
        case .senderReport:
            guard let info = RTCP.SenderInfo(&reader), let blocks = reader.take(Int(count) * RTCP.ReportBlock.length)
            else { return nil }
            self = .senderReport(RTCP.SenderReport(info: info, blocks: RTCP.ReportBlocks(blocks)))
        case .receiverReport:
            guard let ssrc = reader.u32(), let blocks = reader.take(Int(count) * RTCP.ReportBlock.length)
            else { return nil }
            self = .receiverReport(RTCP.ReceiverReport(ssrc: ssrc, blocks: RTCP.ReportBlocks(blocks)))
        case .sourceDescription:
            guard let chunks = RTCP.SourceDescription(body, count: Int(count)) else { return nil }
            self = .sourceDescription(chunks)
        case .bye:
            guard let sources = reader.take(Int(count) * 4) else { return nil }
            self = .bye(RTCP.Bye(sources: RTCP.Sources(sources)))
        case .application:
            guard let sender = reader.u32(), let name = reader.u32(), let data = reader.take(reader.remaining)
            else { return nil }
            self = .application(RTCP.Application(sender: sender, subtype: count, name: name, data: data))
        case .transportLayerFeedback:
            self.init(transportLayerFormat: count, &reader)
        case .payloadSpecificFeedback:
            self.init(payloadSpecificFormat: count, &reader)
        }
    }

    @inline(__always)
    private init?(transportLayerFormat format: UInt8, _ reader: inout ByteReader) {
        guard let sender = reader.u32(), let media = reader.u32() else { return nil }
        guard let items = reader.take(reader.remaining) else { return nil }
        switch format {
        case RTCP.nackFormat:
            guard items.count >= 4, items.count & 3 == 0 else { return nil }
            self = .nack(RTCP.NACK(sender: sender, media: media, lost: RTCP.LostSequenceNumbers(items)))
        case RTCP.transportFeedbackFormat:
            guard let report = TransportFeedbackReport(sender: sender, media: media, body: items) else { return nil }
            self = .transportFeedback(report)
        default:
            self = .unknown(type: RTCP.PacketType.transportLayerFeedback.rawValue, format: format)
        }
    }

    private init?(payloadSpecificFormat format: UInt8, _ reader: inout ByteReader) {
        let unknown = Self.unknown(type: RTCP.PacketType.payloadSpecificFeedback.rawValue, format: format)
        guard let sender = reader.u32(), let media = reader.u32() else { return nil }
        switch format {
        case RTCP.pliFormat:
            self = .pli(RTCP.PictureLossIndication(sender: sender, media: media))
        case RTCP.firFormat:
            guard reader.remaining >= 8, reader.remaining & 7 == 0, let entries = reader.take(reader.remaining)
            else { return nil }
            self = .fir(RTCP.FullIntraRequest(sender: sender, entries: .init(entries)))
        case RTCP.applicationFormat:
            guard reader.u32() == RTCP.rembIdentifier else {
                self = unknown
                return
            }
            guard let count = reader.u8(), let scaled = reader.u24(), let sources = reader.take(Int(count) * 4)
            else { return nil }
            self = .remb(
                RTCP.ReceiverEstimatedMaximumBitrate(
                    sender: sender, bitrate: RTCP.bitrate(scaled: scaled), sources: RTCP.Sources(sources)))
        default:
            self = unknown
        }
    }
}

extension RTCP.SenderInfo {
    fileprivate init?(_ reader: inout ByteReader) {
        guard let ssrc = reader.u32(), let ntp = reader.u64(), let timestamp = reader.u32(), let packets = reader.u32(),
            let octets = reader.u32()
        else { return nil }
        self.init(
            ssrc: ssrc, ntp: NTPTime(ntp), rtpTimestamp: timestamp, packetCount: packets, octetCount: octets)
    }
}

extension RTCP {
    /// The identifier of REMB, the four ASCII characters "REMB".
    static let rembIdentifier: UInt32 = 0x5245_4d42

    /// Returns the bitrate encoded as a six-bit exponent and an 18-bit mantissa, at most the largest 64-bit number.
    static func bitrate(scaled: UInt32) -> UInt64 {
        let mantissa = UInt64(scaled & 0x3_ffff)
        let exponent = UInt64(scaled >> 18 & 0x3f)
        return mantissa.leadingZeroBitCount >= exponent ? mantissa << exponent : .max
    }

    /// Encodes a bitrate as a six-bit exponent and an 18-bit mantissa, rounded down.
    static func scaled(bitrate: UInt64) -> UInt32 {
        let exponent = max(0, 64 - 18 - bitrate.leadingZeroBitCount)
        return UInt32(truncatingIfNeeded: UInt64(exponent) << 18 | bitrate >> UInt64(exponent))
    }
}
