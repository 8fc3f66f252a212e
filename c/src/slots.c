/* Slots: who may use which keyed cipher now. */
#include "slots.h"

#include "bytes.h"
#include "clock.h"

#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdlib.h>

#define SLOTS 32U
#define WAYS 4U
#define SESSION_SETS 16U
#define DERIVED_SETS 32U /* 32 slots × 32 sets × 4 ways = 4,096 derived keys */
#define RECORDS_MAX UINT32_MAX

typedef struct set {
    cl_keyed ways[WAYS];
} set;

struct cl_slot {
    alignas(64) atomic_bool taken;
    const cl_algorithms *algorithms;
    uint64_t uses;
    uint64_t tick; /* when `now` was read */
    uint64_t now;
    cl_keyed *session; /* of the last record: most often also of the next */
    cl_keyed *key;
    ZSTD_CCtx *compressor;
    _Atomic uint64_t encrypted; /* written by who has the slot, read by anybody */
    _Atomic uint64_t decrypted;
    set sessions[SESSION_SETS];
    set derived[DERIVED_SETS];
};

struct cl_slots {
    cl_slot slot[SLOTS];
};

cl_slots *cl_slots_new(const cl_algorithms *algorithms)
{
    cl_slots *slots = aligned_alloc(alignof(cl_slots), sizeof *slots);
    if (slots != NULL) {
        memset(slots, 0, sizeof *slots);
        for (size_t i = 0; i < SLOTS; i++) {
            slots->slot[i].algorithms = algorithms;
        }
    }
    return slots;
}

/* Adds what was encrypted to the lease, for the next usage report. */
static void report(cl_keyed *keyed)
{
    if (keyed->records > 0) {
        (void)atomic_fetch_add_explicit(&keyed->lease->records, keyed->records, memory_order_relaxed);
        (void)atomic_fetch_add_explicit(&keyed->lease->bytes, keyed->bytes, memory_order_relaxed);
        keyed->records = 0;
        keyed->bytes = 0;
    }
}

static void clear(cl_keyed *keyed)
{
    if (keyed->lease != NULL) {
        report(keyed);
        EVP_CIPHER_CTX_free(keyed->context);
        cl_lease_drop(keyed->lease);
        memset(keyed, 0, sizeof *keyed);
    }
}

static bool usable(const cl_keyed *keyed, uint64_t now)
{
    return cl_lease_alive(keyed->lease, now) && keyed->counter < RECORDS_MAX && now - keyed->begun < CL_SESSION_LIFE;
}

static void sweep_sets(set *sets, size_t count, uint64_t now)
{
    for (size_t i = 0; i < count * WAYS; i++) {
        cl_keyed *keyed = &sets[i / WAYS].ways[i % WAYS];
        if (keyed->lease != NULL && !usable(keyed, now)) {
            clear(keyed);
        } else if (keyed->lease != NULL) {
            report(keyed);
        }
    }
}

static bool try_take(cl_slot *slot)
{
    return !atomic_exchange_explicit(&slot->taken, true, memory_order_acquire);
}

void cl_slot_give(cl_slot *slot)
{
    atomic_store_explicit(&slot->taken, false, memory_order_release);
}

void cl_slots_sweep(cl_slots *slots, uint64_t now)
{
    for (size_t i = 0; i < SLOTS; i++) {
        cl_slot *slot = &slots->slot[i];
        while (!try_take(slot)) {
            (void)sched_yield();
        }
        sweep_sets(slot->sessions, SESSION_SETS, now);
        sweep_sets(slot->derived, DERIVED_SETS, now);
        cl_slot_give(slot);
    }
}

void cl_slots_free(cl_slots *slots)
{
    if (slots != NULL) {
        cl_slots_sweep(slots, UINT64_MAX); /* no lease lives that long */
        for (size_t i = 0; i < SLOTS; i++) {
            (void)ZSTD_freeCCtx(slots->slot[i].compressor);
        }
        free(slots);
    }
}

static void count(_Atomic uint64_t *counter)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + 1, memory_order_relaxed);
}

void cl_slot_encrypted(cl_slot *slot)
{
    count(&slot->encrypted);
}

void cl_slot_decrypted(cl_slot *slot)
{
    count(&slot->decrypted);
}

void cl_slots_numbers(const cl_slots *slots, uint64_t *encrypted, uint64_t *decrypted)
{
    *encrypted = 0;
    *decrypted = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        *encrypted += atomic_load_explicit(&slots->slot[i].encrypted, memory_order_relaxed);
        *decrypted += atomic_load_explicit(&slots->slot[i].decrypted, memory_order_relaxed);
    }
}

ZSTD_CCtx *cl_slot_compressor(cl_slot *slot)
{
    if (slot->compressor == NULL) {
        slot->compressor = ZSTD_createCCtx();
    }
    return slot->compressor;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 32U);
}

/* Where a thread looks first: threads differ in the address of their control block. */
static size_t home(void)
{
    return (size_t)(mix(0, (uint64_t)(uintptr_t)pthread_self()) % SLOTS);
}

