// Symmetric ciphers for SRTP. A context is created once for each session key. Each packet only sets the context's IV, so no
// memory is allocated while media flows. Functions that can fail return 1 for success and 0 for failure.
#ifndef CONFAB_CIPHERS_H
#define CONFAB_CIPHERS_H

// OpenSSL 3 deprecates using SHA-1 directly instead of through EVP, but EVP allocates memory for every HMAC to copy its state.
#ifndef OPENSSL_SUPPRESS_DEPRECATED
#define OPENSSL_SUPPRESS_DEPRECATED
#endif

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/// Disables OpenSSL's cleanup at exit, and must be called before OpenSSL is used. Otherwise other threads may free OpenSSL
/// objects during exit, which would use locks that no longer exist.
static inline void confab_openssl_stays(void) { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); }

/// Returns a cipher with a 16-byte key; NULL if OpenSSL has no memory or does not support the cipher.
static inline EVP_CIPHER_CTX *confab_cipher_new(const EVP_CIPHER *cipher, const void *key, int encrypting) {
    confab_openssl_stays();
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context == NULL) return NULL;
    if (EVP_CipherInit_ex(context, cipher, NULL, (const unsigned char *)key, NULL, encrypting) == 1) return context;
    EVP_CIPHER_CTX_free(context);
    ERR_clear_error();
    return NULL;
}

/// Returns an AES cipher in counter mode, in which encryption and decryption are the same operation.
static inline EVP_CIPHER_CTX *confab_aes_ctr_new(const void *key) {
    return confab_cipher_new(EVP_aes_128_ctr(), key, 1);
}

/// Begins a packet in counter mode with a new IV of 16 bytes. Keeps the key.
static inline int confab_ctr_begin(EVP_CIPHER_CTX *context, const void *iv) {
    return EVP_CipherInit_ex(context, NULL, NULL, NULL, (const unsigned char *)iv, -1) == 1;
}

/// Encrypts or decrypts `length` bytes. `out` may equal `in`. Length 0 succeeds without calling EVP, because EVP gives a null
/// pointer another meaning.
static inline int confab_cipher_update(EVP_CIPHER_CTX *context, const void *in, size_t length, void *out) {
    int written = 0;
    if (length == 0) return 1;
    return EVP_CipherUpdate(context, (unsigned char *)out, &written, (const unsigned char *)in, (int)length) == 1
        && (size_t)written == length;
}

/// A keyed HMAC-SHA1 (RFC 2104): the hash states after the inner and outer padded keys.
typedef struct confab_srtp_mac {
    SHA_CTX inner;
    SHA_CTX outer;
} confab_srtp_mac;

/// - Parameter length: the length of the key in bytes, at most one block (64 bytes).
static inline int confab_srtp_mac_init(confab_srtp_mac *mac, const void *key, size_t length) {
    uint8_t inner[SHA_CBLOCK] = {0}, outer[SHA_CBLOCK];
    if (length > sizeof inner) return 0;
    memcpy(inner, key, length);
    for (size_t i = 0; i < sizeof inner; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    int fine = SHA1_Init(&mac->inner) && SHA1_Update(&mac->inner, inner, sizeof inner)
        && SHA1_Init(&mac->outer) && SHA1_Update(&mac->outer, outer, sizeof outer);
    OPENSSL_cleanse(inner, sizeof inner);
    OPENSSL_cleanse(outer, sizeof outer);
    return fine;
}

/// Computes the digest of a message in two parts.
static inline void confab_mac_sum(
    const confab_srtp_mac *mac, const void *message, size_t length, const void *suffix, size_t suffix_length,
    uint8_t digest[SHA_DIGEST_LENGTH]
) {
    SHA_CTX state = mac->inner;
    uint8_t inner[SHA_DIGEST_LENGTH];
    SHA1_Update(&state, message, length);
    SHA1_Update(&state, suffix, suffix_length);
    SHA1_Final(inner, &state);
    state = mac->outer;
    SHA1_Update(&state, inner, sizeof inner);
    SHA1_Final(digest, &state);
}

/// Computes the digest of a message followed by a word in network byte order. The word is the rollover counter in SRTP, and the
/// E flag with the index in SRTCP (RFC 3711 §4.2).
static inline void confab_srtp_mac_sum(
    const confab_srtp_mac *mac, const void *message, size_t length, uint32_t word, uint8_t digest[SHA_DIGEST_LENGTH]
) {
    uint8_t suffix[4] = {(uint8_t)(word >> 24), (uint8_t)(word >> 16), (uint8_t)(word >> 8), (uint8_t)word};
    confab_mac_sum(mac, message, length, suffix, sizeof suffix, digest);
}

/// Writes the first 10 bytes of the digest, which are the 80 bits of the tag in AES_CM_128_HMAC_SHA1_80.
static inline void confab_srtp_mac_write(
    const confab_srtp_mac *mac, const void *message, size_t length, uint32_t word, void *tag
) {
    uint8_t digest[SHA_DIGEST_LENGTH];
    confab_srtp_mac_sum(mac, message, length, word, digest);
    memcpy(tag, digest, 10);
}

/// Verifies the first 10 bytes of the digest in constant time.
static inline int confab_srtp_mac_verify(
    const confab_srtp_mac *mac, const void *message, size_t length, uint32_t word, const void *tag
) {
    uint8_t digest[SHA_DIGEST_LENGTH];
    confab_srtp_mac_sum(mac, message, length, word, digest);
    return CRYPTO_memcmp(digest, tag, 10) == 0;
}

/// Returns the version of the OpenSSL library in use, such as 3.0.19.
static inline const char *confab_openssl_version(void) { return OpenSSL_version(OPENSSL_VERSION_STRING); }

#endif
