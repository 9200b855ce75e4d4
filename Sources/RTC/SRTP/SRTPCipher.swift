import COpenSSL

/// A cipher with one set of session keys and one direction. The caller passes each packet's index. The cipher does not
/// check lengths, because the sender and the receiver have already checked them. Its functions return false if OpenSSL
/// fails or a tag is wrong. The cipher is stored inline in its owner, because a separate object would cost one more
/// cache miss for each packet to each subscriber.
struct SRTPCipher: ~Copyable {
    /// Whether the cipher encrypts or decrypts.
    enum Direction {
        case sealing
        case opening
    }

    /// The E flag in front of the SRTCP index, which means that the packet is encrypted (RFC 3711 §3.4).
    static let encryptedFlag: UInt32 = 1 << 31

    private let context: OpaquePointer
    /// The HMAC-SHA1 context; nil with GCM, which includes authentication.
    private let mac: UnsafeMutablePointer<confab_srtp_mac>?
    /// The session salt, padded with trailing zeros to 16 bytes, in host byte order.
    private let salt: (high: UInt64, low: UInt64)

    /// Returns nil if a key has the wrong length or OpenSSL fails.
    init?(profile: SRTPProfile, keys: SRTPSessionKeys, direction: Direction) {
        guard keys.encryptionKey.count == profile.keyLength, keys.salt.count == profile.saltLength else { return nil }
        let block = keys.salt + [UInt8](repeating: 0, count: 16 - profile.saltLength)
        func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        let made: OpaquePointer
        var memory: UnsafeMutablePointer<confab_srtp_mac>?
        switch profile {
        case .aeadAES128GCM:
            guard let context = confab_aes_gcm_new(keys.encryptionKey, direction == .sealing ? 1 : 0) else {
                return nil
            }
            made = context
        case .aes128CMSHA1:
            var state = confab_srtp_mac()
            defer { OPENSSL_cleanse(&state, MemoryLayout<confab_srtp_mac>.size) }
            let key = keys.authenticationKey
            guard confab_srtp_mac_init(&state, key, key.count) == 1,
                let context = confab_aes_ctr_new(keys.encryptionKey)
            else { return nil }
            made = context
            memory = .allocate(capacity: 1)
            memory?.initialize(to: state)
        }
        (context, mac) = (made, memory)
        salt = (word(block[..<8]), word(block[8...]))
    }

    deinit {
        EVP_CIPHER_CTX_free(context)
        if let mac {
            OPENSSL_cleanse(mac, MemoryLayout<confab_srtp_mac>.size)
            mac.deallocate()
        }
    }

    /// Sets the IV for the packet with this SSRC and index.
    /// - Parameters:
    ///   - index: the rollover counter and the sequence number (48 bits together), or the SRTCP index.
    ///   - tag: GCM's tag, to be verified after decrypting; nil to encrypt, and with AES-CM.
    @inline(__always)
    private func begin(ssrc: UInt32, index: UInt64, tag: UnsafeMutableRawPointer? = nil) -> Bool {
        if mac != nil {
            // The IV is (k_s * 2^16) XOR (SSRC * 2^64) XOR (i * 2^16) (RFC 3711 §4.1.1).
            var block = ((salt.high ^ UInt64(ssrc)).bigEndian, (salt.low ^ index << 16).bigEndian)
            return withUnsafeBytes(of: &block) { confab_ctr_begin(context, $0.baseAddress) == 1 }
        }
        // XOR the salt with 16 zero bits, the SSRC and the index. GCM reads only the first 12 bytes (RFC 7714 §8.1 and §9.1).
        let high = salt.high ^ UInt64(ssrc) << 16 ^ index >> 32
        var block = (high.bigEndian, (salt.low ^ index << 32).bigEndian)
        return withUnsafeBytes(of: &block) {
            guard let tag else { return confab_gcm_begin(context, $0.baseAddress) == 1 }
            return confab_gcm_begin_opening(context, $0.baseAddress, tag) == 1
        }
    }

