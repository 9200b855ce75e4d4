// OpenSSL for Swift: macros and variadic functions are not imported, so each one that is needed has a function here.
#ifndef CONFAB_OPENSSL_SHIM_H
#define CONFAB_OPENSSL_SHIM_H

#include "ciphers.h"
#include "dtls.h"

#endif
