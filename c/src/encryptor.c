/* cl_encrypt: topic and bytes in, bytes out. */
#include "bytes.h"
#include "compression.h"
#include "record.h"

#include <openssl/crypto.h>

/* The record key of a topic that binds it must be known, null or not [CL-KAF-031]. */
static cl_code check_key(const cl_lease *lease, const cl_record *record)
{
    if (lease->bind && record->record_key == NULL) {
        return CL_RECORD_KEY_UNAVAILABLE;
    }
    return lease->bind && record->record_key->size > CL_RECORD_KEY_MAX ? CL_PLAINTEXT_TOO_LONG : CL_OK;
}

/* What is encrypted: the value, or a frame that takes its place in the envelope already [CL-ENV-045]. */
static cl_code choose_text(cl_slot *slot, const cl_lease *lease, const cl_record *record, cl_bytes *text)
{
    size_t size = 0;
    *text = record->value;
    if (record->value.size < lease->compress_from) {
        return CL_OK;
    }
    uint8_t *place = record->buffer + CL_ENVELOPE_HEADER;
    ZSTD_CCtx *compressor = cl_slot_compressor(slot);
    cl_code code = compressor == NULL ? CL_INTERNAL : cl_compress(compressor, record->value, place, &size);
    if (size > 0) {
        *text = (cl_bytes){place, size};
    }
    return code;
}

/* One GCM call under a session that the thread owns; its counter is spent before it is used [CL-ENV-031]. */
static cl_code write_envelope(cl_keyed *session, const cl_record *record, cl_bytes text)
{
    cl_aad_memory memory;
    const cl_lease *lease = session->lease;
    uint8_t *nonce = record->buffer + CL_PREAMBLE_SIZE;
    bool compressed = text.data != record->value.data;
    uint8_t flags = (uint8_t)((compressed ? CL_FLAG_ZSTD : 0U) | (lease->bind ? CL_FLAG_KEY_BOUND : 0U));
    cl_aead_input input = {.iv = nonce + CL_SALT_SIZE, .text = text};
    cl_record_aad(&input, lease, flags, record->record_key, &memory);
    memcpy(record->buffer, input.aad[0].data, CL_PREAMBLE_SIZE);
    memcpy(nonce, session->nonce, CL_NONCE_PREFIX_SIZE);
    cl_store32(nonce + CL_NONCE_PREFIX_SIZE, session->counter++);
    return cl_cipher_encrypt(session->context, &input, record->buffer + CL_ENVELOPE_HEADER);
}

static cl_code encrypt_under(cl_slot *slot, cl_keyed *session, const cl_record *record)
{
    cl_bytes text;
    size_t size = record->value.size;
    if (record->capacity < CL_ENVELOPE_OVERHEAD || record->capacity - CL_ENVELOPE_OVERHEAD < size) {
        return CL_BUFFER_TOO_SMALL;
    }
    cl_code code = check_key(session->lease, record);
    code = code == CL_OK ? choose_text(slot, session->lease, record, &text) : code;
    code = code == CL_OK ? write_envelope(session, record, text) : code;
    if (code != CL_OK) {
        OPENSSL_cleanse(record->buffer, size + CL_ENVELOPE_OVERHEAD); /* a frame is as good as plaintext */
        return code;
    }
    session->records++;
    session->bytes += size; /* before compression [CL-ENV-046] */
    cl_slot_encrypted(slot);
    *record->out = (cl_bytes){record->buffer, text.size + CL_ENVELOPE_OVERHEAD};
    return CL_OK;
}

/* What the policy's decision makes of the value. */
static cl_code apply(cl_slot *slot, cl_keyed *session, const cl_record *record)
{
    switch (session->lease->mode) {
    case CL_MODE_ENCRYPT: /* null stays null, so that compaction works [CL-ENV-040] */
        return record->value.data == NULL ? CL_OK : encrypt_under(slot, session, record);
    case CL_MODE_CLEAR:
        if (cl_has_magic(record->value)) {
            return CL_AMBIGUOUS_PLAINTEXT; /* [CL-ENV-041] */
        }
        *record->out = record->value;
        return CL_OK;
    default:
        return CL_TOPIC_FORBIDDEN;
    }
}

static cl_keyed *held(cl_slot *slot, const cl_record *record, uint64_t now)
{
    return cl_slot_session(slot, record->topic, now);
}

static cl_keyed *begin(cl_slot *slot, cl_lease *lease, const cl_record *record, uint64_t now)
{
    (void)record;
    return cl_slot_begin(slot, lease, now);
}

static cl_code lease(cl_keys *keys, const cl_record *record, cl_lease **out, cl_error *error)
{
    return cl_keys_encryption(keys, record->topic, out, error);
}

static cl_code run(cl_client *client, const cl_record *record, cl_error *error)
{
    static const cl_direction ENCRYPT = {held, begin, lease, apply};
    if (record->value.size > client->settings.max_plaintext) { /* [CL-ENV-042] */
        return cl_fail(error, CL_PLAINTEXT_TOO_LONG, "plaintext-too-long: over cipherlane.max.plaintext.bytes");
    }
    cl_core *core = cl_client_core(client, error);
    return core == NULL ? CL_INTERNAL : cl_record_run(core, &ENCRYPT, record, error);
}

/* Every message names the topic. */
static cl_code explain(cl_code code, const cl_record *record, cl_error *error)
{
    if (error != NULL) {
        cl_error cause = *error;
        (void)cl_fail(error, code, "topic %.249s: not encrypted: %.200s", record->topic, cause.message);
    }
    return code;
}

cl_code cl_encrypt(cl_client *client, const char *topic, cl_bytes value, const cl_bytes *record_key, uint8_t *buffer,
                   size_t capacity, cl_bytes *out, cl_error *error)
{
    const cl_record record = {topic, value, record_key, buffer, capacity, out, 0, {0}};
    *out = (cl_bytes){NULL, 0};
    cl_code code = run(client, &record, error);
    if (code == CL_OK) {
        return CL_OK;
    }
    cl_client_failed(client, code);
    return explain(code, &record, error);
}
