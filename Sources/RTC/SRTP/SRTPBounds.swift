/// Where an RTP packet's clear part ends.
enum RTPBounds {
    static let fixedHeaderLength = 12

    /// The length of the RTP header at the start of `packet` with its contributing sources and its extension, in bytes
    /// (RFC 3550 §5.1, §5.3.1); nil when it is not of version 2 or does not fit.
    @inline(__always)
    static func headerLength(_ packet: UnsafeRawBufferPointer) -> Int? {
        guard packet.count >= fixedHeaderLength, packet[0] >> 6 == 2 else { return nil }
        var length = fixedHeaderLength + 4 * Int(packet[0] & 0x0f)
        if packet[0] & 0x10 != 0 {
            guard packet.count >= length + 4 else { return nil }
            length += 4 + 4 * Int(packet.bigEndian16(at: length + 2))
        }
        return length <= packet.count ? length : nil
    }
}

/// The clear part of an RTCP compound packet: the first packet's header and its sender's SSRC (RFC 3711 §3.4).
enum RTCPBounds {
    static let headerLength = 8
}
