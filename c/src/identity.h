/*
 * A certificate from the key service, renewed in memory while the process runs (spec/identity.md, "Clients that renew their certificate").
 * One for all clients of a process with the same settings [CL-IDN-031]; a forked child goes on with what its parent had. Thread-safe.
 */
#ifndef CL_IDENTITY_H
#define CL_IDENTITY_H

#include "pem.h"

typedef struct cl_identity cl_identity;

/* The identity of these checked settings, made if there is none yet: a thread then asks for a certificate. NULL with *error set. */
cl_identity *cl_identity_share(const cl_settings *settings, cl_error *error);

/*
 * Gives back a share; the last one stops the thread, whatever it is waiting for, and wipes the key. Of an identity that began with a token the
 * certificate stays for whoever comes next [CL-IDN-037]. NULL is allowed.
 */
void cl_identity_release(cl_identity *identity);

/*
 * A reference to the certificate that holds, in *pem; waits for the first one at most `timeout_ms`. Otherwise CL_KEY_SERVICE_UNAVAILABLE, with
 * what to do about it [CL-IDN-036].
 */
cl_code cl_identity_take(cl_identity *identity, uint32_t timeout_ms, cl_pem **pem, cl_error *error);

/* Seconds until the certificate in use ends; 0 without one. */
uint64_t cl_identity_seconds_left(cl_identity *identity);

#endif
