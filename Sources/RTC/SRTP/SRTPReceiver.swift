/// Why a packet was not accepted.
public enum SRTPFailure: Sendable {
    /// Too short for what its header says, not of version 2, or SRTCP that is not encrypted.
    case malformed
    /// The tag is wrong: forged, damaged, or under another key.
    case authentication
    /// Its index was already received, or is too old to know (RFC 3711 §3.3.2).
    case replayed
    /// From a new SSRC when there are already `SRTPReceiver.mostSources`.
    case tooManySources
}

public enum SRTPResult: Sendable {
    /// The packet's first `length` bytes are the plaintext.
    case ok(length: Int)
    /// What is in the packet is worth nothing any more.
    case failed(SRTPFailure)
}

/// Turns SRTP and SRTCP packets back into RTP and RTCP packets (RFC 3711, RFC 7714) under one master key. To be used
/// by one thread at a time. What strangers send changes nothing here: a source is known, and an index marked, only
/// after authentication.
public final class SRTPReceiver {
    /// SSRCs of one peer under one key, RTP and RTCP each. A camera in three layers with retransmission and a
    /// microphone are seven.
    public static let mostSources = 64

    private let profile: SRTPProfile
    private let media: SRTPCipher
    private let control: SRTPCipher
    private var sources = SRTPSources(most: mostSources)
    private var controlSources = SRTPSources(most: mostSources)

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

    /// With given session keys; for the RFCs' test vectors.
    init?(profile: SRTPProfile, media: SRTPSessionKeys, control: SRTPSessionKeys) {
        guard
            let media = SRTPCipher(profile: profile, keys: media, direction: .opening),
            let control = SRTPCipher(profile: profile, keys: control, direction: .opening)
        else { return nil }
        self.profile = profile
        self.media = media
        self.control = control
    }

    /// Checks and decrypts one SRTP packet in place.
    public func unprotect(_ packet: UnsafeMutableRawBufferPointer) -> SRTPResult {
        let bytes = UnsafeRawBufferPointer(packet)
        let length = packet.count - profile.rtpOverhead
        guard
            let base = packet.baseAddress, packet.count <= SRTPProfile.mostBytes,
            let headerLength = RTPBounds.headerLength(bytes), headerLength <= length
        else { return .failed(.malformed) }
        let sequence = bytes.bigEndian16(at: 2)
        let ssrc = bytes.bigEndian32(at: 8)
        let window = sources.window(ssrc)
        var index = UInt64(sequence)
        if let window {
            guard let estimate = window.estimate(sequence) else { return .failed(.replayed) }
            // Before the first rollover there is nothing to go back to: then it can only be a leap forward.
            if estimate >= 0 { index = UInt64(estimate) }
            guard window.isFresh(index) else { return .failed(.replayed) }
        } else if sources.isFull {
            return .failed(.tooManySources)
        }
        guard media.open(base, headerLength: headerLength, length: length, ssrc: ssrc, index: index) else {
            return .failed(.authentication)
        }
        if let window {
            window.mark(index)
        } else if !sources.add(ssrc, first: index) {
            return .failed(.tooManySources)
        }
        return .ok(length: length)
    }

    /// Checks and decrypts one SRTCP packet in place. Unencrypted SRTCP is not accepted, even if it is authentic: both
    /// profiles encrypt, and WebRTC allows nothing else (RFC 8827 §6.5).
    public func unprotectControl(_ packet: UnsafeMutableRawBufferPointer) -> SRTPResult {
        let length = packet.count - profile.rtcpOverhead
        guard
            let base = packet.baseAddress, packet.count <= SRTPProfile.mostBytes,
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
