// Symmetric ciphers for SRTP. A context is made once for each session key; a packet only sets its IV, so that nothing
// here allocates while media flows. Every function that can fail returns 1 for success and 0 for failure.
#ifndef CONFAB_CIPHERS_H
#define CONFAB_CIPHERS_H

// OpenSSL 3 would rather have SHA-1 used through EVP, but there every HMAC copies its state into newly allocated
// memory.
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

/// To be called before OpenSSL is used first. It then does not take itself apart while `exit` runs, when other threads may
/// still free what they had of it: that reads locks which are gone.
static inline void confab_openssl_stays(void) { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); }

/// A cipher with a key of 16 bytes; null when OpenSSL has no memory or does not offer it.
static inline EVP_CIPHER_CTX *confab_cipher_new(const EVP_CIPHER *cipher, const void *key, int encrypting) {
    confab_openssl_stays();
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    if (context == NULL) return NULL;
    if (EVP_CipherInit_ex(context, cipher, NULL, (const unsigned char *)key, NULL, encrypting) == 1) return context;
    EVP_CIPHER_CTX_free(context);
    ERR_clear_error();
    return NULL;
}

/// Counter mode encrypts and decrypts alike.
static inline EVP_CIPHER_CTX *confab_aes_ctr_new(const void *key) {
    return confab_cipher_new(EVP_aes_128_ctr(), key, 1);
}

static inline EVP_CIPHER_CTX *confab_aes_gcm_new(const void *key, int encrypting) {
    return confab_cipher_new(EVP_aes_128_gcm(), key, encrypting);
}

/// Begins a packet: 16 bytes of IV for counter mode, 12 for GCM. Key and direction stay.
static inline int confab_cipher_begin(EVP_CIPHER_CTX *context, const void *iv) {
    return EVP_CipherInit_ex(context, NULL, NULL, NULL, (const unsigned char *)iv, -1) == 1;
}

/// Data that GCM authenticates and leaves in the clear; all of it comes before the first `confab_cipher_update`.
static inline int confab_gcm_authenticate(EVP_CIPHER_CTX *context, const void *data, size_t length) {
    int written = 0;
    return EVP_CipherUpdate(context, NULL, &written, (const unsigned char *)data, (int)length) == 1;
}

/// `out` may be `in` itself. Nothing to do is a success: a null pointer would mean something else to EVP.
static inline int confab_cipher_update(EVP_CIPHER_CTX *context, const void *in, size_t length, void *out) {
    int written = 0;
    if (length == 0) return 1;
    return EVP_CipherUpdate(context, (unsigned char *)out, &written, (const unsigned char *)in, (int)length) == 1
        && (size_t)written == length;
}

/// Writes the tag of 16 bytes.
static inline int confab_gcm_finish(EVP_CIPHER_CTX *context, void *tag) {
    unsigned char nothing[16];
    int written = 0;
    return EVP_CipherFinal_ex(context, nothing, &written) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1;
}

/// Compares the tag of 16 bytes, in constant time.
static inline int confab_gcm_verify(EVP_CIPHER_CTX *context, const void *tag) {
    unsigned char nothing[16];
    int written = 0;
    if (EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, (void *)tag) == 1
        && EVP_CipherFinal_ex(context, nothing, &written) == 1) return 1;
    // A forged packet must not leave an error behind for the next DTLS call on this thread to trip over.
    ERR_clear_error();
    return 0;
}

/// HMAC-SHA1 (RFC 2104) after its key: the hash states behind the inner and the outer padding.
typedef struct confab_srtp_mac {
    SHA_CTX inner;
    SHA_CTX outer;
} confab_srtp_mac;

/// - Parameter length: of the key, at most one block of 64 bytes.
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

/// The digest of a message followed by one word in network order: in SRTP that is the rollover counter, in SRTCP the
/// E flag and the index (RFC 3711 §4.2).
static inline void confab_srtp_mac_sum(
    const confab_srtp_mac *mac, const void *message, size_t length, uint32_t word, uint8_t digest[SHA_DIGEST_LENGTH]
) {
    SHA_CTX state = mac->inner;
    uint8_t suffix[4] = {(uint8_t)(word >> 24), (uint8_t)(word >> 16), (uint8_t)(word >> 8), (uint8_t)word};
    uint8_t inner[SHA_DIGEST_LENGTH];
    SHA1_Update(&state, message, length);
    SHA1_Update(&state, suffix, sizeof suffix);
    SHA1_Final(inner, &state);
    state = mac->outer;
    SHA1_Update(&state, inner, sizeof inner);
    SHA1_Final(digest, &state);
}

/// Writes the digest's first 10 bytes, the 80 bits of AES_CM_128_HMAC_SHA1_80.
static inline void confab_srtp_mac_write(
    const confab_srtp_mac *mac, const void *message, size_t length, uint32_t word, void *tag
) {
    uint8_t digest[SHA_DIGEST_LENGTH];
    confab_srtp_mac_sum(mac, message, length, word, digest);
    memcpy(tag, digest, 10);
}

/// Compares the digest's first 10 bytes, in constant time.
static inline int confab_srtp_mac_verify(
    const confab_srtp_mac *mac, const void *message, size_t length, uint32_t word, const void *tag
) {
    uint8_t digest[SHA_DIGEST_LENGTH];
    confab_srtp_mac_sum(mac, message, length, word, digest);
    return CRYPTO_memcmp(digest, tag, 10) == 0;
}

/// The version of the library in use, such as 3.0.19.
static inline const char *confab_openssl_version(void) { return OpenSSL_version(OPENSSL_VERSION_STRING); }

#endif
