/* A certificate with a lock, and a count of who shares it. */
#include "given.h"

#include "clock.h"
#include "error.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct cl_identity {
    atomic_uint references;
    pthread_cond_t changed;
    pthread_mutex_t mutex; /* guards what follows */
    cl_pem *held;
};

cl_identity *cn_identity_new(void)
{
    cl_identity *identity = calloc(1, sizeof *identity);
    if (identity != NULL) {
        atomic_init(&identity->references, 1);
        (void)pthread_mutex_init(&identity->mutex, NULL);
        (void)pthread_cond_init(&identity->changed, NULL);
    }
    return identity;
}

cl_identity *cn_identity_keep(cl_identity *identity)
{
    (void)atomic_fetch_add_explicit(&identity->references, 1, memory_order_relaxed);
    return identity;
}

void cl_identity_release(cl_identity *identity)
{
    if (identity != NULL && atomic_fetch_sub_explicit(&identity->references, 1, memory_order_acq_rel) == 1) {
        cl_pem_drop(identity->held);
        (void)pthread_cond_destroy(&identity->changed);
        (void)pthread_mutex_destroy(&identity->mutex);
        free(identity);
    }
}

void cn_identity_give(cl_identity *identity, cl_pem *pem)
{
    (void)pthread_mutex_lock(&identity->mutex);
    cl_pem *before = identity->held;
    identity->held = pem;
    (void)pthread_cond_broadcast(&identity->changed);
    (void)pthread_mutex_unlock(&identity->mutex);
    cl_pem_drop(before);
}

static void wait_for_first(cl_identity *identity, uint32_t timeout_ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (identity->held == NULL &&
           pthread_cond_timedwait(&identity->changed, &identity->mutex, &until) != ETIMEDOUT) {
    }
}

cl_code cl_identity_take(cl_identity *identity, uint32_t timeout_ms, cl_pem **pem, cl_error *error)
{
    (void)pthread_mutex_lock(&identity->mutex);
    wait_for_first(identity, timeout_ms);
    bool holds = identity->held != NULL && cl_now() < identity->held->expires_at;
    *pem = holds ? cl_pem_keep(identity->held) : NULL;
    (void)pthread_mutex_unlock(&identity->mutex);
    return holds ? CL_OK
                 : cl_fail(
                       error, CL_KEY_SERVICE_UNAVAILABLE,
                       "key-service-unavailable: no certificate of this client holds; the log of cipherlane says why");
}
