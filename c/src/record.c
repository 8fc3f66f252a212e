/* The way of a record to its keyed cipher. */
#include "record.h"

#include "clock.h"

/* Of failures that a lease ends while it is used, how many are tried again before giving up. */
#define ATTEMPTS 3

/* With a new one under the lease; false when the lease has ended meanwhile. */
static bool with_lease(cl_core *core, const cl_direction *direction, cl_lease *lease, const cl_record *record,
                       cl_code *code)
{
    uint64_t now = cl_now();
    cl_slot *slot = cl_slot_take(core->slots);
    cl_keyed *keyed = direction->begin(slot, lease, record, now);
    *code = keyed == NULL ? CL_INTERNAL : direction->apply(slot, keyed, record);
    cl_slot_give(slot);
    return keyed != NULL || cl_lease_alive(lease, now);
}

cl_code cl_record_start(cl_core *core, const cl_direction *direction, const cl_record *record, cl_error *error)
{
    bool done = false;
    cl_code code = CL_OK;
    for (int i = 0; i < ATTEMPTS && !done; i++) {
        cl_lease *lease = NULL;
        code = direction->lease(core->keys, record, &lease, error);
        if (code != CL_OK) {
            return code;
        }
        done = with_lease(core, direction, lease, record, &code);
        cl_lease_drop(lease);
    }
    code = done ? code : CL_LEASE_EXPIRED; /* each ended before it could be used */
    return code == CL_OK ? CL_OK : cl_fail(error, code, "%s", cl_code_name(code));
}

void cl_record_aad(cl_aead_input *input, const cl_lease *lease, uint8_t flags, const cl_bytes *record_key,
                   cl_aad_memory *memory)
{
    const cl_aad *aad = &lease->aad;
    if (flags != 0) {
        uint8_t preamble[CL_PREAMBLE_SIZE];
        cl_preamble_write(preamble, flags, &lease->kid);
        cl_aad_build(&memory->aad, preamble, lease->scope);
        aad = &memory->aad;
    }
    input->aad[0] = (cl_bytes){aad->bytes, aad->size};
    input->aad[1] = (cl_bytes){NULL, 0};
    input->aad[2] = (cl_bytes){NULL, 0};
    if ((flags & CL_FLAG_KEY_BOUND) != 0) {
        cl_key_prefix(memory->key_prefix, *record_key);
        input->aad[1] = (cl_bytes){memory->key_prefix, sizeof memory->key_prefix};
        input->aad[2] = *record_key;
    }
}
