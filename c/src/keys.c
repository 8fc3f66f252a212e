/* The key cache as callers see it: a lease, or an error, within the deadline. */
#include "keys.h"

#include "clock.h"
#include "error.h"
#include "fetch.h"

#include <stdlib.h>

static void init_locks(cl_keys *keys)
{
    pthread_condattr_t attributes;
    (void)pthread_mutex_init(&keys->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&keys->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

static void destroy(cl_keys *keys)
{
    cl_entries_close(&keys->entries);
    (void)pthread_cond_destroy(&keys->changed);
    (void)pthread_mutex_destroy(&keys->mutex);
    free(keys);
}

cl_keys *cl_keys_new(const cl_keys_parts *parts)
{
    cl_keys *keys = calloc(1, sizeof *keys);
    if (keys == NULL || !cl_entries_open(&keys->entries, parts->settings->cache_max)) {
        free(keys);
        return NULL;
    }
    keys->parts = *parts;
    init_locks(keys);
    if (!cl_refresher_start(keys)) {
        destroy(keys);
        return NULL;
    }
    return keys;
}

void cl_keys_free(cl_keys *keys)
{
    if (keys != NULL) {
        cl_refresher_stop(keys);
        uint64_t now = cl_now();
        cl_slots_sweep(keys->parts.slots, now);
        cl_report_usage(keys, now + CL_SECOND);
        destroy(keys);
    }
}

static uint64_t least(uint64_t left, uint64_t right)
{
    return left < right ? left : right;
}

void cl_keys_numbers(cl_keys *keys, uint64_t *cached, uint64_t *seconds_left)
{
    uint64_t now = cl_now();
    uint64_t end = UINT64_MAX;
    *cached = 0;
    (void)pthread_mutex_lock(&keys->mutex);
    for (cl_entry *entry = keys->entries.newest; entry != NULL; entry = entry->older) {
        if (cl_entry_held(entry, now) && entry->lease->key != NULL) {
            *cached += 1;
            end = least(end, atomic_load_explicit(&entry->lease->expires_at, memory_order_relaxed));
        }
    }
    (void)pthread_mutex_unlock(&keys->mutex);
    *seconds_left = *cached == 0 ? 0 : (end - least(now, end)) / CL_SECOND;
}

/* Waits until some request has ended; false when the deadline has come [CL-KEY-011]. */
static bool wait_until(cl_keys *keys, uint64_t deadline)
{
    struct timespec until;
    uint64_t now = cl_now();
    if (now >= deadline) {
        return false;
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t whole = (uint64_t)until.tv_nsec + (deadline - now);
    until.tv_sec += (time_t)(whole / CL_SECOND);
    until.tv_nsec = (long)(whole % CL_SECOND);
    (void)pthread_cond_timedwait(&keys->changed, &keys->mutex, &until);
    return true;
}

static void ask(cl_keys *keys, cl_entry *entry, uint64_t deadline)
{
    switch (entry->subject.kind) {
    case CL_KIND_ENCRYPTION:
        cl_fetch_encryption(keys, entry, deadline);
        break;
    case CL_KIND_DECRYPTION:
        cl_fetch_decryption(keys, &entry, 1, NULL, deadline);
        break;
    case CL_KIND_PLAINTEXT:
        cl_fetch_decryption(keys, NULL, 0, entry, deadline);
        break;
    }
}

static cl_code too_late(const cl_entry *entry, cl_error *error)
{
    cl_code code = entry->had_lease ? CL_LEASE_EXPIRED : CL_KEY_SERVICE_UNAVAILABLE;
    return cl_fail(error, code, "%s: no answer within cipherlane.keys.deadline.ms", cl_code_name(code));
}

static cl_code same_error(const cl_entry *entry, cl_error *error)
{
    if (error != NULL) {
        *error = entry->error;
    }
    return entry->error.code;
}

/* Whether a failed attempt is still to be answered with its error instead of another attempt [CL-KEY-012]. */
static bool backing_off(const cl_entry *entry, uint64_t now)
{
    return entry->error.code != CL_OK && now < entry->retry_at;
}

/* The lease of an entry that the caller holds (waiters). The mutex is held. */
static cl_code obtain(cl_keys *keys, cl_entry *entry, uint64_t deadline, cl_lease **lease, cl_error *error)
{
    for (;;) {
        uint64_t now = cl_now();
        if (cl_entry_held(entry, now)) {
            *lease = cl_lease_keep(entry->lease);
            return CL_OK;
        }
        bool asked = entry->asking;
        if (!asked && backing_off(entry, now)) {
            return same_error(entry, error);
        }
        if (asked ? !wait_until(keys, deadline) : now >= deadline) {
            return too_late(entry, error);
        }
        if (!asked) {
            ask(keys, entry, deadline);
        }
    }
}

static cl_code acquire(cl_keys *keys, const cl_subject *subject, cl_lease **lease, cl_error *error)
{
    uint64_t deadline = cl_now() + keys->parts.settings->deadline_ms * CL_MILLISECOND;
    (void)pthread_mutex_lock(&keys->mutex);
    cl_entry *entry = cl_entries_use(&keys->entries, subject);
    cl_code code = CL_INTERNAL;
    if (entry == NULL) {
        (void)cl_no_memory(error);
    } else {
        entry->waiters++;
        code = obtain(keys, entry, deadline, lease, error);
        entry->waiters--;
    }
    (void)pthread_mutex_unlock(&keys->mutex);
    return code;
}

static cl_code acquire_for(cl_keys *keys, cl_kind kind, const char *topic, const cl_kid *kid, cl_lease **lease,
                           cl_error *error)
{
    if (!cl_name_valid(topic)) {
        return cl_fail(error, CL_TOPIC_INVALID, "topic-invalid: not a Kafka topic name");
    }
    const cl_subject subject = cl_subject_of(kind, topic, kid);
    return acquire(keys, &subject, lease, error);
}

cl_code cl_keys_encryption(cl_keys *keys, const char *topic, cl_lease **lease, cl_error *error)
{
    return acquire_for(keys, CL_KIND_ENCRYPTION, topic, NULL, lease, error);
}

cl_code cl_keys_decryption(cl_keys *keys, const char *topic, const cl_kid *kid, cl_lease **lease, cl_error *error)
{
    return acquire_for(keys, CL_KIND_DECRYPTION, topic, kid, lease, error);
}

cl_code cl_keys_plaintext(cl_keys *keys, const char *topic, cl_lease **lease, cl_error *error)
{
    return acquire_for(keys, CL_KIND_PLAINTEXT, topic, NULL, lease, error);
}

/* Whether a request for the entry is wanted and allowed now. */
static bool missing(cl_entry *entry, uint64_t now)
{
    return !cl_entry_held(entry, now) && !entry->asking && !backing_off(entry, now);
}

/* The entries of up to CL_KIDS_PER_CALL missing keys; marked, so that a kid that comes twice is taken once. */
static size_t gather(cl_keys *keys, const char *topic, const cl_kid *kids, size_t *left, cl_entry **batch)
{
    size_t count = 0;
    uint64_t now = cl_now();
    while (*left > 0 && count < CL_KIDS_PER_CALL) {
        const cl_subject subject = cl_subject_of(CL_KIND_DECRYPTION, topic, &kids[--*left]);
        cl_entry *entry = cl_entries_use(&keys->entries, &subject);
        if (entry != NULL && missing(entry, now)) {
            entry->asking = true; /* also keeps it from being thrown out while the rest is gathered */
            batch[count++] = entry;
        }
    }
    return count;
}

void cl_keys_prefetch(cl_keys *keys, const char *topic, const cl_kid *kids, size_t count)
{
    cl_entry *batch[CL_KIDS_PER_CALL];
    uint64_t deadline = cl_now() + keys->parts.settings->deadline_ms * CL_MILLISECOND;
    (void)pthread_mutex_lock(&keys->mutex);
    while (count > 0) {
        size_t missing_count = gather(keys, topic, kids, &count, batch);
        if (missing_count > 0) {
            cl_fetch_decryption(keys, batch, missing_count, NULL, deadline);
        }
    }
    (void)pthread_mutex_unlock(&keys->mutex);
}
