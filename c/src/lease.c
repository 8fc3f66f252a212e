/* Leases: made, counted, wiped. */
#include "lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cl_lease *cl_lease_new(cl_secrets *secrets, const cl_grant *grant, uint64_t expires_at)
{
    cl_lease *lease = calloc(1, sizeof *lease);
    if (lease == NULL) {
        return NULL;
    }
    if (grant->key != NULL) {
        lease->key = cl_secret_new(secrets);
        if (lease->key == NULL) {
            free(lease);
            return NULL;
        }
        memcpy(lease->key, grant->key, CL_KEY_SIZE);
    }
    atomic_init(&lease->references, 1);
    atomic_init(&lease->expires_at, expires_at);
    lease->secrets = secrets;
    lease->mode = grant->mode;
    lease->kid = grant->kid;
    lease->bind = grant->bind;
    lease->compress_from = grant->compress_from;
    (void)snprintf(lease->topic, sizeof lease->topic, "%s", grant->topic);
    (void)snprintf(lease->scope, sizeof lease->scope, "%s", grant->scope);
    uint8_t preamble[CL_PREAMBLE_SIZE];
    cl_preamble_write(preamble, 0, &lease->kid);
    cl_aad_build(&lease->aad, preamble, lease->scope);
    return lease;
}

cl_lease *cl_lease_keep(cl_lease *lease)
{
    (void)atomic_fetch_add_explicit(&lease->references, 1, memory_order_relaxed);
    return lease;
}

void cl_lease_drop(cl_lease *lease)
{
    if (lease != NULL && atomic_fetch_sub_explicit(&lease->references, 1, memory_order_acq_rel) == 1) {
        cl_secret_free(lease->secrets, lease->key);
        free(lease);
    }
}

bool cl_lease_same(const cl_lease *lease, const cl_grant *grant)
{
    return lease->mode == grant->mode && strcmp(lease->scope, grant->scope) == 0 &&
           memcmp(&lease->kid, &grant->kid, sizeof lease->kid) == 0;
}
