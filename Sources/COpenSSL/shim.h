// OpenSSL for Swift. Swift imports neither macros nor variadic functions, so these headers wrap those that Confab uses.
#ifndef CONFAB_OPENSSL_SHIM_H
#define CONFAB_OPENSSL_SHIM_H

#include "ciphers.h"
#include "dtls.h"
#include "gcm.h"

#endif
