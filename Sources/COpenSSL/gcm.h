// AES-GCM with a key of 128 bits, an IV of 12 bytes and a tag of 16 bytes, in one call per packet: by OpenSSL, or by Intel's
// Multi-Buffer Crypto for IPsec library where it is installed. Functions that can fail return 1 for success and 0 for failure.
#ifndef CONFAB_GCM_H
#define CONFAB_GCM_H

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <stdio.h>

#if defined(__linux__) && defined(__x86_64__)
#include <dlfcn.h>
#endif

#include "ciphers.h"

static inline EVP_CIPHER_CTX *confab_aes_gcm_new(const void *key, int encrypting) {
    return confab_cipher_new(EVP_aes_128_gcm(), key, encrypting);
}

/// Encrypts one packet with OpenSSL: `prefix` and then `payload` are written to `out`, and the tag after them. `data` is
/// authenticated but not encrypted, and must not be empty.
static inline int confab_gcm_seal(
    EVP_CIPHER_CTX *context, const void *iv, const void *data, size_t data_length, const void *prefix, size_t prefix_length,
    const void *payload, size_t length, void *out
) {
    unsigned char *body = (unsigned char *)out, nothing[16];
    int written = 0;
    // Of the ways through EVP, this one takes the fewest instructions (OpenSSL 3.0). The parameter is the one that OpenSSL uses
    // for EVP_CTRL_GCM_SET_IV_FIXED; the length -1 means the whole IV. EVP_CipherInit_ex would query the length of the IV for
    // each packet, and OpenSSL answers by comparing the parameter's name with all others.
    OSSL_PARAM begin[] = {
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, (void *)iv, (size_t)-1), OSSL_PARAM_END
    };
    OSSL_PARAM tag[] = {
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, body + prefix_length + length, 16), OSSL_PARAM_END
    };
    return EVP_CIPHER_CTX_set_params(context, begin) == 1
        && EVP_CipherUpdate(context, NULL, &written, (const unsigned char *)data, (int)data_length) == 1
        && confab_cipher_update(context, prefix, prefix_length, body)
        && confab_cipher_update(context, payload, length, body + prefix_length)
        && EVP_CipherFinal_ex(context, nothing, &written) == 1 && EVP_CIPHER_CTX_get_params(context, tag) == 1;
}

/// Decrypts one packet in place with OpenSSL, and verifies its tag in constant time. If this fails, the content must be
/// discarded, because it is decrypted first.
static inline int confab_gcm_open(
    EVP_CIPHER_CTX *context, const void *iv, const void *data, size_t data_length, void *body, size_t length, void *tag
) {
    unsigned char nothing[16];
    int written = 0;
    // Set both parameters in one call, because each call that sets parameters looks up all names.
    OSSL_PARAM begin[] = {
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, 16),
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, (void *)iv, (size_t)-1), OSSL_PARAM_END
    };
    if (EVP_CIPHER_CTX_set_params(context, begin) == 1
        && EVP_CipherUpdate(context, NULL, &written, (const unsigned char *)data, (int)data_length) == 1
        && confab_cipher_update(context, body, length, body) && EVP_CipherFinal_ex(context, nothing, &written) == 1)
        return 1;
    // Clear the error queue, so that a forged packet does not affect the next DTLS call on this thread.
    ERR_clear_error();
    return 0;
}

/// The library's aes_gcm_pre_128: computes the key schedule.
typedef void (*confab_mb_expand)(const void *key, void *schedule);

/// The library's aes_gcm_enc_128 and aes_gcm_dec_128. Both write the tag of the packet; decrypting does not compare it. `state`
/// is memory for intermediate results, and `out` may equal `in`.
typedef void (*confab_mb_crypt)(
    const void *schedule, void *state, void *out, const void *in, uint64_t length, const void *iv, const void *data,
    uint64_t data_length, void *tag, uint64_t tag_length
);

