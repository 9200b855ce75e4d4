/// The reason why a packet was not accepted.
public enum SRTPFailure: Sendable {
    /// The packet is shorter than its header says or longer than 65,535 bytes, its version is not 2, or it is
    /// unencrypted SRTCP.
    case malformed
    /// The tag is wrong: the packet is forged, damaged, or encrypted with another key.
    case authentication
    /// The index was already received, or is older than the replay window (RFC 3711 §3.3.2).
    case replayed
    /// The SSRC is new, but the limit is reached: `maxSources` for SRTP, `maxControlSources` for SRTCP.
    case tooManySources
}

/// The result of decrypting a packet.
public enum SRTPResult: Sendable {
    /// The first `length` bytes of the packet are the decrypted RTP or RTCP packet.
    case ok(length: Int)
    /// The packet was not accepted, and its content must be discarded.
    case failed(SRTPFailure)
}

/// Decrypts SRTP and SRTCP packets (RFC 3711, RFC 7714) with one master key. Not thread-safe. Unauthenticated packets change no
/// state, because a source is added and an index is marked as received only after authentication.
public final class SRTPReceiver {
    /// The default limit on the number of SSRCs of RTP packets under one key. It is enough for what one client sends:
    /// a camera in three layers with retransmission, plus a microphone, needs seven.
    public static let maxSources = 64
    /// The maximum number of SSRCs of RTCP packets under one key. Firefox reports from one SSRC for each media section in which it
    /// receives, and uses a new one when a section is used again.
    public static let maxControlSources = 2 * SessionDescription.maxSections

    private let profile: SRTPProfile
    /// The cipher of RTP packets; nil before the first packet. A subscriber sends none, so its cipher, which takes a kilobyte,
    /// is never created.
    private var media: SRTPCipher?
    /// The keys for `media`; nil once it is created.
    private var mediaKeys: SRTPSessionKeys?
    private let control: SRTPCipher
    /// Computes AES-GCM; nil for OpenSSL.
    private let library: IPsecMB?
    private var sources: SRTPSources
    private var controlSources = SRTPSources(most: maxControlSources)

    /// Derives the session keys of a receiver from the master key.
    ///
    /// - Parameters:
    ///   - key: the master key of this direction, `profile.keyLength` bytes.
    ///   - salt: the master salt of this direction, `profile.saltLength` bytes.
    ///   - maxSources: the maximum number of SSRCs of RTP packets.
    /// - Returns: nil if a length is wrong or OpenSSL runs out of memory.
    public convenience init?(
        profile: SRTPProfile, key: [UInt8], salt: [UInt8], maxSources: Int = SRTPReceiver.maxSources
    ) {
        guard
            let media = SRTPSessionKeys(profile: profile, masterKey: key, masterSalt: salt, kind: .rtp),
            let control = SRTPSessionKeys(profile: profile, masterKey: key, masterSalt: salt, kind: .rtcp)
        else { return nil }
        self.init(profile: profile, media: media, control: control, maxSources: maxSources)
    }

    /// Creates a receiver from session keys, for the RFCs' test vectors, and for tests of both implementations of
    /// AES-GCM. Returns nil if a length is wrong or OpenSSL fails.
    ///
    /// - Parameter library: computes AES-GCM instead of OpenSSL; nil for OpenSSL.
    init?(
        profile: SRTPProfile, media: SRTPSessionKeys, control: SRTPSessionKeys,
        maxSources: Int = SRTPReceiver.maxSources, library: IPsecMB? = IPsecMB.shared.library
    ) {
        guard media.fit(profile),
            let control = SRTPCipher(profile: profile, keys: control, direction: .opening, library: library)
        else { return nil }
        self.library = library
        self.profile = profile
        mediaKeys = media
        self.control = control
        sources = SRTPSources(most: maxSources)
    }

    /// Checks and decrypts one SRTP packet in place.
    public func unprotect(_ packet: UnsafeMutableRawBufferPointer) -> SRTPResult {
        let bytes = UnsafeRawBufferPointer(packet)
        let length = packet.count - profile.rtpOverhead
        guard
            let base = packet.baseAddress, packet.count <= SRTPProfile.maxBytes,
            let headerLength = RTPBounds.headerLength(bytes), headerLength <= length
        else { return .failed(.malformed) }
        let sequence = bytes.bigEndian16(at: 2)
        let ssrc = bytes.bigEndian32(at: 8)
        let window = sources.window(ssrc)
        var index = UInt64(sequence)
        if let window {
            guard let estimate = window.estimate(sequence) else { return .failed(.replayed) }
            // A negative estimate would lie before the first packet, so treat the packet as a jump forward.
            if estimate >= 0 { index = UInt64(estimate) }
            guard window.isFresh(index) else { return .failed(.replayed) }
        } else if sources.isFull {
            return .failed(.tooManySources)
        }
        // Without memory for a cipher, no packet is accepted.
        if let keys = mediaKeys,
            let cipher = SRTPCipher(profile: profile, keys: keys, direction: .opening, library: library)
        {
            media = consume cipher
            mediaKeys = nil
        }
        guard media?.open(base, headerLength: headerLength, length: length, ssrc: ssrc, index: index) ?? false else {
            return .failed(.authentication)
        }
        if let window {
            window.mark(index)
        } else if !sources.add(ssrc, first: index) {
            return .failed(.tooManySources)
        }
        return .ok(length: length)
    }

    /// Checks and decrypts one SRTCP packet in place. Rejects unencrypted SRTCP even if it is authentic, because both profiles
    /// encrypt and WebRTC requires encryption (RFC 8827 §6.5).
    public func unprotectControl(_ packet: UnsafeMutableRawBufferPointer) -> SRTPResult {
        let length = packet.count - profile.rtcpOverhead
        guard
            let base = packet.baseAddress, packet.count <= SRTPProfile.maxBytes,
            length >= RTCPBounds.headerLength, packet[0] >> 6 == 2
        else { return .failed(.malformed) }
        let trailer = control.controlTrailer(base, length: length)
        guard trailer & SRTPCipher.encryptedFlag != 0 else { return .failed(.malformed) }
        let index = trailer & ~SRTPCipher.encryptedFlag
        let ssrc = UnsafeRawBufferPointer(packet).bigEndian32(at: 4)
        let window = controlSources.window(ssrc)
        if let window {
            guard window.isFresh(UInt64(index)) else { return .failed(.replayed) }
        } else if controlSources.isFull {
            return .failed(.tooManySources)
        }
        guard control.openControl(base, length: length, ssrc: ssrc, index: index) else {
            return .failed(.authentication)
        }
        if let window {
            window.mark(UInt64(index))
        } else if !controlSources.add(ssrc, first: UInt64(index)) {
            return .failed(.tooManySources)
        }
        return .ok(length: length)
    }
}
