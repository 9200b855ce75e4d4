/// Encrypts RTP and RTCP packets as SRTP and SRTCP (RFC 3711, RFC 7714) with one master key. Not thread-safe.
///
/// A source's initial sequence number should be below 32,768. A receiver assumes a rollover counter of 0 for the first packet
/// that arrives. That would be wrong if earlier packets were lost and the sequence numbers wrapped around among them.
public final class SRTPSender {
    /// The maximum number of SSRCs under one key. The server chooses the SSRCs, so only a leak can reach this limit.
    /// Each takes 200 to 400 bytes: between one and three entries of the hash table.
    public static let maxSources = 1024
    /// The highest SRTCP index that a key may be used for (RFC 3711 §9.2).
    static let maxControlIndex: UInt32 = 1 << 31 - 1

    private let profile: SRTPProfile
    private let media: SRTPCipher
    private let control: SRTPCipher
    private var sources = SRTPSources(most: maxSources)
    /// The next SRTCP index, shared by all SSRCs so that none reuses an index.
    private var nextControlIndex: UInt32 = 0

    /// Derives the session keys of a sender from the master key.
    ///
    /// - Parameters:
    ///   - key: the master key of this direction, `profile.keyLength` bytes.
    ///   - salt: the master salt of this direction, `profile.saltLength` bytes.
    /// - Returns: nil if a length is wrong or OpenSSL runs out of memory.
    public convenience init?(profile: SRTPProfile, key: [UInt8], salt: [UInt8]) {
        guard
            let media = SRTPSessionKeys(profile: profile, masterKey: key, masterSalt: salt, kind: .rtp),
            let control = SRTPSessionKeys(profile: profile, masterKey: key, masterSalt: salt, kind: .rtcp)
        else { return nil }
        self.init(profile: profile, media: media, control: control)
    }

    /// Creates a sender from session keys, for the RFCs' test vectors, which also specify the SRTCP index, and for tests
    /// of both implementations of AES-GCM. Returns nil if a length is wrong or OpenSSL fails.
    ///
    /// - Parameter library: computes AES-GCM instead of OpenSSL; nil for OpenSSL.
    init?(
        profile: SRTPProfile, media: SRTPSessionKeys, control: SRTPSessionKeys, nextControlIndex: UInt32 = 0,
        library: IPsecMB? = IPsecMB.shared.library
    ) {
        guard
            let media = SRTPCipher(profile: profile, keys: media, direction: .sealing, library: library),
            let control = SRTPCipher(profile: profile, keys: control, direction: .sealing, library: library)
        else { return nil }
        self.profile = profile
        self.media = media
        self.control = control
        self.nextControlIndex = nextControlIndex
    }

    /// Reads the memory that `protect` needs for this source; see `PeerTransport.prefetch`.
    @inline(__always)
    func prefetch(_ ssrc: UInt32) -> UInt64 { sources.prefetch(ssrc) }

    /// Encrypts one RTP packet. The payload is not encrypted in place but written to `packet`, because each subscriber
    /// needs its own copy of the payload anyway.
    ///
    /// Each index is used only once, because reusing a nonce with GCM reveals the authentication key. A packet that was already
    /// sent, or is at least 1024 packets older than the newest, is therefore rejected. To retransmit a packet unchanged, keep
    /// the encrypted datagram.
    ///
    /// - Parameters:
    ///   - packet: starts with a complete RTP header; the rest is overwritten.
    ///   - headerLength: the length in bytes of the RTP header, including contributing sources and the extension.
    ///   - prefix: the beginning of the payload as rewritten for this subscriber; may be empty.
    ///   - payload: the rest of the payload, in memory that does not overlap `packet`.
    /// - Returns: the datagram's length, which is `profile.rtpOverhead` bytes more than the input. Nil if the datagram does not
    ///   fit, the header is malformed, the index must not be used, there are too many sources, or OpenSSL fails.
    public func protect(
        _ packet: UnsafeMutableRawBufferPointer, headerLength: Int, prefix: UnsafeRawBufferPointer,
        payload: UnsafeRawBufferPointer
    ) -> Int? {
        let header = UnsafeRawBufferPointer(packet)
        guard let base = packet.baseAddress, RTPBounds.headerLength(header) == headerLength else { return nil }
        guard prefix.count <= SRTPProfile.maxBytes, payload.count <= SRTPProfile.maxBytes else { return nil }
        let end = headerLength + prefix.count + payload.count + profile.rtpOverhead
        guard end <= min(packet.count, SRTPProfile.maxBytes) else { return nil }
        let ssrc = header.bigEndian32(at: 8)
        guard let index = use(header.bigEndian16(at: 2), of: ssrc) else { return nil }
        let sealed = media.seal(
            base, headerLength: headerLength, prefix: prefix, payload: payload, ssrc: ssrc, index: index)
        return sealed ? end : nil
    }

    /// Returns the packet's index, and marks it as used before anything is encrypted. Returns nil if the index must
    /// not be used, or if there are too many sources.
    @inline(__always)
    private func use(_ sequence: UInt16, of ssrc: UInt32) -> UInt64? {
        guard let window = sources.window(ssrc) else {
            let first = UInt64(sequence)
            return sources.add(ssrc, first: first) ? first : nil
        }
        if let next = window.markNext(sequence) { return next }
        guard let estimate = window.estimate(sequence), let index = UInt64(exactly: estimate) else { return nil }
        guard window.isFresh(index) else { return nil }
        window.mark(index)
        return index
    }

    /// Encrypts one RTCP compound packet in place.
    ///
    /// - Parameters:
    ///   - packet: `packet[..<length]` is the compound packet; the `profile.rtcpOverhead` bytes after it are overwritten.
    ///   - length: the length in bytes of the compound packet, at least 8.
    /// - Returns: the datagram's length. Nil if the datagram does not fit, `length` is below 8, 2^31 packets were sent
    ///   with this key, or OpenSSL fails.
    public func protectControl(_ packet: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
        guard let base = packet.baseAddress, length >= RTCPBounds.headerLength else { return nil }
        let room = min(packet.count, SRTPProfile.maxBytes) - profile.rtcpOverhead
        guard length <= room, nextControlIndex <= Self.maxControlIndex else { return nil }
        let index = nextControlIndex
        nextControlIndex += 1
        let ssrc = UnsafeRawBufferPointer(packet).bigEndian32(at: 4)
        guard control.sealControl(base, length: length, ssrc: ssrc, index: index) else { return nil }
        return length + profile.rtcpOverhead
    }
}
