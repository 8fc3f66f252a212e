/* cl_encrypt: topic and bytes in, bytes out. */
#include "bytes.h"
#include "client.h"
#include "clock.h"
#include "error.h"

/* Of failures that a lease ends while it is used, how many are tried again before giving up. */
#define ATTEMPTS 3

typedef struct job {
    const char *topic;
    cl_bytes value;
    uint8_t *buffer;
    size_t capacity;
    cl_bytes *out;
} job;

/* One GCM call under a session that the thread owns; its counter is spent before it is used [CL-ENV-031]. */
static cl_code encrypt_under(cl_keyed *session, const job *work)
{
    const cl_aad *aad = &session->lease->aad;
    uint8_t *nonce = work->buffer + CL_PREAMBLE_SIZE;
    if (work->capacity < CL_ENVELOPE_OVERHEAD || work->capacity - CL_ENVELOPE_OVERHEAD < work->value.size) {
        return CL_BUFFER_TOO_SMALL;
    }
    memcpy(work->buffer, aad->bytes, CL_PREAMBLE_SIZE);
    memcpy(nonce, session->nonce, CL_NONCE_PREFIX_SIZE);
    cl_store32(nonce + CL_NONCE_PREFIX_SIZE, session->counter++);
    const cl_aead_input input = {nonce + CL_SALT_SIZE, {{aad->bytes, aad->size}, {NULL, 0}, {NULL, 0}}, work->value};
    cl_code code = cl_cipher_encrypt(session->context, &input, work->buffer + CL_ENVELOPE_HEADER);
    if (code == CL_OK) {
        session->records++;
        session->bytes += work->value.size;
        *work->out = (cl_bytes){work->buffer, work->value.size + CL_ENVELOPE_OVERHEAD};
    }
    return code;
}

/* What the policy's decision makes of the value. */
static cl_code apply(cl_keyed *session, const job *work)
{
    switch (session->lease->mode) {
    case CL_MODE_ENCRYPT: /* null stays null, so that compaction works [CL-ENV-040] */
        return work->value.data == NULL ? CL_OK : encrypt_under(session, work);
    case CL_MODE_CLEAR:
        if (cl_has_magic(work->value)) {
            return CL_AMBIGUOUS_PLAINTEXT; /* [CL-ENV-041] */
        }
        *work->out = work->value;
        return CL_OK;
    default:
        return CL_TOPIC_FORBIDDEN;
    }
}

/* With what the slot holds; false when it holds nothing for the topic. */
static bool with_session(cl_core *core, const job *work, cl_code *code)
{
    cl_slot *slot = cl_slot_take(core->slots);
    cl_keyed *session = cl_slot_session(slot, work->topic, cl_slot_now(slot));
    if (session != NULL) {
        *code = apply(session, work);
    }
    cl_slot_give(slot);
    return session != NULL;
}

/* With a new session under the lease; false when the lease has ended meanwhile. */
static bool with_lease(cl_core *core, cl_lease *lease, const job *work, cl_code *code)
{
    uint64_t now = cl_now();
    cl_slot *slot = cl_slot_take(core->slots);
    cl_keyed *session = cl_slot_begin(slot, lease, now);
    *code = session == NULL ? CL_INTERNAL : apply(session, work);
    cl_slot_give(slot);
    return session != NULL || cl_lease_alive(lease, now);
}

/* Gets a lease and begins a session. */
static cl_code start(cl_core *core, const job *work, cl_error *error)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        cl_lease *lease = NULL;
        cl_code code = cl_keys_encryption(core->keys, work->topic, &lease, error);
        if (code != CL_OK) {
            return code;
        }
        bool done = with_lease(core, lease, work, &code);
        cl_lease_drop(lease);
        if (done) {
            return code == CL_OK ? CL_OK : cl_fail(error, code, "%s", cl_code_name(code));
        }
    }
    return cl_fail(error, CL_LEASE_EXPIRED, "lease-expired: the lease ends before it can be used");
}

/* Every message names the topic. */
static cl_code explain(cl_code code, const job *work, cl_error *error)
{
    if (code != CL_OK && error != NULL) {
        cl_error cause = *error;
        (void)cl_fail(error, code, "topic %.249s: not encrypted: %.200s", work->topic, cause.message);
    }
    return code;
}

cl_code cl_encrypt(cl_client *client, const char *topic, cl_bytes value, uint8_t *buffer, size_t capacity,
                   cl_bytes *out, cl_error *error)
{
    const job work = {topic, value, buffer, capacity, out};
    *out = (cl_bytes){NULL, 0};
    if (value.size > client->settings.max_plaintext) {
        cl_code code = cl_fail(error, CL_PLAINTEXT_TOO_LONG, "plaintext-too-long: over cipherlane.max.plaintext.bytes");
        return explain(code, &work, error); /* [CL-ENV-042] */
    }
    cl_core *core = cl_client_core(client, error);
    cl_code code = CL_INTERNAL;
    if (core != NULL && !with_session(core, &work, &code)) {
        code = start(core, &work, error);
    } else if (core != NULL && code != CL_OK) {
        (void)cl_fail(error, code, "%s", cl_code_name(code));
    }
    return explain(code, &work, error);
}
