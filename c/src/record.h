/* What encrypting and decrypting a record have in common: which keyed cipher, and the additional data. */
#ifndef CL_RECORD_H
#define CL_RECORD_H

#include "client.h"
#include "error.h"

/* A record on its way through cl_encrypt or cl_decrypt. */
typedef struct cl_record {
    const char *topic;
    cl_bytes value;
    const cl_bytes *record_key; /* NULL: not known */
    uint8_t *buffer;
    size_t capacity;
    cl_bytes *out;
    size_t limit;         /* reading: longest plaintext */
    cl_envelope envelope; /* reading: the value, parsed */
} cl_record;

/* One of the two directions. */
typedef struct cl_direction {
    cl_keyed *(*held)(cl_slot *slot, const cl_record *record, uint64_t now);
    cl_keyed *(*begin)(cl_slot *slot, cl_lease *lease, const cl_record *record, uint64_t now);
    cl_code (*lease)(cl_keys *keys, const cl_record *record, cl_lease **lease, cl_error *error);
    cl_code (*apply)(cl_slot *slot, cl_keyed *keyed, const cl_record *record);
} cl_direction;

/* Asks for a lease and applies the direction under it. */
cl_code cl_record_start(cl_core *core, const cl_direction *direction, const cl_record *record, cl_error *error);

/*
 * Applies the direction with a cipher that a slot holds, without a lock; else under a lease that is asked for. Here, so that the compiler sees
 * which functions a direction has.
 */
static inline cl_code cl_record_run(cl_core *core, const cl_direction *direction, const cl_record *record,
                                    cl_error *error)
{
    cl_code code = CL_INTERNAL;
    cl_slot *slot = cl_slot_take(core->slots);
    cl_keyed *keyed = direction->held(slot, record, cl_slot_now(slot));
    if (keyed != NULL) {
        code = direction->apply(slot, keyed, record);
    }
    cl_slot_give(slot);
    if (keyed == NULL) {
        return cl_record_start(core, direction, record, error);
    }
    return code == CL_OK ? CL_OK : cl_fail(error, code, "%s", cl_code_name(code));
}

/* Memory for additional data that a lease does not have ready. */
typedef struct cl_aad_memory {
    cl_aad aad;
    uint8_t key_prefix[4];
} cl_aad_memory;

/* Sets input->aad for an envelope with these flags; `memory` lives as long as the input. The record key is known if the flags bind it. */
void cl_record_aad(cl_aead_input *input, const cl_lease *lease, uint8_t flags, const cl_bytes *record_key,
                   cl_aad_memory *memory);

#endif
