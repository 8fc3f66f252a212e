/* cl_decrypt and cl_prefetch: topic and bytes in, bytes out. */
#include "compression.h"
#include "record.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

/* One GCM call; `out` has room for the ciphertext. */
static cl_code open_into(cl_keyed *derived, const cl_record *record, uint8_t *out)
{
    cl_aad_memory memory;
    const cl_envelope *envelope = &record->envelope;
    cl_aead_input input = {.iv = envelope->nonce + CL_SALT_SIZE, .text = {envelope->ciphertext, envelope->size}};
    cl_record_aad(&input, derived->lease, envelope->flags, record->record_key, &memory);
    return cl_cipher_decrypt(derived->context, &input, envelope->tag, out);
}

static cl_code open_plain(cl_keyed *derived, const cl_record *work)
{
    static const uint8_t EMPTY[1] = {0}; /* an empty value is not null */
    size_t size = work->envelope.size;
    if (work->capacity < size) {
        *work->out = (cl_bytes){NULL, size};
        return CL_BUFFER_TOO_SMALL;
    }
    cl_code code = open_into(derived, work, work->buffer);
    if (code == CL_OK) {
        *work->out = (cl_bytes){size == 0 && work->buffer == NULL ? EMPTY : work->buffer, size};
    }
    return code;
}

static cl_code open_compressed(cl_keyed *derived, const cl_record *work)
{
    size_t size = 0;
    uint8_t *frame = malloc(work->envelope.size + 1);
    if (frame == NULL) {
        return CL_INTERNAL;
    }
    cl_code code = open_into(derived, work, frame);
    if (code == CL_OK) {
        code = cl_decompress((cl_bytes){frame, work->envelope.size}, work->limit, work->buffer, work->capacity, &size);
        *work->out = (cl_bytes){code == CL_OK ? work->buffer : NULL, code == CL_PLAINTEXT_TOO_LONG ? 0 : size};
    }
    OPENSSL_cleanse(frame, work->envelope.size);
    free(frame);
    return code;
}

static cl_code apply(cl_slot *slot, cl_keyed *derived, const cl_record *record)
{
    bool compressed = (record->envelope.flags & CL_FLAG_ZSTD) != 0;
    cl_code code = compressed ? open_compressed(derived, record) : open_plain(derived, record);
    if (code == CL_OK) {
        cl_slot_decrypted(slot);
    }
    return code;
}

static cl_keyed *held(cl_slot *slot, const cl_record *record, uint64_t now)
{
    return cl_slot_derived(slot, record->topic, &record->envelope, now);
}

static cl_keyed *begin(cl_slot *slot, cl_lease *lease, const cl_record *record, uint64_t now)
{
    return cl_slot_derive(slot, lease, &record->envelope, now);
}

static cl_code lease(cl_keys *keys, const cl_record *record, cl_lease **out, cl_error *error)
{
    return cl_keys_decryption(keys, record->topic, &record->envelope.kid, out, error);
}

/* Steps 4 to 8 of "Reading", and the limit of step 7 [CL-ENV-013]. */
static cl_code check(cl_record *work)
{
    cl_code code = cl_envelope_parse(work->value, &work->envelope);
    if (code != CL_OK) {
        return code;
    }
    bool compressed = (work->envelope.flags & CL_FLAG_ZSTD) != 0;
    if (!compressed && work->envelope.size > work->limit) {
        return CL_PLAINTEXT_TOO_LONG;
    }
    bool bound = (work->envelope.flags & CL_FLAG_KEY_BOUND) != 0;
    if (bound && work->record_key == NULL) {
        return CL_RECORD_KEY_UNAVAILABLE; /* [CL-ENV-008] */
    }
    return bound && work->record_key->size > CL_RECORD_KEY_MAX ? CL_PLAINTEXT_TOO_LONG : CL_OK;
}

static cl_code decrypt_envelope(cl_core *core, cl_record *work, cl_error *error)
{
    static const cl_direction DECRYPT = {held, begin, lease, apply};
    cl_code code = check(work);
    return code == CL_OK ? cl_record_run(core, &DECRYPT, work, error) : cl_fail(error, code, "%s", cl_code_name(code));
}

/* Plaintext is handed over only if the policy says so [CL-ENV-002]. */
static cl_code pass_plaintext(cl_client *client, cl_core *core, const cl_record *work, cl_error *error)
{
    cl_lease *lease = NULL;
    cl_code code = cl_keys_plaintext(core->keys, work->topic, &lease, error);
    if (code != CL_OK) {
        return code;
    }
    bool accepted = lease->mode == CL_MODE_ACCEPT;
    cl_lease_mark_used(lease);
    cl_lease_drop(lease);
    if (!accepted) {
        return cl_fail(error, CL_PLAINTEXT_REJECTED, "plaintext-rejected: the value is not encrypted");
    }
    *work->out = work->value;
    cl_client_accepted(client);
    return CL_OK;
}

static cl_code explain(cl_code code, const cl_record *work, cl_error *error)
{
    if (error != NULL) {
        cl_error cause = *error;
        char kid[CL_KID_TEXT + 1] = "none";
        if (work->envelope.tag != NULL) {
            cl_kid_write(kid, &work->envelope.kid);
        }
        (void)cl_fail(error, code, "topic %.249s, kid %s: not decrypted: %.180s", work->topic, kid, cause.message);
    }
    return code;
}

static cl_code run(cl_client *client, cl_record *work, cl_error *error)
{
    cl_core *core = cl_client_core(client, error);
    bool envelope = cl_has_magic(work->value);
    return core == NULL ? CL_INTERNAL
           : envelope   ? decrypt_envelope(core, work, error)
                        : pass_plaintext(client, core, work, error);
}

cl_code cl_decrypt(cl_client *client, const char *topic, cl_bytes value, const cl_bytes *record_key, uint8_t *buffer,
                   size_t capacity, cl_bytes *out, cl_error *error)
{
    cl_record work = {topic, value, record_key, buffer, capacity, out, client->settings.max_plaintext, {0}};
    *out = (cl_bytes){NULL, 0};
    if (value.data == NULL) {
        return CL_OK; /* [CL-ENV-001] */
    }
    cl_code code = run(client, &work, error);
    if (code == CL_OK) {
        return CL_OK;
    }
    if (code != CL_BUFFER_TOO_SMALL) { /* which the caller mends */
        cl_client_failed(client, code);
    }
    return explain(code, &work, error);
}

/* The kids of the values that are envelopes this library can read. */
static size_t kids_of(const cl_bytes *values, size_t count, cl_kid *kids)
{
    size_t found = 0;
    cl_envelope envelope = {0};
    for (size_t i = 0; i < count; i++) {
        bool readable =
            values[i].data != NULL && cl_has_magic(values[i]) && cl_envelope_parse(values[i], &envelope) == CL_OK;
        bool again = found > 0 && memcmp(&kids[found - 1], &envelope.kid, sizeof envelope.kid) == 0;
        if (readable && !again) {
            kids[found++] = envelope.kid;
        }
    }
    return found;
}

void cl_prefetch(cl_client *client, const char *topic, const cl_bytes *values, size_t count)
{
    cl_core *core = cl_name_valid(topic) ? cl_client_core(client, NULL) : NULL;
    cl_kid *kids = core == NULL || count == 0 ? NULL : calloc(count, sizeof *kids);
    if (kids != NULL) {
        cl_keys_prefetch(core->keys, topic, kids, kids_of(values, count, kids));
        free(kids);
    }
}
