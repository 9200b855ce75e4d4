// DTLS 1.2 over memory (RFC 6347, RFC 5764), and the HMAC that authenticates STUN. The functions wrap OpenSSL's macros and
// sequences of calls that belong together.
#ifndef CONFAB_DTLS_H
#define CONFAB_DTLS_H

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/srtp.h>
#include <openssl/x509.h>

#include "ciphers.h"

// Computes STUN's MESSAGE-INTEGRITY (RFC 8489 §14.5). `code` must have room for 20 bytes. Returns 1 on success.
static inline int confab_hmac_sha1(const void *key, int keyLength, const void *data, size_t length, unsigned char *code) {
    unsigned int written = 0;
    confab_srtp_mac mac;
    // Do not use HMAC(): it looks the algorithm up by name and allocates memory for each message, which takes longer
    // than the hash. Browsers' passwords have 24 to 32 characters; only a key longer than a block must be hashed
    // first, which HMAC() does below.
    if (keyLength >= 0 && confab_srtp_mac_init(&mac, key, (size_t)keyLength)) {
        confab_mac_sum(&mac, data, length, "", 0, code);
        OPENSSL_cleanse(&mac, sizeof mac);
        return 1;
    }
    return HMAC(EVP_sha1(), key, keyLength, (const unsigned char *)data, length, code, &written) != NULL && written == 20;
}

static inline EVP_PKEY *confab_p256_key(void) {
    confab_openssl_stays();
    return EVP_EC_gen("P-256");
}

// Creates a self-signed certificate. Only its fingerprint matters (RFC 8122 §5), so the certificate never expires and creating
// it needs no clock. RFC 5280 §4.1.2.5 defines the expiry date for such certificates.
static inline X509 *confab_self_signed(EVP_PKEY *key) {
    X509 *certificate = X509_new();
    unsigned char serial[8];
    if (certificate == NULL || RAND_bytes(serial, sizeof serial) != 1) goto failed;
    uint64_t number = 0;
    for (size_t index = 0; index < sizeof serial; index++) number = number << 8 | serial[index];
    // The serial number of a certificate must be positive (RFC 5280 §4.1.2.2).
    if (ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), (number >> 1) | 1) != 1) goto failed;
    X509_NAME *name = X509_get_subject_name(certificate);
    if (X509_set_version(certificate, X509_VERSION_3) != 1 || X509_set_pubkey(certificate, key) != 1
        || X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"confab", -1, -1, 0) != 1
        || X509_set_issuer_name(certificate, name) != 1
        || ASN1_TIME_set_string(X509_getm_notBefore(certificate), "19700101000000Z") != 1
        || ASN1_TIME_set_string(X509_getm_notAfter(certificate), "99991231235959Z") != 1
        || X509_sign(certificate, key, EVP_sha256()) == 0)
        goto failed;
    return certificate;
failed:
    X509_free(certificate);
    return NULL;
}

// Accepts any certificate during the handshake. The certificate's fingerprint is compared afterwards.
static int confab_any_certificate(int verified, X509_STORE_CTX *context) {
    (void)verified;
    (void)context;
    return 1;
}

// Creates a context for both DTLS roles. `longest` limits the size of the peer's certificates in bytes, and `mtu` the size of
// a record.
static inline SSL_CTX *confab_dtls_context(EVP_PKEY *key, X509 *certificate, long longest, long mtu) {
    SSL_CTX *context = SSL_CTX_new(DTLS_method());
    if (context == NULL) return NULL;
    SSL_CTX_set_options(
        context,
        SSL_OP_NO_QUERY_MTU | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE
            | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_max_cert_list(context, longest);
    // Records are never longer than the MTU. This makes OpenSSL allocate 15 kB less for each handshake.
    SSL_CTX_set_max_send_fragment(context, mtu);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, confab_any_certificate);
    if (SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION) != 1
        || SSL_CTX_set_max_proto_version(context, DTLS1_2_VERSION) != 1
        || SSL_CTX_set_cipher_list(
               context,
               "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-ECDSA-AES256-GCM-SHA384:"
               "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305:ECDHE-RSA-AES256-GCM-SHA384") != 1
        || SSL_CTX_set1_groups_list(context, "X25519:P-256:P-384") != 1
        || SSL_CTX_use_certificate(context, certificate) != 1 || SSL_CTX_use_PrivateKey(context, key) != 1
        // Unlike the other functions, SSL_CTX_set_tlsext_use_srtp returns 0 on success.
        || SSL_CTX_set_tlsext_use_srtp(context, "SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80") != 0) {
        SSL_CTX_free(context);
        return NULL;
    }
    return context;
}

// Returns an hour in microseconds as the timeout, so that OpenSSL's timer, which reads the wall clock, never fires. The owner
// of the connection retransmits flights by its own clock.
static unsigned int confab_never(SSL *connection, unsigned int microseconds) {
    (void)connection;
    (void)microseconds;
    return 3600000000u;
}

// Creates a connection. `mtu` limits the size of a record in bytes, including the record's header.
static inline SSL *confab_dtls_open(SSL_CTX *context, int isServer, long mtu) {
    SSL *connection = SSL_new(context);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    if (connection == NULL || in == NULL || out == NULL) {
        SSL_free(connection);
        BIO_free(in);
        BIO_free(out);
        return NULL;
    }
    // Make an empty BIO mean "try again", not the end of the stream.
    BIO_set_mem_eof_return(in, -1);
    BIO_set_mem_eof_return(out, -1);
    SSL_set_bio(connection, in, out);
    SSL_set_mtu(connection, mtu);
    DTLS_set_timer_cb(connection, confab_never);
    if (isServer) SSL_set_accept_state(connection);
    else SSL_set_connect_state(connection);
    return connection;
}

// Passes one datagram to OpenSSL. Discards the rest of the previous datagram, because a memory BIO is a stream without
// boundaries.
static inline int confab_dtls_give(SSL *connection, const void *datagram, int length) {
    BIO *in = SSL_get_rbio(connection);
    (void)BIO_reset(in);
    return BIO_write(in, datagram, length) == length;
}

// Returns the number of bytes that OpenSSL has written and that wait to be sent.
static inline size_t confab_dtls_pending(SSL *connection) { return BIO_ctrl_pending(SSL_get_wbio(connection)); }

static inline int confab_dtls_take(SSL *connection, void *bytes, int length) {
    return BIO_read(SSL_get_wbio(connection), bytes, length);
}

// Writes OpenSSL's message for this thread's oldest error, and clears the error queue.
static inline void confab_last_error(char *text, size_t length) {
    ERR_error_string_n(ERR_get_error(), text, length);
    ERR_clear_error();
}

#endif
