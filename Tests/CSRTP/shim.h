// Includes libsrtp2, the implementation with which the tests compare our SRTP.
#ifndef CONFAB_CSRTP_SHIM_H
#define CONFAB_CSRTP_SHIM_H

#include <srtp2/srtp.h>

#endif
