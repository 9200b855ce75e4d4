// AES-128-GCM: with Intel's library for IPsec (Debian's libipsec-mb1) if it is installed and the processor has the instructions,
// otherwise with OpenSSL. The environment variable LOOP_CIPHER=openssl forces OpenSSL.
//
// The library is loaded at run time and its header is not needed, so the loop can be compiled everywhere. Its functions exist
// once for each set of instructions.
#include <dlfcn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { tag_length = 16, nonce_length = 12 };

typedef void (*expand_key)(const void *key, void *expanded);
typedef void (*crypt_packet)(const void *expanded, void *context, uint8_t *out, const uint8_t *in, uint64_t length,
                             const uint8_t *nonce, const uint8_t *header, uint64_t header_length, uint8_t *tag,
                             uint64_t tag_length);

// The functions of Intel's library. Without the library they are NULL.
static expand_key intel_expand;
static crypt_packet intel_encrypt, intel_decrypt;

// A key, for one direction.
struct cipher {
    EVP_CIPHER_CTX *openssl;
    // Intel's `struct gcm_key_data` has 1008 bytes in version 1.3.
    _Alignas(64) uint8_t expanded[2048];
};

static struct cipher *cipher_make(int encrypts, uint8_t seed) {
    uint8_t key[16];
    memset(key, seed, sizeof key);
    struct cipher *cipher = aligned_alloc(64, sizeof *cipher);
    cipher->openssl = EVP_CIPHER_CTX_new();
    if (EVP_CipherInit_ex(cipher->openssl, EVP_aes_128_gcm(), NULL, key, NULL, encrypts) != 1) {
        fprintf(stderr, "OpenSSL has no AES-128-GCM\n");
        exit(1);
    }
    if (intel_expand != NULL) intel_expand(key, cipher->expanded);
    return cipher;
}

// Sets the nonce. EVP_CipherInit_ex would take longer, because it asks for the nonce's length each time.
static void openssl_begin(EVP_CIPHER_CTX *context, const uint8_t *nonce) {
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TLS1_IV_FIXED, (void *)nonce, (size_t)-1), OSSL_PARAM_END
    };
    EVP_CIPHER_CTX_set_params(context, parameters);
}

// Encrypts `length` bytes from `in` to `out`, which may be the same, and writes the tag after them.
static void cipher_seal(struct cipher *cipher, const uint8_t *nonce, const uint8_t *header, int header_length,
                        const uint8_t *in, uint8_t *out, int length) {
    if (intel_encrypt != NULL) {
        _Alignas(64) uint8_t context[256];
        intel_encrypt(cipher->expanded, context, out, in, (uint64_t)length, nonce, header, (uint64_t)header_length,
                      out + length, tag_length);
        return;
    }
    int written = 0;
    openssl_begin(cipher->openssl, nonce);
    EVP_CipherUpdate(cipher->openssl, NULL, &written, header, header_length);
    EVP_CipherUpdate(cipher->openssl, out, &written, in, length);
    EVP_CipherFinal_ex(cipher->openssl, out + length, &written);
    EVP_CIPHER_CTX_ctrl(cipher->openssl, EVP_CTRL_AEAD_GET_TAG, tag_length, out + length);
}

// Decrypts in place. The tag follows the `length` bytes. Returns 0 if it is wrong.
static int cipher_open(struct cipher *cipher, const uint8_t *nonce, const uint8_t *header, int header_length,
                       uint8_t *bytes, int length) {
    if (intel_decrypt != NULL) {
        _Alignas(64) uint8_t context[256];
        uint8_t tag[tag_length];
        intel_decrypt(cipher->expanded, context, bytes, bytes, (uint64_t)length, nonce, header, (uint64_t)header_length,
                      tag, tag_length);
        return memcmp(tag, bytes + length, tag_length) == 0;
    }
    int written = 0;
    openssl_begin(cipher->openssl, nonce);
    EVP_CIPHER_CTX_ctrl(cipher->openssl, EVP_CTRL_AEAD_SET_TAG, tag_length, bytes + length);
    EVP_CipherUpdate(cipher->openssl, NULL, &written, header, header_length);
    EVP_CipherUpdate(cipher->openssl, bytes, &written, bytes, length);
    return EVP_CipherFinal_ex(cipher->openssl, bytes + length, &written) == 1;
}

// Returns the suffix of the functions in Intel's library for the best instructions of this processor; NULL if none fit.
static const char *intel_instructions(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("aes") || !__builtin_cpu_supports("pclmul")) return NULL;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        int is_wide = __builtin_cpu_supports("vaes") && __builtin_cpu_supports("vpclmulqdq") &&
                      __builtin_cpu_supports("gfni");
        return is_wide ? "vaes_avx512" : "avx512";
    }
    if (__builtin_cpu_supports("avx2")) return "avx_gen4";
    if (__builtin_cpu_supports("sse4.2")) return "sse";
#endif
    return NULL;
}

// Loads one of the library's functions, whose name ends with the instructions.
static void *intel_function(void *library, const char *prefix, const char *instructions) {
    char name[64];
    snprintf(name, sizeof name, "%s_%s", prefix, instructions);
    return dlsym(library, name);
}

// Loads Intel's library if possible. Returns the name of what encrypts the packets. Must be called first.
static const char *cipher_choose(void) {
    static char name[64];
    const char *forced = getenv("LOOP_CIPHER"), *instructions = intel_instructions();
    void *library = NULL;
    if (instructions != NULL && (forced == NULL || strcmp(forced, "openssl") != 0)) {
        library = dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) return "openssl";
    void *expand = intel_function(library, "aes_gcm_pre_128", instructions);
    void *encrypt = intel_function(library, "aes_gcm_enc_128", instructions);
    void *decrypt = intel_function(library, "aes_gcm_dec_128", instructions);
    if (expand == NULL || encrypt == NULL || decrypt == NULL) return "openssl";
    intel_expand = (expand_key)expand;
    intel_encrypt = (crypt_packet)encrypt;
    intel_decrypt = (crypt_packet)decrypt;
    snprintf(name, sizeof name, "ipsec-mb %s", instructions);
    return name;
}

// Returns whether both implementations agree on one packet. Otherwise the loop would measure something else.
static int cipher_works(void) {
    uint8_t header[28] = {1}, nonce[nonce_length] = {2}, payload[1000] = {3}, some[1016], other[1016];
    struct cipher *cipher = cipher_make(1, 4), *opening = cipher_make(0, 4);
    cipher_seal(cipher, nonce, header, sizeof header, payload, some, sizeof payload);
    crypt_packet encrypt = intel_encrypt;
    intel_encrypt = NULL;
    cipher_seal(cipher, nonce, header, sizeof header, payload, other, sizeof payload);
    intel_encrypt = encrypt;
    return memcmp(some, other, sizeof some) == 0 &&
           cipher_open(opening, nonce, header, sizeof header, some, sizeof payload) &&
           memcmp(some, payload, sizeof payload) == 0;
}
