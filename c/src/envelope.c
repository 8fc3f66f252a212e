/* The one parser and the one writer of the envelope. */
#include "envelope.h"

#include "bytes.h"

static const uint8_t MAGIC[2] = {0xC1, 0x9E};
#define VERSION 0x01U
#define COMPRESSION_BITS 0x03U
#define KNOWN_FLAGS (CL_FLAG_ZSTD | CL_FLAG_KEY_BOUND)

static bool name_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

bool cl_name_valid(const char *name)
{
    size_t size = 0;
    while (size <= CL_SCOPE_MAX && name_char(name[size])) {
        size++;
    }
    bool dots = name[0] == '.' && (size == 1 || (size == 2 && name[1] == '.'));
    return size >= 1 && size <= CL_SCOPE_MAX && name[size] == '\0' && !dots;
}

bool cl_has_magic(cl_bytes value)
{
    return value.data != NULL && value.size >= sizeof MAGIC && memcmp(value.data, MAGIC, sizeof MAGIC) == 0;
}

/* [CL-ENV-007]: bits 3 to 7 are unknown, and so are the compressions 2 and 3. */
static bool flags_known(uint8_t flags)
{
    return (flags & ~KNOWN_FLAGS) == 0 && (flags & COMPRESSION_BITS) <= CL_FLAG_ZSTD;
}

/* Everything after the version, of a value that is long enough for all of it. */
static bool take_fields(cl_cursor *cursor, cl_envelope *envelope)
{
    const uint8_t *kid = NULL;
    if (cursor->left < CL_ENVELOPE_OVERHEAD - 3U || !cl_take_byte(cursor, &envelope->flags) ||
        !cl_take(cursor, CL_KID_SIZE, &kid) || !cl_take(cursor, CL_NONCE_SIZE, &envelope->nonce)) {
        return false;
    }
    memcpy(envelope->kid.bytes, kid, CL_KID_SIZE);
    envelope->size = cursor->left - CL_TAG_SIZE;
    return cl_take(cursor, envelope->size, &envelope->ciphertext) && cl_take(cursor, CL_TAG_SIZE, &envelope->tag);
}

cl_code cl_envelope_parse(cl_bytes value, cl_envelope *envelope)
{
    cl_cursor cursor = {value.data, value.size};
    uint8_t version = 0;
    if (!cl_take(&cursor, sizeof MAGIC, &envelope->preamble) || !cl_take_byte(&cursor, &version)) {
        return CL_ENVELOPE_TOO_SHORT;
    }
    if (version != VERSION) {
        return CL_UNSUPPORTED_VERSION;
    }
    if (!take_fields(&cursor, envelope)) {
        return CL_ENVELOPE_TOO_SHORT;
    }
    if (!flags_known(envelope->flags)) {
        return CL_UNSUPPORTED_FLAGS;
    }
    return envelope->size <= CL_CIPHERTEXT_MAX ? CL_OK : CL_PLAINTEXT_TOO_LONG;
}

void cl_preamble_write(uint8_t out[CL_PREAMBLE_SIZE], uint8_t flags, const cl_kid *kid)
{
    memcpy(out, MAGIC, sizeof MAGIC);
    out[2] = VERSION;
    out[3] = flags;
    memcpy(out + 4, kid->bytes, CL_KID_SIZE);
}

void cl_aad_build(cl_aad *aad, const uint8_t preamble[CL_PREAMBLE_SIZE], const char *scope)
{
    size_t size = strnlen(scope, CL_SCOPE_MAX);
    memcpy(aad->bytes, preamble, CL_PREAMBLE_SIZE);
    cl_store16(aad->bytes + CL_PREAMBLE_SIZE, (uint16_t)size);
    memcpy(aad->bytes + CL_PREAMBLE_SIZE + 2, scope, size);
    aad->size = CL_PREAMBLE_SIZE + 2 + size;
}

void cl_key_prefix(uint8_t out[4], cl_bytes record_key)
{
    cl_store32(out, record_key.data == NULL ? UINT32_MAX : (uint32_t)record_key.size);
}

void cl_kid_write(char out[CL_KID_TEXT + 1], const cl_kid *kid)
{
    static const char DIGITS[] = "0123456789abcdef";
    for (size_t i = 0; i < CL_KID_SIZE; i++) {
        out[2 * i] = DIGITS[kid->bytes[i] >> 4U];
        out[2 * i + 1] = DIGITS[kid->bytes[i] & 0xFU];
    }
    out[CL_KID_TEXT] = '\0';
}

/* The value of a lowercase hexadecimal digit, or 16. */
static unsigned digit(char c)
{
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0');
    }
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10U : 16U;
}

bool cl_kid_parse(const char *text, cl_kid *kid)
{
    if (strnlen(text, CL_KID_TEXT + 1) != CL_KID_TEXT) {
        return false;
    }
    for (size_t i = 0; i < CL_KID_SIZE; i++) {
        unsigned high = digit(text[2 * i]);
        unsigned low = digit(text[2 * i + 1]);
        if (high > 15U || low > 15U) {
            return false;
        }
        kid->bytes[i] = (uint8_t)(high << 4U | low);
    }
    return true;
}
