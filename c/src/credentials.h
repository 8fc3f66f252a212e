/* What calls to the key service show: the PEM files of the settings, watched [CL-KEY-016], or an identity. Thread-safe. */
#ifndef CL_CREDENTIALS_H
#define CL_CREDENTIALS_H

#include "identity.h"

typedef struct cl_credentials cl_credentials;

/* NULL with *error set when the files cannot be used, or memory or a thread is not to be had. `settings` must outlive it. */
cl_credentials *cl_credentials_new(const cl_settings *settings, cl_error *error);
void cl_credentials_free(cl_credentials *credentials);

/* A reference to what is in force now; with an identity as cl_identity_take says. */
cl_code cl_credentials_take(cl_credentials *credentials, uint32_t timeout_ms, cl_pem **pem, cl_error *error);

/* The identity, or NULL when the files are used as they are. */
cl_identity *cl_credentials_identity(cl_credentials *credentials);

#endif