/// The library's functions for one kind of processor. The library is never unloaded.
typedef struct confab_ipsec_mb {
    confab_mb_expand expand;
    confab_mb_crypt encrypt;
    confab_mb_crypt decrypt;
} confab_ipsec_mb;

/// The size of the library's `struct gcm_context_data`, which is 88 bytes in all versions, rounded up to cache lines.
#define CONFAB_MB_STATE_SIZE 128

/// Loads the library, and returns its version as 0x00MMmmpp (major, minor, patch); 0 if it is not installed.
static inline uint32_t confab_ipsec_mb_version(void) {
#if defined(__linux__) && defined(__x86_64__)
    void *library = dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return 0;
    unsigned (*version)(void) = (unsigned (*)(void))dlsym(library, "imb_get_version");
    return version == NULL ? 0 : version();
#else
    return 0;
#endif
}

/// Finds the functions whose names end in `variant`. Fails if the library does not have all of them.
static inline int confab_ipsec_mb_find(const char *variant, confab_ipsec_mb *functions) {
#if defined(__linux__) && defined(__x86_64__)
    char expand[64], encrypt[64], decrypt[64];
    void *library = dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return 0;
    snprintf(expand, sizeof expand, "aes_gcm_pre_128_%s", variant);
    snprintf(encrypt, sizeof encrypt, "aes_gcm_enc_128_%s", variant);
    snprintf(decrypt, sizeof decrypt, "aes_gcm_dec_128_%s", variant);
    functions->expand = (confab_mb_expand)dlsym(library, expand);
    functions->encrypt = (confab_mb_crypt)dlsym(library, encrypt);
    functions->decrypt = (confab_mb_crypt)dlsym(library, decrypt);
    return functions->expand != NULL && functions->encrypt != NULL && functions->decrypt != NULL;
#else
    (void)variant;
    (void)functions;
    return 0;
#endif
}

/// Whether the processor and the system support what the library requires for its variant `sse`.
static inline int confab_processor_has_sse(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#else
    return 0;
#endif
}

/// The same for the variant `avx_gen4`.
static inline int confab_processor_has_avx2(void) {
#if defined(__x86_64__)
    return confab_processor_has_sse() && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2")
        && __builtin_cpu_supports("bmi2");
#else
    return 0;
#endif
}

/// The same for the variant `vaes_avx512`.
static inline int confab_processor_has_vaes(void) {
#if defined(__x86_64__)
    return confab_processor_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("vaes") && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("gfni")
        && __builtin_cpu_supports("avx512ifma");
#else
    return 0;
#endif
}

/// Encrypts like `confab_gcm_seal`, with the library.
static inline void confab_mb_seal(
    confab_mb_crypt encrypt, const void *schedule, const void *iv, const void *data, size_t data_length, const void *prefix,
    size_t prefix_length, const void *payload, size_t length, void *out
) {
    uint8_t state[CONFAB_MB_STATE_SIZE] __attribute__((aligned(64)));
    uint8_t *body = (uint8_t *)out, *tag = body + prefix_length + length;
    const void *in = payload;
    // The library encrypts one piece of memory, or several pieces with more calls, which are slower than this copy.
    if (prefix_length != 0) {
        memcpy(body, prefix, prefix_length);
        if (length != 0) memcpy(body + prefix_length, payload, length);
        in = body;
    } else if (length == 0) {
        in = body;
    }
    encrypt(schedule, state, body, in, prefix_length + length, iv, data, data_length, tag, 16);
}

/// Decrypts and verifies like `confab_gcm_open`, with the library.
static inline int confab_mb_open(
    confab_mb_crypt decrypt, const void *schedule, const void *iv, const void *data, size_t data_length, void *body,
    size_t length, const void *tag
) {
    uint8_t state[CONFAB_MB_STATE_SIZE] __attribute__((aligned(64))), computed[16];
    decrypt(schedule, state, body, body, length, iv, data, data_length, computed, sizeof computed);
    return CRYPTO_memcmp(computed, tag, sizeof computed) == 0;
}

#endif
