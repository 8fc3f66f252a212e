/*
 * The envelope (spec/envelope.md): its bytes, parsed and written, and the additional data. Knows nothing of keys,
 * network or Kafka. All functions are pure.
 */
#ifndef CL_ENVELOPE_H
#define CL_ENVELOPE_H

#include <cipherlane/cipherlane.h>

#define CL_KID_SIZE 16U
#define CL_KID_TEXT 32U      /* hexadecimal digits of a kid */
#define CL_PREAMBLE_SIZE 20U /* magic, version, flags, kid: what the AAD begins with */
#define CL_NONCE_SIZE 24U
#define CL_NONCE_PREFIX_SIZE 20U
#define CL_TAG_SIZE 16U
#define CL_SCOPE_MAX 249U
#define CL_CIPHERTEXT_MAX 2147483587U
#define CL_RECORD_KEY_MAX 2147483647U

#define CL_FLAG_ZSTD 0x01U
#define CL_FLAG_KEY_BOUND 0x04U

typedef struct cl_kid {
    uint8_t bytes[CL_KID_SIZE];
} cl_kid;

/* A parsed envelope: pointers into the value. */
typedef struct cl_envelope {
    const uint8_t *preamble; /* CL_PREAMBLE_SIZE bytes */
    uint8_t flags;
    cl_kid kid;
    const uint8_t *nonce; /* CL_NONCE_SIZE bytes */
    const uint8_t *ciphertext;
    size_t size;        /* of the ciphertext */
    const uint8_t *tag; /* CL_TAG_SIZE bytes */
} cl_envelope;

/* Additional data up to the scope; a bound record key follows as cl_key_prefix and the key's bytes. */
typedef struct cl_aad {
    size_t size;
    uint8_t bytes[CL_PREAMBLE_SIZE + 2 + CL_SCOPE_MAX];
} cl_aad;

/* Kafka's rule for topic names, and ours for scopes: 1 to 249 of A-Z a-z 0-9 . _ -, not "." or "..". */
bool cl_name_valid(const char *name);

/* Whether the value is to be treated as an envelope: step 2 of "Reading". */
bool cl_has_magic(cl_bytes value);

/* Steps 4 to 7 of "Reading" for a value that has the magic. */
cl_code cl_envelope_parse(cl_bytes value, cl_envelope *envelope);

/* The first 20 bytes of an envelope. */
void cl_preamble_write(uint8_t out[CL_PREAMBLE_SIZE], uint8_t flags, const cl_kid *kid);

/* The additional data of an envelope that starts with this preamble; `scope` is a valid name. */
void cl_aad_build(cl_aad *aad, const uint8_t preamble[CL_PREAMBLE_SIZE], const char *scope);

/* The length that stands before a bound record key; FFFFFFFF for a null one. */
void cl_key_prefix(uint8_t out[4], cl_bytes record_key);

/* 32 lowercase hexadecimal digits and a NUL. */
void cl_kid_write(char out[CL_KID_TEXT + 1], const cl_kid *kid);

/* The reverse; false unless `text` is exactly that. */
bool cl_kid_parse(const char *text, cl_kid *kid);

#endif
