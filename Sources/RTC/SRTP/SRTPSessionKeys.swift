import COpenSSL

/// The session keys that RFC 3711 §4.3 derives from a master key and salt for one kind of packet in one direction. The key
/// derivation rate is 0, as in DTLS-SRTP, so the keys never change.
struct SRTPSessionKeys {
    /// The labels of RFC 3711 §4.3.2 for SRTP. The label for SRTCP is higher by three.
    private enum Label: UInt8 {
        case encryption = 0
        case authentication = 1
        case salt = 2
    }

    /// The kind of packet that the keys are for. The raw value is added to the label.
    enum Kind: UInt8 {
        case rtp = 0
        case rtcp = 3
    }

    /// The length in bytes of the key for HMAC-SHA1, which has 160 bits (RFC 3711 §5.2).
    static let authenticationKeyLength = 20

    let encryptionKey: [UInt8]
    /// The key for HMAC-SHA1. Empty with GCM, which authenticates with the encryption key.
    let authenticationKey: [UInt8]
    let salt: [UInt8]

    init(encryptionKey: [UInt8], authenticationKey: [UInt8], salt: [UInt8]) {
        (self.encryptionKey, self.authenticationKey, self.salt) = (encryptionKey, authenticationKey, salt)
    }

    /// Returns whether the keys have the profile's lengths.
    func fit(_ profile: SRTPProfile) -> Bool {
        encryptionKey.count == profile.keyLength && salt.count == profile.saltLength
    }

    /// Returns nil if the key or the salt does not have the profile's length, or if OpenSSL fails.
    init?(profile: SRTPProfile, masterKey: [UInt8], masterSalt: [UInt8], kind: Kind) {
        guard masterKey.count == profile.keyLength, masterSalt.count == profile.saltLength else { return nil }
        guard let context = confab_aes_ctr_new(masterKey) else { return nil }
        defer { EVP_CIPHER_CTX_free(context) }

        func derive(_ label: Label, _ length: Int) -> [UInt8]? {
            // x = key_id XOR master_salt, where key_id is the label and 48 zero bits. The IV is x * 2^16. GCM's shorter salt is
            // padded with trailing zeros (RFC 7714 §11).
            var initial = masterSalt + [UInt8](repeating: 0, count: 16 - masterSalt.count)
            initial[7] ^= label.rawValue + kind.rawValue
            var stream = [UInt8](repeating: 0, count: length)
            let done = stream.withUnsafeMutableBytes { bytes in
                confab_ctr_begin(context, initial) == 1
                    && confab_cipher_update(context, bytes.baseAddress, bytes.count, bytes.baseAddress) == 1
            }
            return done ? stream : nil
        }

        let authenticationKeyLength = profile == .aeadAES128GCM ? 0 : Self.authenticationKeyLength
        guard
            let encryptionKey = derive(.encryption, profile.keyLength),
            let authenticationKey = derive(.authentication, authenticationKeyLength),
            let salt = derive(.salt, profile.saltLength)
        else { return nil }
        self.init(encryptionKey: encryptionKey, authenticationKey: authenticationKey, salt: salt)
    }
}
