/* Certificates made now. */
#ifndef PKI_H
#define PKI_H

#include <openssl/x509.h>

#define HOUR 3600L

/* A CA: who signs. */
typedef struct signer {
    X509 *certificate;
    EVP_PKEY *key;
} signer;

signer new_ca(const char *name);
void free_ca(signer *ca);

/*
 * A certificate of `key` with a common name and perhaps alternative names as openssl.cnf writes them, from `begins` to `ends` seconds from now, signed by the
 * issuer (NULL: itself, as a CA). Aborts when OpenSSL fails. Free with X509_free.
 */
X509 *certify(EVP_PKEY *key, const char *name, const signer *issuer, const char *alternative, long begins, long ends);

#endif