cl_slot *cl_slot_take(cl_slots *slots)
{
    size_t first = home();
    for (size_t tries = 0;; tries++) {
        cl_slot *slot = &slots->slot[(first + tries) % SLOTS];
        if (try_take(slot)) {
            return slot;
        }
        if (tries % SLOTS == SLOTS - 1) {
            (void)sched_yield();
        }
    }
}

/* Ahead by a tick, so that no lease is used after its end. */
uint64_t cl_slot_now(cl_slot *slot)
{
    uint64_t tick = cl_tick();
    if (slot->tick != tick) {
        slot->tick = tick;
        slot->now = cl_now() + CL_TICK;
    }
    return slot->now;
}

static uint64_t hash_text(const char *text)
{
    uint64_t hash = 0;
    for (size_t i = 0; text[i] != '\0'; i++) {
        hash = hash * 31U + (uint8_t)text[i];
    }
    return hash;
}

static set *session_set(cl_slot *slot, const char *topic)
{
    return &slot->sessions[mix(0, hash_text(topic)) % SESSION_SETS];
}

static set *derived_set(cl_slot *slot, const char *topic, const cl_envelope *envelope)
{
    uint64_t words[2];
    memcpy(&words[0], envelope->kid.bytes, sizeof words[0]);
    memcpy(&words[1], envelope->nonce, sizeof words[1]);
    return &slot->derived[mix(mix(hash_text(topic), words[0]), words[1]) % DERIVED_SETS];
}

/* Counts a use; what has ended is cleared instead. */
static cl_keyed *use(cl_slot *slot, cl_keyed *keyed, uint64_t now)
{
    if (!usable(keyed, now)) {
        clear(keyed);
        return NULL;
    }
    keyed->used = ++slot->uses;
    cl_lease_mark_used(keyed->lease);
    return keyed;
}

static bool is_session(const cl_keyed *keyed, const char *topic)
{
    return keyed != NULL && keyed->lease != NULL && strcmp(keyed->lease->topic, topic) == 0;
}

cl_keyed *cl_slot_session(cl_slot *slot, const char *topic, uint64_t now)
{
    if (is_session(slot->session, topic)) {
        return use(slot, slot->session, now);
    }
    set *candidates = session_set(slot, topic);
    for (size_t i = 0; i < WAYS; i++) {
        if (is_session(&candidates->ways[i], topic)) {
            slot->session = &candidates->ways[i];
            return use(slot, slot->session, now);
        }
    }
    return NULL;
}

static bool is_key(const cl_keyed *keyed, const char *topic, const cl_envelope *envelope)
{
    return keyed != NULL && keyed->lease != NULL && memcmp(keyed->nonce, envelope->nonce, CL_SALT_SIZE) == 0 &&
           memcmp(&keyed->lease->kid, &envelope->kid, sizeof envelope->kid) == 0 &&
           strcmp(keyed->lease->topic, topic) == 0;
}

cl_keyed *cl_slot_derived(cl_slot *slot, const char *topic, const cl_envelope *envelope, uint64_t now)
{
    if (is_key(slot->key, topic, envelope)) {
        return use(slot, slot->key, now);
    }
    set *candidates = derived_set(slot, topic, envelope);
    for (size_t i = 0; i < WAYS; i++) {
        if (is_key(&candidates->ways[i], topic, envelope)) {
            slot->key = &candidates->ways[i];
            return use(slot, slot->key, now);
        }
    }
    return NULL;
}

/* An empty place, or the one that was used longest ago, cleared. */
static cl_keyed *place(set *candidates)
{
    cl_keyed *oldest = &candidates->ways[0];
    for (size_t i = 1; i < WAYS; i++) {
        if (candidates->ways[i].used < oldest->used) {
            oldest = &candidates->ways[i];
        }
    }
    clear(oldest);
    return oldest;
}

/* Fills a place with a lease and its key schedule. */
static cl_keyed *fill(cl_slot *slot, cl_keyed *keyed, cl_lease *lease, bool encrypt, uint64_t now)
{
    if (lease->key != NULL) {
        keyed->context = cl_cipher_new(slot->algorithms, lease->key, keyed->nonce, encrypt);
        if (keyed->context == NULL) {
            return NULL;
        }
    }
    keyed->lease = cl_lease_keep(lease);
    keyed->begun = now;
    return use(slot, keyed, now);
}

cl_keyed *cl_slot_begin(cl_slot *slot, cl_lease *lease, uint64_t now)
{
    cl_keyed *keyed = place(session_set(slot, lease->topic));
    if (!cl_random(keyed->nonce, sizeof keyed->nonce)) {
        return NULL;
    }
    return fill(slot, keyed, lease, true, now);
}

cl_keyed *cl_slot_derive(cl_slot *slot, cl_lease *lease, const cl_envelope *envelope, uint64_t now)
{
    cl_keyed *keyed = place(derived_set(slot, lease->topic, envelope));
    memcpy(keyed->nonce, envelope->nonce, CL_SALT_SIZE);
    return fill(slot, keyed, lease, false, now);
}
