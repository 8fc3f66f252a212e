/*
 * The cl_identity of this module: cipherlane, in Python, asks for certificates and renews them, and gives what it was given. The rest of
 * identity.h is as it stands there. Thread-safe; in a forked child, those of the parent must not be touched.
 */
#ifndef CIPHERLANE_NATIVE_GIVEN_H
#define CIPHERLANE_NATIVE_GIVEN_H

#include "identity.h"

/* With one share, which cl_identity_release gives back. NULL without memory. */
cl_identity *cn_identity_new(void);

/* One share more. */
cl_identity *cn_identity_keep(cl_identity *identity);

/* New connections show this from now on; takes `pem` over. */
void cn_identity_give(cl_identity *identity, cl_pem *pem);

#endif
