/*
 * TLS sessions with Kafka brokers under the certificate of an identity: the newest one for each new connection, the peer verified by name and by SPIFFE id, sessions
 * resumed while the certificate stays the same. Thread-safe.
 */
#ifndef CL_TLS_H
#define CL_TLS_H

#include "identity.h"

#include <openssl/ssl.h>

typedef struct cl_tls cl_tls;

/* What sessions need beside the certificate. */
typedef struct cl_tls_terms {
    const char *peer_ids; /* a valid list (topics.h); "" for any */
    uint32_t timeout_ms;  /* for the first certificate */
    bool verify_host;     /* the peer's certificate must be for the host name or address that was dialled */
} cl_tls_terms;

/* NULL with *error set. Takes the share of `identity` over in any case; the terms are copied. */
cl_tls *cl_tls_new(cl_identity *identity, const cl_tls_terms *terms, cl_error *error);
void cl_tls_free(cl_tls *tls);

/*
 * A client session for HOST:PORT, not yet connected, and in *expires_at the cl_now() of its certificate's end. NULL with CL_KEY_SERVICE_UNAVAILABLE
 * in *error when no certificate holds, or CL_INTERNAL. Free with SSL_free.
 */
SSL *cl_tls_session(cl_tls *tls, const char *address, uint64_t *expires_at, cl_error *error);

/* Whether the peer's certificate carries one of cipherlane.tls.peer.ids, after the handshake. */
bool cl_tls_peer_allowed(const cl_tls *tls, const SSL *ssl);

#endif
