import COpenSSL

/// AES-GCM with one 128-bit key and one direction, computed by OpenSSL or by `IPsecMB`. The owner must call `free`.
struct GCMKey {
    /// An IV of 12 bytes, in network byte order; the last 4 bytes are ignored.
    typealias Nonce = (UInt64, UInt64)

    /// The length of the tag in bytes.
    static let tagLength = 16

    /// The library that computes, with its memory for the key.
    private enum Implementation {
        case openSSL(OpaquePointer)
        /// The key schedule in memory of `size` bytes, and the function that encrypts or decrypts with it.
        case ipsecMB(UnsafeMutableRawPointer, size: Int, confab_mb_crypt)
    }

    private let implementation: Implementation

    /// Returns nil if the key does not have 16 bytes or OpenSSL fails.
    ///
    /// - Parameter library: nil for OpenSSL.
    init?(_ key: [UInt8], _ direction: SRTPCipher.Direction, library: IPsecMB?) {
        guard key.count == 16 else { return nil }
        guard let library else {
            guard let context = confab_aes_gcm_new(key, direction == .sealing ? 1 : 0) else { return nil }
            implementation = .openSSL(context)
            return
        }
        let functions = library.functions
        guard let crypt = direction == .sealing ? functions.encrypt : functions.decrypt else { return nil }
        let size = library.scheduleSize
        let schedule = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: IPsecMB.alignment)
        functions.expand(key, schedule)
        implementation = .ipsecMB(schedule, size: size, crypt)
    }

    /// Erases the key and frees its memory.
    func free() {
        switch implementation {
        case .openSSL(let context): EVP_CIPHER_CTX_free(context)
        case .ipsecMB(let schedule, let size, _):
            OPENSSL_cleanse(schedule, size)
            schedule.deallocate()
        }
    }

    /// Encrypts `prefix` and then `payload`, and writes the result and the tag to `out`.
    ///
    /// - Parameters:
    ///   - data: is authenticated but not encrypted. It must not be empty.
    ///   - out: may equal the payload's address if the prefix is empty. Otherwise it must not overlap the payload.
    @inline(__always)
    func seal(
        _ nonce: Nonce, data: UnsafeRawBufferPointer, prefix: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer,
        out: UnsafeMutableRawPointer
    ) -> Bool {
        var nonce = nonce
        return withUnsafeBytes(of: &nonce) { nonce in
            switch implementation {
            case .openSSL(let context):
                return confab_gcm_seal(
                    context, nonce.baseAddress, data.baseAddress, data.count, prefix.baseAddress, prefix.count,
                    payload.baseAddress, payload.count, out) == 1
            case .ipsecMB(let schedule, _, let encrypt):
                confab_mb_seal(
                    encrypt, schedule, nonce.baseAddress, data.baseAddress, data.count, prefix.baseAddress,
                    prefix.count, payload.baseAddress, payload.count, out)
                return true
            }
        }
    }

    /// Decrypts `length` bytes in place and compares the tag. If this returns false, the bytes must be discarded, because
    /// they are decrypted before the tag is compared.
    @inline(__always)
    func open(
        _ nonce: Nonce, data: UnsafeRawBufferPointer, body: UnsafeMutableRawPointer, length: Int,
        tag: UnsafeMutableRawPointer
    ) -> Bool {
        var nonce = nonce
        return withUnsafeBytes(of: &nonce) { nonce in
            switch implementation {
            case .openSSL(let context):
                confab_gcm_open(
                    context, nonce.baseAddress, data.baseAddress, data.count, body, length, tag) == 1
            case .ipsecMB(let schedule, _, let decrypt):
                confab_mb_open(
                    decrypt, schedule, nonce.baseAddress, data.baseAddress, data.count, body, length, tag) == 1
            }
        }
    }
}
