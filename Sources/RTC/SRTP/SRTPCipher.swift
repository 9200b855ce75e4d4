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

    /// The session keys, in the form that the profile needs.
    private enum Keys {
        case gcm(GCMKey)
        /// AES in counter mode, and HMAC-SHA1.
        case counterMode(OpaquePointer, UnsafeMutablePointer<confab_srtp_mac>)
    }

    /// The E flag in front of the SRTCP index, which means that the packet is encrypted (RFC 3711 §3.4).
    static let encryptedFlag: UInt32 = 1 << 31

    private let keys: Keys
    /// The session salt, padded with trailing zeros to 16 bytes, in host byte order.
    private let salt: (high: UInt64, low: UInt64)

    /// Returns nil if a key has the wrong length or OpenSSL fails.
    ///
    /// - Parameter library: computes AES-GCM instead of OpenSSL; nil for OpenSSL.
    init?(
        profile: SRTPProfile, keys: SRTPSessionKeys, direction: Direction, library: IPsecMB? = IPsecMB.shared.library
    ) {
        guard keys.encryptionKey.count == profile.keyLength, keys.salt.count == profile.saltLength else { return nil }
        let block = keys.salt + [UInt8](repeating: 0, count: 16 - profile.saltLength)
        func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
        let made: Keys
        switch profile {
        case .aeadAES128GCM:
            guard let key = GCMKey(keys.encryptionKey, direction, library: library) else { return nil }
            made = .gcm(key)
        case .aes128CMSHA1:
            var state = confab_srtp_mac()
            defer { OPENSSL_cleanse(&state, MemoryLayout<confab_srtp_mac>.size) }
            let key = keys.authenticationKey
            guard confab_srtp_mac_init(&state, key, key.count) == 1,
                let context = confab_aes_ctr_new(keys.encryptionKey)
            else { return nil }
            let mac = UnsafeMutablePointer<confab_srtp_mac>.allocate(capacity: 1)
            mac.initialize(to: state)
            made = .counterMode(context, mac)
        }
        self.keys = made
        salt = (word(block[..<8]), word(block[8...]))
    }

    deinit {
        switch keys {
        case .gcm(let key): key.free()
        case .counterMode(let context, let mac):
            EVP_CIPHER_CTX_free(context)
            OPENSSL_cleanse(mac, MemoryLayout<confab_srtp_mac>.size)
            mac.deallocate()
        }
    }

    /// Returns GCM's IV for the packet with this SSRC and index: the salt XOR 16 zero bits, the SSRC and the index (RFC
    /// 7714 §8.1 and §9.1).
    ///
    /// - Parameter index: the rollover counter and the sequence number (48 bits together), or the SRTCP index.
    @inline(__always)
    private func nonce(ssrc: UInt32, index: UInt64) -> GCMKey.Nonce {
        let high = salt.high ^ UInt64(ssrc) << 16 ^ index >> 32
        return (high.bigEndian, (salt.low ^ index << 32).bigEndian)
    }

    /// Sets the IV of counter mode, which is (k_s * 2^16) XOR (SSRC * 2^64) XOR (i * 2^16) (RFC 3711 §4.1.1).
    @inline(__always)
    private func begin(_ context: OpaquePointer, ssrc: UInt32, index: UInt64) -> Bool {
        var block = ((salt.high ^ UInt64(ssrc)).bigEndian, (salt.low ^ index << 16).bigEndian)
        return withUnsafeBytes(of: &block) { confab_ctr_begin(context, $0.baseAddress) == 1 }
    }

    /// Encrypts `prefix` and then `payload`, and writes the result and the tag after the header in `packet`.
    func seal(
        _ packet: UnsafeMutableRawPointer, headerLength: Int, prefix: UnsafeRawBufferPointer,
        payload: UnsafeRawBufferPointer, ssrc: UInt32, index: UInt64
    ) -> Bool {
        let body = packet + headerLength
        switch keys {
        case .gcm(let key):
            let header = UnsafeRawBufferPointer(start: packet, count: headerLength)
            return key.seal(nonce(ssrc: ssrc, index: index), data: header, prefix: prefix, payload, out: body)
        case .counterMode(let context, let mac):
            guard
                begin(context, ssrc: ssrc, index: index),
                confab_cipher_update(context, prefix.baseAddress, prefix.count, body) == 1,
                confab_cipher_update(context, payload.baseAddress, payload.count, body + prefix.count) == 1
            else { return false }
            let length = headerLength + prefix.count + payload.count
            confab_srtp_mac_write(mac, packet, length, UInt32(truncatingIfNeeded: index >> 16), packet + length)
            return true
        }
    }

    /// Checks the tag after `packet[..<length]` and decrypts the payload in place. If this fails, the payload must be
    /// discarded, because GCM decrypts before it checks the tag.
    func open(
        _ packet: UnsafeMutableRawPointer, headerLength: Int, length: Int, ssrc: UInt32, index: UInt64
    ) -> Bool {
        let (body, tag) = (packet + headerLength, packet + length)
        switch keys {
        case .gcm(let key):
            let header = UnsafeRawBufferPointer(start: packet, count: headerLength)
            return key.open(
                nonce(ssrc: ssrc, index: index), data: header, body: body, length: length - headerLength, tag: tag)
        case .counterMode(let context, let mac):
            let rollovers = UInt32(truncatingIfNeeded: index >> 16)
            return confab_srtp_mac_verify(mac, packet, length, rollovers, tag) == 1
                && begin(context, ssrc: ssrc, index: index)
                && confab_cipher_update(context, body, length - headerLength, body) == 1
        }
    }

    /// Encrypts `packet[8..<length]` in place and writes the SRTCP trailer: the E flag with the index, then the tag (RFC 3711
    /// §3.4). With GCM the tag comes first (RFC 7714 §9.3).
    func sealControl(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) -> Bool {
        let trailer = (index | Self.encryptedFlag).bigEndian
        let body = packet + RTCPBounds.headerLength
        let count = length - RTCPBounds.headerLength
        switch keys {
        case .gcm(let key):
            packet.storeBytes(of: trailer, toByteOffset: length + GCMKey.tagLength, as: UInt32.self)
            let nonce = nonce(ssrc: ssrc, index: UInt64(index))
            let payload = UnsafeRawBufferPointer(start: body, count: count)
            return withControlData(packet, trailer: trailer) {
                key.seal(nonce, data: $0, prefix: UnsafeRawBufferPointer(start: nil, count: 0), payload, out: body)
            }
        case .counterMode(let context, let mac):
            guard
                begin(context, ssrc: ssrc, index: UInt64(index)),
                confab_cipher_update(context, body, count, body) == 1
            else { return false }
            packet.storeBytes(of: trailer, toByteOffset: length, as: UInt32.self)
            confab_srtp_mac_write(mac, packet, length, index | Self.encryptedFlag, packet + length + 4)
            return true
        }
    }

    /// Reads the E flag and the index of an SRTCP packet whose RTCP part has `length` bytes.
    func controlTrailer(_ packet: UnsafeMutableRawPointer, length: Int) -> UInt32 {
        let offset = if case .gcm = keys { length + GCMKey.tagLength } else { length }
        return UInt32(bigEndian: packet.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// Checks the tag and decrypts `packet[8..<length]` in place. If this fails, the packet must be discarded.
    func openControl(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) -> Bool {
        let body = packet + RTCPBounds.headerLength
        let count = length - RTCPBounds.headerLength
        let word = index | Self.encryptedFlag
        switch keys {
        case .gcm(let key):
            let nonce = nonce(ssrc: ssrc, index: UInt64(index))
            return withControlData(packet, trailer: word.bigEndian) {
                key.open(nonce, data: $0, body: body, length: count, tag: packet + length)
            }
        case .counterMode(let context, let mac):
            return confab_srtp_mac_verify(mac, packet, length, word, packet + length + 4) == 1
                && begin(context, ssrc: ssrc, index: UInt64(index))
                && confab_cipher_update(context, body, count, body) == 1
        }
    }

    /// Passes GCM's associated data in SRTCP: the first header, then the E flag and the index (RFC 7714 §9.2).
    private func withControlData(
        _ packet: UnsafeMutableRawPointer, trailer: UInt32, _ body: (UnsafeRawBufferPointer) -> Bool
    ) -> Bool {
        var data = (packet.loadUnaligned(as: UInt64.self), trailer)
        return withUnsafeBytes(of: &data) {
            body(UnsafeRawBufferPointer(rebasing: $0[..<(RTCPBounds.headerLength + MemoryLayout<UInt32>.size)]))
        }
    }
}
