// OpenSSL for Swift. Swift does not import macros and variadic functions, so these headers wrap the ones it needs.
#ifndef CONFAB_OPENSSL_SHIM_H
#define CONFAB_OPENSSL_SHIM_H

#include "ciphers.h"
#include "dtls.h"

#endif
