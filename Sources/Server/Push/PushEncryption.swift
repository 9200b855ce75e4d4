import Crypto

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Encrypts Web Push messages (RFC 8291), each as a single record in the content coding `aes128gcm` (RFC 8188).
enum PushEncryption {
    /// The record size to announce. It is larger than any message from this server, because the body must be a single
    /// record (RFC 8291 §4).
    static let recordSize: UInt32 = 4096
    /// Shorter messages are padded to this size in bytes, so that the service cannot infer their kind from the
    /// length.
    static let paddedSize = 128
    static let saltSize = 16
    /// Maximum message size: the 4096 bytes that all services accept (RFC 8030 §7.2), minus header, 65-byte key, delimiter and
    /// tag.
    static let maxMessageSize = 4096 - (saltSize + 4 + 1 + 65) - 1 - 16

    /// Encrypts a message and returns the request body.
    ///
    /// - Parameters:
    ///   - key: the subscription's public key.
    ///   - authentication: the subscription's authentication secret.
    ///   - sender: a key pair that is new for each message.
    ///   - salt: ``saltSize`` random bytes that are new for each message. Reusing the key pair and the salt would
    ///     reveal both messages.
    ///   - padding: the number of zeros to append after the delimiter.
    static func seal(
        _ message: [UInt8], for key: [UInt8], authentication: [UInt8], sender: P256.KeyAgreement.PrivateKey,
        salt: [UInt8], padding: Int
    ) throws -> [UInt8] {
        guard message.count + padding <= maxMessageSize, salt.count == saltSize else {
            throw PushFailure.cannotMake("the message is too long")
        }
        let receiver = try P256.KeyAgreement.PublicKey(x963Representation: key)
        let ownKey = Array(sender.publicKey.x963Representation)
        // Combine the ECDH secret, the authentication secret and both public keys (RFC 8291 §3.4).
        let input = try sender.sharedSecretFromKeyAgreement(with: receiver).hkdfDerivedSymmetricKey(
            using: SHA256.self, salt: Data(authentication), sharedInfo: Data(info("WebPush: info") + key + ownKey),
            outputByteCount: 32)
        let contentKey = derive(input, salt, "Content-Encoding: aes128gcm", 16)
        let nonce = derive(input, salt, "Content-Encoding: nonce", 12).withUnsafeBytes { Array($0) }
        // 2 is the delimiter of the last record; padding follows it (RFC 8188 §2).
        let sealed = try AES.GCM.seal(
            Data(message + [2] + [UInt8](repeating: 0, count: max(padding, 0))), using: contentKey,
            nonce: AES.GCM.Nonce(data: nonce))
        let size = withUnsafeBytes(of: recordSize.bigEndian) { Array($0) }
        return salt + size + [UInt8(ownKey.count)] + ownKey + Array(sealed.ciphertext) + Array(sealed.tag)
    }

    /// Encrypts a message with a new key pair and salt, padded to ``paddedSize``.
    static func seal(_ message: [UInt8], for key: [UInt8], authentication: [UInt8]) throws -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        return try seal(
            message, for: key, authentication: authentication, sender: P256.KeyAgreement.PrivateKey(),
            salt: (0..<saltSize).map { _ in UInt8.random(in: 0...255, using: &random) },
            padding: max(paddedSize - message.count, 0))
    }

    private static func derive(_ input: SymmetricKey, _ salt: [UInt8], _ name: String, _ size: Int) -> SymmetricKey {
        HKDF<SHA256>.deriveKey(inputKeyMaterial: input, salt: Data(salt), info: Data(info(name)), outputByteCount: size)
    }

    private static func info(_ name: String) -> [UInt8] { Array(name.utf8) + [0] }
}
