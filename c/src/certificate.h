/*
 * Certificates that the key service gives: the key pair, the request for one, and the checks of what comes back [CL-IDN-030] [CL-IDN-033]. Bytes in,
 * bytes out; knows nothing of the network.
 */
#ifndef CL_CERTIFICATE_H
#define CL_CERTIFICATE_H

#include "answers.h"
#include "pem.h"

#define CL_PRINCIPAL_MAX 2048U /* bytes of a principal's name, NUL included */

/* A new ECDSA key on P-256, or NULL. Free with EVP_PKEY_free, which wipes it. */
EVP_PKEY *cl_certificate_key(void);

/* A request (PKCS #10, RFC 2986) in PEM for a certificate of that key; its names are the key service's business. NULL without memory; free with free(). */
char *cl_certificate_csr(EVP_PKEY *key);

/* The principal that a certificate names [CL-API-002]; false when it names none, or too many. */
bool cl_certificate_principal(const X509 *certificate, char principal[CL_PRINCIPAL_MAX]);

/*
 * What connections show from now on: the certificate of an answer, its key, and `ca` of the answer beside the CAs configured [CL-IDN-034].
 * NULL with CL_KEY_SERVICE_BAD_ANSWER and the reason in *error when the certificate is not for the key, does not name `principal` (NULL: any),
 * does not hold now, or does not chain to `ca`.
 */
cl_pem *cl_certificate_accept(const cl_certificate_answer *answer, EVP_PKEY *key, const char *principal,
                              const cl_pem_text *configured, cl_error *error);

#endif
