/// Turns RTP and RTCP packets into SRTP and SRTCP packets (RFC 3711, RFC 7714) under one master key. To be used by one
/// thread at a time.
///
/// A source's first sequence number should be below 32,768: the peer takes the rollover counter of the first packet
/// it gets for 0, and would be wrong when the counter had rolled over in packets that were lost.
public final class SRTPSender {
    /// SSRCs that one peer is sent under one key. They are ours, so this is only reached by a leak; each takes 150
    /// bytes.
    public static let mostSources = 1024
    /// Past this index the key is used up (RFC 3711 §9.2).
    static let mostControlIndex: UInt32 = 1 << 31 - 1

    private let profile: SRTPProfile
    private let media: SRTPCipher
    private let control: SRTPCipher
    private var sources = SRTPSources(most: mostSources)
    /// One count for all our SSRCs: an index then never repeats for any of them.
    private var nextControlIndex: UInt32 = 0

    /// - Parameters:
    ///   - key: the master key of this direction, `profile.keyLength` bytes.
    ///   - salt: the master salt of this direction, `profile.saltLength` bytes.
    /// - Returns: nil for other lengths, or when OpenSSL has no memory.
    public convenience init?(profile: SRTPProfile, key: [UInt8], salt: [UInt8]) {
        guard
            let media = SRTPSessionKeys(profile: profile, masterKey: key, masterSalt: salt, kind: .rtp),
            let control = SRTPSessionKeys(profile: profile, masterKey: key, masterSalt: salt, kind: .rtcp)
        else { return nil }
        self.init(profile: profile, media: media, control: control)
    }

    /// With given session keys; for the RFCs' test vectors, which also name the SRTCP index.
    init?(profile: SRTPProfile, media: SRTPSessionKeys, control: SRTPSessionKeys, nextControlIndex: UInt32 = 0) {
        guard
            let media = SRTPCipher(profile: profile, keys: media, direction: .sealing),
            let control = SRTPCipher(profile: profile, keys: control, direction: .sealing)
        else { return nil }
        self.profile = profile
        self.media = media
        self.control = control
        self.nextControlIndex = nextControlIndex
    }

    /// See `PeerTransport.warm`.
    @inline(__always)
    func warm(_ ssrc: UInt32) -> UInt64 { sources.warm(ssrc) }

    /// Encrypts one RTP packet: the copy that every subscriber needs anyway is the encryption itself.
    ///
    /// An index is used once. What was already sent, or is 1024 packets older than the newest, is refused: GCM with
    /// the same nonce twice gives its authentication key away. To send a packet again, keep the datagram.
    ///
    /// - Parameters:
    ///   - packet: starts with a finished RTP header; the rest is written to.
    ///   - headerLength: of that header, with contributing sources and extension, in bytes.
    ///   - prefix: the payload's beginning, written anew for this subscriber; may be empty.
    ///   - payload: the rest of the payload, in memory that does not overlap `packet`.
    /// - Returns: the datagram's length, which is `profile.rtpOverhead` more than went in; nil when it does not fit,
    ///   when the header is not one, when the index must not be used, or when there are too many sources.
    public func protect(
        _ packet: UnsafeMutableRawBufferPointer, headerLength: Int, prefix: UnsafeRawBufferPointer,
        payload: UnsafeRawBufferPointer
    ) -> Int? {
        let header = UnsafeRawBufferPointer(packet)
        guard let base = packet.baseAddress, RTPBounds.headerLength(header) == headerLength else { return nil }
        guard prefix.count <= SRTPProfile.mostBytes, payload.count <= SRTPProfile.mostBytes else { return nil }
        let end = headerLength + prefix.count + payload.count + profile.rtpOverhead
        guard end <= min(packet.count, SRTPProfile.mostBytes) else { return nil }
        let ssrc = header.bigEndian32(at: 8)
        guard let index = use(header.bigEndian16(at: 2), of: ssrc) else { return nil }
        let sealed = media.seal(
            base, headerLength: headerLength, prefix: prefix, payload: payload, ssrc: ssrc, index: index)
        return sealed ? end : nil
    }

    /// Finds the packet's index and marks it used, before anything is encrypted with it.
    @inline(__always)
    private func use(_ sequence: UInt16, of ssrc: UInt32) -> UInt64? {
        guard let window = sources.window(ssrc) else {
            let first = UInt64(sequence)
            return sources.add(ssrc, first: first) ? first : nil
        }
        guard let estimate = window.estimate(sequence), let index = UInt64(exactly: estimate) else { return nil }
        guard window.isFresh(index) else { return nil }
        window.mark(index)
        return index
    }

    /// Encrypts one RTCP compound packet in place.
    ///
    /// - Parameters:
    ///   - packet: `packet[..<length]` is the compound packet; `profile.rtcpOverhead` bytes behind it are written to.
    ///   - length: of the compound packet in bytes, 8 at least.
    /// - Returns: the datagram's length; nil when it does not fit, or when 2^31 packets were sent under this key.
    public func protectControl(_ packet: UnsafeMutableRawBufferPointer, length: Int) -> Int? {
        guard let base = packet.baseAddress, length >= RTCPBounds.headerLength else { return nil }
        let room = min(packet.count, SRTPProfile.mostBytes) - profile.rtcpOverhead
        guard length <= room, nextControlIndex <= Self.mostControlIndex else { return nil }
        let index = nextControlIndex
        nextControlIndex += 1
        let ssrc = UnsafeRawBufferPointer(packet).bigEndian32(at: 4)
        guard control.sealControl(base, length: length, ssrc: ssrc, index: index) else { return nil }
        return length + profile.rtcpOverhead
    }
}
