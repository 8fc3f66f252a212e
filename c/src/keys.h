/*
 * Data keys and decisions under lease: a bounded cache, one request in flight for each, renewed ahead by a thread, wiped
 * at the end. Thread-safe; knows nothing of HTTP and of Kafka.
 */
#ifndef CL_KEYS_H
#define CL_KEYS_H

#include "keyservice.h"
#include "slots.h"

typedef struct cl_keys cl_keys;

/* What a cache needs; all must outlive it. */
typedef struct cl_keys_parts {
    const cl_settings *settings;
    cl_keyservice *service;
    cl_secrets *secrets;
    cl_slots *slots;
} cl_keys_parts;

/* Starts the thread that renews. NULL when memory or a thread is not to be had. */
cl_keys *cl_keys_new(const cl_keys_parts *parts);

/* Stops the thread, reports what was encrypted (a second at most [CL-KEY-017]), ends all leases. Nobody may be calling. */
void cl_keys_free(cl_keys *keys);

/*
 * The lease for encrypting for a topic, for reading a key of a topic, or on how plaintext is met in it; asks the key service when
 * none is held. The caller drops the reference. Errors: everything that the key service may say; CL_LEASE_EXPIRED.
 */
cl_code cl_keys_encryption(cl_keys *keys, const char *topic, cl_lease **lease, cl_error *error);
cl_code cl_keys_decryption(cl_keys *keys, const char *topic, const cl_kid *kid, cl_lease **lease, cl_error *error);
cl_code cl_keys_plaintext(cl_keys *keys, const char *topic, cl_lease **lease, cl_error *error);

/* Data keys held now, and seconds until the first of their leases ends (0 without keys). */
void cl_keys_numbers(cl_keys *keys, uint64_t *cached, uint64_t *seconds_left);

/* Asks for the keys of a topic that are not held, together [CL-KEY-010]. `topic` is valid. */
void cl_keys_prefetch(cl_keys *keys, const char *topic, const cl_kid *kids, size_t count);

#endif
