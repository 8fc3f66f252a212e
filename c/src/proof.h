/* How a client that has no certificate of the key service yet says who it is [CL-IDN-035] [CL-IDN-036]. */
#ifndef CL_PROOF_H
#define CL_PROOF_H

#include "pem.h"

#define CL_DIGEST_SIZE 32U

/* Of a bootstrap token that was answered: it is good for nothing any more. */
typedef struct cl_used_token {
    bool known;
    uint8_t digest[CL_DIGEST_SIZE];
} cl_used_token;

/*
 * What the files hold now: a JWT, a token that is not the used one, or a certificate and its key. One reference; NULL with
 * CL_KEY_SERVICE_UNAVAILABLE and what to do in *error.
 */
cl_pem *cl_proof_read(const cl_settings *settings, const cl_used_token *used, cl_error *error);

/* Notes that the token of a proof was answered; of another proof nothing. */
void cl_proof_answered(const cl_settings *settings, const cl_pem *proof, cl_used_token *used);

#endif
