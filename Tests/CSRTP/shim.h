// libsrtp2, the reference implementation for our SRTP in tests.
#ifndef CONFAB_CSRTP_SHIM_H
#define CONFAB_CSRTP_SHIM_H

#include <srtp2/srtp.h>

#endif
