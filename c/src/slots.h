/*
 * Keyed ciphers without a lock: a client has 32 slots, a thread takes a free one for the length of one record. A slot
 * holds the encrypting sessions and the derived decryption keys of the threads that used it, bounded, least recently
 * used out. A slot's sessions are its own, so no counter is shared between threads [CL-ENV-031].
 */
#ifndef CL_SLOTS_H
#define CL_SLOTS_H

#include "lease.h"

#include <zstd.h>

#define CL_SESSION_LIFE (UINT64_C(900) * CL_SECOND) /* [CL-ENV-033] */

/* A lease and a key schedule made with it. */
typedef struct cl_keyed {
    cl_lease *lease;         /* NULL: this place is empty */
    EVP_CIPHER_CTX *context; /* NULL for a lease without a key */
    uint64_t used;           /* tick of the slot */
    uint64_t begun;          /* cl_now() */
    uint64_t records;        /* not yet added to the lease */
    uint64_t bytes;
    uint32_t counter;                    /* of the next record */
    uint8_t nonce[CL_NONCE_PREFIX_SIZE]; /* of an encrypting session; of a derived key the first 12 bytes */
} cl_keyed;

typedef struct cl_slot cl_slot;
typedef struct cl_slots cl_slots;

/* NULL when there is no memory. `algorithms` must outlive the slots. */
cl_slots *cl_slots_new(const cl_algorithms *algorithms);

/* Wipes and frees all. Nobody may hold a slot. */
void cl_slots_free(cl_slots *slots);

/* A slot for the calling thread; waits for nobody while one of the 32 is free. */
cl_slot *cl_slot_take(cl_slots *slots);
void cl_slot_give(cl_slot *slot);

/* The time as a slot knows it: cl_now(), at most CL_TICK early, never late. */
uint64_t cl_slot_now(cl_slot *slot);

/* The usable session for a topic, or NULL. */
cl_keyed *cl_slot_session(cl_slot *slot, const char *topic, uint64_t now);

/* Begins a session; takes a reference of the lease. NULL: OpenSSL or the random source failed. */
cl_keyed *cl_slot_begin(cl_slot *slot, cl_lease *lease, uint64_t now);

/* The key derived for an envelope read from a topic, or NULL. */
cl_keyed *cl_slot_derived(cl_slot *slot, const char *topic, const cl_envelope *envelope, uint64_t now);

/* Derives it; takes a reference of the lease. NULL: OpenSSL failed. */
cl_keyed *cl_slot_derive(cl_slot *slot, cl_lease *lease, const cl_envelope *envelope, uint64_t now);

/* Counts a record; read by anybody with cl_slots_numbers. */
void cl_slot_encrypted(cl_slot *slot);
void cl_slot_decrypted(cl_slot *slot);
void cl_slots_numbers(const cl_slots *slots, uint64_t *encrypted, uint64_t *decrypted);

/* The slot's own compressor, made at its first use; NULL without memory. */
ZSTD_CCtx *cl_slot_compressor(cl_slot *slot);

/* Drops everything whose lease or session has ended and adds what the others encrypted to their leases. */
void cl_slots_sweep(cl_slots *slots, uint64_t now);

#endif
