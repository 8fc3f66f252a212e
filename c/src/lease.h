/*
 * A lease: the right to use a key, or a decision of the policy, for some time. Shared by reference count between the key
 * cache and the sessions that use it; its key is wiped when the last reference goes.
 */
#ifndef CL_LEASE_H
#define CL_LEASE_H

#include "cipher.h"
#include "secret.h"

#include <stdatomic.h>

typedef enum cl_mode { CL_MODE_ENCRYPT, CL_MODE_CLEAR, CL_MODE_FORBID, CL_MODE_ACCEPT, CL_MODE_REJECT } cl_mode;

#define CL_NO_COMPRESSION UINT32_MAX

/* What a lease is about; all of it is fixed when the lease is made. */
typedef struct cl_grant {
    cl_mode mode; /* ACCEPT, REJECT: how plaintext is met on reading */
    cl_kid kid;
    const uint8_t *key; /* CL_KEY_SIZE bytes, copied; NULL for a decision without a key */
    const char *topic;
    const char *scope;      /* "" for a decision without a key */
    bool bind;              /* writing: bind the record key [CL-KAF-030] */
    uint32_t compress_from; /* writing: compress values of this size and more; CL_NO_COMPRESSION: none */
} cl_grant;

typedef struct cl_lease {
    atomic_uint references;
    atomic_bool used;            /* by a record since it was last renewed */
    _Atomic uint64_t expires_at; /* cl_now(); 0: ended */
    _Atomic uint64_t records;    /* encrypted and not yet reported */
    _Atomic uint64_t bytes;
    cl_secrets *secrets;
    uint8_t *key;
    cl_mode mode;
    cl_kid kid;
    char topic[CL_SCOPE_MAX + 1];
    char scope[CL_SCOPE_MAX + 1];
    bool bind;
    uint32_t compress_from;
    cl_aad aad; /* of an envelope without flags */
} cl_lease;

/* A lease with one reference, or NULL when there is no memory. */
cl_lease *cl_lease_new(cl_secrets *secrets, const cl_grant *grant, uint64_t expires_at);

cl_lease *cl_lease_keep(cl_lease *lease);
void cl_lease_drop(cl_lease *lease); /* NULL is allowed */

/* Whether it gives the same right with the same key, so that sessions under it can go on. */
bool cl_lease_same(const cl_lease *lease, const cl_grant *grant);

static inline bool cl_lease_alive(const cl_lease *lease, uint64_t now)
{
    return now < atomic_load_explicit(&lease->expires_at, memory_order_acquire);
}

/* No record uses it from now on. */
static inline void cl_lease_end(cl_lease *lease)
{
    atomic_store_explicit(&lease->expires_at, 0, memory_order_release);
}

/* Looks before it writes: the line is shared by all threads. */
static inline void cl_lease_mark_used(cl_lease *lease)
{
    if (!atomic_load_explicit(&lease->used, memory_order_relaxed)) {
        atomic_store_explicit(&lease->used, true, memory_order_relaxed);
    }
}

#endif
