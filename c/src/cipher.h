/*
 * XAES-256-GCM (C2SP) over OpenSSL's EVP: key id, derivation, and the AES-256-GCM call. Wipes what it derives. Knows
 * nothing of topics, network or Kafka.
 */
#ifndef CL_CIPHER_H
#define CL_CIPHER_H

#include "envelope.h"

#include <openssl/evp.h>
#include <openssl/kdf.h>

#define CL_KEY_SIZE 32U
#define CL_SALT_SIZE 12U /* the part of the nonce that derives the AES key */
#define CL_IV_SIZE 12U   /* the part that is the GCM nonce */

/* What OpenSSL looks up by name, looked up once. Immutable afterwards, so any thread may use it. */
typedef struct cl_algorithms {
    EVP_CIPHER *gcm;
    EVP_CIPHER *block;
    EVP_KDF *hkdf;
} cl_algorithms;

/* One GCM call: additional data in up to three pieces, in order. */
typedef struct cl_aead_input {
    const uint8_t *iv; /* CL_IV_SIZE bytes */
    cl_bytes aad[3];
    cl_bytes text; /* plaintext, or ciphertext without tag */
} cl_aead_input;

#define CL_BLOCK_SIZE 16U /* of AES */

typedef struct cl_block {
    uint8_t bytes[CL_BLOCK_SIZE];
} cl_block;

typedef struct cl_hkdf_input {
    cl_bytes key;
    cl_bytes salt;
    cl_bytes info;
} cl_hkdf_input;

/* CL_OK or CL_INTERNAL; what was opened is closed by cl_algorithms_close also after a failure. */
cl_code cl_algorithms_open(cl_algorithms *algorithms);
void cl_algorithms_close(cl_algorithms *algorithms);

/* HKDF-SHA256 (RFC 5869). CL_OK or CL_INTERNAL, also for a size that HKDF does not give. */
cl_code cl_hkdf(const cl_algorithms *algorithms, const cl_hkdf_input *input, uint8_t *out, size_t size);

/* AES-256-CMAC of messages of one block each under one key, which is all that XAES-256-GCM needs. CL_OK or CL_INTERNAL. */
cl_code cl_cmac_blocks(const cl_algorithms *algorithms, const uint8_t key[CL_KEY_SIZE], const cl_block *blocks,
                       size_t count, cl_block *out);

/* The key id of a data key [CL-ENV-020]. CL_OK or CL_INTERNAL. */
cl_code cl_key_id(const cl_algorithms *algorithms, const uint8_t key[CL_KEY_SIZE], cl_kid *kid);

/*
 * A context that holds the AES-256-GCM key schedule of (key, salt) [CL-ENV-022]: derive once, then use it for any number of
 * records, by one thread at a time. NULL when OpenSSL fails. Free with EVP_CIPHER_CTX_free, which wipes it.
 */
EVP_CIPHER_CTX *cl_cipher_new(const cl_algorithms *algorithms, const uint8_t key[CL_KEY_SIZE],
                              const uint8_t salt[CL_SALT_SIZE], bool encrypt);

/* Writes text.size bytes and the tag to `out`. CL_OK or CL_INTERNAL. */
cl_code cl_cipher_encrypt(EVP_CIPHER_CTX *context, const cl_aead_input *input, uint8_t *out);

/*
 * Writes text.size bytes to `out`, which is apart from the text or the same memory. CL_OK, CL_AUTHENTICATION_FAILED or
 * CL_INTERNAL; after a failure `out` is wiped.
 */
cl_code cl_cipher_decrypt(EVP_CIPHER_CTX *context, const cl_aead_input *input, const uint8_t tag[CL_TAG_SIZE],
                          uint8_t *out);

/* Random bytes of the operating system [CL-ENV-030]; false if it has none. */
bool cl_random(uint8_t *out, size_t size);

#endif
