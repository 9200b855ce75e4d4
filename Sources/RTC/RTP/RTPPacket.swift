/// A parsed RTP packet (RFC 3550 §5.1). It contains only numbers and byte ranges, not the bytes themselves.
///
/// ```swift
/// guard let packet = RTPPacket(datagram) else { return }
/// let payload = UnsafeRawBufferPointer(rebasing: datagram[packet.payloadRange])
/// ```
public struct RTPPacket: Equatable, Sendable {
    /// The length of the header without CSRCs and extension.
    public static let fixedHeaderLength = 12
    private static let padding: UInt8 = 0x20
    private static let extended: UInt8 = 0x10

    public private(set) var marker: Bool
    public let hasPadding: Bool
    /// The payload type, 0 to 127.
    public let payloadType: UInt8
    public let sequenceNumber: UInt16
    public private(set) var timestamp: UInt32
    public let ssrc: UInt32
    /// The length of the header with CSRCs and extension, which is also the offset of the payload.
    public let headerLength: Int
    /// The range of the payload, without padding. It is empty in packets that contain only padding, which browsers send to
    /// probe the bandwidth.
    public private(set) var payloadRange: Range<Int>
    /// The extension's "defined by profile" field: 0xbede for the one-byte form, 0x1000 plus four application bits for the
    /// two-byte form (RFC 8285 §4), or 0 without an extension.
    public let extensionProfile: UInt16
    /// The range of the extension, without its four-byte header.
    public let extensionRange: Range<Int>

    /// Returns nil if the version is not 2, if CSRCs or the extension exceed the packet, or if the padding is empty or longer
    /// than the payload (RFC 3550 A.1).
    ///
    /// - Parameter bytes: one complete packet, decrypted.
    public init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.fixedHeaderLength, bytes[0] >> 6 == 2 else { return nil }
        var end = Self.fixedHeaderLength + Int(bytes[0] & 0x0f) * 4
        var profile: UInt16 = 0
        var words = 0..<0
        if bytes[0] & Self.extended != 0 {
            guard bytes.count >= end + 4 else { return nil }
            profile = bytes.bigEndian16(at: end)
            let start = end + 4
            end = start + Int(bytes.bigEndian16(at: end + 2)) * 4
            guard bytes.count >= end else { return nil }
            words = start..<end
        }
        guard bytes.count >= end else { return nil }
        var payloadEnd = bytes.count
        hasPadding = bytes[0] & Self.padding != 0
        if hasPadding {
            let padding = Int(bytes[bytes.count - 1])
            guard padding > 0, padding <= bytes.count - end else { return nil }
            payloadEnd -= padding
        }
        marker = bytes[1] & 0x80 != 0
        payloadType = bytes[1] & 0x7f
        sequenceNumber = bytes.bigEndian16(at: 2)
        timestamp = bytes.bigEndian32(at: 4)
        ssrc = bytes.bigEndian32(at: 8)
        headerLength = end
        payloadRange = end..<payloadEnd
        extensionProfile = profile
        extensionRange = words
    }

    /// Returns the first two bytes of the payload. If this packet is a retransmission, they are the original sequence
    /// number (RFC 4588 §4). Returns nil if the payload is shorter.
    ///
    /// - Parameter bytes: the bytes that the packet was parsed from.
    public func originalSequenceNumber(in bytes: UnsafeRawBufferPointer) -> UInt16? {
        guard payloadRange.count >= 2, payloadRange.upperBound <= bytes.count else { return nil }
        return bytes.bigEndian16(at: payloadRange.lowerBound)
    }

    /// Returns an earlier packet of the same source whose payload this packet also carries, as in redundant audio (RFC
    /// 2198).
    ///
    /// - Parameters:
    ///   - range: the range of the earlier payload, in the same bytes.
    ///   - timestamp: the earlier packet's timestamp.
    public func carried(in range: Range<Int>, timestamp: UInt32) -> RTPPacket {
        var packet = self
        (packet.marker, packet.timestamp, packet.payloadRange) = (false, timestamp, range)
        return packet
    }
}

extension RTPPacket {
    /// Returns the range of the extension element with this id; nil if there is none (RFC 8285).
    ///
    /// - Parameter bytes: the bytes that the packet was parsed from.
    @inlinable
    public func headerExtension(_ id: UInt8, in bytes: UnsafeRawBufferPointer) -> Range<Int>? {
        var found: Range<Int>?
        forEachHeaderExtension(in: bytes) { element, range in
            if element == id, found == nil { found = range }
        }
        return found
    }

    /// Calls `body` with each extension element in order, in the one-byte or two-byte form (RFC 8285 §4.2, §4.3).
    /// Skips padding. In the one-byte form, stops at id 15, and at id 0 with a length. In both forms, stops at an
    /// element whose length exceeds the extension.
    ///
    /// - Parameter bytes: the bytes that the packet was parsed from.
    @inlinable
    @inline(__always)
    public func forEachHeaderExtension(
        in bytes: UnsafeRawBufferPointer, _ body: (_ id: UInt8, _ range: Range<Int>) -> Void
    ) {
        let isOneByte = extensionProfile == 0xbede
        guard isOneByte || extensionProfile & 0xfff0 == 0x1000, extensionRange.upperBound <= bytes.count else { return }
        var position = extensionRange.lowerBound
        let end = extensionRange.upperBound
        while position < end {
            let first = bytes[position]
            var id = first
            var length: Int
            position += 1
            if isOneByte {
                if first == 0 { continue }
                id = first >> 4
                length = Int(first & 0x0f) + 1
                // Id 0 is padding, and a length after it is not allowed (RFC 8285 §4.2).
                if id == 15 || id == 0 { return }
            } else {
                if first == 0 { continue }
                guard position < end else { return }
                length = Int(bytes[position])
                position += 1
            }
            guard length <= end - position else { return }
            body(id, position..<position + length)
            position += length
        }
    }
}
