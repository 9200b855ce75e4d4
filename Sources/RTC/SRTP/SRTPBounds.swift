/// Determines the length of the clear (unencrypted) part of an RTP packet, which is its header.
enum RTPBounds {
    static let fixedHeaderLength = 12

    /// Returns the length in bytes of the RTP header at the start of `packet`, including contributing sources and the extension
    /// (RFC 3550 §5.1, §5.3.1). Returns nil if the version is not 2 or the header does not fit.
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

/// The clear (unencrypted) part of an RTCP compound packet: the header and sender SSRC of the first packet (RFC 3711 §3.4).
enum RTCPBounds {
    static let headerLength = 8
}