    /// Encrypts `prefix` and then `payload`, and writes the result and the tag after the header in `packet`.
    func seal(
        _ packet: UnsafeMutableRawPointer, headerLength: Int, prefix: UnsafeRawBufferPointer,
        payload: UnsafeRawBufferPointer, ssrc: UInt32, index: UInt64
    ) -> Bool {
        guard begin(ssrc: ssrc, index: index) else { return false }
        if mac == nil, confab_gcm_authenticate(context, packet, headerLength) != 1 { return false }
        let body = packet + headerLength
        guard
            prefix.isEmpty || confab_cipher_update(context, prefix.baseAddress, prefix.count, body) == 1,
            confab_cipher_update(context, payload.baseAddress, payload.count, body + prefix.count) == 1
        else { return false }
        let length = headerLength + prefix.count + payload.count
        guard let mac else { return confab_gcm_finish(context, packet + length) == 1 }
        confab_srtp_mac_write(mac, packet, length, UInt32(truncatingIfNeeded: index >> 16), packet + length)
        return true
    }

    /// Checks the tag after `packet[..<length]` and decrypts the payload in place. If this fails, the payload must be
    /// discarded, because GCM decrypts before it checks the tag.
    func open(
        _ packet: UnsafeMutableRawPointer, headerLength: Int, length: Int, ssrc: UInt32, index: UInt64
    ) -> Bool {
        let (body, tag) = (packet + headerLength, packet + length)
        if let mac {
            let rollovers = UInt32(truncatingIfNeeded: index >> 16)
            guard confab_srtp_mac_verify(mac, packet, length, rollovers, tag) == 1 else { return false }
            return begin(ssrc: ssrc, index: index)
                && confab_cipher_update(context, body, length - headerLength, body) == 1
        }
        return begin(ssrc: ssrc, index: index, tag: tag)
            && confab_gcm_authenticate(context, packet, headerLength) == 1
            && confab_cipher_update(context, body, length - headerLength, body) == 1
            && confab_gcm_verify(context) == 1
    }

    /// Encrypts `packet[8..<length]` in place and writes the SRTCP trailer: the E flag with the index, then the tag (RFC 3711
    /// §3.4). With GCM the tag comes first (RFC 7714 §9.3).
    func sealControl(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) -> Bool {
        let trailer = (index | Self.encryptedFlag).bigEndian
        guard begin(ssrc: ssrc, index: UInt64(index)) else { return false }
        if mac == nil, !authenticateControl(packet, trailer: trailer) { return false }
        let body = packet + RTCPBounds.headerLength
        guard confab_cipher_update(context, body, length - RTCPBounds.headerLength, body) == 1 else { return false }
        if let mac {
            packet.storeBytes(of: trailer, toByteOffset: length, as: UInt32.self)
            confab_srtp_mac_write(mac, packet, length, index | Self.encryptedFlag, packet + length + 4)
            return true
        }
        packet.storeBytes(of: trailer, toByteOffset: length + 16, as: UInt32.self)
        return confab_gcm_finish(context, packet + length) == 1
    }

    /// Reads the E flag and the index of an SRTCP packet whose RTCP part has `length` bytes.
    func controlTrailer(_ packet: UnsafeMutableRawPointer, length: Int) -> UInt32 {
        let offset = mac == nil ? length + 16 : length
        return UInt32(bigEndian: packet.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// Checks the tag and decrypts `packet[8..<length]` in place. If this fails, the packet must be discarded.
    func openControl(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) -> Bool {
        let body = packet + RTCPBounds.headerLength
        let count = length - RTCPBounds.headerLength
        if let mac {
            let word = index | Self.encryptedFlag
            guard confab_srtp_mac_verify(mac, packet, length, word, packet + length + 4) == 1 else { return false }
            return begin(ssrc: ssrc, index: UInt64(index)) && confab_cipher_update(context, body, count, body) == 1
        }
        let trailer = (index | Self.encryptedFlag).bigEndian
        return begin(ssrc: ssrc, index: UInt64(index), tag: packet + length)
            && authenticateControl(packet, trailer: trailer)
            && confab_cipher_update(context, body, count, body) == 1
            && confab_gcm_verify(context) == 1
    }

    /// Authenticates GCM's associated data in SRTCP: the first header, then the E flag and the index (RFC 7714 §9.2).
    private func authenticateControl(_ packet: UnsafeMutableRawPointer, trailer: UInt32) -> Bool {
        var data = (packet.loadUnaligned(as: UInt64.self), trailer)
        return withUnsafeBytes(of: &data) {
            confab_gcm_authenticate(context, $0.baseAddress, RTCPBounds.headerLength + MemoryLayout<UInt32>.size) == 1
        }
    }
}
